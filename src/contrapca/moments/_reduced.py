"""Fewer rows than features: the groups in coordinates of the rows' own span (F7)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.linalg.lapack import dormqr

from .._array import Array
from ._moments import DenseScatter, Moments
from ._rows import RowScatter


@dataclass(frozen=True)
class Basis:
    """An orthonormal basis Q of R^D, its first columns spanning the rows; kept as Householder vectors."""

    reflectors: Array  # (D, min(D, n + m))
    tau: Array

    def lift(self, U: Array) -> Array:
        """Q U for coordinates U of shape (k, d), k <= D: vectors in R^D, shape (D, d)."""
        padded = np.zeros((self.reflectors.shape[0], U.shape[1]), order="F")
        padded[: U.shape[0]] = U
        lifted, _, info = dormqr("L", "N", self.reflectors, self.tau, padded, 64 * U.shape[1], overwrite_c=1)
        if info != 0:  # pragma: no cover - LAPACK reports only malformed arguments here
            raise RuntimeError(f"LAPACK dormqr refused argument {-info}.")
        return lifted


def reduce_rows(groups: list[Moments], n_null: int) -> tuple[list[Moments], Basis]:
    """Scatter matrices in the basis of a thin QR of all centred rows, [X; Y]' = Q R.

    S_X = Q (R_X R_X') Q', where R_X are the columns of R that belong to X: one QR serves every
    contrast of the groups. `n_null` further coordinates are directions orthogonal to all rows;
    their zeros are eigenvalues of the full matrix that the small one would lack, and up to
    n_components of them can be among its largest.

    Parameters
    ----------
    groups : list of Moments with a RowScatter of dense rows
    n_null : int

    Returns
    -------
    groups : list of Moments with a DenseScatter of size min(D, rows + n_null); means stay (D,)
    basis : Basis
    """
    scatters = [group.scatter for group in groups]
    counts = [int(group.weight) for group in groups]
    D = groups[0].mean.size
    stacked = np.empty((sum(counts), D))
    start = 0
    for scatter, count in zip(scatters, counts, strict=True):
        assert isinstance(scatter, RowScatter)
        np.subtract(scatter.rows, scatter.mean, out=stacked[start : start + count])
        stacked[start : start + count] /= scatter.divisor
        start += count
    # `stacked` is C-ordered, so its transpose is what LAPACK works on in place.
    (reflectors, tau), R = scipy.linalg.qr(stacked.T, mode="raw", overwrite_a=True, check_finite=False)
    k = R.shape[0]
    size = min(D, k + n_null)
    reduced, start = [], 0
    for group, count in zip(groups, counts, strict=True):
        columns = R[:, start : start + count]
        matrix = np.zeros((size, size))
        matrix[:k, :k] = columns @ columns.T
        reduced.append(Moments(group.weight, group.mean, DenseScatter(matrix)))
        start += count
    return reduced, Basis(reflectors[:, : tau.size], tau)
