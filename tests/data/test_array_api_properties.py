"""Rows on a device against the obvious formulas: any shape, block size and weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import oracles
from contrapca.data.rows import _array_api
from contrapca.data.rows._storage import storage
from devices import back, is_there, there


@pytest.fixture(scope="module", autouse=True)
def libraries(need):
    need("array_api_strict")
    need("array_api_compat")


@settings(max_examples=40)
@given(
    n=st.integers(2, 40), D=st.integers(1, 9), block=st.integers(1, 50), seed=st.integers(0, 99), weighted=st.booleans()
)
@example(n=40, D=9, block=7, seed=0, weighted=True)
def test_reductions(n, D, block, seed, weighted):
    rng = np.random.default_rng(seed)
    X, V = rng.standard_normal((n, D)) * 3 + 100, rng.standard_normal((D, 3))
    weights = rng.integers(1, 4, n).astype(float) if weighted else None
    rows = there(X)
    counted = X if weights is None else np.repeat(X, weights.astype(int), axis=0)
    mean, S = counted.mean(axis=0), oracles.scatter(counted)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_array_api, "BLOCK_BYTES", 8 * D * block)
        patch.setattr(_array_api, "LEAST_WIDTH", 2)  # several parts of columns
        read = storage(rows)
        found = read.scatter(rows, mean, weights)
        assert is_there(found)
        np.testing.assert_allclose(back(found), S, rtol=0, atol=1e-11 * np.trace(S))
        np.testing.assert_allclose(read.column_sums(rows, weights), counted.sum(axis=0), rtol=1e-13)
        np.testing.assert_allclose(read.squares(rows, mean, weights), np.diag(S), rtol=1e-10, atol=1e-20)
        image = read.product(rows, mean, V, weights)
        np.testing.assert_allclose(image, S @ V, rtol=0, atol=1e-10 * np.trace(S))
        divisor = rng.random(D) + 0.5
        Z = (X - mean) / divisor
        np.testing.assert_allclose(back(read.gram(rows, mean, divisor)), Z @ Z.T, rtol=0, atol=1e-10 * np.sum(Z * Z))
        of = read.weighted(rows, np.ones((n, 1)))(0)
        np.testing.assert_allclose(of[0], X.mean(axis=0), rtol=1e-13)
        np.testing.assert_allclose(
            back(of[1]), oracles.scatter(X), rtol=0, atol=1e-11 * np.sum((X - X.mean(axis=0)) ** 2)
        )
