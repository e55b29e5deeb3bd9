"""Held-out contrast: against refits on explicit rows, on noise, on replicates, and folds of awkward blocks."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import contrapca.moments._collect as collect_module
import contrapca.moments._folds as folds_module
from conftest import make_groups
from contrapca import CLVM, CPCA, PCPCA, PPCA, ContraPCA, Moments, gamma_limits, held_out_contrast
from contrapca.exceptions import ContrastWarning, GroupError, InfeasibleGammaError
from contrapca.fitting import resolved
from contrapca.groups import Groups
from contrapca.moments import assign_folds, collect
from contrapca.moments._dual import reduce_rows
from contrapca.selection._held_out import complete_tables

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


def folds_of(X, Y, n_folds=5, blocks=None):
    units = Groups.of(np.arange(len(X)), len(X) + np.arange(len(Y))) if blocks is None else Groups.of(*blocks)
    return assign_folds(units, n_folds, np.random.default_rng(0))


def slow(estimator, X, Y, folds):
    """F17 word by word: refit without each fold, then sums of squares of its rows about what they add to the others."""
    if isinstance(estimator, ContraPCA) and estimator.n_latent == "auto":
        data = collect(complete_tables(X, Y, "slow"), 2, estimator.scale)
        estimator.set_params(n_latent=resolved(data, estimator._latents()).rank)
    sums = []
    for k in range(folds.foreground.max() + 1):
        left, held = (
            [rows[(own != k) if keep else (own == k)] for rows, own in zip((X, Y), folds, strict=True)]
            for keep in (True, False)
        )
        model = estimator.fit(left[0]) if isinstance(estimator, PPCA) else estimator.fit(left[0], background=left[1])
        units = model._state.units
        scales = [units.foreground.scale, (units.background or units.foreground).scale]
        axes = [model.components_.T / scale[:, None] for scale in scales]
        unit = sum(np.var(rows @ V, axis=0) for rows, V in zip(left, axes, strict=True))
        both = [np.vstack(pair) for pair in zip(left, held, strict=True)]
        added = [
            len(all_) * np.var(all_ @ V, axis=0) - len(some) * np.var(some @ V, axis=0)
            for all_, some, V in zip(both, left, axes, strict=True)
        ]
        sums.append(np.array(added) / unit)
    sums = np.array(sums)
    rows = np.array([[np.sum(own == k) for own in folds] for k in range(len(sums))])

    def log_ratio(kept):
        variances = sums[kept].sum(axis=0) / rows[kept].sum(axis=0)[:, None]
        return np.log(variances[0] / variances[1])

    K = len(sums)
    every = log_ratio(np.arange(K))
    left_out = np.array([log_ratio(np.delete(np.arange(K), k)) for k in range(K)])
    spread = ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0)
    return every, np.sqrt((K - 1) * (1 / K + 1 / (K - 1)) * spread)


def gamma_of_all_rows(found, estimator):
    """What folds do not choose: the gamma of CPCA."""
    return {"gamma": found.gamma} if isinstance(estimator, CPCA) else {}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.filterwarnings("ignore::contrapca.exceptions.ContrastWarning")
def test_is_that_of_refits_to_rows(name):
    found = held_out_contrast(ESTIMATORS[name], X, background=Y)
    expected, errors = slow(ESTIMATORS[name], X, Y, folds_of(X, Y))
    tolerance = 1e-3 if name in ("CLVM", "PCPCA, gradients") else 1e-7
    np.testing.assert_allclose(found.log_ratios, expected, atol=tolerance)
    np.testing.assert_allclose(found.standard_errors, errors, atol=tolerance)
    assert found.mean == pytest.approx(expected.mean(), abs=tolerance)
    assert found.n_folds == 5
    np.testing.assert_allclose(found.ratios, np.exp(found.log_ratios))


@pytest.mark.parametrize("scale", [None, "pooled"])
@pytest.mark.parametrize("shape", ["wide", "sparse", "sparse, wide", "float32"])
def test_other_tables(shape, scale):
    n, m, D = (25, 30, 120) if "wide" in shape else (120, 100, 15)
    left, right = make_groups(n, m, D, signal=4.0, nuisance=2.0)
    if "sparse" in shape:
        left, right = (np.where(np.abs(rows) > 0.8, rows, 0.0) for rows in (left, right))
    expected, errors = slow(ContraPCA(2, scale=scale, shorten=False), left, right, folds_of(left, right))
    convert = {"float32": np.float32}.get(shape, sp.csr_array if "sparse" in shape else np.asarray)
    found = held_out_contrast(ContraPCA(2, scale=scale, shorten=False), convert(left), background=convert(right))
    tolerance = 1e-3 if shape == "float32" else 1e-6
    np.testing.assert_allclose(found.log_ratios, expected, atol=tolerance)
    np.testing.assert_allclose(found.standard_errors, errors, atol=tolerance)


@pytest.mark.parametrize("estimator", [PPCA(1), PCPCA(2), PCPCA(2, gamma=0.3), CPCA(2)])
def test_wide_tables_without_scales_need_one_gram_matrix(estimator, monkeypatch):
    left, right = make_groups(25, 30, 120, signal=6.0)
    found = held_out_contrast(estimator, left, background=right)
    expected, errors = slow(
        clone(estimator).set_params(**gamma_of_all_rows(found, estimator)), left, right, folds_of(left, right)
    )
    np.testing.assert_allclose(found.log_ratios, expected, atol=1e-7)
    np.testing.assert_allclose(found.standard_errors, errors, atol=1e-7)
    products = []
    monkeypatch.setattr(folds_module, "reduce_rows", lambda *given: products.append(1) or reduce_rows(*given))
    monkeypatch.setattr(collect_module, "reduce_rows", lambda *given: products.append(1) or reduce_rows(*given))
    held_out_contrast(estimator, left, background=right)
    assert len(products) == 1


def test_group_scales_measure_each_group_in_its_own_units():
    """The background in other units than the foreground: with scale="group" nothing changes."""
    found, other = (
        held_out_contrast(ContraPCA(1, scale="group"), X, background=Y * unit) for unit in (1.0, np.geomspace(1, 9, 12))
    )
    np.testing.assert_allclose(found.log_ratios, other.log_ratios, atol=1e-9)


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
    blocks = held_out_contrast(ContraPCA(1), left, background=right, blocks=animals, background_blocks=animals + 20)
    assert rows.mean > 1.0 > 4 * rows.mean_error
    assert blocks.mean < 3 * blocks.mean_error


def test_fewer_blocks_than_folds():
    blocks = np.arange(90) % 3
    with pytest.warns(ContrastWarning, match="3 folds"):
        found = held_out_contrast(
            CPCA(2, gamma=1.0), X, background=Y, blocks=blocks, background_blocks=np.arange(70) + 9
        )
    assert found.n_folds == 3
    assert "3 folds" in str(found)


def test_refuses():
    with pytest.raises(TypeError, match="estimator of contrapca"):
        held_out_contrast("pca", X, background=Y)
    holes = X.copy()
    holes[0, 0] = np.nan
    with pytest.raises(ValueError, match="complete rows"):
        held_out_contrast(PCPCA(2), holes, background=Y)
    with pytest.raises(GroupError, match="shape"):
        held_out_contrast(PCPCA(2), X, background=Y, blocks=[1, 2], background_blocks=np.arange(70))
    with pytest.raises(GroupError, match="block"):
        held_out_contrast(PCPCA(2), X, background=Y, blocks=np.zeros(90), background_blocks=np.arange(70))
    with pytest.raises(GroupError, match="has no label for"):
        held_out_contrast(PCPCA(2), X, background=Y, blocks=[None, *range(89)], background_blocks=np.arange(70) + 100)
    with pytest.raises(InfeasibleGammaError, match=r"gamma=0\.99"):
        held_out_contrast(PCPCA(2, gamma=0.99), X, background=Y)
    with pytest.raises(ValueError, match="n_folds=1"):
        held_out_contrast(PCPCA(2), X, background=Y, n_folds=1)


def test_a_gamma_that_some_folds_have_no_solution_for():
    """The axes exist nevertheless, and gamma is that of all rows."""
    left, right = make_groups(40, 40, 12)
    limit = gamma_limits(left, background=right).pcpca
    model = PCPCA(2, gamma=0.999 * limit)
    folds = folds_of(left, right)
    assert any(
        gamma_limits(left[folds.foreground != k], background=right[folds.background != k]).pcpca < model.gamma
        for k in range(5)
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
    assert list(found.table()) == ["component", "ratio", "from", "to", "log_ratio", "standard_error"]
    assert str(found).startswith("held-out ratio of variances")
    assert len(need("pandas").DataFrame(found.table())) == 2


# ---------------------------------------------------------------------- gamma="auto" of CPCA


def test_cpca_auto_is_chosen_by_held_out_contrast():
    left, right = make_groups(200, 200, 15, signal=2.0, nuisance=15.0)
    model = CPCA(2).fit(left, background=right)
    assert model.gamma_ > 1  # beyond PCPCA's range
    assert model.gamma_ == CPCA(2).fit(left, background=right).gamma_
    auto = held_out_contrast(CPCA(2), left, background=right)
    assert auto.gamma == pytest.approx(model.gamma_)
    grid = [held_out_contrast(CPCA(2, gamma=gamma), left, background=right) for gamma in np.geomspace(0.1, 2.9, 20)]
    best = max(grid, key=lambda one: one.mean)
    assert auto.mean > best.mean - 1.1 * best.mean_error
    stacked = CPCA(2, background_label=0).fit(np.vstack([left, right]), np.repeat([1, 0], 200))
    assert stacked.gamma_ == model.gamma_


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
