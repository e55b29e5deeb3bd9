"""How strong a contrast may be when values are missing: upper bounds of gamma (F10).

There is no exact limit here as there is for complete rows (F3): what is computed is a value from which on the objective
certainly has no maximum. Everything is in gamma' units.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.optimize

from .._array import Array, calm_blas
from ..moments import MaskedPair
from ..objective import observed_log_likelihood
from .start import observed_start, random_start

# The search for directions that the background has and the foreground lacks fixes sigma2 at this part of the mean
# variance: any W then gives a bound, and it is the loadings relative to sigma that matter.
PROBE_NOISE = 1e-3
MAX_STEPS, STEP_ITERATIONS, STEP_TOLERANCE = 8, 60, 1e-6
STANDSTILL = 1e-3  # relative change of the bound after which a search ends
RANDOM_STARTS, PROBES = 6, 2  # of the bound, and of a fit's check for something better than a local maximum
# A few iterations tell whether the least ratio is anywhere near gamma; below this multiple of gamma a fit is checked
# thoroughly, from random starts too.
GLANCE, SUSPICIOUS = 10, 3.0
CERTAIN = 1e-9  # relative to gamma, by how much a ratio must be smaller not to be rounding


def count_bound(pair: MaskedPair, d: int) -> tuple[float, str]:
    """The bound that the numbers of observed values alone give, and what it comes from.

    (1) sum_i D_i > gamma_raw sum_j E_j, or sigma2 -> infinity. (3) W -> infinity along a feature k unless
    n_k > gamma_raw m_k, and along generic loadings of k <= d columns unless sum_i min(k, D_i) > gamma_raw
    sum_j min(k, E_j).
    """
    assert pair.background is not None
    foreground, background = pair.foreground, pair.background
    per_feature = foreground.observed / background.observed
    worst = int(np.argmin(per_feature))
    bounds = [
        (foreground.cells / background.cells, "the number of observed values"),
        (float(per_feature[worst]), f"how often feature {worst} was observed"),
    ]
    (values_x, rows_x), (values_y, rows_y) = foreground.counts(), background.counts()
    for k in range(1, d + 1):
        ratio = float((np.minimum(k, values_x) @ rows_x) / (np.minimum(k, values_y) @ rows_y))
        bounds.append((ratio, "the number of observed values in each row"))
    raw, reason = min(bounds)
    return raw * pair.ratio, reason


def observed_bound(pair: MaskedPair, d: int, generator: np.random.Generator) -> float:
    """An upper bound of the feasible gamma': from it on the objective certainly has no maximum.

    Dinkelbach's iteration: gamma_raw <- q_X / q_Y at a minimiser of q_X - gamma_raw q_Y over W, where
    q = sum x_o'(I + V_o V_o')^-1 x_o with V = W / sigma. Every V gives a bound, so that approximate minimisers do,
    and the least over several starts is taken.
    """
    assert pair.background is not None
    bound, _ = count_bound(pair, d)
    starts = [observed_start(pair, min(bound, 1.0) * 0.9, d)[0]]
    starts += [random_start(pair, d, generator)[0] for _ in range(RANDOM_STARTS)]
    for W in starts:
        for _ in range(MAX_STEPS):
            with calm_blas(pair.multiplications(d)):
                W, ratio = _least_quadratic(pair, bound, W)
            if ratio >= bound * (1 - STANDSTILL):
                bound = min(bound, ratio)
                break
            bound = ratio
    return bound


def unbounded_elsewhere(pair: MaskedPair, gamma: float, W: Array) -> bool:
    """Whether a direction is found that proves the objective unbounded (F10), although W is a local maximum.

    One step of the search for the bound, from W and, where that comes near gamma, from random starts (of a fixed seed).
    """
    with calm_blas(pair.multiplications(W.shape[1])):
        W, ratio = _least_quadratic(pair, gamma, W, GLANCE)
        if ratio < SUSPICIOUS * gamma:  # else no other minimum is likely to be so much lower
            random = np.random.default_rng(0)
            for start in [W, *(random_start(pair, W.shape[1], random)[0] for _ in range(PROBES))]:
                ratio = min(ratio, _least_quadratic(pair, gamma, start)[1])
    return ratio < gamma * (1 - CERTAIN)


def _least_quadratic(
    pair: MaskedPair, gamma: float, W: Array, iterations: int = STEP_ITERATIONS
) -> tuple[Array, float]:
    """W that makes q_X - gamma_raw q_Y small, and the ratio q_X / q_Y there, in gamma' units."""
    variance = float(pair.foreground.squares.sum() / pair.foreground.cells)
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
    return best, q_x / q_y * pair.ratio
