"""Contrasts of groups, in full and in reduced coordinates."""

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from contrapca.moments import Pair, accumulate, reduce_rows, row_moments


@pytest.mark.parametrize("read", [accumulate, row_moments])
def test_contrast_is_the_weighted_difference(groups, read):
    X, Y = groups
    contrast = Pair(read(X), read(Y)).contrast(0.4)
    C = oracles.contrast_matrix(X, Y, 0.4)
    np.testing.assert_allclose(contrast.dense(), C, atol=1e-9)
    np.testing.assert_allclose(contrast.trace, np.trace(C), rtol=1e-11)
    assert contrast.N == pytest.approx(len(X) * (1 - 0.4))
    V = np.eye(X.shape[1])[:, :3]
    np.testing.assert_allclose(contrast.matmat(V), C[:, :3], atol=1e-9)
    np.testing.assert_allclose(contrast.combine(contrast.images(V)), C[:, :3], atol=1e-9)


@pytest.mark.parametrize(("n", "m", "D"), [(5, 4, 30), (8, 6, 9), (20, 3, 12), (4, 4, 8)])
def test_reduced_coordinates_hold_the_same_matrices(n, m, D):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((n, D)) + 2, rng.standard_normal((m, D))
    moments, basis = reduce_rows([row_moments(X), row_moments(Y)], 2)
    size = moments[0].scatter.dense().shape[0]
    assert size == min(D, n + m + 2)
    Q = basis.lift(np.eye(size))
    np.testing.assert_allclose(Q.T @ Q, np.eye(size), atol=1e-12)
    for group, table in zip(moments, (X, Y), strict=True):
        np.testing.assert_allclose(Q @ group.scatter.dense() @ Q.T, oracles.scatter(table), atol=1e-11)


def test_scaled_rows_are_reduced_scaled():
    rng = np.random.default_rng(0)
    X, divisor = rng.standard_normal((4, 9)), np.linspace(0.5, 2, 9)
    (moments,), basis = reduce_rows([row_moments(X).scaled(divisor)], 1)
    Q = basis.lift(np.eye(5))
    np.testing.assert_allclose(Q @ moments.scatter.dense() @ Q.T, oracles.scatter(X / divisor), atol=1e-11)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("shape", [(6, 20), (40, 7)])
def test_spectrum_matrix_has_the_nonzero_eigenvalues(sparse, shape):
    X = sp.random(*shape, density=0.5, random_state=0, format="csr")
    table = X if sparse else X.toarray()
    divisor = np.linspace(1, 3, shape[1])
    small = np.linalg.eigvalsh(row_moments(table).scaled(divisor).scatter.spectrum_matrix())
    full = np.linalg.eigvalsh(oracles.scatter(X.toarray() / divisor))
    k = min(shape)
    np.testing.assert_allclose(small[-k:], full[-k:], atol=1e-12)
