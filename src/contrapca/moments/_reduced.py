"""Fewer rows than features: the groups in coordinates of the rows' own span (F7)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpstrf

from .._array import Array
from ._moments import DenseScatter, Moments
from ._rows import RowScatter

# Of the squared distance of a row from the span of the others, relative to its length: below it is only rounding.
RANK_TOLERANCE = 1e-13


@dataclass(frozen=True)
class Basis:
    """An orthonormal basis Q of the span of the rows, known through Z = R Q' and never formed.

    Attributes
    ----------
    rows : ndarray of shape (k, D)
        Z: the centred, scaled rows of all groups, one group after the other.
    R : ndarray of shape (k, size)
        Their coordinates.
    pivots : ndarray of shape (rank,)
        Rows whose coordinates are a triangular matrix of full rank.
    """

    rows: Array
    R: Array
    pivots: npt.NDArray[np.integer]

    def vectors(self, V: Array) -> Array:
        """Q V in R^D for any V of shape (size, k), from Q = Z_p'L^-T with L the pivots' triangular coordinates.

        A system is solved, so that nearly dependent rows cost accuracy; eigenvectors are better served by `lift`.
        """
        rank = self.pivots.size
        L = self.R[self.pivots, :rank]
        return self.rows[self.pivots].T @ solve_triangular(L, V[:rank], lower=True, trans="T")

    def lift(self, U: Array, values: Array, weights: Array) -> Array:
        """Eigenvectors Q U in R^D, shape (D, d), of C = Z'diag(weights) Z, from those of R'diag(weights) R.

        As U = R'diag(weights) R U / values, Q U = Z'(diag(weights) R U / values): no system is solved, so that
        nearly dependent rows do no harm. Rounding leaves multiples of vectors of larger eigenvalues in those of smaller
        ones, which orthonormalising in this order takes out. The `values`, descending, must not be 0.
        """
        lifted = ((weights[:, None] * (self.R @ U) / values).T @ self.rows).T
        orthonormal, triangle = np.linalg.qr(lifted)
        return orthonormal * np.sign(np.diagonal(triangle))


def reduce_rows(groups: list[Moments], n_null: int) -> tuple[list[Moments], Basis]:
    """Scatter matrices in an orthonormal basis of the span of all centred rows, Z = R Q'.

    S_X = Q (R_X'R_X) Q', where R_X are the rows of R that belong to X: one R serves every contrast of the
    groups. R is a pivoted Cholesky factor of the Gram matrix Z Z' = R R', which is all that products of the rows tell,
    and several times cheaper than a QR of Z'. `n_null` further coordinates stand for directions orthogonal to all rows;
    their zeros are eigenvalues of the full matrix that the small one would lack, and up to n_components of them
    can be among its largest.

    Parameters
    ----------
    groups : list of Moments with a RowScatter of dense rows
    n_null : int

    Returns
    -------
    groups : list of Moments with a DenseScatter of size min(D, rank + n_null); means stay (D,)
    basis : Basis
    """
    counts = [int(group.weight) for group in groups]
    edges = np.cumsum([0, *counts])
    D = groups[0].mean.size
    rows = np.empty((edges[-1], D))
    for k, group in enumerate(groups):
        assert isinstance(group.scatter, RowScatter)
        group.scatter.centred(out=rows[edges[k] : edges[k + 1]])
    # Rows of unit length: what counts as dependent is then relative to each row, not to the largest of either group.
    # BLAS and LAPACK are SciPy's here: NumPy brings threads of its own, which would still spin while SciPy's factorise.
    gram = dsyrk(1.0, rows.T, trans=1, lower=1)  # the lower triangle
    lengths = np.sqrt(np.diagonal(gram))
    lengths[lengths == 0] = 1.0
    gram /= lengths
    gram /= lengths[:, None]
    factor, pivots, rank, _ = dpstrf(gram, tol=RANK_TOLERANCE, lower=1, overwrite_a=1)
    rank = min(rank, D)
    R = np.zeros((edges[-1], min(D, rank + n_null)))
    R[pivots - 1, :rank] = np.tril(factor)[:, :rank]
    R *= lengths[:, None]
    reduced = []
    for k, group in enumerate(groups):
        own = R[edges[k] : edges[k + 1]]
        reduced.append(Moments(group.weight, group.mean, DenseScatter(own.T @ own)))
    return reduced, Basis(rows, R, pivots[:rank] - 1)
