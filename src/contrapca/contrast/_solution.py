"""What the solvers of a contrast report, and what they have in common."""

from __future__ import annotations

from dataclasses import dataclass

from .._util.arrays import Array
from ..moments import Contrast
from ._eigen import Spectrum


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
        0 if there is no model.
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
