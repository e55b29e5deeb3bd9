"""CPCA with few features in each component."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._util.arrays import Array
from ..groups import Groups
from ..moments import Contrast, Moments
from ..solvers import PATH_TOLERANCE, PathSpectrum, Solution, Spectrum, path_of_solutions, solve_sparse
from ._cpca import Cpca


@dataclass(frozen=True)
class SparseCpca(Cpca):
    """Maximise v'(cov_X - gamma cov_Y) v over unit vectors of at most `size` features, one after the other (F29)."""

    name: str = "sparse cpca"
    size: int = 10

    def solve(self, contrast: Contrast, d: int, start: Array | None = None) -> Solution:
        return solve_sparse(contrast, d, [self.size])[0]

    def along(self, groups: Groups[Moments], gammas: Array, d: int, tolerance: float = PATH_TOLERANCE) -> PathSpectrum:
        """Directions exist at every gamma, also where their contrast is not positive.

        Each is found as a fit finds it: from the solution before, the search might come to another maximum.
        """
        return path_of_solutions(groups, gammas, lambda C, _: replace(self.solve(C, d), feasible=True))

    def complete(self, contrast: Contrast, spectrum: Spectrum) -> Solution:
        return Solution(spectrum, np.ones(spectrum.values.size), 0.0, feasible=True, eigenvectors=False)

    def value(self, contrast: Contrast, solution: Solution) -> float:
        """tr C in the span of the components, which are not orthogonal."""
        return float(solution.spectrum.values.sum())
