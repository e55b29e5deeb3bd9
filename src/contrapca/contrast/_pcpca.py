"""PCPCA: the maximum of the relative likelihood in closed form (F2, F3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._util.arrays import EPS, Array
from ..data import LatentGaussian
from ..exceptions import InfeasibleGammaError
from ..moments import Complete, Contrast, alone
from ._eigen import Spectrum, top_eigenpairs
from ._limits import pcpca_limit
from ._path import solve_path
from ._solution import Solution, noise_sum

# The default grid is limit * (1 - t^BEND) for t from 1 down to (almost) 0: dense near the limit.
BEND, CLOSEST = 1.7, 1e-3


def solve_pcpca(contrast: Contrast, spectrum: Spectrum) -> Solution:
    """The maximum of the relative likelihood from the top eigenpairs of C.

    Both N and f must be positive: two negatives would cancel in sigma2 (F3).
    """
    values = spectrum.values
    N, f = contrast.N, noise_sum(contrast, values)
    feasible = N > EPS * contrast.n_foreground and f > 0
    lengths, sigma2 = closed_form(values, f, N, contrast.n_features) if feasible else (np.zeros(values.size), 0.0)
    return Solution(spectrum, lengths, sigma2, feasible)


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


def closed_form(
    values: Array, noise: float, N: float, n_features: int, *, least_sigma2: float = 0.0, least_square: float = 0.0
) -> tuple[Array, float]:
    """Lengths (Lambda_d / N - sigma2)^(1/2) of the loadings, (d,), and sigma2 = f / (N (D - d)) (F2).

    Parameters
    ----------
    values : ndarray of shape (d,)
        The largest algebraic eigenvalues of C.
    noise : float
        f, the sum of all others.
    N : float
    n_features : int
    least_sigma2, least_square : float
        Lower bounds of sigma2 and of the squared lengths, to avoid degenerate starts.
    """
    sigma2 = max(noise / (N * (n_features - values.size)), least_sigma2)
    # lambda_i / N >= sigma2 always, as sigma2 is the mean of smaller eigenvalues; equality may round below 0.
    return np.sqrt(np.maximum(values / N - sigma2, least_square)), sigma2


def relative_log_likelihood(contrast: Contrast, W: Array, CW: Array, sigma2: float) -> float:
    """log p(X | W, sigma2) - gamma_raw log p(Y | W, sigma2), each group about its own mean (F5).

    l = -N/2 (D log 2 pi + log|A|) - tr(A^-1 C) / 2, with A = W W' + sigma2 I.

    Parameters
    ----------
    contrast : Contrast
    W, CW : (size, d) ndarray
        Loadings in the coordinates of the contrast, and C times them.
    sigma2 : float, positive
    """
    model = LatentGaussian(np.zeros(W.shape[0]), W, sigma2)
    normaliser = model.log_normaliser(contrast.n_features)
    return contrast.N * normaliser - 0.5 * model.trace_product(contrast.trace, CW)


PCPCA_METHOD = Pcpca()


def complete_background_model(data: Complete, d: int) -> LatentGaussian | None:
    """PPCA of the background alone, in its scaled units; None if it varies in at most d directions, or if there are
    several backgrounds."""
    if len(data.groups.backgrounds) > 1:
        return None
    own = data.background_alone()
    C = alone(own.groups.foreground)
    solution = PCPCA_METHOD.solve(C, d)
    if not solution.feasible:
        return None
    U = own.lift(C, solution.spectrum.vectors, solution.spectrum.values)
    return LatentGaussian(own.groups.foreground.mean, U * solution.lengths, solution.sigma2)
