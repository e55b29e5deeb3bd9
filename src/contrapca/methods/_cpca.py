"""CPCA: the variance of the foreground minus gamma times that of the background."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._util.arrays import Array
from ..exceptions import InfeasibleGammaError
from ..groups import Groups
from ..limits import cpca_limit
from ..moments import Contrast, Moments
from ..objectives import contrastive_variance
from ..solvers import PATH_TOLERANCE, PathSpectrum, Solution, Spectrum, solve_cpca, solve_path, top_eigenpairs

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
