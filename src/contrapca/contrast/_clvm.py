"""CLVM: shared and foreground-specific loadings by maximum likelihood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._util.arrays import Array
from .._util.threads import calm_threads
from ..data import Groups
from ..moments import Moments, alone, contrast, mixed_background
from ._eigen import top_eigenpairs
from ._lbfgs import minimise
from ._pcpca import Evaluation, moments_log_likelihood

# As fractions of the mean variance: range of sigma2, smallest squared length of a starting loading.
LEAST_NOISE, MOST_NOISE, LEAST_LENGTH = 1e-8, 1e4, 0.01

# The last steps shorten the gradient to this part of `tol`, so that equal data give equal results, however they are
# read.
POLISH = 1e-3


@dataclass(frozen=True)
class ClvmSolution:
    """Where the solver ended."""

    S: Array  # (D, k): shared loadings
    W: Array  # (D, d): foreground-specific loadings
    sigma2: float
    history: Array  # (n_iter + 1,): log-likelihood of both groups after each iteration
    residual: float  # relative gradient at the end
    bounded: bool  # False if sigma2 went to 0: the dimensions fit the rows exactly, and there is no maximum


def solve_clvm(groups: Groups[Moments], k: int, d: int, *, tol: float = 1e-6, max_iter: int = 1000) -> ClvmSolution:
    """Maximise the likelihood over (S, W, log sigma2) by L-BFGS, starting from a PPCA of the background and its
    residual.

    There are k shared and d foreground-specific dimensions; d may be 0. Scatter matrices are dense. `tol` is for the
    relative gradient.
    """
    foreground, D = groups.foreground, groups.foreground.mean.size
    variance = foreground.scatter.trace / (foreground.weight * D)
    unit, size = np.sqrt(variance), D * sum(group.weight for group in groups)
    history: list[float] = []
    residual = np.inf

    def unpack(theta: Array) -> tuple[Array, Array, float]:
        loadings = unit * theta[:-1].reshape(D, k + d)
        return loadings[:, :k], loadings[:, k:], variance * float(np.exp(theta[-1]))

    def loss(theta: Array) -> tuple[float, Array]:
        S, W, sigma2 = unpack(theta)
        found = clvm_log_likelihood(groups, S, W, sigma2)
        gradient = np.append((unit * found.gradient_W).ravel(), sigma2 * found.gradient_sigma2)
        return -found.value / size, -gradient / size

    def stop(theta: Array) -> bool:
        nonlocal residual
        value, gradient = loss(theta)
        history.append(-value * size)
        residual = float(np.linalg.norm(gradient)) * max(1.0, float(np.linalg.norm(theta[:-1])))
        return residual <= tol

    start = _start(groups, k, d, variance)
    theta = np.append((start[0] / unit).ravel(), np.log(start[1] / variance))
    with calm_threads(D * D * (k + d)):
        history.append(-loss(theta)[0] * size)
        noise = np.log(LEAST_NOISE), np.log(MOST_NOISE)
        best = minimise(loss, theta, max_iter=max_iter, stop=stop, last_range=noise, polish=POLISH * tol)
        stop(best)  # with the last steps
    S, W, sigma2 = unpack(best)
    return ClvmSolution(S, W, sigma2, np.array(history), residual, sigma2 > 2 * LEAST_NOISE * variance)


def _start(groups: Groups[Moments], k: int, d: int, variance: float) -> tuple[Array, float]:
    """Starting [S W] and sigma2: the background's leading directions, and the foreground's beyond them."""
    background = mixed_background(groups)
    shared = top_eigenpairs(alone(background), k)
    values, vectors = shared.values / background.weight, shared.vectors
    if d:
        own = top_eigenpairs(contrast(groups, 1.0), d)
        values = np.concatenate([values, own.values / groups.foreground.weight])
        vectors = np.hstack([vectors, own.vectors])
    sigma2 = 0.3 * variance
    return vectors * np.sqrt(np.maximum(values - sigma2, LEAST_LENGTH * variance)), sigma2


def clvm_log_likelihood(groups: Groups[Moments], S: Array, W: Array, sigma2: float) -> Evaluation:
    """log p(X, Y | S, W, sigma2), each group centred by its own mean; `gradient_W` is the gradient in [S W]."""
    foreground = moments_log_likelihood(groups.foreground, np.hstack([S, W]), sigma2)
    value, gradient, noise = foreground.value, foreground.gradient_W.copy(), foreground.gradient_sigma2
    quadratics = foreground.quadratics
    for group in groups.backgrounds:
        background = moments_log_likelihood(group, S, sigma2)
        value += background.value
        gradient[:, : S.shape[1]] += background.gradient_W
        noise += background.gradient_sigma2
        quadratics = quadratics + background.quadratics
    return Evaluation(value, gradient, noise, quadratics)
