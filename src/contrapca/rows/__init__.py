"""Where rows are read: reducing them to moments, and applying a model to them, block by block.

All computations with rows are done by the functions of `Storage`. Each kind of rows has one module with them, named
after the library that its type comes from: `_numpy` for arrays and memory maps, `_scipy` for CSR matrices; `_array_api`
serves several libraries, and `_blocked` all rows that are not in memory. Besides, rows have `shape` and `dtype`, and
take slices rows[a:b, :] and masks rows[mask].
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array, Rows, available_memory, is_sparse, row_slices
from .._util.devices import LIBRARIES, library_of
from .._util.memory import bytes_of, in_words
from ..exceptions import GroupError, TableFileError
from ._blocked import ONE_PASS_FEATURES, Blocked, FileRows, labelled_moments
from ._lazy import is_lazy, lazy_rows, masked_columns

APPLY_BYTES = 16 * 2**20  # of rows at a time, where a model is applied to them
MEMORY_LIMIT = 256 * 2**20  # for blocks that are read from files, and their moments, unless told otherwise
# The moments of blocks take so many matrices of features x features, and so many copies of a block in float64.
MATRICES, COPIES = 7, 4

# The module that reads a file of each kind, and those whose arrays are tables that are not in memory.
READERS = {".parquet": "_parquet", ".h5": "_h5py", ".hdf5": "_h5py", ".zarr": "_zarr"}
ON_DISK = ("h5py", "zarr")


class Storage(Protocol):
    """What a module for one kind of rows (n, D) offers."""

    def column_sums(self, rows: Rows, weights: Array | None = None) -> Array:
        """Sum of each column in float64, shape (D,); rows count `weights` (n,) times."""

    def non_finite(self, rows: Rows) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Which columns hold NaN, and which infinity, shape (D,) each."""

    def scatter(self, rows: Rows, mean: Array, weights: Array | None = None) -> Array:
        """sum_i w_i (x_i - mean)(x_i - mean)', shape (D, D), in float64."""

    def weighted(self, rows: Rows, weights: Array) -> Callable[[int], tuple[Array, Array]]:
        """A function that takes k and returns mean (D,) and scatter (D, D) of the rows with weights[:, k].

        Work that is the same for all k is done once.
        """

    def squares(self, rows: Rows, mean: Array, weights: Array | None = None) -> Array:
        """The diagonal of `scatter`, shape (D,), without the matrix."""

    def product(self, rows: Rows, mean: Array, V: Array, weights: Array | None = None) -> Array:
        """`scatter` times V (D, k), without the matrix."""

    def gram(self, rows: Rows, mean: Array, divisor: Array) -> Array:
        """Inner products of the rows (x - mean) / divisor, shape (n, n)."""

    def prepared(self, rows: Rows) -> Rows:
        """The rows in the type that many products want."""

    def parts(self, rows: Rows) -> list[slice]:
        """As many slices of rows, of equal work, as threads are of use for `product`."""

    def view(self, rows: Rows, part: slice) -> Rows:
        """A slice of the rows without a copy."""

    def scaled(self, rows: Rows, divisor: Array) -> Rows:
        """Rows with each column divided, in their float type."""

    def centred_product(self, rows: Rows, mean: Array, P: Array) -> Array:
        """(X - mean) P, shape (n, d), in the float type of the rows."""

    def squared_lengths(self, rows: Rows, mean: Array, P: Array, W: Array) -> tuple[Array, Array]:
        """|x - mean - W z|^2 and |z|^2 of each row and its latent z = P'(x - mean), shape (n,) each."""

    def bytes_per_row(self, rows: Rows) -> float:
        """How much memory a row takes in computations."""


@lru_cache
def _module(kind: Any) -> Storage | None:
    for parent in kind.__mro__:
        if parent is Blocked:
            found: Any = import_module(f"{__name__}._blocked")
            return found  # type: ignore[no-any-return]
        library = library_of(parent)
        name = f"{__name__}._{'array_api' if library in LIBRARIES else library}"
        if find_spec(name):
            module: Any = import_module(name)
            return module  # type: ignore[no-any-return]
    return None


def is_kept(table: Any) -> bool:
    """Whether a table is of a kind that is used as it is; others are made arrays or CSR matrices, and checked."""
    kind: Any = type(table)
    return not isinstance(table, np.ndarray) and not is_sparse(table) and _module(kind) is not None


def storage(rows: Rows) -> Storage:
    """The functions for this kind of rows."""
    kind: Any = type(rows)
    found = _module(kind)
    if found is None:
        raise TypeError(f"Rows cannot be a {kind.__name__}.")
    return found


def blocks(rows: Rows, n_bytes: int | None = None) -> Iterator[Rows]:
    """Yield consecutive blocks of rows of about `n_bytes`; None means what suits their kind."""
    read = storage(rows)
    if n_bytes is None:
        n_bytes = int(getattr(read, "APPLY_BYTES", APPLY_BYTES))
    for part in row_slices(rows.shape[0], int(1 + n_bytes / (1 + read.bytes_per_row(rows)))):
        yield rows[part, :]


# ---------------------------------------------------------------------- tables that are not in memory


def opened(table: Any, memory_limit: Any = None) -> Any:
    """Files and arrays on disk as rows that are read block by block; tables in memory as they are.

    Parameters
    ----------
    table : any table, path, array of h5py, zarr or dask, or list of paths and arrays
    memory_limit : int or str, optional
        How much memory blocks and their moments may take; without it, memory maps are read in blocks only if they are
        larger than all memory that is free and have more rows than features.
    """
    if isinstance(table, Blocked):
        return table
    if library_of(type(table)) == "dask":
        from ._dask import DaskRows

        return DaskRows(table)
    sources = table if isinstance(table, list | tuple) and len(table) > 0 else [table]
    kinds = (str, os.PathLike, np.memmap)
    on_disk = all(isinstance(one, kinds) or library_of(type(one)) in ON_DISK for one in sources)
    if not on_disk or (memory_limit is None and _serves_as_array(table)):
        if memory_limit is not None:
            bytes_of(memory_limit)
        return table
    parts = [_part(one) for one in sources]
    for part in parts:
        if part.shape[1] != parts[0].shape[1] or _names(part) != _names(parts[0]):
            raise GroupError(
                f"{_title(part)} does not have the columns of {_title(parts[0])}: all parts of a table need the same, "
                "in the same order."
            )
    most = None if memory_limit is None else bytes_of(memory_limit)
    return FileRows(parts, _block_bytes(memory_limit, parts[0].shape[1]), most)


def map_rows(array: Any, function: Callable[[Rows], Array], n_columns: int | None) -> Any:
    """A dask array of function(block), not computed yet."""
    from . import _dask

    return _dask.map_rows(array, function, n_columns)


def _serves_as_array(table: Any) -> bool:
    """Whether a source is a memory map that is wide, or that the system can keep in memory after it is read once."""
    if not isinstance(table, np.memmap):
        return False
    return table.ndim != 2 or table.shape[0] <= table.shape[1] or table.nbytes <= available_memory()


def _part(one: Any) -> Any:
    """A table with `shape`, `dtype` and slices of rows."""
    if isinstance(one, np.memmap):
        return one
    if not isinstance(one, str | os.PathLike):
        found = import_module(f"{__name__}._{library_of(type(one))}").source(one)
        if found is None:
            raise TableFileError(
                f"{one!r} is not a table: pass an array of two dimensions, or a group with a CSR matrix."
            )
        return found
    path = Path(one)
    if not path.exists():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    if path.suffix == ".npy":
        try:
            found = np.load(path, mmap_mode="r", allow_pickle=False)
        except ValueError as error:
            raise TableFileError(f"{str(path)!r} cannot be read: {error}. It may be damaged or incomplete.") from error
        if found.ndim != 2:
            raise TableFileError(f"{str(path)!r} has {found.ndim} dimensions: a table has two.")
        return found
    if path.suffix not in READERS:
        raise TableFileError(
            f"{str(path)!r} is not read in blocks: use .npy, .parquet, .h5, .hdf5 or .zarr, or read the table first."
        )
    return import_module(f"{__name__}.{READERS[path.suffix]}").open_path(str(path))


def _names(part: Any) -> Any:
    return getattr(part, "columns", None)


def _title(part: Any) -> str:
    return repr(getattr(part, "filename", None) or getattr(part, "name", "a part"))


def _block_bytes(memory_limit: Any, n_features: int) -> int:
    """How large a block may be, so that it and the moments stay within the limit."""
    matrices = MATRICES * 8 * n_features**2 if n_features <= ONE_PASS_FEATURES else 0
    limit = max(MEMORY_LIMIT, 2 * matrices) if memory_limit is None else bytes_of(memory_limit)
    left = (limit - matrices) // COPIES
    if left < 8 * n_features:
        raise ValueError(
            f"memory_limit={memory_limit!r} is too small for {n_features} features: moments and a block of one row "
            f"take {in_words(matrices + 8 * COPIES * n_features)}."
        )
    return left
