"""Matrices of an AnnData that are read when they are needed: dask arrays, and datasets of HDF5 and zarr files."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import Rows, in_memory, is_sparse
from .._util.devices import library_of
from ._blocked import Blocked, FileRows

LIBRARIES = ("anndata", "dask", "h5py", "zarr")  # anndata has types for sparse datasets, and for views
READ_BYTES = 64 * 2**20  # of rows of a file at a time, in float64; dask arrays are read by their own chunks

Mask = npt.NDArray[np.bool_]


def is_lazy(table: Any) -> bool:
    """Whether the rows of a table are somewhere else than in memory."""
    return not isinstance(table, np.ndarray) and not is_sparse(table) and library_of(type(table)) in LIBRARIES


def masked_columns(table: Any, mask: Mask | None = None) -> Rows:
    """Some columns of a table (None: all) as a plain array or CSR matrix, without a copy where possible."""
    if getattr(table, "format", "") == "csc" and not is_sparse(table):  # in a file, where rows cannot be read
        table = table.to_memory()
    rows = in_memory(table)
    return rows if mask is None else rows[:, mask]


def lazy_rows(table: Any, mask: Mask | None = None) -> Blocked:
    """Some columns of a lazy table (None: all) as rows that are read block by block; sparse blocks stay sparse."""
    if hasattr(table, "dask"):
        from ._dask import DaskRows

        return DaskRows(table if mask is None else table[:, np.flatnonzero(mask)])
    return FileRows([_Columns(table, mask)], READ_BYTES)


class _Columns:
    """Some columns of a dataset: slices of rows are arrays or CSR matrices."""

    def __init__(self, table: Any, mask: Mask | None):
        self.table, self.mask = table, mask
        self.shape = table.shape[0], table.shape[1] if mask is None else int(mask.sum())
        self.dtype, self.sparse = table.dtype, hasattr(table, "format")
        self.chunks = None if self.sparse else getattr(table, "chunks", None)

    def __getitem__(self, rows: slice) -> Rows:
        return masked_columns(self.table[rows], self.mask)
