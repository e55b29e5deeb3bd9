"""CPCA: the variance of the foreground minus gamma times that of the background."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._util.arrays import Array
from ..data import Groups, LatentGaussian
from ..exceptions import InfeasibleGammaError
from ..moments import Contrast, Moments
from ._eigen import Spectrum, top_eigenpairs
from ._limits import cpca_limit
from ._path import TOLERANCE as PATH_TOLERANCE
from ._path import PathSpectrum, solve_path
from ._solution import Solution

# Smallest and largest gamma above 0 in the default grid, since the limit may be infinite; and how near the limit it
# comes.
LEAST, LARGEST, CLOSEST = 0.01, 1000.0, 1e-3


@dataclass(frozen=True)
class Cpca:
    """Maximise tr V'(cov_X - gamma cov_Y) V over orthonormal V."""

    name: str = "cpca"
    has_likelihood: bool = False
    logarithmic: bool = True

    def limit(self, groups: Groups[Moments], d: int, near: float = 1.0) -> tuple[float, Array | None]:
        return cpca_limit(groups, d), None

    def solve(self, contrast: Contrast, d: int, start: Array | None = None) -> Solution:
        return solve_cpca(contrast, top_eigenpairs(contrast, d, start=start))

    def along(self, groups: Groups[Moments], gammas: Array, d: int, tolerance: float = PATH_TOLERANCE) -> PathSpectrum:
        return solve_path(groups, gammas, d, tolerance)

    def complete(self, contrast: Contrast, spectrum: Spectrum) -> Solution:
        return solve_cpca(contrast, spectrum)

    def value(self, contrast: Contrast, solution: Solution) -> float:
        V, values = solution.spectrum.vectors, solution.spectrum.values
        return contrastive_variance(V, V * values)

    def grid(self, limit: float, points: int) -> Array:
        top = (1 - CLOSEST) * min(limit, LARGEST)
        return np.concatenate([[0.0], np.geomspace(min(LEAST, top / 10), top, points - 1)])

    def refusal(
        self, gamma: float, limit: float, size: int, parameter: str = "n_components", hint: str = ""
    ) -> InfeasibleGammaError:
        reason = f"cov(foreground) - gamma cov(background) has fewer than {size} positive eigenvalues"
        return InfeasibleGammaError(gamma, limit, size, reason, f".{hint}", parameter)


def solve_cpca(contrast: Contrast, spectrum: Spectrum) -> Solution:
    """Unit vectors, if all d eigenvalues are positive beyond rounding."""
    feasible = bool(spectrum.values[-1] > contrast.rounding)
    return Solution(spectrum, np.ones(spectrum.values.size), 0.0, feasible)


def contrastive_variance(V: Array, CV: Array) -> float:
    """tr V'C V, CPCA's objective, for V with orthonormal columns, shape (size, d)."""
    return float(np.sum(V * CV))


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


CPCA_METHOD = Cpca()
