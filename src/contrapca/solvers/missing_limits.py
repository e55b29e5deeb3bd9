"""How strong a contrast may be when values are missing: upper bounds of gamma (F10).

There is no exact limit here as there is for complete rows (F3): what is computed is a value from which on the objective
certainly has no maximum. Everything is in gamma' units.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.optimize

from .._array import Array, calm_threads
from ..moments import MaskedPair
from ..objective import observed_log_likelihood
from .start import observed_start, random_start

# The search for directions that the background has and the foreground lacks fixes sigma2 at this part of the mean
# variance: any W then gives a bound, and it is the loadings relative to sigma that matter.
PROBE_NOISE = 1e-3
MAX_STEPS, STEP_ITERATIONS, STEP_TOLERANCE = 8, 60, 1e-6
STANDSTILL = 1e-3  # relative change of the bound after which a search ends
MAX_STARTS, PATIENCE = 80, 8  # of the search: in all, and in a row without a lower bound
# Iterations that tell whether the least ratio is anywhere near gamma, and the multiple of gamma that counts as near:
# local minima differed by up to 1.5 in small tables with half the values missing.
GLANCE, SUSPICIOUS = 10, 2.0


def count_bound(pair: MaskedPair, d: int) -> tuple[float, int | None]:
    """The bound that the numbers of observed values alone give, and the feature it comes from, if it is one.

    (1) sum_i D_i > gamma_raw sum_j E_j, or sigma2 -> infinity. (3) W -> infinity along a feature k unless
    n_k > gamma_raw m_k, and along generic loadings of k <= d columns unless sum_i min(k, D_i) > gamma_raw
    sum_j min(k, E_j).
    """
    assert pair.background is not None
    foreground, background = pair.foreground, pair.background
    per_feature = foreground.observed / background.observed
    worst = int(np.argmin(per_feature))
    totals = [foreground.cells / background.cells]
    (values_x, rows_x), (values_y, rows_y) = foreground.counts(), background.counts()
    for k in range(1, d + 1):
        totals.append(float((np.minimum(k, values_x) @ rows_x) / (np.minimum(k, values_y) @ rows_y)))
    if per_feature[worst] < min(totals):
        return float(per_feature[worst]) * pair.ratio, worst
    return min(totals) * pair.ratio, None


def observed_bound(pair: MaskedPair, d: int, generator: np.random.Generator) -> float:
    """An upper bound of the feasible gamma': from it on the objective certainly has no maximum.

    Dinkelbach's iteration: gamma_raw <- q_X / q_Y at a minimiser of q_X - gamma_raw q_Y over W, where
    q = sum x_o'(I + V_o V_o')^-1 x_o with V = W / sigma. Every V gives a bound, so that approximate minimisers do,
    and the least over several starts is taken: random ones are added until some in a row bring nothing new.
    """
    assert pair.background is not None
    bound, _ = count_bound(pair, d)
    start, fruitless = observed_start(pair, min(bound, 1.0) * 0.9, d)[0], 0
    with calm_threads(pair.multiplications(d)):
        for _ in range(MAX_STARTS):
            before = bound
            bound = _descend(pair, bound, start)
            fruitless = fruitless + 1 if bound > before * (1 - STANDSTILL) else 0
            if fruitless == PATIENCE:
                break
            start = random_start(pair, d, generator)[0]
    return bound


def _descend(pair: MaskedPair, bound: float, W: Array) -> float:
    """Dinkelbach's iteration from one start."""
    for _ in range(MAX_STEPS):
        W, ratio = _least_quadratic(pair, bound, W)
        if ratio >= bound * (1 - STANDSTILL):
            return min(bound, ratio)
        bound = ratio
    return bound


def comes_near_the_bound(pair: MaskedPair, gamma: float, W: Array) -> bool:
    """Whether gamma is of the order of the bound, judged by a few iterations from the loadings of a fit.

    A fit can be a local maximum of an objective that is unbounded elsewhere; far below the bound that is unlikely.
    """
    with calm_threads(pair.multiplications(W.shape[1])):
        return _least_quadratic(pair, gamma, W, GLANCE)[1] < SUSPICIOUS * gamma


def _least_quadratic(
    pair: MaskedPair, gamma: float, W: Array, iterations: int = STEP_ITERATIONS
) -> tuple[Array, float]:
    """W that makes q_X - gamma_raw q_Y small, and the ratio q_X / q_Y there, in gamma' units."""
    variance = pair.foreground.mean_variance
    unit, sigma2 = math.sqrt(variance), PROBE_NOISE * variance
    terms = pair.terms(gamma)

    def loss(theta: Array) -> tuple[float, Array]:
        evaluation = observed_log_likelihood(terms, unit * theta.reshape(W.shape), sigma2, determinants=False)
        factor = PROBE_NOISE / pair.foreground.cells
        return -factor * evaluation.value, -factor * unit * evaluation.gradient_W.ravel()

    found = scipy.optimize.minimize(
        loss,
        W.ravel() / unit,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": iterations, "maxcor": 20, "ftol": STEP_TOLERANCE},
    )
    best = unit * found.x.reshape(W.shape)
    q_x, q_y = observed_log_likelihood(pair.terms(gamma), best, sigma2, determinants=False).quadratics
    return best, q_x / q_y * pair.ratio if q_y > 0 else math.inf  # a background without variance
