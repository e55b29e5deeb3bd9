"""SparseCPCA and its stability: exhaustive search, optimality, planted supports, the number of features."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import oracles
from conftest import make_groups, planted_features
from contrapca import CPCA, GammaSearch, Moments, SparseCPCA, Study, bootstrap, contrast_path, held_out_contrast, load
from contrapca import stability_selection as stability
from contrapca.contrast import _sparse
from contrapca.exceptions import ContrastWarning, GroupError
from contrapca.moments import _moments
from contrapca.reporting._report import summarize


def f1(found, support):
    return 2 * np.intersect1d(found, support).size / (found.size + support.size)


def support_of(component):
    return np.flatnonzero(component)


# ---------------------------------------------------------------------- optimal


def test_most_supports_are_the_best_of_all():
    """Against all supports of 10 features; what is found is never far below, and never above."""
    best, cases = 0, 0
    for seed in range(15):
        X, Y = make_groups(60, 50, 10, seed=seed)
        C = oracles.contrast_matrix(X, Y, 0.7) / len(X)
        for s in (2, 3, 5):
            exhaustive = max(np.linalg.eigvalsh(C[np.ix_(S, S)])[-1] for S in combinations(range(10), s))
            found = SparseCPCA(1, sparsity=s, gamma=0.7).fit(X, background=Y).eigenvalues_[0]
            assert found <= exhaustive * (1 + 1e-10)
            assert found >= 0.9 * exhaustive
            best += found >= exhaustive * (1 - 1e-9)
            cases += 1
    assert best >= 0.85 * cases


@pytest.mark.parametrize("solver", ["eigh", "lanczos"])
def test_optimality_conditions(groups, solver):
    """On its features each component is the first eigenvector; no single exchange for the weakest feature gains."""
    X, Y = groups
    model = SparseCPCA(2, sparsity=4, gamma=0.6, solver=solver).fit(X, background=Y)
    C = oracles.contrast_matrix(X, Y, 0.6) / len(X)
    left = np.eye(X.shape[1])
    for k, v in enumerate(model.components_):
        deflated, S = left @ C @ left, support_of(v)
        value = v @ deflated @ v
        assert model.eigenvalues_[k] == pytest.approx(value / (v @ left @ v), rel=1e-9)
        assert S.size == 4
        np.testing.assert_allclose((deflated @ v)[S], value * v[S], atol=1e-9)
        assert value == pytest.approx(np.linalg.eigvalsh(deflated[np.ix_(S, S)])[-1], rel=1e-10)
        weakest = S[np.argmin(np.abs(v[S]))]
        outside = np.setdiff1d(np.arange(len(v)), S)
        strongest = outside[np.argmax(np.abs((deflated @ v)[outside]))]
        T = np.sort(np.append(S[weakest != S], strongest))
        assert np.linalg.eigvalsh(deflated[np.ix_(T, T)])[-1] <= value * (1 + 1e-9)
        Q = np.linalg.qr(model.components_[: k + 1].T)[0]
        left = np.eye(X.shape[1]) - Q @ Q.T
    assert model.objective_ == pytest.approx(len(X) * np.trace(Q.T @ C @ Q), rel=1e-9)


@pytest.mark.parametrize("columns", [0, 6, 13, 10_000])
@pytest.mark.parametrize("solver", ["eigh", "lanczos"])
def test_columns_that_are_kept_change_nothing(monkeypatch, columns, solver):
    """None, too few for all features, room that has to be made, all of them at once."""
    X, Y = make_groups(30, 25, 40)
    monkeypatch.setattr(_sparse, "MANY", 2.0)  # never at once
    expected = SparseCPCA(2, sparsity=4, gamma=0.4, solver=solver).fit(X, background=Y)
    monkeypatch.setattr(_sparse, "KEPT_BYTES", 8 * 40 * columns)
    monkeypatch.setattr(_sparse, "MANY", 0.1)
    found = SparseCPCA(2, sparsity=4, gamma=0.4, solver=solver).fit(X, background=Y)
    np.testing.assert_allclose(found.components_, expected.components_, atol=1e-9)


def test_all_features_are_cpca(groups):
    X, Y = groups
    sparse = SparseCPCA(3, sparsity=X.shape[1], gamma=0.6).fit(X, background=Y)
    dense = CPCA(3, gamma=0.6).fit(X, background=Y)
    np.testing.assert_allclose(sparse.components_, dense.components_, atol=1e-7)
    np.testing.assert_allclose(sparse.eigenvalues_, dense.eigenvalues_, rtol=1e-9)
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "D", "size", "strength"), [(200, 100, 8, 3.5), (100, 1000, 10, 4.0)])
def test_planted_features_are_found(n, D, size, strength):
    """As well as by a threshold on the contrast of variances that knows the truth."""
    scores, oracle = [], []
    for seed in range(4):
        X, Y, support = planted_features(n, n, D, size, strength, seed)
        model = SparseCPCA(1, sparsity=size, gamma=2.0).fit(X, background=Y)
        scores.append(f1(support_of(model.components_[0]), support))
        C = oracles.contrast_matrix(X, Y, 2.0)
        diagonal = np.argsort(-np.diagonal(C))
        oracle.append(max(f1(diagonal[:k], support) for k in range(1, 3 * size)))
    assert np.mean(scores) >= 0.9
    assert np.mean(scores) >= np.mean(oracle) - 0.05


def test_wide_tables_need_no_square_matrix(monkeypatch):
    """20,000 features: only columns and products of the rows are used."""
    monkeypatch.setattr(_moments.RowScatter, "dense", None)
    X, Y, support = planted_features(60, 50, 20_000, 10, 8.0, 0)
    model = SparseCPCA(1, sparsity=10, gamma=1.0).fit(X, background=Y)
    assert model.solver_.name == "lanczos"
    assert f1(support_of(model.components_[0]), support) >= 0.9


def test_sparse_tables():
    X, Y = (sp.random(80, 600, density=0.05, random_state=seed, format="csr") for seed in (0, 1))
    found = SparseCPCA(2, sparsity=6, gamma=0.5).fit(X, background=Y)
    dense = SparseCPCA(2, sparsity=6, gamma=0.5).fit(X.toarray(), background=Y.toarray())
    np.testing.assert_allclose(found.components_, dense.components_, atol=1e-8)


# ---------------------------------------------------------------------- what every estimator has


def test_the_estimator(groups, tmp_path):
    X, Y = groups
    for gamma in ("auto", 0.5):
        model = SparseCPCA(2, sparsity=3, gamma=gamma).fit(X, background=Y)
        if gamma != 0.5:  # those of all features
            assert model.gamma_ == pytest.approx(CPCA(2, gamma=gamma).fit(X, background=Y).gamma_, rel=1e-6)
        V = model.components_.T
        assert (np.count_nonzero(V, axis=0) <= 3).all()
        np.testing.assert_allclose(np.linalg.norm(V, axis=0), 1)
        np.testing.assert_allclose(model.transform(X), (X - X.mean(axis=0)) @ V, atol=1e-10)
        np.testing.assert_allclose(model.explained_variance_, np.var(X @ V, axis=0), rtol=1e-9)
        model.save(tmp_path / "model.npz")
        np.testing.assert_array_equal(load(tmp_path / "model.npz").components_, model.components_)
        assert model.sparsity_ == 3
    assert not hasattr(model, "posterior")
    with pytest.raises(TypeError, match="bootstrap needs an estimator"):
        bootstrap(model, X, background=Y)
    assert model.feature_table()["feature"][0] in {f"x{j}" for j in support_of(V.any(axis=1))}
    path = contrast_path(SparseCPCA(2, sparsity=3), X, background=Y, gammas=[0.0, 0.5])
    np.testing.assert_allclose(path.components(0.5), model.components_, atol=1e-9)
    assert held_out_contrast(SparseCPCA(1, sparsity=3, gamma=1.0), X, background=Y).mean > 0


def test_the_report(groups):
    X, Y = groups
    summary = summarize(Study(X, background=Y), SparseCPCA(2, sparsity=3, gamma=0.5), gammas=3, test=False)
    assert "SparseCPCA" in summary["methods"]
    assert "SparseCPCA(gamma=0.5, sparsity=3)" in summary["code"]["python"]


def test_the_report_of_a_fitted_model_of_a_wide_table():
    """Features stay features: coordinates in the span of the rows would have other few ones."""
    X, Y, _ = planted_features(30, 30, 100, 5, 6.0, 0)
    model = SparseCPCA(1, sparsity=5, gamma=1.0).fit(X, background=Y)
    summary = summarize(Study(X, background=Y), model, gammas=3, test=False)
    assert summary["code"]["python"]


def test_moments_and_several_backgrounds(groups):
    X, Y = groups
    expected = SparseCPCA(1, sparsity=4, gamma=0.5).fit(X, background=Y).components_
    found = SparseCPCA(1, sparsity=4, gamma=0.5).fit(Moments.from_rows(X), background=Moments.from_rows(Y))
    np.testing.assert_allclose(found.components_, expected, atol=1e-10)
    twice = SparseCPCA(1, sparsity=4, gamma=0.5).fit(X, background={"a": Y, "b": Y})
    np.testing.assert_allclose(twice.components_, expected, atol=1e-9)


# ---------------------------------------------------------------------- stability


def test_planted_features_are_stable():
    X, Y, support = planted_features(200, 200, 60, 5, 4.0, 0)
    found = stability(SparseCPCA(1, sparsity=6, gamma=2.0), X, background=Y, n_splits=10, progress=False)
    assert found.n_halves == 20
    assert {f"x{j}" for j in support} <= set(found.stable())
    assert len(found.stable()) <= 6
    assert found.expected_false() == pytest.approx(6**2 / (0.5 * 60))
    np.testing.assert_allclose(found.frequencies.sum(axis=0), 6)
    table = found.table()
    assert set(table["feature"][:5]) == {f"x{j}" for j in support}
    assert "of them expected by chance" in str(found)
    again = stability(SparseCPCA(1, sparsity=6, gamma=2.0), X, background=Y, n_splits=10, progress=False)
    np.testing.assert_array_equal(again.frequencies, found.frequencies)


def test_noise_has_no_stable_features():
    """The control."""
    X, Y = np.random.default_rng(0).standard_normal((2, 200, 60))
    found = stability(SparseCPCA(1, sparsity=5, gamma=1.0), X, background=Y, n_splits=10, progress=False)
    assert len(found.stable(0.9)) <= 1


def test_components_are_matched():
    """Two planted directions of equal strength change places from half to half; their features do not."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((300, 40)), rng.standard_normal((300, 40))
    X[:, :4] += 2 * rng.standard_normal((300, 1))
    X[:, 10:14] += 2 * rng.standard_normal((300, 1))
    found = stability(SparseCPCA(2, sparsity=4, gamma=1.0), X, background=Y, n_splits=10, progress=False)
    assert (found.frequencies.max(axis=1)[[*range(4), *range(10, 14)]] > 0.9).all()


@pytest.mark.slow
def test_replicates_look_stable_unless_they_stay_together():
    """Ten donors of thirty equal rows: what they happen to have is in every half by rows, not by donors."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((10, 60)), 30, axis=0) + 0.1 * rng.standard_normal((300, 60))
    Y = np.repeat(rng.standard_normal((10, 60)), 30, axis=0) + 0.1 * rng.standard_normal((300, 60))
    donors, others = np.repeat(np.arange(10), 30), np.repeat(np.arange(10, 20), 30)
    model, settings = SparseCPCA(1, sparsity=5, gamma=0.5), {"n_splits": 8, "progress": False}
    by_rows = stability(model, X, background=Y, **settings)
    by_donors = stability(model, Study(X, background=Y, blocks=(donors, others)), **settings)
    top = [np.sort(found.in_any)[-5:].mean() for found in (by_rows, by_donors)]
    assert top[0] > 0.75
    assert top[1] < top[0] - 0.1


# ---------------------------------------------------------------------- automatic gamma


def features_that_share(rng, n, extra):
    """Cases and controls whose features have the same large common part, and cases with `extra` besides.

    Many features together cancel the common part; single features do not, and their ratios of variances are near 1.
    """
    loading = np.ones(40)
    common = 4 * rng.standard_normal((2, n, 1)) * loading
    X, Y = common + 0.3 * rng.standard_normal((2, n, 40))
    signs = np.where(np.arange(40) % 2, 1.0, -1.0)
    return X + extra * rng.standard_normal((n, 1)) * signs, Y


def test_automatic_gamma_gives_way_to_few_features():
    X, Y = features_that_share(np.random.default_rng(0), 300, 1.0)
    dense = CPCA(1).fit(X, background=Y).gamma_
    model = SparseCPCA(1, sparsity=1)
    with pytest.raises(ValueError, match="so few features show nothing"):
        SparseCPCA(1, sparsity=1, gamma=dense).fit(X, background=Y)
    with pytest.warns(ContrastWarning, match="leaves no contrast to components of few"):
        model.fit(X, background=Y)
    halvings = np.log2(dense / model.gamma_)
    assert halvings == pytest.approx(round(halvings), abs=1e-9)
    limit = (X.var(axis=0) / Y.var(axis=0)).max()  # of single features
    assert limit / 4 <= model.gamma_ <= limit / 2
    assert model.eigenvalues_[0] > 0
    with pytest.warns(ContrastWarning, match="no contrast"):
        assert held_out_contrast(model, X, background=Y).gamma == pytest.approx(model.gamma_, rel=1e-9)


def test_what_has_no_contrast_at_all_is_refused():
    X, Y = features_that_share(np.random.default_rng(0), 300, 1.0)
    with pytest.raises(ValueError, match="so few features show nothing"):
        SparseCPCA(2, sparsity=1, gamma=2.0).fit(X, background=Y)


def test_halves_need_no_contrast_of_their_own():
    """All rows just have contrast at this gamma, so that of two halves one usually has none."""
    X, Y = features_that_share(np.random.default_rng(0), 150, 1.0)
    gamma = 0.999 * float((X.var(axis=0) / Y.var(axis=0)).max())
    settings = {"n_splits": 5, "random_state": 0, "progress": False}
    found = stability(SparseCPCA(1, sparsity=1, gamma=gamma), X, background=Y, **settings)
    assert found.in_any.sum() == pytest.approx(1)


def test_automatic_gamma_is_that_of_all_features():
    X, Y, _ = planted_features(200, 200, 30, 5, 3.0, seed=1)
    model = SparseCPCA(1, sparsity=5)
    gamma = pytest.approx(CPCA(1).fit(X, background=Y).gamma_, rel=1e-9)
    assert model.fit(X, background=Y).gamma_ == gamma
    assert held_out_contrast(model, X, background=Y).gamma == gamma


# ---------------------------------------------------------------------- the number of features


@pytest.mark.parametrize("gamma", ["auto", 1.0])
@pytest.mark.parametrize("size", [2, 5, 20])
def test_the_number_of_features_that_were_planted(size, gamma):
    """Within the neighbouring numbers that are tried; all rows then have components of so many features."""
    X, Y, support = planted_features(200, 200, 60, size, 4.0, 0, shared=0)
    model = SparseCPCA(1, sparsity="auto", gamma=gamma).fit(X, background=Y)
    assert size / 2.5 <= model.sparsity_ <= 2.5 * size
    assert f1(support_of(model.components_[0]), support) >= 0.5
    assert model.sparsity == "auto"
    again = SparseCPCA(1, sparsity=model.sparsity_, gamma=gamma).fit(X, background=Y)
    np.testing.assert_array_equal(again.components_, model.components_)
    assert (again.gamma_, again.sparsity_) == (model.gamma_, model.sparsity_)


def test_the_chosen_number_wherever_the_model_goes(tmp_path):
    X, Y, _ = planted_features(200, 200, 60, 5, 4.0, 0, shared=0)
    estimator = SparseCPCA(1, sparsity="auto", gamma=1.0)
    model = clone(estimator).fit(X, background=Y)
    model.save(tmp_path / "model.npz")
    assert load(tmp_path / "model.npz").sparsity_ == model.sparsity_
    fixed = SparseCPCA(1, sparsity=model.sparsity_, gamma=1.0)
    given = {"background": Y, "n_splits": 4, "progress": False}
    np.testing.assert_array_equal(
        stability(estimator, X, **given).frequencies, stability(fixed, X, **given).frequencies
    )
    found, expected = (held_out_contrast(own, X, background=Y) for own in (estimator, fixed))
    assert found.mean == pytest.approx(expected.mean, rel=1e-9)
    assert estimator.sparsity == "auto"
    assert (
        f"sparsity={model.sparsity_}"
        in summarize(Study(X, background=Y), model, gammas=3, test=False)["code"]["python"]
    )


def test_the_smallest_number_of_equal_ones():
    """A single feature that varies in the cases: others add nothing."""
    random = np.random.default_rng(1)
    X, Y = random.standard_normal((2, 150, 30))
    X[:, 4] *= 5
    assert SparseCPCA(1, sparsity="auto", gamma=1.0).fit(X, background=Y).sparsity_ == 1


def test_no_number_without_rows(groups):
    X, Y = groups
    model = SparseCPCA(1, sparsity="auto", gamma=0.5)
    with pytest.raises(ValueError, match=r"sparsity='auto' compares halves of the rows"):
        model.fit(Moments.from_rows(X), background=Moments.from_rows(Y))
    with pytest.raises(ValueError, match=r"sparsity='auto' compares halves of the rows"):
        SparseCPCA(1, sparsity="auto", gamma=0.0).fit(X)
    with pytest.raises(ValueError, match=r"sparsity='auto' is for fit"):
        contrast_path(model, X, background=Y)
    with pytest.raises(ValueError, match=r"sparsity='auto' is for fit"):
        GammaSearch(model).fit(X, background=Y)


# ---------------------------------------------------------------------- bad input

rng = np.random.default_rng(0)
CASES, CONTROLS = rng.standard_normal((30, 6)), rng.standard_normal((25, 6))
BAD = {
    "more than all features": ({"sparsity": 7}, CONTROLS, ValueError, "sparsity=7 is more than the 6 features"),
    "no feature": ({"sparsity": 0}, CONTROLS, ValueError, "sparsity=0 must be a whole number"),
    "no number": ({"sparsity": "ten"}, CONTROLS, ValueError, "sparsity='ten' must be a whole number"),
    "a budget": ({"gamma": "budget"}, CONTROLS, TypeError, "gamma='budget' must be 'auto'"),
    "a fraction": ({"sparsity": 0.5}, CONTROLS, ValueError, "sparsity=0.5"),
    "dual": ({"solver": "dual"}, CONTROLS, ValueError, "solver='dual' is not valid"),
    "no background": ({}, None, GroupError, "background="),
    "NaN": ({}, np.where(CONTROLS > 2, np.nan, CONTROLS), ValueError, "NaN"),
    "gamma too large": ({"gamma": 1e6, "sparsity": 2}, CONTROLS, ValueError, "gamma"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    settings, background, error, says = BAD[name]
    model = SparseCPCA(**{"sparsity": 3} | settings)
    with pytest.raises(error, match=says):
        model.fit(CASES, background=background)
    assert not model.__sklearn_is_fitted__()


def test_bad_input_of_the_functions(groups):
    X, Y = groups
    with pytest.raises(TypeError, match="stability_selection needs a SparseCPCA"):
        stability(CPCA(2), X, background=Y)
    found = stability(SparseCPCA(1, sparsity=3, gamma=0.5), X, background=Y, n_splits=1, progress=False)
    with pytest.raises(ValueError, match=r"threshold=0\.5"):
        found.stable(0.5)
