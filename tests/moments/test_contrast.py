"""Contrasts of groups, in full and in reduced coordinates."""

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from conftest import implicit_moments
from contrapca import Moments
from contrapca.data import study_of
from contrapca.data._groups import Groups
from contrapca.missing._collect import collect
from contrapca.moments._contrast import alone, contrast
from contrapca.moments._span import reduce_rows


@pytest.mark.parametrize("reader", [Moments.from_rows, implicit_moments])
def test_contrast_is_the_weighted_difference(groups, reader):
    X, Y = groups
    found = contrast(Groups.of(reader(X), reader(Y)), 0.4)
    C = oracles.contrast_matrix(X, Y, 0.4)
    np.testing.assert_allclose(found.dense(), C, atol=1e-9)
    np.testing.assert_allclose(found.trace, np.trace(C), rtol=1e-11)
    assert found.N == pytest.approx(len(X) * (1 - 0.4))
    V = np.eye(X.shape[1])[:, :3]
    np.testing.assert_allclose(found.matmul(V), C[:, :3], atol=1e-9)
    np.testing.assert_allclose(found.combine(found.images(V)), C[:, :3], atol=1e-9)


def test_several_backgrounds_count_together(groups):
    """Two backgrounds, each about its own mean, weigh as much as their rows do: gamma_raw = gamma n / (m_1 + m_2)."""
    X, Y = groups
    parts = (X, Y[:50], Y[50:] + 3)
    found = contrast(Groups.from_items(map(Moments.from_rows, parts), ("foreground", "first", "second")), 0.4)
    raw = 0.4 * len(X) / len(Y)
    C = oracles.scatter(X) - raw * (oracles.scatter(parts[1]) + oracles.scatter(parts[2]))
    np.testing.assert_allclose(found.dense(), C, atol=1e-9)
    assert found.N == pytest.approx(len(X) * (1 - 0.4))


def explicit_basis(basis):
    """Q from Z = R Q'."""
    return basis.rows.T @ np.linalg.pinv(basis.R).T


@pytest.mark.parametrize(("n", "m", "D"), [(5, 4, 30), (8, 6, 9), (20, 3, 12), (4, 4, 8)])
@pytest.mark.parametrize("repeated", [False, True])
def test_reduced_coordinates_hold_the_same_matrices(n, m, D, repeated):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((n, D)) + 2, rng.standard_normal((m, D))
    if repeated:
        X[-1] = X[0]
    moments, basis = reduce_rows(Groups.of(implicit_moments(X), implicit_moments(Y)), 2)
    rank = np.linalg.matrix_rank(np.vstack([X - X.mean(axis=0), Y - Y.mean(axis=0)]))
    assert basis.R.shape[1] == min(D, rank + 2)
    Q = explicit_basis(basis)
    np.testing.assert_allclose((Q.T @ Q)[:rank, :rank], np.eye(rank), atol=1e-11)
    for group, table in zip(moments, (X, Y), strict=True):
        np.testing.assert_allclose(Q @ group.scatter.dense() @ Q.T, oracles.scatter(table), atol=1e-11)


@pytest.mark.parametrize("nearly", [0.0, 1e-9])
def test_lifted_eigenvectors(nearly):
    """Eigenvectors in R^D are exact, even where rows are nearly the same."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((9, 40)), rng.standard_normal((7, 40))
    X[1] = X[0] + nearly * rng.standard_normal(40)
    data = collect(study_of(X, Y, "test").tables, 3, False, "dual")
    own = data.background_alone()
    for part, small, C in [
        (data, contrast(data.groups, 0.4), oracles.contrast_matrix(X, Y, 0.4)),
        (own, alone(own.groups.foreground), oracles.scatter(Y)),
    ]:
        values, U = np.linalg.eigh(small.dense())
        V = part.lift(small, U[:, -3:], values[-3:])
        np.testing.assert_allclose(V.T @ V, np.eye(3), atol=1e-12)
        np.testing.assert_allclose(C @ V, V * values[-3:], atol=1e-12 * np.trace(oracles.scatter(X)))
        np.testing.assert_allclose(part.feature_matrix(small), C, atol=1e-12 * np.trace(oracles.scatter(X)))


def test_scaled_rows_are_reduced_scaled():
    rng = np.random.default_rng(0)
    X, divisor = rng.standard_normal((4, 9)), np.linspace(0.5, 2, 9)
    (moments,), basis = reduce_rows(Groups.of(implicit_moments(X).scaled(divisor)), 1)
    Q = explicit_basis(basis)
    np.testing.assert_allclose(Q @ moments.scatter.dense() @ Q.T, oracles.scatter(X / divisor), atol=1e-11)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("shape", [(6, 20), (40, 7)])
def test_inner_products_of_the_rows_have_the_nonzero_eigenvalues(sparse, shape):
    X = sp.random(*shape, density=0.5, random_state=0, format="csr")
    table = X if sparse else X.toarray()
    divisor = np.linspace(1, 3, shape[1])
    scatter = implicit_moments(table).scaled(divisor).scatter
    full = np.linalg.eigvalsh(oracles.scatter(X.toarray() / divisor))
    k = min(shape)
    for matrix in (scatter.gram, scatter.dense()):
        np.testing.assert_allclose(np.linalg.eigvalsh(matrix)[-k:], full[-k:], atol=1e-12)
