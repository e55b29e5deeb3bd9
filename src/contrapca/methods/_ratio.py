"""The ratio family (rhoPCA, cPCA++, gcPCA): the variance of the foreground over that of the background (F26)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._util.arrays import Array
from ..exceptions import SingularGroupError
from ..groups import Groups
from ..limits import rank_exceeds
from ..moments import Contrast, Moments, contrast, has_few_rows, reduce_rows
from ..solvers import (
    BACKGROUND,
    BOTH,
    FOREGROUND,
    PATH_TOLERANCE,
    PathSpectrum,
    Solution,
    Spectrum,
    path_of_solutions,
    shrunk_strength,
    solve_ratio,
    strength,
)

ENDS = (FOREGROUND, BACKGROUND, BOTH)
# Largest and smallest ridge above 0 in the default grid.
LARGEST, LEAST = 100.0, 1e-3


def strength_of_ridge(ridge: float) -> float:
    """gamma = 1 / (1 + ridge): the weight of the background in the metric (F27)."""
    return 1 / (1 + ridge)


def ridge_of_strength(gamma: float) -> float:
    """The ridge that belongs to a gamma; infinite at 0."""
    return (1 - gamma) / gamma if gamma > 0 else np.inf


@dataclass(frozen=True)
class Ratio:
    """Maximise v'cov_X v / v'(cov_Y + ridge (tr cov_Y / D) I) v, at gamma = 1 / (1 + ridge)."""

    end: str = FOREGROUND
    orthogonal: bool = False
    name: str = "ratio"
    has_likelihood: bool = False
    logarithmic: bool = False

    def limit(self, groups: Groups[Moments], d: int, near: float = 1.0) -> tuple[float, Array | None]:
        """1 where only a ridge makes the ratios finite, else the next number above it; 0 for too low a rank."""
        if not rank_exceeds(groups.foreground, d):
            return 0.0, None
        solution = self.solve(contrast(groups, 1.0), d)
        return (float(np.nextafter(1.0, 2.0)), solution.spectrum.vectors) if solution.feasible else (1.0, None)

    def automatic(self, groups: Groups[Moments]) -> float:
        """The gamma of ridge="auto"."""
        return shrunk_strength(contrast(groups, 1.0), self.end)

    def solve(self, contrast: Contrast, d: int, start: Array | None = None) -> Solution:
        return solve_ratio(contrast, d, self.end, orthogonal=self.orthogonal, start=start)

    def along(self, groups: Groups[Moments], gammas: Array, d: int, tolerance: float = PATH_TOLERANCE) -> PathSpectrum:
        small, basis = reduce_rows(groups, d) if has_few_rows(groups) else (groups, None)  # one basis for all gammas
        found = path_of_solutions(small, gammas, lambda C, start: self.solve(C, d, start))
        return found if basis is None else replace(found, basis=basis.vectors(found.basis))

    def complete(self, contrast: Contrast, spectrum: Spectrum) -> Solution:
        return Solution(spectrum, np.ones(spectrum.values.size), 0.0, feasible=True, eigenvectors=False)

    def value(self, contrast: Contrast, solution: Solution) -> float:
        """The sum of theta = rho / (1 + rho), of 1 - theta at the background's end: what the eigenvectors maximise."""
        rho = strength(contrast) * solution.spectrum.values / contrast.n_foreground
        return float(np.sum(rho / (1 + rho)))

    def ratios(self, values: Array, gamma: float) -> Array:
        """rho of each direction from its values: those of the background's end are reciprocals, shape (d,)."""
        n_foreground = {FOREGROUND: values.size, BACKGROUND: 0, BOTH: (values.size + 1) // 2}[self.end]
        rho = gamma * values
        with np.errstate(divide="ignore"):
            return np.concatenate([rho[:n_foreground], 1 / rho[n_foreground:]])

    def grid(self, limit: float, points: int) -> Array:
        ridges = np.geomspace(LARGEST, LEAST, points - 1)
        if limit > 1:
            ridges[-1] = 0.0
        return np.concatenate([[0.0], 1 / (1 + ridges)])

    def refusal(
        self, gamma: float, limit: float, size: int, parameter: str = "n_components", hint: str = ""
    ) -> SingularGroupError:
        varying, constant = (FOREGROUND, BACKGROUND) if self.end == FOREGROUND else (BACKGROUND, FOREGROUND)
        return SingularGroupError(gamma, varying, constant, hint)
