"""Tables in zarr stores: arrays, and CSR matrices as AnnData stores them."""

from __future__ import annotations

from typing import Any

from .._util.optional import require
from ..exceptions import TableFileError
from ._csr import StoredCsr, is_csr


def open_path(path: str) -> Any:
    """The table of a store."""
    zarr = require("zarr", extra="files")
    try:
        found = source(zarr.open(path, mode="r"))
    except FileNotFoundError:
        raise
    except Exception as error:  # damaged metadata make it raise nearly anything
        raise TableFileError(f"{path!r} cannot be read as zarr: {error}. It may be damaged or incomplete.") from error
    if found is None:
        raise TableFileError(
            f"{path!r} is a group of arrays, not a table: pass one of them, zarr.open({path!r})['name']."
        )
    return found


def source(table: Any) -> Any:
    """An array of two dimensions as it is, a group with a CSR matrix; None for others."""
    if hasattr(table, "group_keys"):
        return StoredCsr(table, str(table.name)) if is_csr(table) else None
    return table if len(getattr(table, "shape", ())) == 2 else None
