"""Tables in HDF5 files: datasets, and CSR matrices as AnnData stores them."""

from __future__ import annotations

from typing import Any

from .._util.optional import require
from ..exceptions import TableFileError
from ._csr import StoredCsr, is_csr


def open_path(path: str) -> Any:
    """The only table of a file."""
    h5py = require("h5py", extra="files")
    try:
        file = h5py.File(path, "r")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise TableFileError(f"{path!r} cannot be read as HDF5: {error}. It may be damaged or incomplete.") from error
    found = [name for name in file if source(file[name]) is not None]
    if len(found) != 1:
        raise TableFileError(
            f"{path!r} has {len(found)} tables at its top level, not one: pass the dataset itself, "
            f"h5py.File({path!r})['name']."
        )
    return source(file[found[0]])


def source(table: Any) -> Any:
    """A dataset of two dimensions as it is, a group with a CSR matrix; None for others."""
    if hasattr(table, "keys"):
        return StoredCsr(table, str(table.name)) if is_csr(table) else None
    return table if len(getattr(table, "shape", ())) == 2 else None
