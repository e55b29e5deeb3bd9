"""Gradient solvers against closed forms, EM and explicit formulas."""

import numpy as np
import pytest

import oracles
from conftest import make_groups
from contrapca import gamma_limits
from contrapca.data._groups import Groups
from contrapca.missing._estimates import (
    expected_covariance,
    expected_total_variance,
    gls_mean,
    masked_start,
    random_start,
)
from contrapca.missing._likelihood import GradientSolution, masked_log_likelihood, maximise
from contrapca.missing._limits import comes_near_the_bound, count_bound, masked_bound
from contrapca.missing._rows import counted_terms, observe

X, Y = make_groups(60, 50, 7)


def masked(table, fraction, seed=0):
    return np.where(np.random.default_rng(seed).random(table.shape) < fraction, np.nan, table)


def observed(left, right=None):
    """The groups of tables with holes, as solvers want them."""
    return Groups.of(observe(left)[0], None if right is None else observe(right)[0])


def with_holes(fraction=0.3, left=X, right=Y, seed=0):
    return observed(masked(left, fraction, seed), masked(right, fraction, seed + 1))


def solve(groups, gamma, d, **options) -> GradientSolution:
    return maximise(groups, gamma, *masked_start(groups, gamma, d), **options)


@pytest.mark.parametrize("gamma", [0.0, 0.3])
@pytest.mark.parametrize("rows", [60, 6])  # as moments, and as rows that share one pattern
def test_complete_rows_give_the_closed_form(gamma, rows):
    left, right = X[:rows], 0.3 * Y[:rows]
    groups = observed(left, right)
    assert (groups.foreground.rows is None) == (rows == 60)
    W, sigma2, *_ = oracles.pcpca(left, right, gamma, 2)
    found = solve(groups, gamma, 2, tol=1e-9)
    assert found.status == "converged"
    np.testing.assert_allclose(found.W @ found.W.T, W @ W.T, atol=1e-6 * np.abs(W @ W.T).max())
    assert found.sigma2 == pytest.approx(sigma2, rel=1e-6)
    assert found.objective == pytest.approx(oracles.relative_log_likelihood(left, right, gamma, W, sigma2), rel=1e-9)


@pytest.mark.parametrize("fraction", [0.1, 0.5])
@pytest.mark.parametrize(("gamma", "d"), [(0.0, 1), (0.0, 3), (0.3, 2), (0.5, 1)])
def test_converged_means_stationary(fraction, gamma, d):
    """F10's identity, the objective of the oracle, and no better point nearby."""
    groups = with_holes(fraction)
    found = solve(groups, gamma, d)
    assert found.status == "converged"
    terms, raw = counted_terms(groups, gamma), gamma * len(X) / len(Y)
    evaluation = masked_log_likelihood(terms, found.W, found.sigma2)
    difference = sum(c * q for (c, _), q in zip(terms, evaluation.quadratics, strict=True))
    assert difference == pytest.approx(sum(c * group.cells for c, group in terms), rel=1e-4)
    tables = masked(X, fraction), masked(Y, fraction, 1)
    best = oracles.observed_log_likelihood(*tables, raw, found.W, found.sigma2)
    assert found.objective == pytest.approx(best, rel=1e-9)
    rng = np.random.default_rng(0)
    for size in (1e-2, 1e-3):
        for _ in range(10):
            W = found.W + size * rng.standard_normal(found.W.shape)
            sigma2 = found.sigma2 * np.exp(size * rng.standard_normal())
            assert oracles.observed_log_likelihood(*tables, raw, W, sigma2) < best
    assert found.history.size == found.n_iter + 1
    assert np.all(np.diff(found.history) >= -1e-9 * abs(best))  # L-BFGS only ever improves


@pytest.mark.parametrize("fraction", [pytest.param(0.2, marks=pytest.mark.slow), 0.5])
def test_no_worse_than_em(fraction):
    table = masked(X[:40, :5], fraction, 3)
    groups = observed(table)
    found = solve(groups, 0.0, 2, tol=1e-8)
    W, sigma2 = oracles.ppca_em(table, 2, steps=600)
    em = oracles.observed_log_likelihood(table, None, 0, W, sigma2)
    assert found.objective >= em - 1e-6
    worse = oracles.observed_log_likelihood(table, None, 0, *oracles.ppca_em(table, 2, steps=3))
    assert found.objective > worse + 0.1  # the control: EM stopped early is told apart


def test_units_do_not_matter():
    found = solve(with_holes(), 0.3, 2)
    for unit in (1e-5, 1e5):
        other = solve(with_holes(left=X * unit, right=Y * unit), 0.3, 2)
        assert other.n_iter == pytest.approx(found.n_iter, abs=15)
        np.testing.assert_allclose(other.W @ other.W.T / unit**2, found.W @ found.W.T, atol=1e-4)


@pytest.mark.parametrize("unit", [1e2, 1e3])
def test_features_in_unequal_units(unit):
    """One hole more or less makes no difference, whatever the units; 1e4 and more is too much for any method."""
    table = X * np.array([unit, 1, 1, 1, 1, 1, 1])
    _, sigma2, *_ = oracles.pcpca(table, None, 0.0, 2)
    table[0, 0] = np.nan
    found = solve(observed(table), 0.0, 2)
    assert found.status == "converged"
    assert found.sigma2 == pytest.approx(sigma2, rel=0.05)


def test_started_at_the_maximum():
    groups = with_holes()
    found = solve(groups, 0.3, 2, tol=1e-8)
    again = maximise(groups, 0.3, found.W, found.sigma2)
    assert (again.status, again.n_iter) == ("converged", 0)


def test_a_background_without_variance():
    groups = observed(masked(X, 0.3), masked(np.full(Y.shape, 3.0), 0.3, 1))
    assert solve(groups, 0.3, 2).status == "converged"
    assert masked_bound(groups, 2, np.random.default_rng(0)) == count_bound(groups, 2)[0]


def test_budget_and_observer():
    groups, seen = with_holes(), []
    found = solve(groups, 0.3, 2, max_iter=3, observer=lambda *state: seen.append(state))
    assert found.status == "budget"
    assert [k for k, _, _ in seen] == [0, 1, 2, 3]
    np.testing.assert_array_equal([value for _, value, _ in seen], found.history)
    np.testing.assert_array_equal(solve(groups, 0.3, 2, max_iter=3).W, found.W)  # observing changes nothing


# ---------------------------------------------------------------------- no maximum


def test_noise_that_vanishes():
    """Above the bound every start proves it; well below none does."""
    groups = with_holes(right=2 * Y)
    bound = masked_bound(groups, 2, np.random.default_rng(0))
    rng = np.random.default_rng(0)
    for k in range(5):
        start = random_start(groups, 2, rng) if k else masked_start(groups, bound, 2)
        above = maximise(groups, 1.05 * bound, *start)
        assert (above.status, above.reason) == ("unbounded", "the noise variance goes to 0")
        assert maximise(groups, 0.9 * bound, *start).status == "converged"


@pytest.mark.parametrize("fraction", [0.0, 0.3, 0.6])
def test_the_bound_is_sharp(fraction):
    """Complete rows: the exact limit, approached from above. With holes: fits work just below and fail just above."""
    groups = with_holes(fraction, right=2 * Y)
    bound = masked_bound(groups, 2, np.random.default_rng(0))
    if fraction == 0:
        exact = gamma_limits(X, background=2 * Y, n_components=2).pcpca
        assert exact <= bound <= 1.02 * exact
    found = solve(groups, 0.95 * bound, 2, max_iter=5000)
    assert found.status == "converged"
    assert comes_near_the_bound(groups, 0.95 * bound, found.W)
    assert not comes_near_the_bound(groups, 0.1 * bound, found.W)
    if fraction < 0.6:  # with few values and many holes it may end at a local maximum
        assert solve(groups, 1.02 * bound, 2).status == "unbounded"


def crossed(n, m, extra):
    """Features 1 and 2 are never observed together in the background: W -> infinity along both (F10, condition 3)."""
    rng = np.random.default_rng(0)
    left = rng.standard_normal((n + extra, 3))
    left[:n, 2] = np.nan
    left[n:, :2] = np.nan
    right = 0.1 * rng.standard_normal((2 * m, 3))
    right[:m, 1] = right[m:, 0] = np.nan
    right[1:, 2] = np.nan
    return observed(left, right)


def test_loadings_that_run_off():
    groups = crossed(10, 7, 20)
    # In raw units 1: 10 foreground rows against 14 background rows that see feature 1 or 2.
    gamma = groups.background.weight / groups.foreground.weight
    assert gamma < count_bound(groups, 1)[0]
    found = solve(groups, gamma, 1)
    assert (found.status, found.reason) == ("unbounded", "the loadings go to infinity")
    assert solve(groups, 0.5 * gamma, 1).status == "converged"


def test_counts():
    groups = crossed(10, 7, 1)  # with fewer other rows the counts alone tell
    bound, feature = count_bound(groups, 1)
    assert bound * groups.foreground.weight / groups.background.weight == pytest.approx(11 / 14)
    assert feature is None
    table = Y.copy()
    table[:, 3] = np.nan
    table[:40, 3] = Y[:40, 3]
    left = X.copy()
    left[10:, 3] = np.nan
    bound, feature = count_bound(observed(left, table), 2)
    assert bound * 60 / 50 == pytest.approx(10 / 40)
    assert feature == 3


def test_rows_that_fit_perfectly():
    """Rows in a plane and two components: sigma2 -> 0 even without a background."""
    found = solve(observed(X[:, :2] @ Y[:2]), 0.0, 2)
    assert found.status == "unbounded"
    assert "noise variance goes to 0, as far as floating point can tell" in found.reason


# ---------------------------------------------------------------------- means and variances


@pytest.mark.parametrize("complete", [0, 30])
def test_gls_mean(complete):
    table = masked(X, 0.4)
    table[:complete] = X[:complete]
    W, sigma2 = np.random.default_rng(0).standard_normal((7, 2)) * 2, 0.5
    group = observe(table)[0]
    assert (group.complete is None) == (complete == 0)
    np.testing.assert_allclose(gls_mean(group, W, sigma2), oracles.gls_mean(table, W, sigma2), rtol=1e-7, atol=1e-8)
    moved = group.about(group.mean + 1)
    np.testing.assert_allclose(gls_mean(moved, W, sigma2), oracles.gls_mean(table, W, sigma2), rtol=1e-7, atol=1e-8)


def test_gls_mean_of_complete_rows_is_the_mean():
    W = np.random.default_rng(0).standard_normal((7, 2))
    np.testing.assert_allclose(gls_mean(observe(X)[0], W, 0.5), X.mean(axis=0))
    np.testing.assert_allclose(gls_mean(observe(X[:5])[0], W, 0.5), X[:5].mean(axis=0))


@pytest.mark.parametrize("complete", [0, 30])
def test_expected_covariance(complete):
    table = masked(X, 0.4)
    table[:complete] = X[:complete]
    rng = np.random.default_rng(0)
    W, U = rng.standard_normal((7, 3)), np.linalg.qr(rng.standard_normal((7, 2)))[0]
    found = expected_covariance(observe(table)[0], U, W, 0.5)
    np.testing.assert_allclose(found, oracles.expected_covariance(table, U, W, 0.5))
    total = expected_total_variance(observe(table)[0], W, 0.5)
    assert total == pytest.approx(oracles.expected_variances(table, np.eye(7), W, 0.5).sum())
