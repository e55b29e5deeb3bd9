"""The contrastive latent variable model (Severson, Ghosh and Ng 2019) by maximum likelihood, from two scatter matrices.

Background rows are N(mean_Y, S S' + sigma2 I), foreground rows N(mean_X, S S' + W W' + sigma2 I): S is what both groups
share, W what is the foreground's own. Both groups are PPCA models, the foreground's with the loadings [S W], so that
value and gradient are sums of those of PPCA.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize

from .._array import Array, calm_threads
from ..moments import Moments, Pair, alone
from ..objective import moments_log_likelihood
from ._spectral import top_eigenpairs

# Of the mean variance: range of sigma2, least squared length of a loading to start from.
LEAST_NOISE, MOST_NOISE, LEAST_LENGTH = 1e-8, 1e4, 0.01


@dataclass(frozen=True)
class ClvmSolution:
    """Where the solver ended.

    Attributes
    ----------
    S : ndarray of shape (D, k)
        Shared loadings.
    W : ndarray of shape (D, d)
        The foreground's own.
    sigma2 : float
    history : ndarray of shape (n_iter + 1,)
        Log-likelihood of both groups after each iteration.
    residual : float
        Relative gradient at the end.
    bounded : bool
        False where sigma2 went to 0: the dimensions describe the rows without rest, and there is no maximum.
    """

    S: Array
    W: Array
    sigma2: float
    history: Array
    residual: float
    bounded: bool


def clvm_log_likelihood(
    foreground: Moments, background: Moments, S: Array, W: Array, sigma2: float
) -> tuple[float, Array, Array, float]:
    """log p(X, Y | S, W, sigma2), each group about its own mean, and its gradient in S, W and sigma2."""
    k = S.shape[1]
    value_x, gradient_x, noise_x, _ = moments_log_likelihood(foreground, np.hstack([S, W]), sigma2)
    value_y, gradient_y, noise_y, _ = moments_log_likelihood(background, S, sigma2)
    return value_x + value_y, gradient_x[:, :k] + gradient_y, gradient_x[:, k:], noise_x + noise_y


def solve_clvm(pair: Pair, k: int, d: int, *, tol: float = 1e-6, max_iter: int = 1000) -> ClvmSolution:
    """Maximise the likelihood over (S, W, log sigma2) by L-BFGS, from the background's PPCA and what it leaves.

    Parameters
    ----------
    pair : Pair with dense scatter matrices
    k, d : int
        Shared and foreground-specific dimensions; d may be 0.
    tol : float
        Bound of the relative gradient.
    max_iter : int
    """
    assert pair.background is not None
    foreground, background, D = pair.foreground, pair.background, pair.n_features
    variance = foreground.scatter.trace / (foreground.weight * D)
    unit, rows = np.sqrt(variance), foreground.weight + background.weight
    history: list[float] = []
    residual = np.inf

    def unpack(theta: Array) -> tuple[Array, Array, float]:
        loadings = unit * theta[:-1].reshape(D, k + d)
        return loadings[:, :k], loadings[:, k:], variance * float(np.exp(theta[-1]))

    def loss(theta: Array) -> tuple[float, Array]:
        S, W, sigma2 = unpack(theta)
        value, in_S, in_W, in_noise = clvm_log_likelihood(foreground, background, S, W, sigma2)
        gradient = np.append((unit * np.hstack([in_S, in_W])).ravel(), sigma2 * in_noise)
        return -value / (rows * D), -gradient / (rows * D)

    def callback(intermediate_result: Any) -> None:
        nonlocal residual
        theta = intermediate_result.x
        value, gradient = loss(theta)
        history.append(-value * rows * D)
        residual = float(np.linalg.norm(gradient)) * max(1.0, float(np.linalg.norm(theta[:-1])))
        if residual <= tol:
            raise StopIteration

    start = _start(pair, k, d, variance)
    theta = np.append((start[0] / unit).ravel(), np.log(start[1] / variance))
    bounds: Any = [(None, None)] * (theta.size - 1) + [(np.log(LEAST_NOISE), np.log(MOST_NOISE))]
    options: Any = {"maxcor": 20, "maxiter": max_iter, "maxfun": 20 * max_iter, "ftol": 0.0, "gtol": 0.0}
    with calm_threads(D * D * (k + d)):
        history.append(-loss(theta)[0] * rows * D)
        found = scipy.optimize.minimize(
            loss, theta, jac=True, method="L-BFGS-B", bounds=bounds, callback=callback, options=options
        )
    S, W, sigma2 = unpack(found.x)
    return ClvmSolution(S, W, sigma2, np.array(history), residual, sigma2 > 2 * LEAST_NOISE * variance)


def _start(pair: Pair, k: int, d: int, variance: float) -> tuple[Array, float]:
    """[S W] and sigma2: the background's leading directions, and those of what the foreground has beyond them."""
    assert pair.background is not None
    shared = top_eigenpairs(alone(pair.background), k)
    values, vectors = shared.values / pair.background.weight, shared.vectors
    if d:
        own = top_eigenpairs(pair.contrast(1.0), d)
        values = np.concatenate([values, own.values / pair.foreground.weight])
        vectors = np.hstack([vectors, own.vectors])
    sigma2 = 0.3 * variance
    return vectors * np.sqrt(np.maximum(values - sigma2, LEAST_LENGTH * variance)), sigma2
