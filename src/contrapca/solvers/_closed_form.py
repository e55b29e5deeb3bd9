"""The maximum of the relative likelihood in closed form (F2, F3), and what every solver of a contrast reports."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._util.arrays import EPS, Array
from ..moments import Contrast
from ._spectral import Spectrum


@dataclass(frozen=True)
class Solution:
    """Directions, the lengths of the loadings along them, and the noise variance; meaningless if not feasible.

    Attributes
    ----------
    spectrum : Spectrum
        The directions v, v'C v along them, and their images under every group's scatter; not necessarily eigenvectors.
    lengths : ndarray of shape (d,)
        Norms of the columns of W = U diag(lengths); 1 if there is no model.
    sigma2 : float
    feasible : bool
        Whether a maximum exists.
    eigenvectors : bool
        Whether the directions are orthonormal eigenvectors of C.
    """

    spectrum: Spectrum
    lengths: Array
    sigma2: float
    feasible: bool
    eigenvectors: bool = True


def noise_sum(contrast: Contrast, values: Array) -> float:
    """f = tr C - sum_{i<=d} lambda_i, or 0 if it is only rounding (F3)."""
    f = contrast.trace - float(values.sum())
    return f if f > contrast.rounding else min(f, 0.0)


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


def solve_pcpca(contrast: Contrast, spectrum: Spectrum) -> Solution:
    """The maximum of the relative likelihood from the top eigenpairs of C.

    Both N and f must be positive: two negatives would cancel in sigma2 (F3).
    """
    values = spectrum.values
    N, f = contrast.N, noise_sum(contrast, values)
    feasible = N > EPS * contrast.n_foreground and f > 0
    lengths, sigma2 = closed_form(values, f, N, contrast.n_features) if feasible else (np.zeros(values.size), 0.0)
    return Solution(spectrum, lengths, sigma2, feasible)


def solve_cpca(contrast: Contrast, spectrum: Spectrum) -> Solution:
    """Unit vectors, if all d eigenvalues are positive beyond rounding."""
    feasible = bool(spectrum.values[-1] > contrast.rounding)
    return Solution(spectrum, np.ones(spectrum.values.size), 0.0, feasible)
