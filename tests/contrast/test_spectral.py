"""Eigensolvers against a full dense decomposition; their checks and their fallback."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackNoConvergence

import oracles
from conftest import implicit_moments
from contrapca import CPCA, Moments
from contrapca.contrast import _eigen as _spectral
from contrapca.contrast._eigen import is_iterated, top_eigenpairs, top_eigenvalues
from contrapca.contrast._subspaces import canonical_signs
from contrapca.data._groups import Groups
from contrapca.exceptions import SolverError
from contrapca.moments._contrast import contrast

accumulate = Moments.from_rows


def contrast_of(X, Y, gamma, read=implicit_moments):
    return contrast(Groups.of(read(X), read(Y)), gamma)


@pytest.mark.parametrize("read", [accumulate, implicit_moments])
@pytest.mark.parametrize("gamma", [0.0, 0.5, 3.0])
def test_equal_to_dense_oracle(groups, read, gamma):
    X, Y = groups
    spectrum = top_eigenpairs(contrast_of(X, Y, gamma, read), 3)
    values, U = np.linalg.eigh(oracles.contrast_matrix(X, Y, gamma))
    np.testing.assert_allclose(spectrum.values, values[::-1][:3], rtol=1e-9)
    oracles.same_subspace(spectrum.vectors, U[:, ::-1][:, :3], 1e-8)
    for image, table in zip(spectrum.images, (X, Y), strict=True):
        np.testing.assert_allclose(image, oracles.scatter(table) @ spectrum.vectors, atol=1e-8)


@pytest.mark.parametrize("features", [60, 600])
def test_eigenvalues_alone(features):
    """To three digits where products find them, noise included; to rounding otherwise."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((2, 200, features)) * np.linspace(1, 3, features)
    C = contrast_of(X, Y, 0.3, accumulate)
    expected = np.linalg.eigvalsh(oracles.contrast_matrix(X, Y, 0.3))[::-1][:12]
    assert is_iterated(C, 12) == (features == 600)
    np.testing.assert_allclose(top_eigenvalues(C, 12), expected, rtol=1e-9 if features == 60 else 1e-3)


def test_largest_algebraic_not_largest_magnitude():
    """A strong contrast: the eigenvalues of largest magnitude are negative, and of no use."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((40, 6)), rng.standard_normal((40, 6)) * [10, 8, 1, 1, 1, 1]
    for read in (accumulate, implicit_moments):
        spectrum = top_eigenpairs(contrast_of(X, Y, 0.9, read), 2)
        assert np.abs(spectrum.vectors[:2]).max() < 0.2


@pytest.mark.parametrize("copies", [2, 4, 7])
def test_lanczos_finds_repeated_eigenvalues(copies):
    """Rows +-s_j e_j have the eigenvalues 2 s_j^2; single-vector Lanczos sees one copy of each by itself."""
    scale = np.concatenate([np.full(copies, 5.0), np.linspace(1, 2, 300)])
    rows = sp.csr_array(np.vstack([np.diag(scale), -np.diag(scale)]))
    spectrum = top_eigenpairs(contrast_of(rows, rows, 0.25), copies + 1)
    expected = 0.75 * 2 * np.sort(scale)[::-1][: copies + 1] ** 2
    np.testing.assert_allclose(spectrum.values, expected, rtol=1e-9)


@pytest.mark.parametrize("gamma", [0.2, 6.0])
def test_features_that_do_not_vary_are_left_out(gamma, monkeypatch):
    """Not at the larger gamma: fewer than 20 eigenvalues are positive there, and the next ones are their zeros."""
    rng = np.random.default_rng(0)
    X, Y = (sp.random(n, 300, density=0.2, random_state=rng, format="csr").tolil() for n in (40, 200))
    for rows in (X, Y):
        rows[:, 100:] = 0.0
    lengths = []
    original = _spectral.largest
    monkeypatch.setattr(_spectral, "largest", lambda f, v0, *a: lengths.append(v0.size) or original(f, v0, *a))
    spectrum = top_eigenpairs(contrast_of(X.tocsr(), Y.tocsr(), gamma), 20)
    expected = np.linalg.eigvalsh(oracles.contrast_matrix(X.toarray(), Y.toarray(), gamma))[::-1][:20]
    assert (expected[-1] > 1e-9) == (gamma == 0.2)
    np.testing.assert_allclose(spectrum.values, expected, atol=1e-9 * expected[0])
    assert dict.fromkeys(lengths) == dict.fromkeys([100] if gamma == 0.2 else [100, 300])


def test_a_missed_copy_is_noticed(monkeypatch):
    """Give the search a start without the second copy: what it missed must be found and used."""
    scale = np.concatenate([[5.0, 5.0], np.linspace(1, 2, 60)])
    rows = sp.csr_array(np.vstack([np.diag(scale), -np.diag(scale)]))
    original, starts = _spectral.largest, []

    def blind_at_first(apply, v0, *settings):
        starts.append(v0)
        if len(starts) > 1:
            return original(apply, v0, *settings)
        values, vectors = np.linalg.eigh(np.diag(2 * scale**2))
        order = np.argsort(-values)[[0, 2]]  # as if the second copy had been missed
        return values[order], vectors[:, order]

    monkeypatch.setattr(_spectral, "largest", blind_at_first)
    spectrum = top_eigenpairs(contrast_of(rows, rows, 0.0), 2)
    np.testing.assert_allclose(spectrum.values, [50, 50], rtol=1e-9)
    assert len(starts) == 2


@pytest.mark.filterwarnings("ignore::contrapca.exceptions.ContrastWarning")
def test_repeated_eigenvalues_that_lapack_loses():
    """On this matrix LAPACK's partial eigensolver (dsyevr) returns no eigenvalue at all, and no error."""
    rng = np.random.default_rng(0)
    X = np.vstack([np.eye(9), -np.eye(9)])
    rng.standard_normal((22, 9))
    Y = rng.standard_normal((2, 7)) @ rng.standard_normal((7, 9))
    for gamma in np.linspace(0.05, 0.5, 40):
        for solver in ("eigh", "dual", "lanczos"):
            model = CPCA(n_components=3, gamma=gamma, solver=solver).fit(X, background=Y)
            np.testing.assert_allclose(model.eigenvalues_, 2 / 18, rtol=1e-9)
            assert model.components_.shape == (3, 9)


def test_partial_result_is_completed(groups, monkeypatch):
    X, Y = groups
    C = contrast_of(X, Y, 0.3, accumulate)
    expected = top_eigenpairs(C, 2)
    monkeypatch.setattr(_spectral.scipy.linalg, "eigh", lambda *args, **kwargs: (np.zeros(0), np.zeros((12, 0))))
    found = top_eigenpairs(C, 2)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-12)
    oracles.same_subspace(found.vectors, expected.vectors, 1e-10)


@pytest.mark.parametrize("kind", ["plain", "tied", "flat"])
def test_iterating_on_a_matrix_equals_the_direct_solver(kind):
    """From MIN_ITERATED_ORDER on, few vectors of a matrix come from Lanczos: the same, repeated ones included."""
    rng = np.random.default_rng(0)
    order = _spectral.MIN_ITERATED_ORDER + 50
    if kind == "plain":
        X, Y = rng.standard_normal((2, 700, order)) * (1 + 9 / (1 + np.arange(order)))
    else:  # covariances that are multiples of the identity, but for two equal larger eigenvalues of the tied one
        X = Y = np.vstack([np.eye(order), -np.eye(order)])
        if kind == "tied":
            X = X * np.where(np.arange(order) < 2, 5.0, 1.0)
    C = contrast_of(X, Y, 0.3, accumulate)
    found, expected = top_eigenpairs(C, 2), _spectral._direct(C, 2)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-11)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(2), atol=1e-12)
    assert kind == "flat" or found.n_iter > 1
    if kind != "flat":  # there every direction will do
        oracles.same_subspace(found.vectors, expected.vectors, 1e-8)


def test_a_slow_iteration_on_a_matrix_is_given_up(monkeypatch):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((2, 1000, _spectral.MIN_ITERATED_ORDER))
    C = contrast_of(X, Y, 0.3, accumulate)
    monkeypatch.setattr(_spectral, "eigsh", failing)
    assert top_eigenpairs(C, 2).n_iter == 1


def failing(*args, **kwargs):
    raise ArpackNoConvergence("no convergence (planted)", np.zeros(0), np.zeros((0, 0)))


def test_arpack_failure_falls_back_to_dense(groups, monkeypatch):
    X, Y = groups
    expected = top_eigenpairs(contrast_of(X, Y, 0.3, accumulate), 2)
    monkeypatch.setattr(_spectral, "eigsh", failing)
    spectrum = top_eigenpairs(contrast_of(X, Y, 0.3), 2)
    np.testing.assert_allclose(spectrum.values, expected.values, rtol=1e-12)
    assert "planted" in spectrum.note
    assert "dense" in spectrum.note


def test_arpack_failure_without_memory_raises(groups, monkeypatch):
    X, Y = groups
    monkeypatch.setattr(_spectral, "eigsh", failing)
    monkeypatch.setattr(_spectral, "available_memory", lambda: 1000)
    with pytest.raises(SolverError, match=r"planted.*GiB.*fewer features"):
        top_eigenpairs(contrast_of(X, Y, 0.3), 2)


def test_bad_residuals_fall_back(groups, monkeypatch):
    X, Y = groups
    eigsh = _spectral.eigsh

    def inexact(*args, **kwargs):
        values, vectors = eigsh(*args, **kwargs)
        return values, vectors + 1e-4

    monkeypatch.setattr(_spectral, "eigsh", inexact)
    spectrum = top_eigenpairs(contrast_of(X, Y, 0.3), 2)
    assert "residual" in spectrum.note
    np.testing.assert_allclose(spectrum.values, top_eigenpairs(contrast_of(X, Y, 0.3, accumulate), 2).values)


def test_warm_start_gives_the_same_and_saves_products():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((300, 400)) * np.linspace(3, 1, 400), rng.standard_normal((200, 400))
    near = top_eigenpairs(contrast_of(X, Y, 0.30), 3).vectors
    cold = top_eigenpairs(contrast_of(X, Y, 0.31), 3, tol=1e-3)
    warm = top_eigenpairs(contrast_of(X, Y, 0.31), 3, tol=1e-3, start=near)
    np.testing.assert_allclose(warm.values, cold.values, rtol=1e-3)
    assert warm.n_iter < cold.n_iter


def test_canonical_signs():
    vectors = np.array([[-3.0, 1.0, -2.0], [1.0, -1.0, 2.0 * (1 + 1e-9)], [2.0, 0.0, 0.0]])
    signed = canonical_signs(vectors)
    np.testing.assert_array_equal(np.sign(signed[0]), [1, 1, 1])  # ties go to the first entry, rounding or not
    np.testing.assert_array_equal(canonical_signs(-vectors), signed)
