"""Moments from rows: against the obvious formula, in every storage and float type."""

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from conftest import implicit_moments
from contrapca import Moments
from contrapca.data.rows import _numpy
from contrapca.moments._moments import pooled_deviation

accumulate = Moments.from_rows


def check(moments, X, rtol):
    X = np.asarray(X, dtype=np.float64)
    S = oracles.scatter(X)
    assert moments.weight == len(X)
    np.testing.assert_allclose(moments.mean, X.mean(axis=0), rtol=rtol, atol=rtol)
    np.testing.assert_allclose(moments.scatter.dense(), S, rtol=0, atol=rtol * np.trace(S))
    np.testing.assert_allclose(moments.scatter.diagonal(), np.diag(S), rtol=rtol)
    np.testing.assert_allclose(moments.scatter.trace, np.trace(S), rtol=rtol)
    V = np.random.default_rng(1).standard_normal((X.shape[1], 3))
    np.testing.assert_allclose(moments.scatter.matmul(V), S @ V, rtol=0, atol=10 * rtol * np.trace(S))


@pytest.mark.parametrize("read", [accumulate, implicit_moments])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [2, 37, 1300])
def test_dense(read, order, n):
    X = np.asarray(np.random.default_rng(0).standard_normal((n, 9)) * 3 + 5, order=order)
    check(read(X), X, 1e-12)


@pytest.mark.parametrize("read", [accumulate, implicit_moments])
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
def test_sparse(read, kind):
    X = sp.random(300, 20, density=0.2, random_state=0, format="csr")
    check(read(kind(X)), X.toarray(), 1e-12)


def test_strided_rows():
    X = np.random.default_rng(0).standard_normal((800, 14))
    check(accumulate(X[::2, ::2]), X[::2, ::2], 1e-12)


@pytest.mark.parametrize("read", [accumulate, implicit_moments])
def test_float32_is_accumulated_in_float64(read):
    """Mean 100, sd 1, float32: centring afterwards in float32 loses digits, centred blocks do not (F8)."""
    X = (np.random.default_rng(0).standard_normal((20_000, 5)) + 100).astype(np.float32)
    check(read(X), X, 1e-9)
    naive = X.T @ X - len(X) * np.outer(X.mean(axis=0), X.mean(axis=0))
    assert np.abs(naive - oracles.scatter(X)).max() > 1e-3 * len(X)  # the control: the naive way does fail here


def test_large_mean():
    X = np.random.default_rng(0).standard_normal((5000, 4)) + 1e6
    check(accumulate(X), X, 1e-9)


def test_threads_give_the_same(monkeypatch):
    X = np.random.default_rng(0).standard_normal((4000, 30)) + np.linspace(0, 50, 4000)[:, None]
    alone = accumulate(X)
    monkeypatch.setattr(_numpy, "worker_count", lambda n_values: 3)
    shared = accumulate(X)
    np.testing.assert_allclose(shared.scatter.dense(), alone.scatter.dense(), rtol=1e-12, atol=1e-8)
    np.testing.assert_allclose(shared.mean, alone.mean, rtol=1e-13)


def test_blocks_of_any_size_give_the_same(monkeypatch):
    X = np.random.default_rng(0).standard_normal((999, 6)) * 10 + 3
    whole = accumulate(X).scatter.dense()
    for size in (1, 7, 100, 5000):
        monkeypatch.setattr(_numpy, "_block_rows", lambda D, size=size: size)
        np.testing.assert_allclose(accumulate(X).scatter.dense(), whole, rtol=1e-11, atol=1e-8)


@pytest.mark.parametrize("read", [accumulate, implicit_moments])
@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
@pytest.mark.parametrize("sparse", [False, True])
def test_not_finite(read, value, word, sparse):
    X = np.random.default_rng(0).standard_normal((700, 5))
    X[3, 2] = value
    with pytest.raises(ValueError, match=f"{word}.*column 2"):
        read(sp.csr_array(X) if sparse else X)


@pytest.mark.parametrize("read", [accumulate, implicit_moments])
def test_scaled(read):
    X = np.random.default_rng(0).standard_normal((50, 4)) * [1, 2, 3, 4]
    divisor = np.array([2.0, 1.0, 0.5, 4.0])
    check(read(X).scaled(divisor), X / divisor, 1e-12)


def test_constant_features_have_unit_deviation():
    X = np.random.default_rng(0).standard_normal((500, 3)) * 2
    X[:, 1] = 0.1 * 3  # not representable, so that its mean rounds
    deviation = pooled_deviation([accumulate(X)])
    assert deviation[1] == 1
    np.testing.assert_allclose(deviation[[0, 2]], X[:, [0, 2]].std(axis=0), rtol=1e-12)
