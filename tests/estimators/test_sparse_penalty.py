"""SparseCPCA with a penalty: optimality conditions, a slow search, the path over penalties, bad input."""

import numpy as np
import pytest

import oracles
from conftest import make_groups
from contrapca import CPCA, SparseCPCA, held_out_contrast, load, sparsity_path, stability_selection
from contrapca.solvers import _penalised


def deflated(C, components):
    Q = np.linalg.qr(components.T)[0] if len(components) else np.zeros((C.shape[0], 0))
    left = np.eye(C.shape[0]) - Q @ Q.T
    return left @ C @ left


def slow_maximum(B, weight, random, starts=40, steps=4000):
    """By plain steps that can only gain, from many random starts."""
    best, shift = -np.inf, max(0.0, -np.linalg.eigvalsh(B)[0])
    for _ in range(starts):
        v = random.standard_normal(B.shape[0])
        v /= np.linalg.norm(v)
        for _ in range(steps):
            moved = _penalised.drawn_in(B @ v + shift * v, weight)
            if np.abs(moved - v).max() < 1e-12:
                break
            v = moved
        best = max(best, v @ B @ v - 2 * weight * np.abs(v).sum())
    return best


@pytest.mark.parametrize("solver", ["eigh", "lanczos"])
@pytest.mark.parametrize("penalty", [0.02, 0.2, 0.5])
def test_optimality_conditions(groups, penalty, solver):
    X, Y = groups
    model = SparseCPCA(2, penalty=penalty, gamma=0.6, solver=solver).fit(X, background=Y)
    C = oracles.contrast_matrix(X, Y, 0.6) / len(X)
    units = CPCA(2, gamma=0.6).fit(X, background=Y).eigenvalues_
    for k, v in enumerate(model.components_):
        B, weight = deflated(C, model.components_[:k]), penalty * units[k] / 2
        assert oracles.penalty_conditions(B, v, weight) < 1e-8
        nearby = v + 0.1 * np.random.default_rng(0).standard_normal(v.size)  # the control
        assert oracles.penalty_conditions(B, nearby / np.linalg.norm(nearby), weight) > 1e-4
        outside = v - v @ np.linalg.pinv(model.components_[:k]) @ model.components_[:k] if k else v
        assert model.eigenvalues_[k] == pytest.approx(v @ B @ v / (outside @ outside), rel=1e-8)


def test_most_maxima_are_the_best_that_a_slow_search_finds():
    best, cases, random = 0, 0, np.random.default_rng(0)
    for seed in range(6):
        X, Y = make_groups(60, 50, 8, seed=seed)
        C = oracles.contrast_matrix(X, Y, 0.7) / len(X)
        for penalty in (0.1, 0.3):
            weight = penalty * np.linalg.eigvalsh(C)[-1] / 2
            v = SparseCPCA(1, penalty=penalty, gamma=0.7).fit(X, background=Y).components_[0]
            slow = slow_maximum(C, weight, random, starts=10, steps=1000)
            best += v @ C @ v - 2 * weight * np.abs(v).sum() >= slow - 1e-6 * abs(slow)
            cases += 1
    assert best >= 0.8 * cases


def test_features_without_a_block_of_their_own(groups, monkeypatch):
    """Of many features only products are formed; the steps are shorter, the maximum is the same."""
    X, Y = groups
    expected = SparseCPCA(1, penalty=0.2, gamma=0.6).fit(X, background=Y).components_
    monkeypatch.setattr(_penalised, "MAX_BLOCK", 2)
    monkeypatch.setattr(_penalised, "MAX_STEPS", 5000)
    found = SparseCPCA(1, penalty=0.2, gamma=0.6).fit(X, background=Y).components_
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_strongest_penalty_leaves_one_feature(groups):
    X, Y = groups
    model = SparseCPCA(1, penalty=0.99, gamma=0.1).fit(X, background=Y)
    assert np.count_nonzero(model.components_) == 1
    weak = SparseCPCA(1, penalty=1e-7, gamma=0.1).fit(X, background=Y).components_
    np.testing.assert_allclose(weak, CPCA(1, gamma=0.1).fit(X, background=Y).components_, atol=1e-5)


def test_path_over_penalties(groups):
    X, Y = groups
    path = sparsity_path(SparseCPCA(2, gamma=0.6), X, background=Y, penalties=[0.3, 0.01, 0.1])
    assert path.penalties.tolist() == [0.3, 0.1, 0.01]
    assert np.all(np.diff(path.sizes) >= 0)
    assert np.all(np.diff(path.contrasts) > -1e-9)
    assert path.shares[-1] == pytest.approx(1, abs=0.02)
    assert "3 penalties from" in repr(path)
    assert next(iter(path.table())) == "penalty"
    model, again = path.model(0.1), SparseCPCA(2, penalty=0.1, gamma=0.6).fit(X, background=Y)
    assert (model.penalty, model.sparsity) == (0.1, None)
    np.testing.assert_allclose(model.components_[0], again.components_[0], atol=1e-6)
    np.testing.assert_allclose(path.components(0.1), model.components_)
    with pytest.raises(ValueError, match=r"0\.7 is not one of this path's penalties: 0\.3, 0\.1, 0\.01"):
        path.model(0.7)


def test_what_every_estimator_has(groups, tmp_path):
    X, Y = groups
    model = SparseCPCA(2, penalty=0.2, gamma=0.5).fit(X, background=Y)
    model.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(load(tmp_path / "model.npz").transform(X), model.transform(X))
    assert held_out_contrast(SparseCPCA(1, penalty=0.2, gamma=1.0), X, background=Y).mean > 0
    found = stability_selection(SparseCPCA(1, penalty=0.2, gamma=0.5), X, background=Y, n_splits=2, progress=False)
    assert found.n_halves == 4


@pytest.mark.parametrize("penalty", [0, 1, -0.1, "weak", True, np.nan])
def test_bad_penalties(groups, penalty):
    X, Y = groups
    model = SparseCPCA(penalty=penalty, gamma=0.5)
    with pytest.raises(ValueError, match="must be a number above 0 and below 1"):
        model.fit(X, background=Y)
    assert not model.__sklearn_is_fitted__()
    with pytest.raises(ValueError, match=r"must be a number above 0 and below 1|could not convert"):
        sparsity_path(SparseCPCA(gamma=0.5), X, background=Y, penalties=[penalty])


def test_only_one_way_to_ask(groups):
    X, Y = groups
    with pytest.raises(ValueError, match=r"sparsity=3 and penalty=0\.1 are two ways to ask for few features"):
        SparseCPCA(sparsity=3, penalty=0.1, gamma=0.5).fit(X, background=Y)
    with pytest.raises(ValueError, match="sizes= and penalties= are two ways"):
        sparsity_path(SparseCPCA(gamma=0.5), X, background=Y, sizes=[2], penalties=[0.1])
    with pytest.raises(ValueError, match="penalties must contain at least one number"):
        sparsity_path(SparseCPCA(gamma=0.5), X, background=Y, penalties=[])
