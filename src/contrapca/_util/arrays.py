"""Arrays: their types, numerical noise, slices of rows, memory; and those of other libraries, on a GPU or elsewhere.

Rows of such a library stay where they are. Only results of size D x k and numbers leave the device, all through
`host`; NumPy's own arrays pass through every function here unchanged.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .optional import require

Array = npt.NDArray[np.floating[Any]]
Rows = Any  # a 2-D table that a module of `rows` knows, such as an ndarray or a CSR matrix; rows are samples
EPS = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)


is_sparse: Callable[[Rows], bool] = sp.issparse  # whether rows are a SciPy sparse array or matrix


def canonical(rows: Rows) -> Rows:
    """The rows with duplicate entries of a sparse matrix added up; SciPy allows duplicates."""
    if is_sparse(rows) and not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def filled_mask(table: Any) -> Array:
    """A masked array as an array of floats, NaN where it is masked."""
    kind = np.promote_types(table.dtype, np.float32)
    return np.where(np.ma.getmaskarray(table), kind.type(np.nan), table.data.astype(kind))


def in_memory(table: Any) -> Rows:
    """A table, or a block of one, as a plain array or CSR matrix, without a copy where possible."""
    if isinstance(table, np.ma.MaskedArray):
        return filled_mask(table)
    rows = table.tocsr() if hasattr(table, "tocsr") else np.asarray(table)
    return canonical(sp.csr_array(rows)) if is_sparse(rows) else rows


def row_slices(n_rows: int, block: int) -> Iterator[slice]:
    """Yield consecutive slices of at most `block` rows that cover `n_rows` rows."""
    for start in range(0, n_rows, block):
        yield slice(start, min(start + block, n_rows))


def spread_out(count: int, most: int | None) -> npt.NDArray[np.intp]:
    """Numbers of at most this many of so many rows, evenly spread; of all of them if `most` is None."""
    return np.unique(np.linspace(0, count - 1, count if most is None else min(count, most)).astype(np.intp))


def available_memory() -> float:
    """Bytes of memory to be had without swapping; where only the size of the memory is known, that; else infinity."""
    meminfo = Path("/proc/meminfo")
    if meminfo.exists() and (found := re.search(r"^MemAvailable:\s+(\d+) kB", meminfo.read_text(), re.M)):
        return float(found[1]) * 1024
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return np.inf


# Those of the array API that array_api_compat knows; to add one, see to `host`, too. The last is for tests: it refuses
# what the standard does not have.
LIBRARIES = ("torch", "cupy", "array_api_strict")


def library_of(kind: Any) -> str:
    """The name of the library that a type comes from."""
    return str(kind.__module__).partition(".")[0]


def on_device(table: Any) -> bool:
    """Whether a table is an array of one of these libraries; they need not be imported for the answer."""
    kind: Any = type(table)
    return _is_of_libraries(kind)


@lru_cache
def _is_of_libraries(kind: Any) -> bool:
    return any(library_of(parent) in LIBRARIES for parent in kind.__mro__)


def namespace(array: Any) -> Any:
    """The array API functions for an array: numpy, or what array_api_compat makes of its library."""
    if not on_device(array):
        return np
    return require("array_api_compat", extra="array-api").array_namespace(array)


def place_of(array: Any) -> str:
    """Where an array is, in words."""
    if not on_device(array):
        return "in NumPy"
    return f"in {library_of(type(array))} on the device {array.device}"


def host(array: Any) -> npt.NDArray[Any]:
    """A result as a NumPy array. Never rows: a copy from a GPU takes longer than computing with them there."""
    if not on_device(array):
        return np.asarray(array)
    if hasattr(array, "cpu"):  # torch
        return np.asarray(array.detach().cpu())
    if hasattr(array, "get"):  # cupy
        return np.asarray(array.get())
    return np.asarray(array.to_device(namespace(array).Device("CPU_DEVICE")))


def put(values: Any, like: Any, dtype: str = "float64") -> Any:
    """A NumPy array where `like` is, in the float type `dtype`; unchanged for NumPy."""
    if not on_device(like):
        return values
    xp = namespace(like)
    values = np.require(values, requirements=["C", "W"])  # torch warns if it is read-only
    if min(values.strides, default=0) < 0:  # which torch does not know, and an axis of length 1 may still have
        values = values.copy()
    return xp.asarray(values, dtype=getattr(xp, dtype), device=like.device)


def float_type(array: Any) -> str:
    """ "float32" or "float64", by the same names for all libraries."""
    return str(array.dtype).rpartition(".")[2]


def cast(values: Any, like: Any) -> Any:
    """An array in the float type of `like`, a copy only if need be."""
    if not on_device(values):
        return values.astype(like.dtype, copy=False)
    return namespace(values).astype(values, like.dtype, copy=False)


def chosen(rows: Rows, mask: npt.NDArray[np.bool_]) -> Rows:
    """The rows for which the mask, a NumPy array (n,), is True."""
    return rows[put(mask, rows, "bool")]


def stacked(parts: Sequence[Any]) -> Any:
    """Blocks of results, one below the other."""
    return np.concatenate(parts) if not on_device(parts[0]) else namespace(parts[0]).concat(parts, axis=0)


def outer(row: Array, like: Any) -> Any:
    """row row', shape (D, D), where the matrix `like` is."""
    if not on_device(like):
        return np.outer(row, row)
    placed = put(row, like)
    return placed[:, None] * placed[None, :]
