"""Upper bounds on gamma with missing values (F10).

Unlike for complete rows (F3), no exact limit is known: at or above the computed value the objective certainly has no
maximum. Everything is in gamma' units.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .._util.arrays import Array
from .._util.threads import calm_threads
from ..contrast import minimise
from ..data import Groups
from ._estimates import masked_start, random_start
from ._likelihood import masked_log_likelihood
from ._rows import MaskedGroup, counted_terms, multiplications

# The search for directions that only the background has fixes sigma2 at this fraction of the mean variance: any W then
# gives a bound, and only the loadings relative to sigma matter.
PROBE_NOISE = 1e-3

# Of the iteration from one start, and of each minimisation in it, which need not be exact: any W gives a bound.
MAX_STEPS, STEP_ITERATIONS, STEP_TOLERANCE = 8, 60, 1e-6
STANDSTILL = 1e-3  # relative change of the bound after which a search ends
MAX_STARTS, PATIENCE = 80, 8  # starts of the search: in total, and in a row without improvement

# Iterations that show whether the smallest ratio is near gamma, and the multiple of gamma that counts as near: local
# minima differed by up to 1.5 in small tables with half the values missing.
GLANCE, SUSPICIOUS = 10, 2.0


def count_bound(groups: Groups[MaskedGroup], d: int) -> tuple[float, int | None]:
    """The bound from the numbers of observed values alone, and the feature that causes it, if any.

    (1) sum_i D_i > gamma_raw sum_j E_j, or sigma2 -> infinity. (3) W -> infinity along a feature k unless
    n_k > gamma_raw m_k, and along generic loadings of k <= d columns unless sum_i min(k, D_i) > gamma_raw
    sum_j min(k, E_j).
    """
    _, *backgrounds = [(-c, group) for c, group in counted_terms(groups, 1.0)]  # with gamma_raw at gamma' = 1
    per_feature = groups.foreground.feature_counts / np.sum([c * g.feature_counts for c, g in backgrounds], axis=0)
    worst = int(np.argmin(per_feature))

    def ratio(count: Callable[[MaskedGroup], float]) -> float:
        return count(groups.foreground) / sum(c * count(group) for c, group in backgrounds)

    totals = [ratio(lambda group: group.cells)]
    for k in range(1, d + 1):
        totals.append(ratio(lambda group, most=k: group.counted(most)))  # type: ignore[misc]
    if per_feature[worst] < min(totals):
        return float(per_feature[worst]), worst
    return min(totals), None


def masked_bound(groups: Groups[MaskedGroup], d: int, generator: np.random.Generator) -> float:
    """An upper bound on the feasible gamma': at or above it the objective certainly has no maximum.

    Dinkelbach's iteration: gamma_raw <- q_X / q_Y at a minimiser of q_X - gamma_raw q_Y over W, where q = sum x_o'(I +
    V_o V_o')^-1 x_o with V = W / sigma. Every V gives a bound, so approximate minimisers are enough. The smallest bound
    over several starts is taken; random starts are added until several in a row bring no improvement.
    """
    bound, _ = count_bound(groups, d)
    W, fruitless = masked_start(groups, min(bound, 1.0) * 0.9, d)[0], 0
    with calm_threads(multiplications(groups, d)):
        for _ in range(MAX_STARTS):
            before = bound
            for _ in range(MAX_STEPS):
                W, ratio = _least_quadratic(groups, bound, W)
                settled = ratio >= bound * (1 - STANDSTILL)
                bound = min(bound, ratio)
                if settled:
                    break
            fruitless = fruitless + 1 if bound > before * (1 - STANDSTILL) else 0
            if fruitless == PATIENCE:
                break
            W = random_start(groups, d, generator)[0]
    return bound


def comes_near_the_bound(groups: Groups[MaskedGroup], gamma: float, W: Array) -> bool:
    """Whether gamma is near the bound, judged by a few iterations from the loadings of a fit.

    A fit can be a local maximum of an objective that is unbounded elsewhere; far below the bound that is unlikely.
    """
    with calm_threads(multiplications(groups, W.shape[1])):
        return _least_quadratic(groups, gamma, W, GLANCE)[1] < SUSPICIOUS * gamma


def _least_quadratic(
    groups: Groups[MaskedGroup], gamma: float, W: Array, iterations: int = STEP_ITERATIONS
) -> tuple[Array, float]:
    """A W with small q_X - gamma_raw q_Y, and its ratio q_X / q_Y in gamma' units."""
    variance = groups.foreground.mean_variance
    unit, sigma2 = math.sqrt(variance), PROBE_NOISE * variance
    terms = counted_terms(groups, gamma)

    def loss(theta: Array) -> tuple[float, Array]:
        evaluation = masked_log_likelihood(terms, unit * theta.reshape(W.shape), sigma2, determinants=False)
        factor = PROBE_NOISE / groups.foreground.cells
        return -factor * evaluation.value, -factor * unit * evaluation.gradient_W.ravel()

    found = minimise(loss, W.ravel() / unit, max_iter=iterations, tol=STEP_TOLERANCE)
    best = unit * found.reshape(W.shape)
    q_x, *q_y = masked_log_likelihood(terms, best, sigma2, determinants=False).quadratics
    raw = np.array([-c for c, _ in terms[1:]]) / gamma  # gamma_raw at gamma' = 1
    total = float(raw @ q_y)
    # Infinite for a background without variance.
    return best, q_x / total if total > 0 else math.inf
