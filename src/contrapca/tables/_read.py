"""Reading a file in the format that its extension names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from ..exceptions import TableFileError
from ._data import DataTable
from ._formats import read_excel, read_h5ad, read_mtx, read_npy, read_npz, read_parquet
from ._text import text_table
from ._text_file import open_text

TEXT = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
EXCEL, ANNDATA = ".xlsx", ".h5ad"
OTHERS: dict[str, Callable[[Path], DataTable]] = {
    ".parquet": read_parquet,
    ".npy": read_npy,
    ".npz": read_npz,
    ".mtx": read_mtx,
    ".mtx.gz": read_mtx,
}
READABLE = (*TEXT, ".zip", EXCEL, *OTHERS, ANNDATA)


def read_table(
    path: str | Path,
    *,
    header: bool | None = None,
    sheet: str | None = None,
    layer: str | None = None,
    mask: str | None = None,
) -> DataTable:
    """Read a table; the file extension gives the format.

    Parameters
    ----------
    path : str or Path
        A text table (.csv, .tsv, .txt; also with .gz, or alone in a .zip), .xlsx, .parquet, .npy, .npz, .mtx, .mtx.gz
        or .h5ad.
    header : bool, optional
        Whether the first line of a text table or a sheet contains column names; detected by default.
    sheet : str, optional
        Name of the sheet of an Excel file; the first by default.
    layer : str, optional
        Layer of an AnnData file; X by default.
    mask : str, optional
        Column of `var` of an AnnData file that says which genes to read; "none" means all. By default
        "highly_variable" if there is such a column.

    Returns
    -------
    DataTable

    Raises
    ------
    TableFileError
        If the file does not contain a usable table.
    """
    path = Path(path)
    if not path.exists():
        raise TableFileError(f"There is no file {str(path)!r}.")
    if path.is_dir():
        raise TableFileError(f"{str(path)!r} is a folder: name a file in it.")
    name = path.name.lower()
    if name.endswith(EXCEL):
        return read_excel(path, header=header, sheet=sheet)
    if sheet is not None:
        raise TableFileError(f"{str(path)!r} has no sheet {sheet!r}: only Excel files ({EXCEL}) have sheets.")
    if name.endswith(ANNDATA):
        return read_h5ad(path, layer=layer, mask=mask)
    if layer is not None or mask not in (None, "none"):
        option = "--layer" if layer is not None else "--mask"
        raise TableFileError(
            f"{option}: {str(path)!r} has neither layers nor masks: only AnnData files ({ANNDATA}) do."
        )
    if name.endswith((*TEXT, ".zip")):
        return text_table(str(path), partial(open_text, path), header=header)
    for extension, reader in OTHERS.items():
        if name.endswith(extension):
            return reader(path)
    raise TableFileError(f"{str(path)!r} has no supported file extension: use one of {', '.join(READABLE)}.")
