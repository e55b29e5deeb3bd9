"""Where rows are read: reducing them to moments, and applying a model to them, block by block.

All computations with rows are done by the functions of `Storage`. Each kind of rows has one module with them, listed in
`STORAGES`. Besides, rows have `shape` and `dtype`, and take slices rows[a:b, :] and masks rows[mask].
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..._util.arrays import Array, Rows, is_sparse, library_of, on_device, row_slices
from . import _array_api, _dask, _numpy, _scipy
from ._dask import DaskRows

APPLY_BYTES = 16 * 2**20  # of rows at a time, where a model is applied to them and their module names no other
IN_FILES = ("h5py", "zarr")


# To add a storage, write a module with the functions of `Storage`, and say here which rows are its own:
# tests/data/test_new_library.py does. Libraries that follow the array API share one: see _util/arrays.py.
STORAGES: dict[Any, Callable[[Any], bool]] = {
    _numpy: lambda rows: isinstance(rows, np.ndarray),
    _scipy: is_sparse,
    _dask: lambda rows: isinstance(rows, DaskRows),
    _array_api: on_device,
}


class Storage(Protocol):
    """What a module for one kind of rows (n, D) offers.

    Besides, a constant `APPLY_BYTES` may say how many bytes of rows are best read at a time where a model is applied.
    """

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


def storage(rows: Rows) -> Storage:
    """The functions for this kind of rows."""
    for module, has in STORAGES.items():
        if has(rows):
            found: Storage = module
            return found
    raise TypeError(f"Rows cannot be a {type(rows).__name__}.")


def is_kept(table: Any) -> bool:
    """Whether a table is of a kind that is used as it is; others are made arrays or CSR matrices, and checked."""
    return not isinstance(table, np.ndarray) and not is_sparse(table) and any(has(table) for has in STORAGES.values())


def blocks(rows: Rows, n_bytes: int | None = None) -> Iterator[Rows]:
    """Yield consecutive blocks of rows of about `n_bytes`; None means what suits their kind."""
    if n_bytes is None:
        n_bytes = int(getattr(storage(rows), "APPLY_BYTES", APPLY_BYTES))
    width = 12 * rows.nnz / rows.shape[0] if is_sparse(rows) else 8 * rows.shape[1]  # bytes of a row in computations
    for part in row_slices(rows.shape[0], int(1 + n_bytes / (1 + width))):
        yield rows[part, :]


def as_rows(table: Any) -> Any:
    """The rows of a dask array; other tables as they are. Files are refused: nothing is read that was not opened."""
    if library_of(type(table)) == "dask":
        return DaskRows(table)
    one = table[0] if isinstance(table, list | tuple) and table else table
    if isinstance(one, str | os.PathLike):
        raise TypeError(
            f"{os.fspath(one)!r} is a path, not a table: open it first, for example with np.load(path, mmap_mode='r') "
            "or dask.array.from_zarr(path)."
        )
    if library_of(type(one)) in IN_FILES:
        raise TypeError(
            f"{type(one).__name__} of {library_of(type(one))} is in a file: pass dask.array.from_array(X, "
            "chunks=(50_000, -1)) to read it in chunks, or X[:] to read it at once."
        )
    return table
