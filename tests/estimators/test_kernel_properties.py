"""KernelCPCA on awkward tables: low ranks, ties, repeated rows, fewer rows than features."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel

import oracles
from contrapca import KernelCPCA
from strategies import tables

pytestmark = pytest.mark.filterwarnings("ignore::contrapca.exceptions.TableWarning")  # of distant means


@given(tables(), st.sampled_from([0.0, 0.3, 0.9]), st.booleans())
@settings(max_examples=40)
def test_a_linear_kernel_has_the_spectrum_of_cpca(case, gamma, repeated):
    """Repeated rows, which kernels cannot tell apart, change nothing."""
    X, Y, d = case.X, case.Y, case.d
    C = oracles.contrast_matrix(X, Y, gamma) / len(X)
    values, vectors = np.linalg.eigh(C)
    values, vectors = values[::-1], vectors[:, ::-1]
    rank = np.linalg.matrix_rank(X - X.mean(axis=0))
    assume(rank > d and values[d - 1] > 1e-6 * np.abs(values).max())
    if repeated:
        X, Y = np.vstack([X, X]), np.vstack([Y, Y])
    model = KernelCPCA(d, kernel="linear", gamma=gamma).fit(X, background=Y)
    np.testing.assert_allclose(model.eigenvalues_, values[:d], atol=1e-8 * np.abs(values).max())
    for k in range(d):  # where an eigenvalue is alone, its latents are known up to sign
        if np.abs(np.delete(values, k) - values[k]).min() > 1e-3 * np.abs(values).max():
            expected = (X - X.mean(axis=0)) @ vectors[:, k]
            found = model.transform(X)[:, k]
            assert min(np.abs(found - expected).max(), np.abs(found + expected).max()) < 1e-6 * np.abs(X).max()


@given(tables(), st.sampled_from([0.3, 2.0, 30.0]), st.sampled_from([0.2, 0.8]))
@settings(max_examples=25)
def test_an_rbf_kernel_has_the_spectrum_of_the_whole_matrix(case, bandwidth, gamma):
    rows = np.vstack([case.X, case.Y])
    K, n = rbf_kernel(rows, gamma=0.5 / bandwidth**2), len(case.X)
    values, _ = oracles.kernel_cpca(K, n, gamma, 1)
    assume(n > 2 and values[0] > 1e-6 and oracles.kernel_cpca(K[:n, :n], n, 0.0, 2)[0][1] > 1e-6)  # more than one
    model = KernelCPCA(1, bandwidth=bandwidth, gamma=gamma).fit(case.X, background=case.Y)
    np.testing.assert_allclose(model.eigenvalues_, values, atol=1e-8)
    along = model.transform(case.X), model.transform(case.Y, center="background")
    for latents, variance in zip(along, (model.explained_variance_, model.background_variance_), strict=True):
        np.testing.assert_allclose(latents.mean(axis=0), 0, atol=1e-7)
        np.testing.assert_allclose(latents.var(axis=0), variance, atol=1e-7)
