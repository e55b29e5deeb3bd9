"""SparseCPCA(axes="contrast"): the definition written out, planted features, every storage."""

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from conftest import planted_features
from contrapca import (
    ContraPCA,
    GammaSearch,
    Moments,
    SparseCPCA,
    contrast_path,
    held_out_contrast,
    load,
    sparsity_path,
    stability_selection,
)
from contrapca.moments import _moments
from contrapca.reporting import summarize


def f1(component, support):
    """How well the features of a component are the planted ones."""
    found = np.flatnonzero(component)
    return 2 * np.intersect1d(found, support).size / (found.size + support.size)


def written_out(X, Y, s, gamma="auto"):
    """One sparse contrast axis from matrices and ContraPCA's axis of all features."""
    dense = ContraPCA(1, gamma=gamma, shorten=False).fit(X, background=Y)
    A, B, D = oracles.scatter(X) / len(X), oracles.scatter(Y) / len(Y), X.shape[1]
    axis = dense.components_[0]
    S = np.sort(np.argsort(-np.abs(axis))[:s])
    C = A - dense.gamma_ * B
    U = np.linalg.eigh(C)[1][:, -dense.n_latent_ :]
    noise = (np.trace(B) - np.trace(U.T @ B @ U)) / (D - dense.n_latent_)
    values, Q = np.linalg.eigh(B[np.ix_(S, S)])
    v = np.zeros(D)
    v[S] = Q @ (Q.T @ (A - B)[np.ix_(S, S)] @ axis[S] / np.maximum(values, noise))
    v /= np.linalg.norm(v)
    return v * np.sign(v[np.argmax(np.abs(v))]), dense


@pytest.mark.parametrize("solver", ["eigh", "lanczos"])
@pytest.mark.parametrize("gamma", ["auto", 0.1])
def test_the_definition(solver, gamma):
    X, Y, _ = planted_features(150, 120, 40, 5, 3.0, 0)
    expected, dense = written_out(X, Y, 7, gamma)
    model = SparseCPCA(1, sparsity=7, axes="contrast", gamma=gamma, solver=solver).fit(X, background=Y)
    np.testing.assert_allclose(model.components_[0], expected, atol=1e-7)
    assert model.gamma_ == pytest.approx(dense.gamma_, rel=1e-6)
    np.testing.assert_allclose(model.explained_variance_, np.var(X @ expected), rtol=1e-6)


def test_wide_tables_need_no_square_matrix(monkeypatch):
    """20,000 features: only columns and products of the rows are used."""
    monkeypatch.setattr(_moments.RowScatter, "dense", None)
    X, Y, support = planted_features(60, 50, 20_000, 10, 8.0, 0)
    model = SparseCPCA(1, sparsity=10, axes="contrast").fit(X, background=Y)
    assert f1(model.components_[0], support) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "D", "size", "strength", "shared", "control"),
    [(200, 100, 8, 3.0, 3, 0.5), (200, 100, 10, 2.5, 10, 0.5), (400, 60, 6, 2.0, 20, 0.5), (150, 1000, 10, 4.0, 3, 1)],
)
def test_planted_features_are_found(n, D, size, strength, shared, control):
    """Strong directions that both groups share (15 each), and a weaker one of the cases, as in F16.

    As well as with the best of many penalties, chosen by the truth. CPCA's components at gamma = 1 are the control:
    where shared directions are strong for the number of features, they have others.
    """
    scores, oracle, plain = [], [], []
    for seed in range(4):
        X, Y, support = planted_features(n, n, D, size, strength, seed, shared)
        model = SparseCPCA(1, sparsity=size, axes="contrast").fit(X, background=Y)
        scores.append(f1(model.components_[0], support))
        path = sparsity_path(model, X, background=Y, penalties=np.geomspace(0.1, 0.6, 8), progress=False)
        oracle.append(max(f1(path.components(p)[0], support) for p in path.penalties))
        cpca = SparseCPCA(1, sparsity=size, gamma=1.0).fit(X, background=Y)
        plain.append(f1(cpca.components_[0], support))
    assert np.mean(oracle) >= 0.9
    assert np.mean(scores) >= 0.9
    assert np.mean(plain) <= control


def test_two_components_have_their_own_features():
    rng = np.random.default_rng(0)
    X, Y, _ = planted_features(400, 400, 60, 5, 0.0, 0)
    X[:, :5] += 1.5 * rng.standard_normal((400, 1))
    X[:, 20:25] += 1.4 * rng.standard_normal((400, 1))
    model = SparseCPCA(2, sparsity=5, axes="contrast").fit(X, background=Y)
    found = sorted(np.flatnonzero(v).tolist() for v in model.components_)
    assert found == [list(range(5)), list(range(20, 25))]
    penalised = SparseCPCA(2, penalty=0.2, axes="contrast").fit(X, background=Y)
    np.testing.assert_allclose(np.abs(penalised.components_ @ model.components_.T).max(axis=0), 1, atol=0.2)


def test_weights_show_the_contrast():
    """On the same features, the ratio of variances is larger than along the axis of all features, cut off there."""
    X, Y, _ = planted_features(200, 200, 60, 8, 3.0, 0)
    v = SparseCPCA(1, sparsity=8, axes="contrast").fit(X, background=Y).components_[0]
    cut = np.where(v != 0, ContraPCA(1, shorten=False).fit(X, background=Y).components_[0], 0.0)
    ratios = [np.var(X @ u) / np.var(Y @ u) for u in (v, cut)]
    assert ratios[0] > 1.2 * ratios[1]


def test_storages_and_several_backgrounds():
    X, Y, _ = planted_features(150, 120, 40, 5, 3.0, 0)
    estimator = SparseCPCA(2, sparsity=5, axes="contrast", gamma=0.2)
    expected = estimator.fit(X, background=Y).components_
    for x, y in ((sp.csr_matrix(X), sp.csr_matrix(Y)), (Moments.from_rows(X), Moments.from_rows(Y))):
        np.testing.assert_allclose(estimator.fit(x, background=y).components_, expected, atol=1e-7)
    np.testing.assert_allclose(estimator.fit(X, background={"a": Y, "b": Y}).components_, expected, atol=1e-7)
    variance, contrast = (SparseCPCA(2, sparsity=5, gamma=0.0, axes=axes).fit(X) for axes in ("variance", "contrast"))
    np.testing.assert_allclose(contrast.components_, variance.components_)


def test_what_every_estimator_has(tmp_path):
    X, Y, support = planted_features(150, 120, 30, 5, 4.0, 0)
    estimator = SparseCPCA(1, sparsity=5, axes="contrast")
    model = estimator.fit(X, background=Y)
    V = model.components_.T
    np.testing.assert_allclose(model.transform(X), (X - X.mean(axis=0)) @ V, atol=1e-10)
    model.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(load(tmp_path / "model.npz").components_, model.components_)
    held_out = held_out_contrast(estimator, X, background=Y)
    assert held_out.mean > 2 * held_out.mean_error
    path = contrast_path(estimator, X, background=Y, gammas=[0.0, 0.9 * model.gamma_])
    assert f1(path.model(path.gammas[1]).components_[0].round(9), support) >= 0.9
    assert GammaSearch(estimator, gammas=4).fit(X, background=Y).best_score_ > 0
    sizes = sparsity_path(estimator, X, background=Y, sizes=[2, 5, 30], progress=False)
    assert np.all(np.diff(sizes.shares) > 0)
    assert sizes.shares[-1] == pytest.approx(1)
    assert sizes.shares[1] > 0.7
    found = stability_selection(estimator, X, background=Y, n_splits=4, progress=False)
    assert {f"x{j}" for j in support} == set(found.stable())
    summary = summarize(estimator, X, background=Y, gammas=3, test=False)
    assert "axes='contrast'" in summary["code"]["python"] or 'axes="contrast"' in summary["code"]["python"]


def test_the_report_of_a_fitted_model_of_a_wide_table():
    """Features stay features: coordinates in the span of the rows would have other few ones."""
    X, Y, _ = planted_features(30, 30, 100, 5, 6.0, 0)
    model = SparseCPCA(1, sparsity=5, gamma=1.0).fit(X, background=Y)
    summary = summarize(model, X, background=Y, gammas=3, test=False)
    assert summary is not None


def test_bad_input(groups):
    X, Y = groups
    for settings, says in (
        ({"axes": "both"}, "axes='both' is not valid"),
        ({"gamma": "budget"}, "gamma='budget' is for axes='variance'"),
        ({"sparsity": 100}, "sparsity=100 is more than"),
    ):
        with pytest.raises(ValueError, match=says):
            SparseCPCA(**{"sparsity": 3, "axes": "contrast"} | settings).fit(X, background=Y)


@pytest.mark.filterwarnings("ignore:Cases and controls are the same table")
@pytest.mark.parametrize("times", [1, 2])
def test_nothing_to_show(groups, times):
    """Groups without any contrast: components are the axes cut off, and no worse than that."""
    X, _ = groups
    model = SparseCPCA(1, sparsity=3, axes="contrast").fit(X, background=times * X)
    assert np.count_nonzero(model.components_) == 3
    np.testing.assert_allclose(np.linalg.norm(model.components_), 1)
    np.testing.assert_allclose(model.explained_variance_ / model.background_variance_, times**-2)
