"""Dask arrays: what is done with rows is done where their blocks are, and only sums come back."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array, Rows, in_memory, is_sparse
from .._util.memory import in_words
from .._util.optional import require
from ..exceptions import GroupError
from ._blocked import Blocked, stacked

MERGED_AT_ONCE = 4  # results of blocks that one task merges: few matrices are then on a worker at a time

R = TypeVar("R")


class DaskRows(Blocked):
    """A dask array of shape (n, D) whose blocks are arrays or CSR matrices of all D features.

    Parameters
    ----------
    array : dask array
    kept : ndarray of bool of shape (n,), optional
        Which of its rows these are.
    """

    remote = True

    def __init__(self, array: Any, kept: npt.NDArray[np.bool_] | None = None):
        _check(array)
        self.array, self.kept, self.columns = array, kept, None
        rows = int(array.shape[0]) if kept is None else int(np.count_nonzero(kept))
        self.shape = rows, int(array.shape[1])
        self.dtype = np.dtype(np.float32 if array.dtype == np.float32 else np.float64)
        self.sparse = is_sparse(array._meta)

    def reduce(self, function: Callable[..., R], merge: Callable[[R, R], R], *along: Array | None) -> R:
        return _tree(self._tasks(function, along), merge, self)

    def keep(self, function: Callable[..., Any], *along: Array | None) -> Kept:
        """The results of a function of each block, which stay where the blocks are."""
        return Kept.of(self._tasks(function, along), self)

    def _tasks(self, function: Callable[..., Any], along: Sequence[Array | None]) -> list[Any]:
        """A task for each block that has rows."""
        delayed = require("dask", extra="dask").delayed
        found, start = [], 0
        edges = np.cumsum([0, *self.array.chunks[0]])
        for block, (first, last) in zip(self.array.to_delayed().ravel(), pairwise(edges.tolist()), strict=True):
            kept = None if self.kept is None else self.kept[first:last]
            stop = start + (last - first if kept is None else int(np.count_nonzero(kept)))
            if stop > start:
                pieces = [None if own is None else own[start:stop] for own in along]
                found.append(delayed(_on_block, pure=False)(function, block, str(self.dtype), kept, pieces))
            start = stop
        return found

    def persisted(self) -> DaskRows:
        """The same rows in the memory of the workers, for many passes."""
        with _explained(self):
            return DaskRows(self.array.persist(), self.kept)

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
        delayed = require("dask", extra="dask").delayed
        return Kept.of([delayed(function, pure=False)(part) for part in self.parts], self.rows)

    def reduce(self, function: Callable[[Any], R], merge: Callable[[R, R], R]) -> R:
        """Merge function(value) of all blocks."""
        delayed = require("dask", extra="dask").delayed
        return _tree([delayed(function, pure=False)(part) for part in self.parts], merge, self.rows)


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
        size = in_words(8.0 * largest * rows.shape[1])
        what = "Workers died, most likely for lack of memory" if killed else "A worker ran out of memory"
        raise MemoryError(
            f"{what}. The largest block has {largest} rows, {size} in float64: use smaller blocks, "
            f"X.rechunk(({largest // 4 or 1}, -1)), or more memory for each worker."
        ) from error


def _merge_all(merge: Callable[[R, R], R], values: list[R]) -> R:
    first, *others = values
    for other in others:
        first = merge(first, other)
    return first


def _tree(tasks: list[Any], merge: Callable[[R, R], R], rows: DaskRows) -> R:
    """The results of all tasks, merged a few at a time: no worker ever holds many of them."""
    delayed = require("dask", extra="dask").delayed
    while len(tasks) > 1:
        groups = [tasks[k : k + MERGED_AT_ONCE] for k in range(0, len(tasks), MERGED_AT_ONCE)]
        tasks = [delayed(_merge_all, pure=False)(merge, group) for group in groups]
    with _explained(rows):
        found: R = tasks[0].compute()
    return found
