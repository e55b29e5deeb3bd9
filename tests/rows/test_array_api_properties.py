"""Rows on a device against the obvious formulas: any shape, block size and weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import oracles
from contrapca.groups import Groups
from contrapca.moments import observe
from contrapca.objectives import masked_log_likelihood
from contrapca.rows import _array_api, storage
from contrapca.solvers import expected_covariance, expected_total_variance, gls_mean
from devices import back, is_there, there
from strategies import masked_tables


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


@settings(max_examples=40)
@given(masked_tables(), st.booleans())
def test_incomplete_rows(case, determinants):
    """Value, gradient, expectations and means: the same as from NumPy, whose own oracles are tested elsewhere."""
    here, away = (Groups.of(*(observe(put(table))[0] for table in (case.X, case.Y))) for put in (np.asarray, there))
    terms = [[(1.0, groups.foreground), (-case.gamma_raw, groups.background)] for groups in (here, away)]
    expected, found = (masked_log_likelihood(t, case.W, case.sigma2, determinants=determinants) for t in terms)
    close = {"rtol": 1e-10, "atol": 1e-10 * (1 + abs(expected.value))}
    np.testing.assert_allclose(found.value, expected.value, **close)
    np.testing.assert_allclose(found.gradient_W, expected.gradient_W, **close)
    np.testing.assert_allclose(found.gradient_sigma2, expected.gradient_sigma2, **close)
    U = np.linalg.qr(case.W)[0]
    for left, right in zip(away, here, strict=True):
        np.testing.assert_allclose(left.counted(1), right.counted(1))
        np.testing.assert_allclose(left.feature_counts, right.feature_counts)
        for function in (expected_total_variance, gls_mean):
            np.testing.assert_allclose(
                function(left, case.W, case.sigma2), function(right, case.W, case.sigma2), rtol=1e-8, atol=1e-9
            )
        np.testing.assert_allclose(
            expected_covariance(left, U, case.W, case.sigma2),
            expected_covariance(right, U, case.W, case.sigma2),
            rtol=1e-9,
            atol=1e-10,
        )
        moved = [group.about(group.mean + 0.5).scaled(np.full(group.mean.size, 2.0)) for group in (left, right)]
        np.testing.assert_allclose(moved[0].squares, moved[1].squares, rtol=1e-10, atol=1e-12)


@settings(max_examples=25)
@given(masked_tables(), st.integers(0, 99))
def test_weights_of_incomplete_rows_are_repeated_rows(case, seed):
    weights = np.random.default_rng(seed).integers(1, 4, len(case.X))
    weights[-1] = 0 if len(case.X) > 2 and seed % 2 else 1
    once, _ = observe(there(case.X), weights.astype(float))
    often, _ = observe(there(np.repeat(case.X, weights, axis=0)))
    # The complete rows become moments where they outnumber the features: with weights, sooner.
    assert once.weight == often.weight
    for name in ("mean", "feature_counts", "squares"):
        np.testing.assert_allclose(getattr(once, name), getattr(often, name), rtol=1e-10, atol=1e-12)
    W, sigma2 = case.W, case.sigma2
    found, expected = (masked_log_likelihood([(1.0, group)], W, sigma2) for group in (once, often))
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-9)
    np.testing.assert_allclose(found.gradient_W, expected.gradient_W, rtol=1e-8, atol=1e-8 * abs(expected.value))
    np.testing.assert_allclose(found.gradient_sigma2, expected.gradient_sigma2, rtol=1e-8, atol=1e-8 * abs(found.value))
    U = np.linalg.qr(W)[0]
    for group, other in ((once, often), (once.about(once.mean + 1), often.about(often.mean + 1))):
        np.testing.assert_allclose(gls_mean(group, W, sigma2), gls_mean(other, W, sigma2), rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(
            expected_covariance(group, U, W, sigma2), expected_covariance(other, U, W, sigma2), rtol=1e-8, atol=1e-9
        )
        np.testing.assert_allclose(
            expected_total_variance(group, W, sigma2), expected_total_variance(other, W, sigma2), rtol=1e-9
        )
