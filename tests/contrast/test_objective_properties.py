"""The objective of rows with holes, over random patterns."""

from unittest import mock

import numpy as np
from hypothesis import given, settings

import oracles
from contrapca.data._groups import Groups
from contrapca.missing._likelihood import masked_log_likelihood
from contrapca.missing._rows import counted_terms, observe
from strategies import masked_tables


def evaluate(case, **options):
    groups = Groups.of(observe(case.X)[0], observe(case.Y)[0])
    terms = counted_terms(groups, case.gamma_raw * groups.background.weight / groups.foreground.weight)
    return masked_log_likelihood(terms, case.W, case.sigma2, **options)


@given(masked_tables())
@settings(max_examples=150)
def test_value_against_indicator_matrices(case):
    expected = oracles.observed_log_likelihood(case.X, case.Y, case.gamma_raw, case.W, case.sigma2)
    found = evaluate(case)
    np.testing.assert_allclose(found.value, expected, rtol=1e-9, atol=1e-9)
    quadratics = [oracles.quadratic(table, case.W, case.sigma2) for table in (case.X, case.Y)]
    np.testing.assert_allclose(found.quadratics, quadratics[: len(found.quadratics)], rtol=1e-8, atol=1e-10)


@given(masked_tables())
@settings(max_examples=100)
def test_gradient_against_finite_differences(case):
    """Of the brute-force oracle, not of our own value."""
    found = evaluate(case)
    at = lambda W, sigma2: oracles.observed_log_likelihood(case.X, case.Y, case.gamma_raw, W, sigma2)  # noqa: E731
    in_W = oracles.finite_differences(lambda W: at(W, case.sigma2), case.W)
    in_sigma2 = oracles.finite_differences(lambda s: at(case.W, s[0]), np.array([case.sigma2]))[0]
    scale = 1 + np.abs(in_W).max() + abs(in_sigma2)
    np.testing.assert_allclose(found.gradient_W, in_W, atol=1e-5 * scale)
    np.testing.assert_allclose(found.gradient_sigma2, in_sigma2, atol=1e-5 * scale)


@given(masked_tables())
@settings(max_examples=50)
def test_a_few_rows_at_a_time(case):
    """Residuals are computed in blocks of rows; blocks of one or two rows give what all rows at once give."""
    expected = evaluate(case)
    with mock.patch("contrapca.missing._rows.CACHED", 2 * case.W.shape[0]):
        found = evaluate(case)
    assert np.isclose(found.value, expected.value, rtol=1e-10, atol=1e-10)
    scale = 1 + np.abs(expected.gradient_W).max()
    np.testing.assert_allclose(found.gradient_W, expected.gradient_W, atol=1e-10 * scale)


@given(masked_tables())
@settings(max_examples=50)
def test_without_determinants(case):
    found = evaluate(case, determinants=False)
    coefficients = [1.0, -case.gamma_raw]
    expected = -0.5 * sum(c * q for c, q in zip(coefficients, found.quadratics, strict=False))
    np.testing.assert_allclose(found.value, expected, rtol=1e-10, atol=1e-10)

    def value(W):
        q = [oracles.quadratic(table, W, case.sigma2) for table in (case.X, case.Y)]
        return -0.5 * (q[0] - case.gamma_raw * q[1])

    in_W = oracles.finite_differences(value, case.W)
    np.testing.assert_allclose(found.gradient_W, in_W, atol=1e-5 * (1 + np.abs(in_W).max()))
