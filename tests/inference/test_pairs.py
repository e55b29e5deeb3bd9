"""Pairs: blocks that must have rows in both groups; covariates of tests and folds; tables relative to their pair."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import binom

import oracles
from conftest import make_groups
from contrapca import (
    CPCA,
    PCPCA,
    PPCA,
    ContraPCA,
    GammaSearch,
    Study,
    bootstrap,
    compare,
    contrast_test,
    held_out_contrast,
    within_pairs,
)
from contrapca.data import encoded_of, study_of
from contrapca.exceptions import GroupError
from contrapca.inference._held_out import study_halves
from contrapca.moments._subsets import row_units

pytestmark = pytest.mark.filterwarnings("ignore:PCPCA still shows")

rng = np.random.default_rng(2)
X, Y = make_groups(40, 40, 6)
DONORS, CONTROLS = [f"d{i}" for i in range(40)], [f"d{i}" for i in rng.permutation(40)]
PAIRS = {"blocks": (DONORS, CONTROLS), "paired": True}
BLOCKS = {"blocks": (DONORS, CONTROLS)}
BLOCKS_OF_ROWS = {"blocks": (DONORS, [f"c{i}" for i in range(40)])}
ZX, ZY = rng.normal(size=(40, 2)), rng.normal(size=(40, 2))
COVARIATES = {"covariates": (ZX, ZY)}


def same(first, second):
    np.testing.assert_array_equal(first, second)


def test_pairs_are_blocks_in_both_groups():
    """The same machinery; and not that of rows alone, the control."""
    test = {"random_state": 0, "n_splits": 5}
    found = contrast_test(Study(X, background=Y, **PAIRS), **test)
    assert found.units == "40 pairs"
    same(found.statistics, contrast_test(Study(X, background=Y, **BLOCKS), **test).statistics)
    assert not np.array_equal(
        found.statistics, contrast_test(Study(X, background=Y, **BLOCKS_OF_ROWS), **test).statistics
    )
    held = held_out_contrast(ContraPCA(1), Study(X, background=Y, **PAIRS))
    same(held.log_ratios, held_out_contrast(ContraPCA(1), Study(X, background=Y, **BLOCKS)).log_ratios)
    assert held.mean != held_out_contrast(ContraPCA(1), Study(X, background=Y, **BLOCKS_OF_ROWS)).mean
    search = GammaSearch(CPCA(1), gammas=[0.5, 1.0])
    same(search.fit(Study(X, background=Y, **PAIRS)).scores_, search.fit(Study(X, background=Y, **BLOCKS)).scores_)
    model = PCPCA(1, gamma=0.3).fit(X, background=Y)
    again = {"n_resamples": 3, "random_state": 0, "progress": False}
    same(
        bootstrap(model, Study(X, background=Y, **PAIRS), **again).W,
        bootstrap(model, Study(X, background=Y, **BLOCKS), **again).W,
    )
    assert not np.array_equal(
        bootstrap(model, Study(X, background=Y, **PAIRS), **again).W, bootstrap(model, X, background=Y, **again).W
    )


def test_compare_takes_pairs_and_covariates():
    """Whatever the covariates' effect is: it is regressed out of each half."""
    cases, controls = X[:, :3], Y[:, :3]
    effect = np.array([[3.0, 0.0, 1.0], [0.0, 2.0, 5.0]])
    found, with_effect, plain = (
        compare(Study(**rows, **PAIRS, **beside), n_components=1, progress=False)
        for rows, beside in (
            (({"X": cases, "background": controls}), COVARIATES),
            (({"X": cases + ZX @ effect, "background": controls + ZY @ effect}), COVARIATES),
            (({"X": cases, "background": controls}), {}),
        )
    )
    assert not any(entry.failure for entry in found.entries)
    scores, same, other = ({e.name: e.score for e in one.entries} for one in (found, with_effect, plain))
    assert scores["PCA"] == pytest.approx(same["PCA"], rel=1e-6)
    assert abs(scores["PCA"] - other["PCA"]) > 1e-3  # the control


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (([*DONORS[:-1], "d99"], CONTROLS), r"1 pair of the foreground \('d99'\) has no row"),
        ((["d1"] * 40, CONTROLS), r"39 pairs of the background \('d0', .* have no row"),
        ((DONORS, None), "The background has no blocks"),
        ((None, CONTROLS), "The foreground has no blocks"),
        ((DONORS[1:], CONTROLS), r"blocks of the foreground has shape \(39,\) for 40 rows"),
        ((DONORS, [*CONTROLS[1:], None]), "blocks of the background has no label for 1 of 40 rows"),
    ],
)
def test_bad_pairs_raise(pairs, message):
    with pytest.raises(GroupError, match=message):
        Study(X, background=Y, blocks=pairs, paired=True)


def test_few_pairs_and_pairs_without_a_background_raise():
    with pytest.raises(GroupError, match="The foreground has 2 pairs: the test needs at least 6"):
        contrast_test(Study(X, background=Y, blocks=(["a", "b"] * 20, ["a", "b"] * 20), paired=True))
    with pytest.raises(GroupError, match="there is no background"):
        bootstrap(PPCA(1).fit(X), Study(X, blocks=DONORS, paired=True), n_resamples=2)
    found = held_out_contrast(
        PCPCA(1, gamma=0.3),
        Study(
            X,
            background={"a": Y[:20], "b": Y[20:]},
            blocks=(DONORS, {"a": CONTROLS[:20], "b": CONTROLS[20:]}),
            paired=True,
        ),
    )
    assert np.isfinite(found.mean)


# ---------------------------------------------------------------------- covariates in tests and folds


@pytest.mark.parametrize("width", [6, 60])
def test_covariates_of_held_out_rows_do_not_leak(width):
    """The regression of each half is that of its own rows."""
    cases, controls = rng.normal(size=(40, width)), rng.normal(size=(40, width))
    tables = study_of(cases, controls, "test").tables
    units, encoded = row_units(tables), encoded_of(Study(cases, background=controls, covariates=(ZX, ZY)))
    halves = study_halves(tables, units, 2, np.random.default_rng(0), encoded=encoded)
    for inside in halves:
        parts = halves.parts(inside)
        left, fitted = parts.part_of.map(lambda own, inside=inside: inside[own]), parts.union(inside)[1]
        _, B = oracles.residuals(
            [cases[left.foreground], controls[left["background"]]], [ZX[left.foreground], ZY[left["background"]]]
        )
        for table, Z, own, training, rows in zip((cases, controls), (ZX, ZY), left, fitted, parts.rows, strict=True):
            expected = table - Z @ B
            np.testing.assert_allclose(training.variance, expected[own].var(axis=0), rtol=1e-9)
            difference = rows - rows.mean(axis=0) - expected + expected.mean(axis=0)
            np.testing.assert_allclose(difference, 0, atol=1e-12)


def test_a_level_that_a_fold_lacks_does_no_harm():
    rare = np.array(["rare", *["common"] * 39])
    found = held_out_contrast(
        CPCA(1, gamma=1.0), Study(X, background=Y, covariates=(rare, ["common", "rare"] * 20)), n_splits=3
    )
    assert np.isfinite(found.mean)


def test_every_method_is_held_out_with_covariates():
    effect = rng.normal(size=(2, 6)) * 5
    cases, controls = X + ZX @ effect, Y + ZY @ effect
    for model in (CPCA(1), PCPCA(1, scale="pooled"), ContraPCA(1), PPCA(1)):
        found = held_out_contrast(model, Study(cases, background=controls, **COVARIATES))
        plain = held_out_contrast(model, Study(X, background=Y, **COVARIATES))
        np.testing.assert_allclose(found.log_ratios, plain.log_ratios, rtol=1e-6)  # whatever the effect is
    test = {"random_state": 0, "n_splits": 3}
    found = contrast_test(Study(cases, background=controls, **COVARIATES), **test)
    np.testing.assert_allclose(
        found.p_values, contrast_test(Study(X, background=Y, **COVARIATES), **test).p_values, rtol=1e-6
    )
    assert contrast_test(cases, background=controls, **test).p_values[0] != found.p_values[0]


# ---------------------------------------------------------------------- rows relative to their pair


def by_hand(cases, controls, pairs, control_pairs):
    """`within_pairs`, row by row (F34)."""
    pairs, control_pairs = np.asarray(pairs), np.asarray(control_pairs)
    changes, others = np.empty_like(cases), np.empty_like(controls)
    for i, donor in enumerate(pairs):
        own = controls[control_pairs == donor]
        changes[i] = (cases[i] - own.mean(axis=0)) / np.sqrt(1 + 1 / len(own))
    for j, donor in enumerate(control_pairs):
        own = controls[control_pairs == donor]
        others[j] = (controls[j] - own.mean(axis=0)) * np.sqrt(len(own) / (len(own) - 1))
    return changes - changes.mean(axis=0) + cases.mean(axis=0), others + controls.mean(axis=0) - others.mean(axis=0)


def test_within_pairs(need):
    cases, controls = rng.normal(size=(9, 3)), rng.normal(size=(14, 3))
    pairs, control_pairs = list("aabbcccdd"), list("dcabdcabdcabaa")
    found = within_pairs(Study(cases, background=controls, blocks=(pairs, control_pairs), paired=True))
    for table, expected in zip(found.rows, by_hand(cases, controls, pairs, control_pairs), strict=True):
        np.testing.assert_allclose(table, expected, rtol=1e-12, atol=1e-12)
    pd = need("pandas")
    frame = pd.DataFrame(cases, columns=list("xyz"))
    again = within_pairs(
        Study(frame, background=pd.DataFrame(controls, columns=list("xyz")), blocks=(pairs, control_pairs), paired=True)
    )
    assert list(again.rows.foreground.columns) == list("xyz")
    np.testing.assert_allclose(again.rows.foreground, found.rows.foreground, rtol=1e-12)


def test_within_pairs_refuses_what_it_cannot_do():
    rows, others, pairs = rng.normal(size=(4, 3)), rng.normal(size=(5, 3)), [1, 2, 1, 2]
    for cases, own, error, message in (
        (rows, [1, 2, 2, 2, 2], GroupError, r"1 pair \('1'\) has one control row"),
        (np.where(np.eye(4, 3) > 0, np.nan, rows), [1, 1, 2, 2, 2], GroupError, "needs complete rows"),
        (sp.csr_array(rows), [1, 1, 2, 2, 2], TypeError, "the foreground is sparse"),
    ):
        study = Study(cases, background=others, blocks=(pairs, own), paired=True)
        with pytest.raises(error, match=message):
            within_pairs(study)
    with pytest.raises(GroupError, match="needs a Study with pairs"):
        within_pairs(Study(rows, background=others))


# ---------------------------------------------------------------------- level and power


def before_and_after(random, n, response):
    """Donors who differ along all features (standard deviation 3), before and after a response along the first."""
    level = 3 * random.normal(size=(n, 6))
    before, after = level + random.normal(size=(2, n, 6))
    after[:, 0] += np.sqrt(response) * random.normal(size=n)
    return after, before


def rejections(draw, times):
    """In how many data sets the test rejects."""
    found = 0
    for seed in range(times):
        cases, controls, given = draw(np.random.default_rng(seed))
        test = contrast_test(
            Study(cases, background=controls, **given), max_components=1, n_splits=7, random_state=seed
        )
        found += test.n_components
    return found


def paired(n, response):
    return lambda random: (
        *before_and_after(random, n, response),
        {"blocks": (np.arange(n), np.arange(n)), "paired": True},
    )


def unpaired(n, response):
    return lambda random: (*before_and_after(random, n, response), {})


@pytest.mark.slow
def test_pairs_keep_the_level_and_gain_power():
    assert rejections(paired(40, 0.0), 120) <= binom.isf(1e-4, 120, 0.05)
    powers = rejections(paired(100, 9.0), 40), rejections(unpaired(100, 9.0), 40)
    # More than three standard errors of the difference, if both had the mean power.
    mean = sum(powers) / 80
    assert powers[0] - powers[1] > 3 * np.sqrt(2 * 40 * mean * (1 - mean))


def visits(random):
    """20 donors with 5 rows before and after; each visit has an effect of its own, and there is no response."""
    level = 2 * random.normal(size=(20, 6))
    before, after = (
        np.repeat(level + random.normal(size=(20, 6)), 5, axis=0) + random.normal(size=(100, 6)) for _ in range(2)
    )
    return after, before, np.repeat(np.arange(20), 5)


@pytest.mark.slow
def test_rows_of_a_visit_are_not_independent():
    def by_donor(random):
        after, before, donors = visits(random)
        return after, before, {"blocks": (donors, donors), "paired": True}

    limit = binom.isf(1e-4, 160, 0.05)
    assert rejections(by_donor, 160) <= limit
    assert rejections(lambda random: (*visits(random)[:2], {}), 160) > limit  # the control


@pytest.mark.slow
@pytest.mark.parametrize(("n", "m"), [(40, 40), (100, 30)])
def test_covariates_keep_the_level(n, m):
    """Five covariates of large effect; the power is that of rows without them."""

    def draw(random, response=0.0, adjusted=True):
        Z, W, effect = random.normal(size=(n, 5)), random.normal(size=(m, 5)), 2 * random.normal(size=(5, 6))
        cases, controls = Z @ effect + random.normal(size=(n, 6)), W @ effect + random.normal(size=(m, 6))
        cases[:, 0] += np.sqrt(response) * random.normal(size=n)
        return cases, controls, {"covariates": (Z, W)} if adjusted else {}

    assert rejections(draw, 80) <= binom.isf(1e-4, 80, 0.05)
    if n == m:
        assert rejections(lambda random: draw(random, 6.0), 20) >= 14
        assert rejections(lambda random: draw(random, 6.0, adjusted=False), 20) <= 6  # the control
