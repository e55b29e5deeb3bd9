"""Rows that are read block by block: from files, or where they are on a cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from operator import add
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array, Rows, is_sparse, row_slices
from ..exceptions import TableFileError

# Up to this many features one pass makes column sums and scatter matrix together; beyond, that would be too large.
ONE_PASS_FEATURES = 8000

R = TypeVar("R")
Pass = tuple[float, Array, Array]  # number of rows, mean and scatter matrix


class Blocked(ABC):
    """A table that is not in memory as a whole.

    Attributes
    ----------
    shape : (int, int)
    dtype : float32 or float64
    sparse : bool
        Whether blocks are CSR matrices.
    columns : list of str, or None
        Names of the features.
    remote : bool
        Whether blocks are on a cluster, where results for each of them can be kept.
    """

    ndim = 2
    remote = False
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    sparse: bool
    columns: list[str] | None
    _pass: tuple[Array | None, Pass] | None = None  # the last result of `one_pass`, and its weights

    @abstractmethod
    def reduce(self, function: Callable[..., R], merge: Callable[[R, R], R], *along: Array | None) -> R:
        """Merge function(block, *pieces) of all blocks; the pieces are those of arrays along the rows."""

    @abstractmethod
    def keep(self, function: Callable[..., Any], *along: Array | None) -> Any:
        """function(block, *pieces) of each block, as an object with `map` (of each) and `reduce` (all to one)."""

    @abstractmethod
    def __getitem__(self, rows: Any) -> Any:
        """Rows chosen by a mask, not read yet; or a slice or numbers of rows, in ascending order, in memory."""

    @property
    def size(self) -> int:
        """Number of values."""
        return self.shape[0] * self.shape[1]

    def one_pass(self, weights: Array | None) -> Pass:
        """Number, mean and scatter of the rows, each block read once; kept for the next call."""
        if self._pass is None or self._pass[0] is not weights:
            self._pass = weights, self.reduce(block_moments, merged, weights)
        return self._pass[1]


class FileRows(Blocked):
    """Rows of one or several sources, one after the other.

    Parameters
    ----------
    parts : list of tables with `shape`, `dtype` and slices of rows that are arrays or CSR matrices
    block_bytes : int
        How large a block may be in float64.
    most_bytes : int, optional
        How much memory all rows may take where they are needed again and again; by default all there is.
    kept : ndarray of bool of shape (n,), optional
        Which of their rows these are.
    """

    def __init__(
        self,
        parts: list[Any],
        block_bytes: int,
        most_bytes: int | None = None,
        kept: npt.NDArray[np.bool_] | None = None,
    ):
        self.parts, self.block_bytes, self.most_bytes, self.kept = parts, block_bytes, most_bytes, kept
        self.edges = np.cumsum([0, *(part.shape[0] for part in parts)])
        rows = int(self.edges[-1]) if kept is None else int(np.count_nonzero(kept))
        self.shape = rows, int(parts[0].shape[1])
        single = all(part.dtype == np.float32 for part in parts)
        self.dtype = np.dtype(np.float32 if single else np.float64)
        self.sparse = all(getattr(part, "sparse", False) for part in parts)
        self.columns = getattr(parts[0], "columns", None)

    def _blocks(self) -> Iterator[Rows]:
        most = max(1, self.block_bytes // (8 * self.shape[1]))
        for part, first in zip(self.parts, self.edges, strict=False):
            chunk = (getattr(part, "chunks", None) or (most,))[0]  # a chunk in two blocks would be read twice
            for inside in row_slices(part.shape[0], most // chunk * chunk or most):
                kept = None if self.kept is None else self.kept[first + inside.start : first + inside.stop]
                if kept is None:
                    yield self._read(part, inside)
                elif kept.any():  # only from the first to the last row that is wanted
                    own = np.flatnonzero(kept)
                    block = self._read(part, slice(inside.start + own[0], inside.start + own[-1] + 1))
                    yield block if own.size == block.shape[0] else block[own - own[0]]

    def _read(self, part: Any, inside: slice) -> Rows:
        try:
            block = part[inside]
        except TableFileError:
            raise
        except Exception as error:  # damaged files make their libraries raise nearly anything
            raise TableFileError(
                f"Rows {inside.start} to {inside.stop - 1} of {getattr(part, 'name', 'a table')!r} cannot be read: "
                f"{error}. The file may be damaged or incomplete."
            ) from error
        return block.astype(self.dtype, copy=False)

    def reduce(self, function: Callable[..., R], merge: Callable[[R, R], R], *along: Array | None) -> R:
        total, start = None, 0
        for block in self._blocks():
            inside = slice(start, start + block.shape[0])
            found = function(block, *(None if own is None else own[inside] for own in along))
            total, start = found if total is None else merge(total, found), inside.stop
        assert total is not None
        return total

    def keep(self, function: Callable[..., Any], *along: Array | None) -> ReadAnew:
        return ReadAnew(self, function, along)

    def __getitem__(self, rows: Any) -> Any:
        """A mask chooses rows without reading them; a slice or numbers of rows, in ascending order, are read."""
        rows = rows[0] if isinstance(rows, tuple) else rows  # of all features
        if isinstance(rows, np.ndarray) and rows.dtype == bool:
            kept = rows if self.kept is None else self.kept.copy()
            if self.kept is not None:
                kept[self.kept] = rows
            return FileRows(self.parts, self.block_bytes, self.most_bytes, kept)
        chosen = np.zeros(self.shape[0], dtype=bool)
        chosen[rows] = True
        return stacked(list(self[chosen]._blocks()))


class ReadAnew:
    """One value for each block of a file, which is read and computed again whenever it is needed."""

    def __init__(self, rows: FileRows, function: Callable[..., Any], along: tuple[Array | None, ...]):
        self.rows, self.function, self.along = rows, function, along

    def map(self, function: Callable[[Any], Any]) -> ReadAnew:
        """Other values, from these."""
        return ReadAnew(self.rows, lambda *given: function(self.function(*given)), self.along)

    def reduce(self, function: Callable[[Any], R], merge: Callable[[R, R], R]) -> R:
        """Merge function(value) of all blocks."""
        return self.rows.reduce(lambda *given: function(self.function(*given)), merge, *self.along)


def stacked(blocks: list[Rows]) -> Rows:
    """Blocks as one table in memory."""
    if is_sparse(blocks[0]):
        import scipy.sparse as sp

        return sp.vstack(blocks, format="csr")
    return np.concatenate(blocks)


# ---------------------------------------------------------------------- of one block


def of_block(block: Rows) -> Any:
    """The functions for the rows of a block in memory."""
    if is_sparse(block):
        from . import _scipy

        return _scipy
    from . import _numpy

    return _numpy


@np.errstate(invalid="ignore", over="ignore")
def block_moments(block: Rows, weights: Array | None = None) -> Pass:
    """Number, mean and scatter of the rows of a block."""
    kind, weight, D = of_block(block), float(block.shape[0] if weights is None else weights.sum()), block.shape[1]
    if weight == 0:
        return 0.0, np.zeros(D), np.zeros((D, D))
    mean = kind.column_sums(block, weights) / weight
    return weight, mean, kind.scatter(block, mean, weights)


@np.errstate(invalid="ignore", over="ignore")
def merged(left: Pass, right: Pass) -> Pass:
    """Those of two blocks together, by Chan's rule (F8)."""
    if min(left[0], right[0]) == 0:  # a block in which no row counts
        return left if left[0] else right
    weight, shift = left[0] + right[0], right[1] - left[1]
    row = np.sqrt(left[0] * right[0] / weight) * shift
    scatter = left[2] + right[2]
    scatter += np.outer(row, row)
    return weight, left[1] + shift * (right[0] / weight), scatter


# ---------------------------------------------------------------------- `Storage`


def bytes_per_row(rows: Blocked) -> float:
    return 8.0 * rows.shape[1]


def prepared(rows: Any) -> Any:
    return rows.persisted() if rows.remote else rows


def parts(rows: Blocked) -> list[slice]:
    return [slice(0, rows.shape[0])]


def view(rows: Blocked, part: slice) -> Blocked:
    return rows


def column_sums(rows: Blocked, weights: Array | None = None) -> Array:
    if rows.shape[1] <= ONE_PASS_FEATURES:
        weight, mean, _ = rows.one_pass(weights)
        return weight * mean
    return rows.reduce(lambda block, w: of_block(block).column_sums(block, w), add, weights)


def non_finite(rows: Blocked) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    found = rows.reduce(lambda block: np.array(of_block(block).non_finite(block)), np.logical_or)
    return found[0], found[1]


def scatter(rows: Blocked, mean: Array, weights: Array | None = None) -> Array:
    if rows.shape[1] <= ONE_PASS_FEATURES:
        weight, own, found = rows.one_pass(weights)
        row = np.sqrt(weight) * (own - mean)
        return found + np.outer(row, row) if np.any(row) else found
    return rows.reduce(lambda block, w: of_block(block).scatter(block, mean, w), add, weights)


def weighted(rows: Blocked, weights: Array) -> Callable[[int], tuple[Array, Array]]:
    def of_all(block: Rows, own: Array) -> list[Pass]:
        return [block_moments(block, own[:, k]) for k in range(own.shape[1])]

    found = rows.reduce(of_all, lambda left, right: list(map(merged, left, right)), weights)
    return lambda k: found[k][1:]


def labelled_moments(
    rows: Blocked, labels: npt.NDArray[np.intp], count: int, weights: Array | None = None
) -> list[Pass]:
    """Number, mean and scatter of the rows with each label 0, ..., count - 1, all in one pass."""

    def of_all(block: Rows, own: npt.NDArray[np.intp], w: Array | None) -> list[Pass]:
        parts = [np.flatnonzero(own == k) for k in range(count)]
        return [block_moments(block[part], None if w is None else w[part]) for part in parts]

    def merge(left: list[Pass], right: list[Pass]) -> list[Pass]:
        return list(map(merged, left, right))

    return rows.reduce(of_all, merge, labels, weights)  # type: ignore[arg-type]


def squares(rows: Blocked, mean: Array, weights: Array | None = None) -> Array:
    return rows.reduce(lambda block, w: of_block(block).squares(block, mean, w), add, weights)


def product(rows: Blocked, mean: Array, V: Array, weights: Array | None = None) -> Array:
    return rows.reduce(lambda block, w: of_block(block).product(block, mean, V, w), add, weights)


def gram(rows: Any, mean: Array, divisor: Array) -> Array:
    block = rows[:]
    return np.asarray(of_block(block).gram(block, mean, divisor))


def centred_product(rows: Any, mean: Array, P: Array) -> Array:
    """In float64, whatever the rows are."""
    found = rows.reduce(lambda block: [of_block(block).centred_product(block.astype(np.float64), mean, P)], add)
    return np.concatenate(found)
