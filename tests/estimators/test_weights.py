"""Weights of rows: a row that counts twice is a row that is there twice."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import oracles
from conftest import make_groups
from contrapca import (
    CLVM,
    CPCA,
    PCPCA,
    PPCA,
    ContraPCA,
    GammaSearch,
    Moments,
    Study,
    bootstrap,
    contrast_path,
    gamma_limits,
    held_out_contrast,
)
from contrapca.exceptions import GroupError

pytestmark = pytest.mark.filterwarnings("ignore:PCPCA still shows")

X, Y = make_groups(60, 50, 7)
rng = np.random.default_rng(1)
WX, WY = rng.integers(0, 4, 60), rng.integers(0, 4, 50)
AGAIN_X, AGAIN_Y = oracles.repeated(X, WX), oracles.repeated(Y, WY)
WEIGHTS = {"weights": (WX, WY)}
CLOSE = {"rtol": 1e-6, "atol": 1e-7}


HOLED_X, HOLED_Y = (np.where(rng.random(rows.shape) < 0.15, np.nan, rows) for rows in (X, Y))


@pytest.mark.parametrize(
    "model",
    [
        *(PCPCA(2, gamma=0.3, solver=solver) for solver in ("eigh", "dual", "lanczos")),
        PCPCA(2, gamma=0.3, solver="lbfgs", tol=1e-10),
        PCPCA(2),
        ContraPCA(2),
        ContraPCA(2, scale="group"),
        CPCA(2, gamma=1.5, scale="pooled"),
        CLVM(2, 1, tol=1e-10),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_fits(model, kind):
    if kind is sp.csr_array and getattr(model, "solver", "") in ("dual", "lbfgs"):
        with pytest.raises(ValueError, match="dense"):
            model.fit(Study(kind(X), background=kind(Y), **WEIGHTS))
        return
    weighted = clone(model).fit(Study(kind(X), background=kind(Y), **WEIGHTS))
    repeated = clone(model).fit(kind(AGAIN_X), background=kind(AGAIN_Y))
    np.testing.assert_allclose(weighted.transform(X), repeated.transform(X), **CLOSE)
    for name in ("mean_", "background_mean_", "scale_", "explained_variance_", "objective_", "n_effective_", "gamma_"):
        np.testing.assert_allclose(getattr(weighted, name, 0), getattr(repeated, name, 0), err_msg=name, **CLOSE)


@pytest.mark.parametrize("mean", ["observed", "gls"])
@pytest.mark.parametrize("model", [PPCA(2, tol=1e-8), PCPCA(1, gamma=0.2, tol=1e-8)], ids=str)
def test_missing_values(model, mean):
    model.set_params(mean=mean)
    if isinstance(model, PPCA):
        weighted, again = clone(model).fit(HOLED_X, sample_weight=WX), {}
    else:
        weighted = clone(model).fit(Study(HOLED_X, background=HOLED_Y, **WEIGHTS))
        again = {"background": oracles.repeated(HOLED_Y, WY)}
    repeated = clone(model).fit(oracles.repeated(HOLED_X, WX), **again)
    np.testing.assert_allclose(weighted.get_covariance(), repeated.get_covariance(), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(weighted.mean_, repeated.mean_, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(weighted.explained_variance_, repeated.explained_variance_, rtol=1e-5)
    assert weighted.objective_ == pytest.approx(repeated.objective_)


def test_limits_paths_and_moments():
    weighted, repeated = gamma_limits(Study(X, background=Y, **WEIGHTS)), gamma_limits(AGAIN_X, background=AGAIN_Y)
    np.testing.assert_allclose(list(weighted.gamma.values()), list(repeated.gamma.values()), rtol=1e-8)
    assert weighted.ratio == repeated.ratio
    left = contrast_path(PCPCA(2), Study(X, background=Y, **WEIGHTS), gammas=5)
    right = contrast_path(PCPCA(2), AGAIN_X, background=AGAIN_Y, gammas=5)
    np.testing.assert_allclose(left.eigenvalues, right.eigenvalues, rtol=1e-8)
    moments = Moments.from_rows(X, WX), Moments.from_rows(Y, WY)
    model = PCPCA(2, gamma=0.2).fit(moments[0], background=moments[1])
    again = PCPCA(2, gamma=0.2).fit(Study(X, background=Y, **WEIGHTS))
    np.testing.assert_allclose(model.components_, again.components_, atol=1e-9)
    with pytest.raises(GroupError, match=r"Moments have no rows.* leave sample_weight= out"):
        PCPCA(2).fit(moments[0], background=moments[1], sample_weight=WX)


def test_stacked_rows():
    y = np.repeat([1, 0], [60, 50])
    model = PCPCA(2, gamma=0.2, background_label=0).fit(np.vstack([X, Y]), y, sample_weight=np.concatenate([WX, WY]))
    again = PCPCA(2, gamma=0.2).fit(Study(X, background=Y, **WEIGHTS))
    np.testing.assert_allclose(model.components_, again.components_, atol=1e-10)


def test_rows_of_weight_0_are_never_read():
    table, weights = X.copy(), np.ones(60)
    table[[3, 7]], weights[[3, 7]] = [[np.nan], [np.inf]], 0
    model = CPCA(2, gamma=0.5).fit(table, background=Y, sample_weight=weights)
    alone = CPCA(2, gamma=0.5).fit(np.delete(X, [3, 7], axis=0), background=Y)
    np.testing.assert_array_equal(model.components_, alone.components_)


def test_weights_that_are_all_1_change_nothing():
    model = ContraPCA(2).fit(Study(X, background=Y, weights=(np.ones(60), np.ones(50))))
    np.testing.assert_array_equal(model.components_, ContraPCA(2).fit(X, background=Y).components_)


def test_resamples_and_folds():
    """A row is drawn, and held out, with its weight: if all have the same, nothing changes but N."""
    model = PCPCA(1, gamma=0.2).fit(X, background=Y)
    twos = {"weights": (np.full(60, 2), np.full(50, 2))}
    double = PCPCA(1, gamma=0.2).fit(Study(X, background=Y, **twos))
    assert double.n_effective_ == 2 * model.n_effective_
    refits = bootstrap(double, Study(X, background=Y, **twos), n_resamples=20, random_state=0)
    plain = bootstrap(model, X, background=Y, n_resamples=20, random_state=0)
    np.testing.assert_allclose(refits.W, plain.W, atol=1e-9)
    with pytest.raises(ValueError, match="X is not the table of the fit: it has 60 rows, but the fit had 120"):
        bootstrap(double, X, background=Y)
    found = held_out_contrast(PCPCA(1, gamma=0.2), Study(X, background=Y, **twos))
    alone = held_out_contrast(PCPCA(1, gamma=0.2), X, background=Y)
    np.testing.assert_allclose(found.log_ratios, alone.log_ratios, rtol=1e-9)
    search = GammaSearch(PCPCA(1), gammas=[0.0, 0.2], criterion="likelihood").fit(Study(X, background=Y, **WEIGHTS))
    assert np.isfinite(search.scores_).all()


def test_incomplete_resamples_have_weights():
    model = PPCA(1).fit(HOLED_X, sample_weight=np.full(60, 2))
    refits = bootstrap(model, Study(HOLED_X, weights=np.full(60, 2)), n_resamples=3, random_state=0)
    plain = bootstrap(PPCA(1).fit(HOLED_X), HOLED_X, n_resamples=3, random_state=0)
    np.testing.assert_allclose(refits.W, plain.W, atol=1e-4)


def test_blocks_of_rows_of_weight_0_are_left_out():
    weights, blocks, others = np.where(np.arange(60) < 6, 0, 1), np.arange(60) // 3, 100 + np.arange(50) // 5
    model = PCPCA(1, gamma=0.2)
    found = held_out_contrast(model, Study(X, background=Y, weights=(weights, None), blocks=(blocks, others)))
    left = held_out_contrast(model, Study(X[6:], background=Y, blocks=(blocks[6:], others)))
    np.testing.assert_allclose(found.log_ratios, left.log_ratios)


def test_wide_folds():
    wide = np.random.default_rng(0).standard_normal((2, 12, 40))
    weights = np.arange(1.0, 13)
    blocks, times = (np.arange(12), 12 + np.arange(12)), np.arange(1, 13)
    repeated = tuple(np.repeat(labels, times) for labels in blocks)
    for model in (PCPCA(1, gamma=0.1), PCPCA(1, gamma=0.1, scale="pooled")):
        study = Study(wide[0], background=wide[1], weights=(weights, weights), blocks=blocks)
        found = held_out_contrast(model, study)
        tables = [oracles.repeated(table, times) for table in wide]
        again = held_out_contrast(model, Study(tables[0], background=tables[1], blocks=repeated))
        assert np.isfinite(found.mean)
        assert found.mean == pytest.approx(again.mean, abs=4 * again.mean_error)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"sample_weight": -np.ones(60)}, "sample_weight must contain finite numbers, 0 or more: row 0"),
        ({"sample_weight": np.where(np.arange(60) == 4, np.nan, 1)}, "row 4, counting from 0, has nan"),
        ({"sample_weight": np.where(np.arange(60) == 4, np.inf, 1)}, "row 4, counting from 0, has inf"),
        ({"sample_weight": np.zeros(60)}, "All weights in sample_weight are zero"),
        ({"sample_weight": np.ones(59)}, r"sample_weight has shape \(59,\) for 60 rows"),
        ({"sample_weight": np.ones((60, 1))}, r"sample_weight has shape \(60, 1\) for 60 rows"),
        ({"sample_weight": ["a"] * 60}, "sample_weight must contain numbers"),
        ({"sample_weight": np.full(60, 1e308)}, "sample_weight sums to inf"),
        ({"sample_weight": np.full(60, 0.01)}, "sums to 0.6: weights count rows"),
        ({"sample_weight": np.eye(60)[0]}, "leaves one row of the foreground"),
    ],
)
@pytest.mark.parametrize("model", [PCPCA(2, gamma=0.2), CLVM(2, 1)], ids=["PCPCA", "CLVM"])
def test_bad_weights(model, weights, message):
    model.fit(X, background=Y)
    before = model.transform(X)
    with pytest.raises(ValueError, match=message):
        model.fit(X[::-1], background=Y, **weights)
    np.testing.assert_array_equal(model.transform(X), before)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(60), r"weights of the background has shape \(60,\) for 50 rows"),
        (np.zeros(50), "All weights in weights of the background are zero"),
        ({"x": np.ones(50)}, "weights: the study has no group 'x', it has 'foreground', 'background'"),
    ],
)
def test_bad_weights_of_a_background(weights, message):
    with pytest.raises(ValueError, match=message):
        Study(X, background=Y, weights=(None, weights))


def test_several_backgrounds_take_a_dict():
    both = {"first": Y[:20], "second": Y[20:]}
    with pytest.raises(GroupError, match="weights is a tuple of 2, but there are 3 groups"):
        Study(X, background=both, weights=(None, WY))
    some = PCPCA(2, gamma=0.2).fit(Study(X, background=both, weights=(None, {"second": WY[20:]})))
    again = PCPCA(2, gamma=0.2).fit(X, background={"first": Y[:20], "second": oracles.repeated(Y[20:], WY[20:])})
    np.testing.assert_allclose(some.components_, again.components_, atol=1e-9)
