"""Dask arrays: rows are reduced where their blocks are, and only sums come back."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ..._util.arrays import Array, Rows, in_memory, is_sparse, outer
from ..._util.optional import require
from ..._util.threads import single_thread
from ...exceptions import GroupError
from . import _numpy, _scipy

# Up to this many features one pass makes column sums and scatter matrix together; beyond, that would be too large.
ONE_PASS_FEATURES = 8000
READ_BYTES = 64 * 2**20  # of rows of a file at a time, in float64
MERGED_AT_ONCE = 4  # results of blocks that one task merges: few matrices are then on a worker at a time
R = TypeVar("R")
Part = tuple[float, Array, Any]  # sum of the weights, mean (D,) and centred scatter (D, D) of some rows


class DaskRows:
    """A dask array of shape (n, D) whose blocks are arrays, masked arrays or CSR matrices of all D features.

    Parameters
    ----------
    array : dask array
    kept : ndarray of bool of shape (n,), optional
        Which of its rows these are.
    """

    ndim = 2
    _pass: tuple[Array | None, Part] | None = None  # the last result of `one_pass`, and its weights

    def __init__(self, array: Any, kept: npt.NDArray[np.bool_] | None = None):
        _check(array)
        self.array, self.kept = array, kept
        rows = int(array.shape[0]) if kept is None else int(np.count_nonzero(kept))
        self.shape = rows, int(array.shape[1])
        self.dtype = np.dtype(np.float32 if array.dtype == np.float32 else np.float64)

    @property
    def size(self) -> int:
        """Number of values."""
        return self.shape[0] * self.shape[1]

    def one_pass(self, weights: Array | None) -> Part:
        """Number, mean and scatter of the rows, each block read once; kept for the next call."""
        if self._pass is None or self._pass[0] is not weights:
            self._pass = weights, self.reduce(block_moments, merged, weights)
        return self._pass[1]

    def reduce(self, function: Callable[..., R], merge: Callable[[R, R], R], *along: Array | None) -> R:
        """Merge function(block, *pieces) of all blocks; the pieces are those of arrays along the rows."""
        return _tree(self._tasks(function, along), merge, self)

    def keep(self, function: Callable[..., Any], *along: Array | None) -> Kept:
        """The results of a function of each block, which stay where the blocks are."""
        return Kept.of(self._tasks(function, along), self)

    def _tasks(self, function: Callable[..., Any], along: Sequence[Array | None]) -> list[Any]:
        """A task for each block that has rows."""
        found, start = [], 0
        edges = np.cumsum([0, *self.array.chunks[0]])
        for block, (first, last) in zip(self.array.to_delayed().ravel(), pairwise(edges.tolist()), strict=True):
            kept = None if self.kept is None or self.kept[first:last].all() else self.kept[first:last]
            stop = start + (last - first if kept is None else int(np.count_nonzero(kept)))
            if stop > start:
                pieces = [None if own is None else own[start:stop] for own in along]
                found.append(_task(_on_block, function, block, str(self.dtype), kept, pieces))
            start = stop
        return found

    def __getitem__(self, rows: Any) -> Any:
        """A mask chooses rows where they are; a slice or numbers of rows, in ascending order, are fetched."""
        rows = rows[0] if isinstance(rows, tuple) else rows  # of all features
        chosen = np.zeros(self.shape[0], dtype=bool)
        chosen[rows] = True
        kept = chosen if self.kept is None else self.kept.copy()
        if self.kept is not None:
            kept[self.kept] = chosen
        found = DaskRows(self.array, kept)
        if isinstance(rows, np.ndarray) and rows.dtype == bool:
            return found
        return stacked(found.reduce(lambda block: [block], lambda left, right: left + right))


class Kept:
    """One value for each block, where the blocks are."""

    def __init__(self, parts: list[Any], rows: DaskRows):
        self.parts, self.rows = parts, rows

    @classmethod
    def of(cls, tasks: list[Any], rows: DaskRows) -> Kept:
        """The results of tasks, one for each block."""
        with _explained(rows):
            return cls(list(require("dask", extra="dask").persist(*tasks)), rows)

    def map(self, function: Callable[[Any], Any]) -> Kept:
        """Other values, from these."""
        return Kept.of([_task(function, part) for part in self.parts], self.rows)

    def reduce(self, function: Callable[[Any], R], merge: Callable[[R, R], R]) -> R:
        """Merge function(value) of all blocks."""
        return _tree([_task(function, part) for part in self.parts], merge, self.rows)


def map_rows(array: Any, function: Callable[[Rows], Array], n_columns: int | None) -> Any:
    """A dask array of function(block), nothing computed yet: n_columns for each row, or one value if None."""
    dtype, width = DaskRows(array).dtype, 1 if n_columns is None else n_columns

    def of_block(block: Rows) -> Array:
        if block.shape[0] == 0:
            return np.empty((0, width), dtype=dtype)
        return function(in_memory(block).astype(dtype, copy=False)).reshape(-1, width)

    chunks = (array.chunks[0], (width,))
    found = array.map_blocks(of_block, dtype=dtype, chunks=chunks, meta=np.empty((0, width), dtype=dtype))
    # Not drop_axis=1, for which older versions of dask join blocks that may be sparse.
    return found if n_columns is not None else found[:, 0]


def _on_block(
    function: Callable[..., R], block: Any, dtype: str, kept: npt.NDArray[np.bool_] | None, pieces: list[Array | None]
) -> R:
    rows = in_memory(block).astype(dtype, copy=False)
    return function(rows if kept is None else rows[kept], *pieces)


def _check(array: Any) -> None:
    if not hasattr(array, "chunks") or not hasattr(array, "to_delayed"):
        raise TypeError(
            f"A dask {type(array).__name__} is not a table: pass a dask array, such as "
            "frame.to_dask_array(lengths=True)."
        )
    if array.ndim != 2:
        raise ValueError(f"The dask array has {array.ndim} dimensions: a table has two.")
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: the table's type is {array.dtype}.")
    if array.dtype.kind not in "fiub":
        raise ValueError(f"The dask array has values of type {array.dtype}, not numbers.")
    if any(np.isnan(size) for sizes in array.chunks for size in sizes):
        raise GroupError("The dask array has chunks of unknown size: call X.compute_chunk_sizes() first.")
    if len(array.chunks[1]) > 1:
        raise GroupError(
            f"The features of the dask array are in {len(array.chunks[1])} chunks: a block needs all features of its "
            "rows. Use X.rechunk({1: -1})."
        )


def row_chunks(table: Any) -> Any:
    """A backed matrix of AnnData, dense or CSR, as a dask array of chunks of rows; sparse chunks stay sparse."""
    n, D = table.shape
    sparse = hasattr(table, "format")
    chunk = (getattr(table, "chunks", None) or (1,))[0] if not sparse else 1  # one in two blocks would be read twice
    most = max(1, READ_BYTES // (8 * D))
    meta = sp.csr_array((0, D), dtype=table.dtype) if sparse else None
    size = max(chunk, most // chunk * chunk)
    return require("dask.array", extra="dask").from_array(
        table,
        chunks=(min(n, size), -1),
        name=False,  # a name of its own: hashing the table would read it
        asarray=not sparse,
        fancy=False,
        meta=meta,
    )


@contextlib.contextmanager
def _explained(rows: DaskRows) -> Iterator[None]:
    """Say what to do where a worker ran out of memory: it raises, or is killed as often as dask tries again."""
    try:
        yield
    except Exception as error:
        killed = type(error).__name__ == "KilledWorker"
        if not killed and not isinstance(error, MemoryError):
            raise
        largest = max(rows.array.chunks[0])
        size = f"{8e-6 * largest * rows.shape[1]:.3g} MB"
        what = "Workers died, most likely for lack of memory" if killed else "A worker ran out of memory"
        raise MemoryError(
            f"{what}. The largest block has {largest} rows, {size} in float64: use smaller blocks, "
            f"X.rechunk(({largest // 4 or 1}, -1)), or more memory for each worker."
        ) from error


def _task(function: Callable[..., Any], *arguments: Any) -> Any:
    """A call that dask makes later, where its arguments are."""
    return require("dask", extra="dask").delayed(function, pure=False)(*arguments)


def _tree(tasks: list[Any], merge: Callable[[R, R], R], rows: DaskRows) -> R:
    """The results of all tasks, merged a few at a time: no worker ever holds many of them."""
    while len(tasks) > 1:
        groups = [tasks[k : k + MERGED_AT_ONCE] for k in range(0, len(tasks), MERGED_AT_ONCE)]
        tasks = [_task(reduce, merge, group) for group in groups]
    with _explained(rows), single_thread():  # dask's threads are enough
        found: R = tasks[0].compute()
    return found


# ---------------------------------------------------------------------- of one block, and of two


def stacked(blocks: list[Rows]) -> Rows:
    """Blocks as one table in memory."""
    return sp.vstack(blocks, format="csr") if is_sparse(blocks[0]) else np.concatenate(blocks)


def of_block(block: Rows) -> Any:
    """The functions for the rows of a block in memory."""
    return _scipy if is_sparse(block) else _numpy


@np.errstate(invalid="ignore", over="ignore")
def block_moments(block: Rows, weights: Array | None = None) -> Part:
    """Number, mean and scatter of the rows of a block."""
    kind, weight, D = of_block(block), float(block.shape[0] if weights is None else weights.sum()), block.shape[1]
    if weight == 0:
        return 0.0, np.zeros(D), np.zeros((D, D))
    mean = kind.column_sums(block, weights) / weight
    return weight, mean, kind.scatter(block, mean, weights)


@np.errstate(over="ignore", invalid="ignore")  # what is too large to be squared is found in the trace
def merged(left: Part, right: Part) -> Part:
    """Weight, mean and scatter of the rows of both parts together: Chan's rule (F8).

    A part of negative weight and scatter is taken away.
    """
    if min(abs(left[0]), abs(right[0])) == 0:  # a part in which no row counts has no mean
        return left if left[0] else right
    weight, shift = left[0] + right[0], right[1] - left[1]
    # By its root, the added matrix is exactly symmetric; weights that are multiplied with each other could overflow.
    between = left[0] * (right[0] / weight)
    row = np.sqrt(abs(between)) * shift
    scatter = left[2] + right[2]
    scatter += outer(row, scatter) if between > 0 else -outer(row, scatter)
    return weight, left[1] + shift * (right[0] / weight), scatter


# ---------------------------------------------------------------------- `Storage`


def prepared(rows: DaskRows) -> DaskRows:
    """The same rows in the memory of the workers, for many passes."""
    with _explained(rows):
        return DaskRows(rows.array.persist(), rows.kept)


def parts(rows: DaskRows) -> list[slice]:
    return [slice(0, rows.shape[0])]


def view(rows: DaskRows, part: slice) -> DaskRows:
    return rows


def column_sums(rows: DaskRows, weights: Array | None = None) -> Array:
    if rows.shape[1] <= ONE_PASS_FEATURES:
        weight, mean, _ = rows.one_pass(weights)
        return weight * mean
    return rows.reduce(lambda block, w: of_block(block).column_sums(block, w), add, weights)


def non_finite(rows: DaskRows) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    found = rows.reduce(lambda block: np.array(of_block(block).non_finite(block)), np.logical_or)
    return found[0], found[1]


def scatter(rows: DaskRows, mean: Array, weights: Array | None = None) -> Array:
    if rows.shape[1] <= ONE_PASS_FEATURES:
        weight, own, found = rows.one_pass(weights)
        row = np.sqrt(weight) * (own - mean)
        return found + np.outer(row, row) if np.any(row) else found
    return rows.reduce(lambda block, w: of_block(block).scatter(block, mean, w), add, weights)


def weighted(rows: DaskRows, weights: Array) -> Callable[[int], tuple[Array, Array]]:
    def of_all(block: Rows, own: Array) -> list[Part]:
        return [block_moments(block, own[:, k]) for k in range(own.shape[1])]

    found = rows.reduce(of_all, lambda left, right: list(map(merged, left, right)), weights)
    return lambda k: found[k][1:]


def labelled_moments(
    rows: DaskRows, labels: npt.NDArray[np.intp], count: int, weights: Array | None = None
) -> list[Part]:
    """Number, mean and scatter of the rows with each label 0, ..., count - 1, all in one pass."""

    def of_all(block: Rows, own: npt.NDArray[np.intp], w: Array | None) -> list[Part]:
        parts = [np.flatnonzero(own == k) for k in range(count)]
        return [block_moments(block[part], None if w is None else w[part]) for part in parts]

    def merge(left: list[Part], right: list[Part]) -> list[Part]:
        return list(map(merged, left, right))

    return rows.reduce(of_all, merge, labels, weights)  # type: ignore[arg-type]


def squares(rows: DaskRows, mean: Array, weights: Array | None = None) -> Array:
    return rows.reduce(lambda block, w: of_block(block).squares(block, mean, w), add, weights)


def product(rows: DaskRows, mean: Array, V: Array, weights: Array | None = None) -> Array:
    return rows.reduce(lambda block, w: of_block(block).product(block, mean, V, w), add, weights)


def gram(rows: DaskRows, mean: Array, divisor: Array) -> Array:
    block = rows[:]
    return np.asarray(of_block(block).gram(block, mean, divisor))


def centred_product(rows: DaskRows, mean: Array, P: Array) -> Array:
    """In float64, for rows of any type."""
    found = rows.reduce(lambda block: [of_block(block).centred_product(block.astype(np.float64), mean, P)], add)
    return np.concatenate(found)
