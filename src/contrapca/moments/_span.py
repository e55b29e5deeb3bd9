"""Fewer rows than features: the groups in coordinates of the span of the rows (F7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpstrf

from .._util.arrays import EPS, Array, host, namespace, on_device, put, row_slices
from ..data import Groups
from ..data.rows import centred, centred_on_device
from ._contrast import Contrast
from ._moments import Moments
from ._scatter import DenseScatter, RowScatter
from ._solver import MAX_DENSE

# Squared distance of a row from the span of the others, relative to its length, below which it is only rounding.
RANK_TOLERANCE = 1e-13

BLOCK_ROWS = 256  # sparse rows that are filled in at a time


@dataclass(frozen=True)
class Basis:
    """An orthonormal basis Q of the span of the rows, defined by Z = R Q' and never formed; arrays where these are."""

    # Z, (k, D): the centred, scaled rows of all groups, one group after the other, times the roots of their weights
    rows: Any
    R: Any  # (k, size): their coordinates
    edges: tuple[int, ...]  # where the rows of each group begin, and where those of the last group end
    # From coordinates (size, d) to weights (k, d) of the rows that add up to the same vectors: Q = Z' times these
    from_rows: Callable[[Array], Any]

    def of_group(self, k: int) -> Self:
        """The same basis for a contrast of group k alone."""
        return replace(self, edges=(self.edges[k], self.edges[k + 1]))

    def _weighted(self, coefficients: Sequence[float]) -> tuple[slice, Any]:
        """The rows of the groups, and the coefficient of each in C, shape (rows, 1)."""
        weights = np.repeat(coefficients, np.diff(self.edges))[:, None]
        return slice(self.edges[0], self.edges[-1]), put(weights, self.rows)

    def matrix(self, coefficients: Sequence[float]) -> Any:
        """C = sum_k c_k S_k in the coordinates of the features, shape (D, D)."""
        inside, weights = self._weighted(coefficients)
        return self.rows[inside, :].T @ (weights * self.rows[inside, :])

    def vectors(self, V: Array) -> Array:
        """Q V in R^D for any V of shape (size, k).

        A linear system is solved, so nearly dependent rows cost accuracy; for eigenvectors use `lift`.
        """
        return host(self.rows.T @ self.from_rows(V))

    def lift(self, U: Array, values: Array, coefficients: Sequence[float]) -> Array:
        """Eigenvectors Q U in R^D, shape (D, d), of C = Z'J Z, from those of R'J R, J the coefficients of the rows.

        Since U = R'J R U / values, Q U = Z'(J R U / values): no system is solved, so nearly dependent rows do no harm.
        Rounding leaves multiples of vectors of larger eigenvalues in those of smaller ones; orthonormalising in this
        order removes them. The `values`, descending, must not be 0.
        """
        inside, weights = self._weighted(coefficients)
        inner = weights * (self.R[inside, :] @ put(U, self.rows)) / put(values, self.rows)
        orthonormal, triangle = np.linalg.qr(host((inner.T @ self.rows[inside, :]).T))
        return orthonormal * np.sign(np.diagonal(triangle))


@dataclass(frozen=True)
class Subspace:
    """An orthonormal basis Q of some directions, for fits that look nowhere else."""

    Q: Array  # (D, size)

    def of_group(self, k: int) -> Self:
        """The subspace itself: it is the same for every group."""
        return self

    def vectors(self, V: Array) -> Array:
        """Q V in R^D for any V of shape (size, k)."""
        return self.Q @ V

    def lift(self, U: Array, values: Array, coefficients: Sequence[float]) -> Array:
        """Q U in R^D."""
        return self.Q @ U


def reduce_rows(groups: Groups[Moments], n_null: int) -> tuple[Groups[Moments], Basis]:
    """Scatter matrices in an orthonormal basis of the span of all centred rows, Z = R Q'.

    S_X = Q (R_X'R_X) Q', where R_X are the rows of R that belong to X: one R serves every contrast of the groups. R is
    a factor of the Gram matrix Z Z' = R R', which is several times cheaper than a QR of Z'. `n_null` additional
    coordinates represent directions orthogonal to all rows: their zeros are eigenvalues of the full matrix that the
    small one would lack, and up to n_components of them can be among its largest. So a RowScatter of dense rows becomes
    a DenseScatter of size min(D, rank + n_null); means stay (D,).
    """
    scatters, edges = _row_scatters(groups)
    D, first = groups.foreground.mean.size, scatters[0].rows
    rows: Any
    if on_device(first):
        rows = namespace(first).concat(
            [centred_on_device(own.rows, own.mean, own.divisor, own.weights) for own in scatters], axis=0
        )
        R, from_rows = eigen_factor(rows, n_null)
    else:
        rows = np.empty((edges[-1], D))
        for scatter, (a, b) in zip(scatters, pairwise(edges), strict=True):
            _centred(scatter, rows[a:b])
        # Use SciPy's BLAS and LAPACK here: NumPy's own threads would still be spinning while SciPy's factorise.
        gram = dsyrk(1.0, rows.T, trans=1, lower=1)
        R, pivots = pivoted_factor(gram, n_null, D)

        def from_rows(V: Array) -> Array:
            weights = np.zeros((len(rows), V.shape[1]))
            weights[pivots] = solve_triangular(R[pivots, : pivots.size], V[: pivots.size], lower=True, trans="T")
            return weights

    return _in_coordinates(groups, R, edges), Basis(rows, R, tuple(edges.tolist()), from_rows)


def reduced_contrast(contrast: Contrast, n_null: int) -> tuple[Contrast, Basis]:
    """A contrast of dense rows in the coordinates of `reduce_rows`."""
    coefficients, moments = zip(*contrast.terms, strict=True)
    groups, basis = reduce_rows(Groups.from_items(moments, tuple(map(str, range(len(moments))))), n_null)
    return Contrast.of(*zip(coefficients, groups, strict=True)), basis


def has_few_rows(groups: Iterable[Moments]) -> bool:
    """Whether all groups are dense rows in memory, together fewer than the features, and few enough for a matrix."""
    scatters = [group.scatter for group in groups]
    rows = [scatter.rows for scatter in scatters if isinstance(scatter, RowScatter)]
    if len(rows) < len(scatters) or not all(isinstance(table, np.ndarray) for table in rows):
        return False
    return sum(len(table) for table in rows) <= min(rows[0].shape[1] - 1, MAX_DENSE)


def centre_rows(group: Moments) -> Moments:
    """A group with centred copies of its dense rows, which make many products several times cheaper."""
    scatter = group.scatter
    assert isinstance(scatter, RowScatter)
    D = scatter.size
    return replace(group, scatter=RowScatter(_centred(scatter), np.zeros(D), np.ones(D)))


def _centred(scatter: RowScatter, out: Array | None = None) -> Array:
    """The rows (x - mean) / divisor, times the roots of their weights, shape (n, D)."""
    found = centred(scatter.rows, scatter.mean, scatter.divisor, out=out)
    if scatter.weights is not None:
        found *= np.sqrt(scatter.weights)[:, None]
    return found


def in_span(groups: Groups[Moments], n_null: int) -> tuple[Groups[Moments], int]:
    """The same scatter matrices for sparse rows, from inner products of the rows only: nothing is of size k x D.

    Without the basis there is no way back to the features. The second result is the number of directions in which only
    the foreground varies: the rank of all rows, minus that of the backgrounds'.
    """
    scatters, edges = _row_scatters(groups)
    D, n = groups.foreground.mean.size, int(edges[1])
    gram = np.empty((edges[-1], edges[-1]), order="F")
    for scatter, start in zip(scatters, edges, strict=False):
        for part in row_slices(scatter.rows.shape[0], BLOCK_ROWS):
            block, place = scatter.centred(part), slice(start + part.start, start + part.stop)
            gram[:, place] = np.concatenate([other.products(block) for other in scatters])
    backgrounds = pivoted_factor(gram[n:, n:].copy(order="F"), 0, D)[1].size
    R, pivots = pivoted_factor(gram, n_null, D)
    return _in_coordinates(groups, R, edges), pivots.size - backgrounds


def _row_scatters(groups: Groups[Moments]) -> tuple[list[RowScatter], npt.NDArray[np.int64]]:
    """The scatters, and where the rows of each group begin in the stack of all; the last entry is where it ends."""
    scatters = [group.scatter for group in groups if isinstance(group.scatter, RowScatter)]
    return scatters, np.cumsum([0, *(scatter.rows.shape[0] for scatter in scatters)])


def pivoted_factor(gram: Array, n_null: int, D: int) -> tuple[Array, npt.NDArray[np.integer]]:
    """R with R R' = gram, whose lower triangle is given (and overwritten), and `n_null` zero columns; and the pivots,
    rows whose coordinates are triangular."""
    # Rows of unit length: dependence is then judged relative to each row, not to the largest row of either group.
    lengths = np.sqrt(np.diagonal(gram))
    lengths[lengths == 0] = 1.0
    gram /= lengths
    gram /= lengths[:, None]
    factor, pivots, rank, _ = dpstrf(gram, tol=RANK_TOLERANCE, lower=1, overwrite_a=1)
    rank = min(rank, D)
    R = np.zeros((lengths.size, min(D, rank + n_null)))
    R[pivots - 1, :rank] = np.tril(factor)[:, :rank]
    R *= lengths[:, None]
    return R, pivots[:rank] - 1


def eigen_factor(rows: Any, n_null: int) -> tuple[Any, Callable[[Array], Any]]:
    """R with R R' = rows rows' and `n_null` zero columns, and `Basis.from_rows`, for rows (k, D) on a device.

    No library of GPUs has a pivoted Cholesky factor. With rows = diag(l) Z_1, those of Z_1 of unit length, and Z_1 Z_1'
    = V diag(e) V', R = diag(l) V diag(e)^(1/2) and Q = Z_1'V diag(e)^(-1/2). Eigenvalues that are only rounding are
    left out.
    """
    xp, (k, D) = namespace(rows), rows.shape
    lengths = xp.sqrt(xp.sum(rows * rows, axis=1))
    lengths = xp.where(lengths == 0, xp.ones_like(lengths), lengths)[:, None]
    unit = rows / lengths
    values, vectors = xp.linalg.eigh(unit @ unit.T)
    of_host = host(values)
    rank = min(int(np.sum(of_host > 4 * EPS * k * of_host[-1])), D)
    vectors, roots = vectors[:, k - rank :], xp.sqrt(values[k - rank :])
    null = xp.zeros((k, min(D, rank + n_null) - rank), dtype=rows.dtype, device=rows.device)
    weights = vectors / roots / lengths
    return xp.concat([lengths * vectors * roots, null], axis=1), lambda V: weights @ put(V[:rank], rows)


def _in_coordinates(groups: Groups[Moments], R: Any, edges: npt.NDArray[np.int64]) -> Groups[Moments]:
    """The groups with scatter matrices in the coordinates R."""
    matrices = groups.like(R[a:b, :].T @ R[a:b, :] for a, b in pairwise(edges.tolist()))
    return groups.map(lambda group, own: replace(group, scatter=DenseScatter(own)), matrices)
