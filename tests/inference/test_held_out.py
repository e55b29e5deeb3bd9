"""Held-out contrast: against refits on explicit rows, on noise, on replicates, and folds of awkward blocks."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from sklearn.base import clone

from conftest import make_groups
from contrapca import (
    CLVM,
    CPCA,
    PCPCA,
    PPCA,
    ContraPCA,
    Moments,
    RatioPCA,
    SparseCPCA,
    Study,
    gamma_limits,
    held_out_contrast,
)
from contrapca.contrast._held_out import OTHER_AXES
from contrapca.data._groups import Groups
from contrapca.exceptions import ContrastWarning, GroupError, InfeasibleGammaError
from contrapca.inference._held_out import HeldOutContrast
from contrapca.inference._verdict import on_components
from contrapca.moments import _complete, _subsets
from contrapca.moments._span import reduce_rows
from contrapca.moments._subsets import assign_folds
from contrapca.reporting._report import summarize
from contrapca.reporting._subject import examine
from oracle_split import measured, unseen

X, Y = make_groups(90, 70, 12, signal=2.0)
ESTIMATORS = {
    "PPCA": PPCA(2),
    "PCPCA": PCPCA(2, gamma=0.5),
    "PCPCA, auto": PCPCA(2),
    "PCPCA, gradients": PCPCA(1, gamma=0.2, solver="lbfgs"),
    "PCPCA, pooled": PCPCA(2, gamma=0.3, scale="pooled"),
    "ContraPCA": ContraPCA(2, shorten=False),
    "ContraPCA, one, group": ContraPCA(1, scale="group", shorten=False),
    "ContraPCA, rank": ContraPCA(2, n_latent=5, shorten=False),
    "CPCA": CPCA(2, gamma=2.0),
    "CLVM": CLVM(2, 2, scale="pooled"),
}


def halves_of(X, Y, blocks=None, n_splits=5):
    """The splits, parts and units of `held_out_contrast` with its default seed."""
    units = Groups.of(np.arange(len(X)), len(X) + np.arange(len(Y))) if blocks is None else Groups.of(*blocks)
    rng = np.random.default_rng(0)
    parts = assign_folds(units, 10, rng)
    n_parts = 1 + parts.foreground.max()
    return np.argsort(rng.random((n_splits, n_parts)), axis=1) < n_parts // 2, parts, units


def refitted(estimator, X, Y):
    """A function that fits the estimator to other rows, with what is chosen from all."""
    if isinstance(estimator, ContraPCA):
        model = clone(estimator).set_params(shorten=False)
        data = model._collected(Study(X, background=Y).tables)
        estimator = model._settled(data)

    def fit(left, right):
        model = clone(estimator)
        return model.fit(left) if isinstance(model, PPCA) else model.fit(left, background=right)

    return fit


def check(estimator, X, Y, found, tolerance, given=(None, None)):
    """F43 word by word."""
    splits, parts, units = halves_of(X, Y, None if given[0] is None else given)
    if estimator.scale in ("pooled", "group"):
        X, Y = measured(estimator.scale, X, Y)
        estimator = clone(estimator).set_params(scale=None)
    slow = refitted(estimator, X, Y)
    log_ratios, added, agreement = unseen(slow, X, Y, splits, list(parts), list(units))
    np.testing.assert_allclose(found.log_ratios, log_ratios, atol=tolerance)
    np.testing.assert_allclose(found.agreement, agreement, atol=10 * tolerance)
    kinds = [set(own) for own in units]
    variance = np.zeros(len(log_ratios))
    for kind in (kinds[0] - kinds[1], kinds[1] - kinds[0], kinds[0] & kinds[1]):
        n = len(kind)
        variance += (n - 1) / max(n, 1) * sum((added[u] ** 2 for u in kind), np.zeros(len(log_ratios)))
    np.testing.assert_allclose(found.standard_errors, np.sqrt(OTHER_AXES * variance), rtol=100 * tolerance)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.filterwarnings("ignore::contrapca.exceptions.ContrastWarning")
def test_is_that_of_refits_to_rows(name):
    estimator = ESTIMATORS[name]
    found = held_out_contrast(estimator, X, background=Y)
    check(estimator, X, Y, found, 1e-3 if name in ("CLVM", "PCPCA, gradients") else 1e-6)
    assert found.mean == pytest.approx(found.log_ratios.mean())
    assert found.n_splits == 5
    np.testing.assert_allclose(found.ratios, np.exp(found.log_ratios))
    assert np.all(found.intervals[:, 0] < found.ratios)
    assert np.all(found.ratios < found.intervals[:, 1])


@pytest.mark.parametrize("paired", [False, True])
def test_blocks_are_judged_whole(paired):
    animals = np.repeat(np.arange(12), np.arange(2, 14))  # of unequal size
    others = np.arange(70) // 7 + (0 if paired else 100)
    found = held_out_contrast(CPCA(2, gamma=1.0), Study(X, background=Y, blocks=(animals, others)), random_state=0)
    _, numbers = np.unique(np.concatenate([animals, others]), return_inverse=True)
    check(CPCA(2, gamma=1.0), X, Y, found, 1e-6, (numbers[:90], numbers[90:]))
    latents = CPCA(2, gamma=1.0).fit(X, background=Y).transform(X)
    sums = np.stack([np.bincount(animals, column**2) for column in latents.T])
    np.testing.assert_allclose(found.largest_share, sums.max(axis=1) / sums.sum(axis=1))


@pytest.mark.parametrize("scale", [None, "pooled"])
@pytest.mark.parametrize("shape", ["wide", "sparse", "sparse, wide", "float32"])
def test_other_tables(shape, scale):
    n, m, D = (25, 30, 120) if "wide" in shape else (120, 100, 15)
    left, right = make_groups(n, m, D, signal=4.0, nuisance=2.0)
    if "sparse" in shape:
        left, right = (np.where(np.abs(rows) > 0.8, rows, 0.0) for rows in (left, right))
    convert = {"float32": np.float32}.get(shape, sp.csr_array if "sparse" in shape else np.asarray)
    model = ContraPCA(2, scale=scale, shorten=False)
    found = held_out_contrast(model, convert(left), background=convert(right))
    check(model, left, right, found, 1e-3 if shape == "float32" else 1e-6)


@pytest.mark.parametrize("estimator", [PPCA(1), PCPCA(2), PCPCA(2, gamma=0.3), CPCA(2, gamma=2.0)])
def test_wide_tables_without_scales_need_one_gram_matrix(estimator, monkeypatch):
    left, right = make_groups(25, 30, 120, signal=6.0)
    found = held_out_contrast(estimator, left, background=right)
    check(estimator, left, right, found, 1e-6)
    products = []
    monkeypatch.setattr(_subsets, "reduce_rows", lambda *given: products.append(1) or reduce_rows(*given))
    monkeypatch.setattr(_complete, "reduce_rows", lambda *given: products.append(1) or reduce_rows(*given))
    held_out_contrast(estimator, left, background=right)
    assert len(products) == 1


def test_group_scales_measure_each_group_in_its_own_units():
    """The background in other units than the foreground: with scale="group" nothing changes."""
    found, other = (
        held_out_contrast(ContraPCA(1, scale="group", shorten=False), X, background=Y * unit)
        for unit in (1.0, np.geomspace(1, 9, 12))
    )
    np.testing.assert_allclose(found.log_ratios, other.log_ratios, atol=1e-9)


@pytest.mark.slow
def test_noise_has_no_held_out_contrast():
    """Mean over tables within 4 standard errors of 0; in sample it is far from it (the control)."""
    values, ratios = [], []
    for seed in range(25):
        left, right = np.random.default_rng(seed).standard_normal((2, 60, 40))
        model = ContraPCA(1).fit(left, background=right)
        ratios.append(np.log(model.explained_variance_ / model.background_variance_)[0])
        values.append(held_out_contrast(model, left, background=right).mean)
    error = np.std(values) / np.sqrt(len(values))
    assert abs(np.mean(values)) < 4 * error < 1.0
    assert np.mean(ratios) > 1.0


def test_a_planted_direction_has_its_contrast():
    """Variance 9 + 1 against 1, found nearly perfectly with so many rows: log 10, within 4 standard errors."""
    rng = np.random.default_rng(3)
    left, right = rng.standard_normal((2, 1500, 8))
    left[:, 0] *= np.sqrt(10)
    for model in (PCPCA(1), ContraPCA(1), CPCA(1), CLVM(1, 1)):
        found = held_out_contrast(model, left, background=right)
        assert abs(found.mean - np.log(10)) < 4 * found.mean_error < 0.6
    assert found.intervals[0, 0] < 10 < found.intervals[0, 1]


def test_replicates_need_blocks():
    rng = np.random.default_rng(1)
    animals = np.arange(400) // 20
    left, right = (2 * rng.standard_normal((20, 15))[animals] + rng.standard_normal((400, 15)) for _ in range(2))
    rows = held_out_contrast(ContraPCA(1), left, background=right)
    blocks = held_out_contrast(ContraPCA(1), Study(left, background=right, blocks=(animals, animals + 20)))
    assert rows.mean > 1.0 > 4 * rows.mean_error
    assert blocks.mean < 3 * blocks.mean_error


def test_few_blocks_are_split_too():
    blocks = np.arange(90) % 3
    found = held_out_contrast(CPCA(2, gamma=1.0), Study(X, background=Y, blocks=(blocks, np.arange(70) + 9)))
    assert np.isfinite(found.log_ratios).all()
    assert "5 splits" in str(found)


def test_refuses():
    with pytest.raises(TypeError, match="estimator of contrapca"):
        held_out_contrast("pca", X, background=Y)
    incomplete = X.copy()
    incomplete[0, 0] = np.nan
    with pytest.raises(ValueError, match=r"no weights, .*where values are missing"):
        held_out_contrast(PCPCA(2), Study(incomplete, background=Y, weights=(np.arange(90) + 1, None)))
    with pytest.raises(GroupError, match="shape"):
        held_out_contrast(PCPCA(2), Study(X, background=Y, blocks=([1, 2], np.arange(70))))
    with pytest.raises(GroupError, match="block"):
        held_out_contrast(PCPCA(2), Study(X, background=Y, blocks=(np.zeros(90), np.arange(70))))
    with pytest.raises(GroupError, match="has no label for"):
        held_out_contrast(PCPCA(2), Study(X, background=Y, blocks=([None, *range(89)], np.arange(70) + 100)))
    with pytest.raises(InfeasibleGammaError, match=r"gamma=0\.99"):
        held_out_contrast(PCPCA(2, gamma=0.99), X, background=Y)
    with pytest.raises(ValueError, match="n_splits"):
        held_out_contrast(PCPCA(2), X, background=Y, n_splits=0)


def test_a_gamma_that_some_folds_have_no_solution_for():
    """The axes exist nevertheless, and gamma is that of all rows."""
    left, right = make_groups(40, 40, 12)
    limit = gamma_limits(left, background=right).pcpca
    model = PCPCA(2, gamma=0.999 * limit)
    splits, parts, _ = halves_of(left, right)
    assert any(
        gamma_limits(left[half[parts.foreground]], background=right[half[parts.background]]).pcpca < model.gamma
        for half in splits
    )
    assert np.isfinite(held_out_contrast(model, left, background=right).mean)


def test_an_explicit_gamma_above_the_limit_at_the_automatic_rank():
    """As in a fit: the rank gives way."""
    left, right = make_groups(60, 50, 10)
    with pytest.warns(ContrastWarning, match="above the limit for the"):
        found = held_out_contrast(ContraPCA(1, gamma=0.6), left, background=right)
    assert np.isfinite(found.mean)


def test_table(need):
    found = held_out_contrast(ContraPCA(2), X, background=Y)
    names = ["component", "ratio", "from", "to", "agreement", "largest_share", "log_ratio", "standard_error"]
    assert list(found.table()) == names
    assert str(found).startswith("ratio of variances on unseen rows")
    assert len(need("pandas").DataFrame(found.table())) == 2


# ---------------------------------------------------------------------- gamma="auto" of CPCA


def test_cpca_auto_is_chosen_by_reproducible_contrast():
    left, right = make_groups(200, 200, 15, signal=2.0, nuisance=15.0)
    model = CPCA(2).fit(left, background=right)
    assert model.gamma_ > 1  # beyond PCPCA's range
    assert model.gamma_ == CPCA(2).fit(left, background=right).gamma_
    auto = held_out_contrast(CPCA(2), left, background=right)
    assert auto.gamma == pytest.approx(model.gamma_)
    least = held_out_contrast(CPCA(2, gamma=0.0), left, background=right)
    assert auto.log_ratios.min() > least.log_ratios.min() + 2 * auto.standard_errors.max()
    stacked = CPCA(2, background_label=0).fit(np.vstack([left, right]), np.repeat([1, 0], 200))
    assert stacked.gamma_ == model.gamma_


@pytest.mark.slow
def test_cpca_auto_does_little_to_noise():
    gammas = []
    for seed in range(10):
        left, right = np.random.default_rng(seed).standard_normal((2, 100, 20))
        gammas.append(CPCA(2).fit(left, background=right).gamma_)
    assert np.median(gammas) < 1


@pytest.mark.parametrize("shape", [(20, 25, 60), (6, 5, 4), (3, 3, 5)])
def test_cpca_auto_of_small_and_wide_tables(shape):
    left, right = make_groups(*shape)
    assert CPCA(1).fit(left, background=right).gamma_ >= 0
    sparse = CPCA(1).fit(sp.csr_array(left), background=sp.csr_array(right))
    assert sparse.gamma_ == pytest.approx(CPCA(1).fit(left, background=right).gamma_)


def test_cpca_auto_needs_rows():
    moments = Moments.from_rows(X), Moments.from_rows(Y)
    with pytest.raises(ValueError, match="moments have none: pass gamma="):
        CPCA(2).fit(moments[0], background=moments[1])
    with pytest.raises(GroupError, match="one"):
        CPCA(2).fit(X)


# ---------------------------------------------------------------------- intervals, and what is said of components


def excluded(draw, runs, scale=None, **given):
    """How many of some tables without contrast have an interval that excludes 1."""
    found = 0
    for seed in range(runs):
        left, right = draw(np.random.default_rng(seed))
        model = RatioPCA(1, ridge=1.0, scale=scale)
        low, high = held_out_contrast(model, Study(left, background=right, **given)).intervals[0]
        found += low > 1 or high < 1
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["20 + 200 of heavy tails", "200 + 20 of heavy tails", "blocks"])
def test_intervals_exclude_1_seldom_where_there_is_nothing(kind):
    """At most 7 % (a binomial of that rate has more once in 1,000); far more if blocks are ignored (the control)."""
    runs, donors = 120, np.repeat(np.arange(8), 10)
    most = scipy.stats.binom.ppf(0.999, runs, 0.07)

    def draw(rng):
        if kind == "blocks":
            return [rng.standard_normal((8, 10))[donors] + rng.standard_normal((80, 10)) for _ in range(2)]
        n, m = (20, 200) if kind.startswith("20 ") else (200, 20)
        return np.exp(rng.standard_normal((n, 10))), np.exp(rng.standard_normal((m, 10)))

    given = {"blocks": (donors, donors + 8)} if kind == "blocks" else {}
    assert excluded(draw, runs, **given) <= most
    if kind == "blocks":
        assert excluded(draw, runs) > 2 * most


@pytest.mark.slow
def test_intervals_of_scaled_features_that_vary_in_one_donor_alone(monkeypatch):
    """As above, of five paired donors; far more if each half measures features anew (the control)."""
    runs, donors = 150, np.repeat(np.arange(5), 10)
    most = scipy.stats.binom.ppf(0.999, runs, 0.07)

    def draw(rng):
        deviations = np.tile(np.repeat([0.1, 1.0], [4, 6]), (5, 1))
        deviations[rng.integers(5, size=4), np.arange(4)] = 3.0
        return rng.standard_normal((2, 50, 10)) * deviations[donors]

    given = {"scale": "pooled", "blocks": (donors, donors)}
    assert excluded(draw, runs, **given) <= most
    monkeypatch.setattr("contrapca.inference._held_out.measured_once", lambda estimator, data: estimator)
    assert excluded(draw, runs, **given) > most


def test_a_component_of_one_block_and_one_of_noise():
    """The first is in all cases, the second in one animal, the third nowhere."""
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((2, 240, 40))
    animals = np.arange(240) // 20
    left[:, 0] *= 4
    left[animals == 3, 1] *= 8
    found = held_out_contrast(RatioPCA(3, ridge=1.0), Study(left, background=right, blocks=(animals, animals + 100)))
    assert found.found_again[0]
    assert found.intervals[0, 0] > 1
    assert found.largest_share[0] < 0.3 < 0.6 < found.largest_share[1]
    assert found.intervals[1, 0] < 1
    assert found.agreement[2] < found.agreement[0]


def test_sentences_about_components():
    """Only what is both clear and found again is claimed; the rest says what it lacks."""
    facts = [(7.6, 3.4, 17.0, 0.8), (2.0, 1.2, 3.0, 0.1), (3.8, 0.77, 25.0, 0.7), (1.1, 0.8, 1.4, 0.1)]

    def said(*chosen):
        ratio, low, high, agreement = np.array([facts[k] for k in chosen]).T
        found = HeldOutContrast(np.log(ratio), ratio, np.stack([low, high], axis=1), agreement, agreement, 1.0, 0.1, 5)
        return on_components(found, [["a", "b"]] * len(chosen))

    clear = "Component 1 (a, b) varies 7.6 times (3.4 to 17) as much in unseen cases and is found again"
    assert said(0, 3) == f"{clear}; component 2 is not."
    assert said(0, 3, 3) == f"{clear}; components 2 and 3 are not."
    assert said(1) == "Component 1 (a, b) varies 2 times (1.2 to 3) as much in unseen cases but is not found again."
    assert said(2, 3) == (
        "Component 1 (a, b) is found again and varies 3.8 times (0.77 to 25) as much in unseen cases, so perhaps no "
        "more; component 2 is not found again."
    )
    assert said(0, 1, 3).endswith("; component 3 is not found again.")
    assert said(3, 3) == "Components 1 and 2 are not found again."


def test_the_verdict_claims_nothing_where_the_test_does_not_reject():
    rng = np.random.default_rng(0)
    noise, signal = rng.standard_normal((2, 80, 6)), rng.standard_normal((2, 80, 6))
    signal[0][:, 2] *= 4
    for (left, right), found in ((noise, False), (signal, True)):
        summary = summarize(Study(left, background=right), ContraPCA(1), gammas=2)
        assert ("as much in unseen cases" in summary["verdict"]) == found
        assert summary["verdict"].startswith("Nothing found") != found


@pytest.mark.parametrize("kind", ["rows", "heavy tails", "blocks"])
def test_p_values_are_those_of_the_intervals(kind):
    """Below .025 exactly where the interval lies above 1."""
    sides = set()
    for seed in range(12):
        rng = np.random.default_rng(seed)
        left, right = rng.standard_t(4 if kind == "heavy tails" else 100, size=(2, 60, 5))
        left[:, 0] *= 1 + 0.1 * seed
        blocks = (np.arange(60) // 4, 100 + np.arange(60) // 4) if kind == "blocks" else None
        found = held_out_contrast(ContraPCA(2), Study(left, background=right, blocks=blocks))
        assert np.array_equal(found.p_values < 0.025, found.intervals[:, 0] > 1)
        sides |= set((found.p_values < 0.025).tolist())
    assert sides == {True, False}


def test_p_values_of_many_rows_are_normal():
    left, right = np.random.default_rng(0).standard_normal((2, 3000, 4))
    found = held_out_contrast(PCPCA(2, gamma=0.5), left, background=right)
    assert np.allclose(found.p_values, scipy.stats.norm.sf(found.log_ratios / found.standard_errors), rtol=0.01)


# ---------------------------------------------------------------------- fits that choose by halves


def donors(seed=3):
    """6 + 6 donors of 30 rows, which differ along 4 features; one more varies in the cases alone."""
    rng = np.random.default_rng(seed)
    tables = [rng.normal(size=(180, 12)) for _ in range(2)]
    for table in tables:
        table[:, :4] += np.repeat(2 * rng.normal(size=(6, 4)), 30, axis=0)
    tables[0][:, 5] += rng.normal(size=180)
    return *tables, (np.repeat(np.arange(6), 30), np.repeat(np.arange(6, 12), 30))


@pytest.mark.parametrize("kind", [CPCA(1), SparseCPCA(1, sparsity="auto")], ids=str)
def test_a_fit_and_its_evidence_are_of_one_gamma(kind):
    """Before, fits split blocks."""
    left, right, blocks = donors()
    study = Study(left, background=right, blocks=blocks)
    model, by_rows = clone(kind).fit(study), clone(kind).fit(left, background=right)
    assert model.gamma_ == pytest.approx(held_out_contrast(kind, study).gamma, rel=1e-9)
    assert model.gamma_ < 0.9 * by_rows.gamma_
    assert clone(kind).fit(Study(left, background=right)).gamma_ == by_rows.gamma_
    alone = (np.arange(180), np.arange(180, 360))
    assert clone(kind).fit(Study(left, background=right, blocks=alone)).gamma_ == by_rows.gamma_
    with pytest.raises(GroupError, match=r"foreground has 1 block: 'auto' \(pass a number.* at least 2 in each group"):
        clone(kind).fit(Study(left, background=right, blocks=(np.zeros(180), blocks[1])))
    clone(kind).set_params(gamma=1.0, **{"sparsity": 3} if isinstance(kind, SparseCPCA) else {}).fit(
        Study(left, background=right, blocks=(np.zeros(180), blocks[1]))
    )


def test_a_report_fits_by_blocks():
    left, right, blocks = donors()
    study = Study(left, background=right, blocks=blocks)
    assert examine(study, CPCA(1)).model.gamma_ == CPCA(1).fit(study).gamma_


def test_blocks_of_rows_without_values():
    """Rows that are left out have no block."""
    left, right, blocks = donors()
    left[::7] = np.nan
    with pytest.warns(ContrastWarning, match="have no observed value"):
        some = CPCA(1).fit(Study(left, background=right, blocks=blocks))
    kept = np.flatnonzero(~np.isnan(left).all(axis=1))
    left, blocks = left[kept], (blocks[0][kept], blocks[1])
    assert some.gamma_ == pytest.approx(CPCA(1).fit(Study(left, background=right, blocks=blocks)).gamma_)
