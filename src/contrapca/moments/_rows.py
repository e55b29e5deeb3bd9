"""A scatter matrix that is never formed: the rows themselves, centred and scaled implicitly."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from .._array import PARALLEL_MIN_VALUES, Array, Rows, is_sparse, row_slices, stored_values, worker_count
from ._accumulate import accumulate_dense
from ._moments import DenseScatter, Moments, finite_column_means

BLOCK_BYTES = 4 * 2**20  # of centred rows at a time: stays in cache
MAX_CANCELLATION = 1e4  # of mean^2 / variance: how much larger than the result its summands may be


def accumulate(rows: Rows) -> Moments:
    """Mean and scatter matrix of `rows` ((n, D) ndarray or CSR): Moments with a DenseScatter."""
    if not is_sparse(rows):
        return accumulate_dense(rows)
    moments = row_moments(rows)
    return replace(moments, scatter=DenseScatter(moments.scatter.dense()))


def row_moments(rows: Rows) -> Moments:
    """Mean and implicit scatter of `rows` ((n, D) ndarray or CSR), which are kept; only sparse float32 is copied."""
    if is_sparse(rows):
        rows = rows.astype(np.float64, copy=False)  # products would convert it anew each time
    mean = finite_column_means(rows)
    return Moments(float(rows.shape[0]), mean, RowScatter(rows, mean, np.ones(rows.shape[1])))


@dataclass(frozen=True)
class RowScatter:
    """S of the rows (rows - mean) / divisor, applied as (rows)'(rows V)."""

    rows: Rows
    mean: Array
    divisor: Array

    def scaled(self, divisor: Array) -> RowScatter:
        return replace(self, divisor=self.divisor * divisor)

    @cached_property
    def _diagonal(self) -> Array:
        total = np.zeros(self.mean.size)
        if is_sparse(self.rows):
            # Two passes over what is stored: sum_i (x_ij - mean_j)^2, where x_ij = 0 is not stored.
            stored = np.bincount(self.rows.indices, minlength=self.mean.size)
            for part in row_slices(self.rows.nnz, 2**20):
                columns = self.rows.indices[part]
                deviation = self.rows.data[part] - self.mean[columns]
                total += np.bincount(columns, deviation**2, minlength=self.mean.size)
            total += (self.rows.shape[0] - stored) * self.mean**2
        else:
            for part in _blocks(self.rows):
                centred = self.rows[part] - self.mean
                total += np.einsum("ij,ij->j", centred, centred)
        return total / self.divisor**2

    def diagonal(self) -> Array:
        return self._diagonal

    @property
    def trace(self) -> float:
        return float(self._diagonal.sum())

    @cached_property
    def _parts(self) -> list[Rows]:
        """The rows in as many shares of equal work as there are threads; views, not copies."""
        n = self.rows.shape[0]
        workers = worker_count() if stored_values(self.rows) >= PARALLEL_MIN_VALUES else 1
        if not is_sparse(self.rows):
            edges = np.linspace(0, n, workers + 1).astype(int)
            return [self.rows[a:b] for a, b in pairwise(edges)]
        indptr = self.rows.indptr
        edges = np.searchsorted(indptr, np.linspace(0, indptr[-1], workers + 1))
        edges[0], edges[-1] = 0, n
        return [self._sparse_view(a, b) for a, b in pairwise(edges)]

    def _sparse_view(self, start: int, stop: int) -> Rows:
        indptr = self.rows.indptr
        inside = slice(indptr[start], indptr[stop])
        parts = (self.rows.data[inside], self.rows.indices[inside], indptr[start : stop + 1] - indptr[start])
        return sp.csr_array(parts, shape=(stop - start, self.mean.size), copy=False)

    def products(self, V: Array) -> list[Callable[[], Array]]:
        scaled = V / self.divisor[:, None]
        offset = self.mean @ scaled

        def share(rows: Rows) -> Array:
            if is_sparse(rows):
                projected = rows @ scaled - offset
                product = rows.T @ projected - np.outer(self.mean, projected.sum(axis=0))
            else:
                product = np.zeros(scaled.shape)
                for part in _blocks(rows):
                    centred = rows[part] - self.mean
                    product += centred.T @ (centred @ scaled)
            return product / self.divisor[:, None]

        return [partial(share, rows) for rows in self._parts]

    @property
    def shares(self) -> int:
        return len(self._parts)

    def dense(self) -> Array:
        if not is_sparse(self.rows):
            return accumulate_dense(self.rows).scatter.scaled(self.divisor).dense()
        n, D = self.rows.shape
        spread = np.maximum(self._diagonal * self.divisor**2 / n, np.finfo(float).tiny)
        if np.max(self.mean**2 / spread) < MAX_CANCELLATION:
            # Products of sparse matrices, centred afterwards: centring first would fill the rows.
            matrix = (self.rows.T @ self.rows).toarray() - n * np.outer(self.mean, self.mean)
            return matrix / self.divisor[:, None] / self.divisor
        # That would cancel: multiply with the unit vectors instead, a few at a time, centred implicitly.
        blocks = [sum(call() for call in self.products(np.eye(D)[:, part])) for part in row_slices(D, 32)]
        return np.hstack(blocks)

    @cached_property
    def fingerprint(self) -> int:
        """A checksum of the rows, as they are when it is first asked for."""
        return _checksum(self.rows)

    def rows_changed(self) -> bool:
        """Whether the rows are no longer what they were when the fingerprint was taken."""
        return _checksum(self.rows) != self.fingerprint

    def centred(self, out: Array | None = None) -> Array:
        """The centred, scaled rows (of a dense table) in float64, shape (n, D)."""
        centred = np.subtract(self.rows, self.mean, out=out)
        return centred if np.all(self.divisor == 1) else np.divide(centred, self.divisor, out=centred)

    def spectrum_matrix(self) -> Array:
        """The smaller of S and the Gram matrix of the centred rows: the same non-zero eigenvalues."""
        n, D = self.rows.shape
        if n >= D:
            return self.dense()
        if not is_sparse(self.rows):
            centred = self.centred()
            return centred @ centred.T
        values = self.rows @ sp.diags_array(1 / self.divisor)
        gram = (values @ values.T).toarray()
        # Centre both sides: (I - 11'/n) G (I - 11'/n).
        gram -= gram.mean(axis=0)
        gram -= gram.mean(axis=1)[:, None]
        return gram


def _blocks(rows: Array) -> Iterator[slice]:
    """Slices of dense rows that stay in cache."""
    return row_slices(rows.shape[0], max(1, BLOCK_BYTES // (8 * rows.shape[1])))


def _checksum(rows: Rows) -> int:
    """CRC of all stored values, block by block."""
    parts = [rows.data, rows.indices, rows.indptr] if is_sparse(rows) else [rows[part] for part in _blocks(rows)]
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(np.ascontiguousarray(part).view(np.uint8).data, checksum)
    return checksum
