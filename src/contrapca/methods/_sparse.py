"""CPCA and contrast axes with few features in each component."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from .._util.arrays import Array
from ..exceptions import InfeasibleGammaError
from ..groups import Groups
from ..moments import Contrast, Moments
from ..solvers import (
    PATH_TOLERANCE,
    PathSpectrum,
    Solution,
    Spectrum,
    Target,
    axes_target,
    path_of_solutions,
    solve_sparse,
)
from ._cpca import Cpca
from ._pcpca import Pcpca


@dataclass(frozen=True)
class SparseCpca(Cpca):
    """Maximise v'(cov_X - gamma cov_Y) v over unit vectors, one after the other: of at most `size` features (F29), or,
    if `size` is None, minus `penalty` times the sum of their entries' magnitudes (F36)."""

    name: str = "sparse cpca"
    size: int | None = 10
    penalty: float | None = None
    known: Target | None = field(default=None, compare=False, repr=False)  # what is to be held, if it is known

    def target(self, contrast: Contrast, d: int) -> Target:
        """What the components are to hold as much as possible of."""
        return Target.of(contrast, d)

    def solve(self, contrast: Contrast, d: int, start: Array | None = None) -> Solution:
        return solve_sparse(contrast, self.known or self.target(contrast, d), self.size, self.penalty, start)

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


@dataclass(frozen=True)
class SparseAxes(SparseCpca):
    """The same for `shown` contrast axes of a PCPCA model, by the foreground's variances along them (F37).

    Limit and grid of gamma are PCPCA's, of which the model is.
    """

    name: str = "sparse contrast axes"
    logarithmic: bool = False
    shown: int = 2

    def target(self, contrast: Contrast, d: int) -> Target:
        if len(contrast.terms) == 1:
            return Target.of(contrast, self.shown)
        return axes_target(contrast, d, self.shown)

    def solve(self, contrast: Contrast, d: int, start: Array | None = None) -> Solution:
        if start is not None and start.shape[1] != self.shown:  # eigenvectors of the model, near the limit of gamma
            start = None
        return super().solve(contrast, d, start)

    def limit(self, groups: Groups[Moments], d: int, near: float = 1.0) -> tuple[float, Array | None]:
        return Pcpca().limit(groups, d, near)

    def grid(self, limit: float, points: int) -> Array:
        return Pcpca().grid(limit, points)

    def refusal(
        self, gamma: float, limit: float, size: int, parameter: str = "n_components", hint: str = ""
    ) -> InfeasibleGammaError:
        return Pcpca().refusal(gamma, limit, size, parameter, hint)
