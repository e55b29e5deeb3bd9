"""Rows that are read when they are needed: dask arrays, and datasets of HDF5 and zarr files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._util.arrays import Rows, is_sparse, row_slices

LIBRARIES = ("anndata", "dask", "h5py", "zarr")  # anndata has types for sparse datasets
READ_BYTES = 64 * 2**20  # of rows of a file at a time; dask arrays are read by their own chunks


def is_lazy(table: Any) -> bool:
    """Whether the rows of a table are somewhere else than in memory."""
    in_memory = isinstance(table, np.ndarray) or is_sparse(table)
    return not in_memory and type(table).__module__.partition(".")[0] in LIBRARIES


def in_memory(table: Any) -> Rows:
    """A table as a plain array or CSR matrix, without a copy where it is one; subclasses are left behind."""
    return sp.csr_array(table) if is_sparse(table) else np.asarray(table)


def read_blocks(table: Any) -> Iterator[Rows]:
    """Yield all rows of a lazy table (n, D) in consecutive blocks, each read once; sparse blocks stay sparse."""
    if hasattr(table, "dask"):
        if table.numblocks[1] > 1:
            raise ValueError(
                f"The features of this dask array are in {table.numblocks[1]} chunks, but rows must be whole: use "
                "X.rechunk((X.chunks[0], -1))."
            )
        for k in range(table.numblocks[0]):
            yield in_memory(table.blocks[k].compute())
    elif getattr(table, "format", "") == "csc":  # rows of it cannot be read by themselves
        yield in_memory(table.to_memory())
    else:
        n, D = table.shape
        for part in row_slices(n, max(1, READ_BYTES // (8 * D))):
            yield in_memory(table[part])
