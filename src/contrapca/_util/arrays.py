"""Types of arrays, numerical noise, slices of rows, memory."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

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


def available_memory() -> float:
    """Bytes of memory to be had without swapping; where only the size of the memory is known, that; else infinity."""
    meminfo = Path("/proc/meminfo")
    if meminfo.exists() and (found := re.search(r"^MemAvailable:\s+(\d+) kB", meminfo.read_text(), re.M)):
        return float(found[1]) * 1024
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return np.inf
