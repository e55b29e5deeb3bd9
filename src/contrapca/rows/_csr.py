"""CSR matrices in files: three arrays, of which slices of rows are read."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..exceptions import TableFileError


def is_csr(group: Any) -> bool:
    """Whether a group of HDF5 or zarr holds a CSR matrix in the layout of AnnData."""
    return {"data", "indices", "indptr"} <= set(group.keys()) and group.attrs.get("encoding-type") == "csr_matrix"


class StoredCsr:
    """A CSR matrix in a file; slices of rows are CSR matrices in memory."""

    sparse = True

    def __init__(self, group: Any, name: str):
        self.data, self.indices, self.name = group["data"], group["indices"], name
        self.indptr = np.asarray(group["indptr"][:])
        self.shape: tuple[int, int] = tuple(int(n) for n in group.attrs["shape"])  # type: ignore[assignment]
        self.dtype = self.data.dtype
        if self.indptr.size != self.shape[0] + 1 or self.indptr[-1] != self.data.shape[0]:
            raise TableFileError(f"{name!r} is no CSR matrix: its arrays do not fit its shape {self.shape}.")

    def __getitem__(self, rows: slice) -> Any:
        starts = self.indptr[rows.start : rows.stop + 1]
        inside = slice(int(starts[0]), int(starts[-1]))
        stored = np.asarray(self.data[inside]), np.asarray(self.indices[inside]), starts - starts[0]
        found = sp.csr_array(stored, shape=(rows.stop - rows.start, self.shape[1]))
        found.sum_duplicates()
        return found
