"""CPCA: the variance of the foreground minus gamma times that of the background."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._util.arrays import Array
from ..exceptions import InfeasibleGammaError
from ..moments import Contrast, Moments
from ._eigen import Spectrum
from ._gaussian import LatentGaussian
from ._solution import Solution

# Smallest and largest gamma above 0 in the default grid, since the limit may be infinite; and how near the limit it
# comes.
LEAST, LARGEST, CLOSEST = 0.01, 1000.0, 1e-3


def cpca_grid(limit: float, points: int) -> Array:
    """`points` gammas from 0 to just below the limit, or to `LARGEST`: 0, and a geometric sequence."""
    top = (1 - CLOSEST) * min(limit, LARGEST)
    return np.concatenate([[0.0], np.geomspace(min(LEAST, top / 10), top, points - 1)])


def cpca_refusal(gamma: float, limit: float, d: int, parameter: str, hint: str) -> InfeasibleGammaError:
    """The error for a gamma at or above the limit."""
    reason = f"cov(foreground) - gamma cov(background) has fewer than {d} positive eigenvalues"
    return InfeasibleGammaError(gamma, limit, d, reason, f".{hint}", parameter)


def solve_cpca(contrast: Contrast, spectrum: Spectrum) -> Solution:
    """Unit vectors, if all d eigenvalues are positive beyond rounding."""
    feasible = bool(spectrum.values[-1] > contrast.rounding)
    return Solution(spectrum, np.ones(spectrum.values.size), 0.0, feasible)


@dataclass(frozen=True)
class Evaluation:
    """An objective and its gradient at (W, sigma2).

    Attributes
    ----------
    value : float
    gradient_W : ndarray of shape (D, d)
    gradient_sigma2 : float
    quadratics : list of float
        Sum of x'A^-1 x over the rows of each group.
    """

    value: float
    gradient_W: Array
    gradient_sigma2: float
    quadratics: list[float]


def moments_log_likelihood(moments: Moments, W: Array, sigma2: float, *, determinants: bool = True) -> Evaluation:
    """The log-likelihood of complete rows from only their scatter S, with P = W M^-1 (F6).

    q = tr(A^-1 S), tr(A^-1 S A^-1) = (q - tr P'S P) / sigma2, dl/dW = A^-1 S P - n P. Without `determinants` the terms
    log|A| (and 2 pi) are left out.
    """
    D, d = W.shape
    model = LatentGaussian(moments.mean, W, sigma2)
    P, n = model.projection(), moments.weight if determinants else 0.0
    SP = moments.scatter.matmul(P)
    q = (moments.scatter.trace - float(np.sum(W * SP))) / sigma2
    gradient_W = (SP - P @ (W.T @ SP)) / sigma2 - n * P
    trace = ((D - d) + float(np.trace(model.latent_covariance()))) / sigma2  # tr A^-1
    gradient_sigma2 = 0.5 * ((q - float(np.sum(P * SP))) / sigma2 - n * trace)
    return Evaluation(n * model.log_normaliser() - 0.5 * q, gradient_W, gradient_sigma2, [q])
