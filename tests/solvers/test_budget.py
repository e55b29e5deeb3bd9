"""The strength of a contrast by a budget: golden numbers, a slow minimisation, and its certificate."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from conftest import implicit_moments, make_groups
from contrapca import Moments
from contrapca.groups import Groups
from contrapca.solvers import budget_strengths

NAMES = ("foreground", "a", "b", "c")


def value(tables, tau, d, costs, ddof=0):
    """F(tau) from full spectra."""
    A, *B = (np.cov(table.T, ddof=ddof) for table in tables)
    return np.linalg.eigvalsh(A - np.tensordot(tau, B, 1))[-d:].sum() + d * np.dot(costs, tau)


def groups_of(tables, ddof=0, moments=Moments.from_rows):
    every = [moments(table) for table in tables]
    return Groups.from_items(
        [Moments(group.weight - ddof, group.mean, group.scatter) for group in every], NAMES[: len(every)]
    )


def test_golden_strength_of_one_background(mouse):
    X, Y, _, _ = mouse
    found = budget_strengths(groups_of((X, Y), ddof=1), 1, [1.0])
    assert found.strengths[0] == pytest.approx(3.47290383, rel=1e-6)


def test_golden_strengths_of_three_backgrounds(mouse_classes):
    """Standardised with ddof 1; the first of the two identical proteins only."""

    def standardised(table):
        return (table - table.mean(axis=0)) / table.std(axis=0, ddof=1)

    target = np.vstack([mouse_classes["Control Saline C/S"], mouse_classes["Ts65Dn Saline C/S"]])
    backgrounds = [mouse_classes[f"Ts65Dn {name}"] for name in ("Memantine S/C", "Memantine C/S", "Saline S/C")]
    tables = [standardised(table) for table in (target, *backgrounds)]
    found = budget_strengths(groups_of(tables, ddof=1), 1, [1.0] * 3)
    np.testing.assert_allclose(found.strengths, [0.244249, 1.565853, 0.400427], atol=1e-6)
    # The certificate holds: F is nowhere below it, and near it only at the minimum.
    rng = np.random.default_rng(0)
    for near in (1e-3, 0.1, 1.0):
        tau = np.maximum(found.strengths + near * rng.standard_normal((20, 3)), 0)
        assert min(value(tables, t, 1, [1.0] * 3, ddof=1) for t in tau) > found.lower


@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("storage", [Moments.from_rows, implicit_moments])
def test_it_is_the_minimum(groups, d, storage):
    cost = 1.3
    found = budget_strengths(groups_of(groups, moments=storage), d, [cost])
    slow = minimize_scalar(
        lambda t: value(groups, [t], d, [cost]), bounds=(0, 50), method="bounded", options={"xatol": 1e-10}
    )
    assert found.value == pytest.approx(value(groups, found.strengths, d, [cost]), rel=1e-12)
    assert found.value <= slow.fun * (1 + 1e-12)
    assert found.strengths[0] == pytest.approx(slow.x, rel=1e-5)
    assert 0 <= found.value - found.lower < 1e-9 * found.value


def test_where_eigenvalues_meet():
    """Foreground variances 4 and 3, background variances 3 and 1: at tau = 1/2 both directions are equal."""
    A, B = np.diag([4.0, 3.0, 0.1]), np.diag([3.0, 1.0, 0.1])
    rows = [np.sqrt(3) * np.vstack([np.linalg.cholesky(S).T, -np.linalg.cholesky(S).T]) for S in (A, B)]
    found = budget_strengths(groups_of(rows), 1, [2.0])
    assert found.strengths[0] == pytest.approx(0.5, rel=1e-8)
    assert found.value == pytest.approx(3.5, rel=1e-10)
    assert found.lower == pytest.approx(3.5, rel=1e-9)


def test_a_generous_budget_needs_no_contrast(groups):
    """The first component of the foreground has less background variance than it may have."""
    X, Y = groups
    variance = np.var(Y @ np.linalg.eigh(np.cov(X.T))[1][:, -1])
    for cost, strength in ((1.01 * variance, True), (0.99 * variance, False)):
        found = budget_strengths(groups_of((X, Y)), 1, [cost])
        assert bool(found.strengths[0] == 0) is strength


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_a_flat_direction_of_the_small_problem_does_no_harm(seed, d):
    """Where no contrast is needed its gradient is rounding; a Newton step there went to infinity, and no bound held."""
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((60, 6)) * [4, 2, 1, 1, 1, 1], rng.standard_normal((50, 6))
    found = budget_strengths(groups_of((X, Y)), d, [5.0])
    assert found.strengths[0] == 0
    assert found.value - found.lower <= 1e-9 * found.value


def test_the_constraint_is_met(groups):
    """At a minimum without ties the direction has just the variance that it may have, in every background."""
    X, Y = groups
    backgrounds = Y, make_groups(100, 90, X.shape[1], seed=3)[1]
    costs = [1.2, 1.5]
    found = budget_strengths(groups_of((X, *backgrounds)), 1, costs)
    A, *B = (np.cov(table.T, ddof=0) for table in (X, *backgrounds))
    v = np.linalg.eigh(A - np.tensordot(found.strengths, B, 1))[1][:, -1]
    for tau, S, cost in zip(found.strengths, B, costs, strict=True):
        assert v @ S @ v == pytest.approx(cost, rel=1e-6) if tau > 0 else v @ S @ v <= cost
    assert (found.strengths > 0).any()
