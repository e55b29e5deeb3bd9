"""PCPCA: the relative likelihood, whose maximum is known in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._util.arrays import Array
from ..exceptions import InfeasibleGammaError
from ..limits import pcpca_limit
from ..moments import Contrast
from ..objectives import relative_log_likelihood
from ..solvers import Solution, solve_path, solve_pcpca, top_eigenpairs

# The default grid is limit * (1 - t^BEND) for t from 1 down to (almost) 0: dense near the limit.
BEND, CLOSEST = 1.7, 1e-3


@dataclass(frozen=True)
class Pcpca:
    """Maximise p(X | W, sigma2) / p(Y | W, sigma2)^gamma_raw."""

    name: str = "pcpca"
    has_likelihood: bool = True
    logarithmic: bool = False

    limit = staticmethod(pcpca_limit)
    along = staticmethod(solve_path)
    complete = staticmethod(solve_pcpca)

    def solve(self, contrast: Contrast, d: int, start: Array | None = None) -> Solution:
        return solve_pcpca(contrast, top_eigenpairs(contrast, d, start=start))

    def value(self, contrast: Contrast, solution: Solution) -> float:
        W = solution.spectrum.vectors * solution.lengths
        return relative_log_likelihood(contrast, W, W * solution.spectrum.values, solution.sigma2)

    def grid(self, limit: float, points: int) -> Array:
        t = np.linspace(1.0, CLOSEST ** (1 / BEND), points)
        return limit * (1 - t**BEND)

    def refusal(
        self, gamma: float, limit: float, size: int, parameter: str = "n_components", hint: str = ""
    ) -> InfeasibleGammaError:
        reason = (
            "the background outweighs all foreground rows (N = n (1 - gamma) is not positive)"
            if limit >= 1
            else "the relative likelihood has no maximum (the noise variance would not be positive)"
        )
        advice = f", or CPCA, which allows stronger contrasts.{hint}"
        return InfeasibleGammaError(gamma, limit, size, reason, advice, parameter)
