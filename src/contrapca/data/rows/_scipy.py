"""Sparse rows: CSR matrices, never filled in."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ..._util.arrays import TINY, Array, Rows, row_slices
from ..._util.threads import worker_count

MAX_CANCELLATION = 1e4  # of mean^2 / variance: how much larger than the result its summands may be
STORED_BLOCK = 2**21  # stored values at a time
CONVERTED_BLOCK = 2**18  # the same where they are converted to another float type
MIN_TOGETHER = 6  # with more columns of weights it pays to make the products of all at once
COLUMN_PARTS = 6  # of a product of sparse rows with themselves: it makes (1 + 1 / 6) / 2 of all multiplications


def prepared(rows: Rows) -> Rows:
    return rows.astype(np.float64, copy=False)  # products would convert it anew each time


def parts(rows: Rows) -> list[slice]:
    indptr = rows.indptr
    edges = np.searchsorted(indptr, np.linspace(0, indptr[-1], worker_count(rows.nnz) + 1))
    edges[0], edges[-1] = 0, rows.shape[0]
    return [slice(a, b) for a, b in pairwise(edges.tolist())]


def view(rows: Rows, part: slice) -> Rows:
    indptr, start, stop = rows.indptr, part.start, part.stop
    inside = slice(indptr[start], indptr[stop])
    stored = (rows.data[inside], rows.indices[inside], indptr[start : stop + 1] - indptr[start])
    return sp.csr_array(stored, shape=(stop - start, rows.shape[1]), copy=False)


@np.errstate(invalid="ignore", over="ignore")
def column_sums(rows: Rows, weights: Array | None = None) -> Array:
    # Not rows.sum(), which adds float32 up in float32, also if asked for another dtype.
    return np.asarray((np.ones(rows.shape[0]) if weights is None else weights) @ rows).ravel()


def non_finite(rows: Rows) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    missing, infinite = np.zeros((2, rows.shape[1]), dtype=bool)
    missing[rows.indices[np.isnan(rows.data)]] = True
    infinite[rows.indices[np.isinf(rows.data)]] = True
    return missing, infinite


@np.errstate(invalid="ignore", over="ignore")
def squares(rows: Rows, mean: Array, weights: Array | None = None) -> Array:
    """sum_i w_i (x_ij - mean_j)^2 over what is stored, and over the zeros that are not."""
    n, D = rows.shape
    total, stored = np.zeros((2, D))
    of_row = None if weights is None else np.repeat(weights, np.diff(rows.indptr))
    for part in row_slices(rows.nnz, STORED_BLOCK):
        columns = rows.indices[part]
        weight = None if of_row is None else of_row[part]
        squared = (rows.data[part] - mean[columns]) ** 2
        total += np.bincount(columns, squared if weight is None else weight * squared, minlength=D)
        stored += np.bincount(columns, weight, minlength=D)
    return total + ((n if weights is None else weights.sum()) - stored) * mean**2


@np.errstate(invalid="ignore", over="ignore")
def scatter(rows: Rows, mean: Array, weights: Array | None = None) -> Array:
    total = rows.shape[0] if weights is None else float(weights.sum())
    # Products of sparse matrices, centred afterwards: centring first would fill the rows.
    return _centred(_second_moments(rows, weights), rows, mean, total, weights)


def weighted(rows: Rows, weights: Array) -> Callable[[int], tuple[Array, Array]]:
    rows, totals = rows.astype(np.float64, copy=False), weights.sum(axis=0)
    means = (rows.T @ weights).T / totals[:, None]
    if weights.shape[1] < MIN_TOGETHER:
        return lambda k: (means[k], scatter(rows, means[k], weights[:, k]))
    parts = _many_second_moments(rows, weights)

    def of(k: int) -> tuple[Array, Array]:
        upper = np.zeros((rows.shape[1], rows.shape[1]))
        for start, part in parts:
            upper[start : start + part.shape[0], start:] = part[:, :, k]
        matrix = _mirrored(upper, [start for start, _ in parts])
        return means[k], _centred(matrix, rows, means[k], float(totals[k]), weights[:, k])

    return of


def _centred(matrix: Array, rows: Rows, mean: Array, total: float, weights: Array | None) -> Array:
    """Scatter from second moments, unless their difference to those of the mean would cancel."""
    root = np.sqrt(total) * mean
    matrix -= np.outer(root, root)
    # As long as the summands are not much larger than the result, what is left of the diagonal tells how much they are.
    spread = np.maximum(np.diagonal(matrix) / total, TINY)
    if np.max(mean**2 / spread) < MAX_CANCELLATION:
        return matrix
    # It cancels: multiply with the unit vectors instead, a few at a time, centred implicitly.
    D, root = mean.size, np.ones(rows.shape[0]) if weights is None else np.asarray(weights, dtype=np.float64)
    return np.hstack([product(rows, mean, np.eye(D)[:, part], root) for part in row_slices(D, 32)])


def _column_edges(D: int) -> list[int]:
    return np.unique(np.linspace(0, D, COLUMN_PARTS + 1).astype(int)).tolist()


def _mirrored(upper: Array, edges: list[int]) -> Array:
    """A symmetric matrix from what is right of its diagonal blocks, which begin at `edges`; changed in place."""
    for start, stop in pairwise([*edges, upper.shape[0]]):
        upper[stop:, start:stop] = upper[start:stop, stop:].T
    return upper


def _second_moments(rows: Rows, weights: Array | None) -> Array:
    """sum_i w_i x_i x_i' in float64, shape (D, D), a block of rows at a time: no more than that is ever copied.

    The product of two sparse matrices costs some nanoseconds for each pair of values in a row, so that no pair of
    features is multiplied twice, and rows that count 0 times, of a resample more than a third, are left out.
    """
    n, D = rows.shape
    total, edges = np.zeros((D, D)), _column_edges(D)
    for block in row_slices(n, max(1, STORED_BLOCK * n // max(rows.nnz, 1))):
        part = rows[block] if weights is None else rows[block.start + np.flatnonzero(weights[block])]
        part = part.astype(np.float64, copy=False)
        counted = None if weights is None else np.asarray(weights[block][weights[block] != 0], dtype=np.float64)
        for start, stop in pairwise(edges):  # of `part` the columns before `start` are gone
            first = part[:, : stop - start]
            if counted is not None:
                first = sp.diags_array(counted) @ first
            total[start:stop, start:] += (first.T.tocsr() @ part).toarray()
            part = part[:, stop - start :]
    return _mirrored(total, edges[:-1])


def _many_second_moments(rows: Rows, weights: Array) -> list[tuple[int, Array]]:
    """Moments for each column of `weights` (n, B): parts of the upper triangle, from `start` on (c, D - start, B).

    Feature by feature: the rows that have it are fetched once for all B, and fetching them is what takes the time.
    """
    found, rest = [], rows
    for start, stop in pairwise(_column_edges(rows.shape[1])):
        first = rest[:, : stop - start].tocsc()
        part = np.empty((stop - start, rest.shape[1], weights.shape[1]))
        for column, inside in enumerate(map(slice, first.indptr[:-1], first.indptr[1:])):
            having = first.indices[inside]
            part[column] = rest[having].T @ (first.data[inside, None] * weights[having])
        found.append((start, part))
        rest = rest[:, stop - start :]
    return found


def product(rows: Rows, mean: Array, V: Array, weights: Array | None = None) -> Array:
    """In the float type of V; rows of another are converted a block at a time."""
    size = rows.shape[0] if rows.dtype == V.dtype else max(1, CONVERTED_BLOCK * rows.shape[0] // max(rows.nnz, 1))
    total, sums = np.zeros(V.shape), np.zeros(V.shape[1])
    for block in row_slices(rows.shape[0], size):
        part = view(rows, block).astype(V.dtype, copy=False)
        projected = part @ V - (mean @ V).astype(V.dtype, copy=False)
        if weights is not None:
            projected *= weights[block, None]
        total += part.T @ projected
        sums += projected.sum(axis=0, dtype=np.float64)
    return total - np.outer(mean, sums)


def gram(rows: Rows, mean: Array, divisor: Array) -> Array:
    values = rows.astype(np.float64, copy=False) @ sp.diags_array(1 / divisor)
    found = (values @ values.T).toarray()
    # Centre both sides: (I - 11'/n) G (I - 11'/n).
    found -= found.mean(axis=0)
    found -= found.mean(axis=1)[:, None]
    return found


def scaled(rows: Rows, divisor: Array) -> Rows:
    return rows if np.all(divisor == 1) else rows @ sp.diags_array(1 / divisor.astype(rows.dtype, copy=False))


def centred_product(rows: Rows, mean: Array, P: Array) -> Array:
    P = P.astype(rows.dtype, copy=False)
    return rows @ P - (mean @ P).astype(rows.dtype, copy=False)


def squared_lengths(rows: Rows, mean: Array, P: Array, W: Array) -> tuple[Array, Array]:
    """Squares are expanded, because residuals would be dense, and summed in float64, because terms cancel."""
    rows = rows.astype(np.float64, copy=False)
    Z = centred_product(rows, mean, P)
    square = np.ravel(rows.multiply(rows).sum(axis=1)) - 2 * (rows @ mean) + mean @ mean
    cross = np.einsum("ij,ij->i", Z, centred_product(rows, mean, W))
    inside = np.einsum("ij,jk,ik->i", Z, W.T @ W, Z)
    return np.maximum(square - 2 * cross + inside, 0.0), np.einsum("ij,ij->i", Z, Z)
