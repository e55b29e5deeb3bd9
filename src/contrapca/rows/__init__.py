"""Where rows are read: reducing them to moments, and applying a model to them, block by block.

All that the rest of the package does with rows is done by the functions of `Storage`. Each kind of rows has one module
with them, named after the library that its type comes from: `_numpy` for arrays and memory maps, `_scipy` for CSR
matrices; `_array_api` serves several libraries. A module `_dask` would serve dask arrays without a change elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array, Rows, row_slices
from .._util.devices import LIBRARIES, library_of
from ._lazy import in_memory, is_lazy, read_blocks

APPLY_BYTES = 16 * 2**20  # of rows at a time, where a model is applied to them


class Storage(Protocol):
    """What a module for one kind of rows (n, D) offers."""

    def column_sums(self, rows: Rows, weights: Array | None = None) -> Array:
        """Sum of each column in float64, shape (D,); rows count `weights` (n,) times."""

    def non_finite(self, rows: Rows) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Which columns hold NaN, and which infinity, shape (D,) each."""

    def scatter(self, rows: Rows, mean: Array, weights: Array | None = None) -> Array:
        """sum_i w_i (x_i - mean)(x_i - mean)', shape (D, D), in float64."""

    def weighted(self, rows: Rows, weights: Array) -> Callable[[int], tuple[Array, Array]]:
        """From k to mean (D,) and scatter (D, D) of the rows with weights[:, k]; what all k share is done at once."""

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
        library = library_of(parent)
        name = f"{__name__}._{'array_api' if library in LIBRARIES else library}"
        if find_spec(name):
            module: Any = import_module(name)
            return module  # type: ignore[no-any-return]
    return None


def is_storage(table: Any) -> bool:
    """Whether a table is of a kind that is used as it is; others are converted to arrays first."""
    kind: Any = type(table)
    return _module(kind) is not None


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
