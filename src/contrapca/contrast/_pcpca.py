"""PCPCA: the maximum of the relative likelihood in closed form (F2, F3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._util.arrays import EPS, Array
from ..moments import Complete, Contrast, Moments, alone
from ._eigen import Solution, Spectrum, noise_sum, top_eigenpairs
from ._gaussian import LatentGaussian

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


def closed_form(
    values: Array, noise: float, N: float, n_features: int, *, least_sigma2: float = 0.0, least_square: float = 0.0
) -> tuple[Array, float]:
    """Lengths (Lambda_d / N - sigma2)^(1/2) of the loadings, (d,), and sigma2 = f / (N (D - d)) (F2).

    `values` (d,) are the largest algebraic eigenvalues of C, and `noise` is f, the sum of all others. Lower bounds of
    sigma2 and of the squared lengths keep starts of iterations from degenerating.
    """
    sigma2 = max(noise / (N * (n_features - values.size)), least_sigma2)
    # lambda_i / N >= sigma2 always, as sigma2 is the mean of smaller eigenvalues; equality may round below 0.
    return np.sqrt(np.maximum(values / N - sigma2, least_square)), sigma2


def pcpca_grid(limit: float, points: int) -> Array:
    """`points` gammas from 0 to just below the limit, dense near it."""
    t = np.linspace(1.0, CLOSEST ** (1 / BEND), points)
    return limit * (1 - t**BEND)


def relative_log_likelihood(contrast: Contrast, W: Array, CW: Array, sigma2: float) -> float:
    """log p(X | W, sigma2) - gamma_raw log p(Y | W, sigma2), each group about its own mean (F5).

    l = -N/2 (D log 2 pi + log|A|) - tr(A^-1 C) / 2, with A = W W' + sigma2 I. W and CW, which is C W, of shape (size,
    d) are in the coordinates of the contrast.
    """
    model = LatentGaussian(np.zeros(W.shape[0]), W, sigma2)
    normaliser = model.log_normaliser(contrast.n_features)
    return contrast.N * normaliser - 0.5 * model.trace_product(contrast.trace, CW)


@dataclass(frozen=True)
class Evaluation:
    """An objective and its gradient at (W, sigma2)."""

    value: float
    gradient_W: Array  # (D, d)
    gradient_sigma2: float
    quadratics: list[float]  # sum of x'A^-1 x over the rows of each group


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


def complete_background_model(data: Complete, d: int) -> LatentGaussian | None:
    """PPCA of the background alone, in its scaled units; None if it varies in at most d directions, or if there is not
    exactly one."""
    if len(data.groups.backgrounds) != 1:
        return None
    own = data.background_alone()
    C = alone(own.groups.foreground)
    solution = solve_pcpca(C, top_eigenpairs(C, d))
    if not solution.feasible:
        return None
    U = own.lift(C, solution.spectrum.vectors, solution.spectrum.values)
    return LatentGaussian(own.groups.foreground.mean, U * solution.lengths, solution.sigma2)
