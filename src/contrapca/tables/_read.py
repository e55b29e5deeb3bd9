"""Reading a file in the format that its name says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..exceptions import TableFileError
from ._data import DataTable
from ._formats import read_h5ad, read_mtx, read_npy, read_npz, read_parquet
from ._text import read_text_table

TEXT = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
OTHERS: dict[str, Callable[[Path], DataTable]] = {
    ".parquet": read_parquet,
    ".npy": read_npy,
    ".npz": read_npz,
    ".mtx": read_mtx,
    ".mtx.gz": read_mtx,
    ".h5ad": read_h5ad,
}
READABLE = (*TEXT, *OTHERS)


def read_table(path: str | Path, *, header: bool | None = None) -> DataTable:
    """Read a table; the ending of its name tells the format.

    Parameters
    ----------
    path : str or Path
        Of a text table (.csv, .tsv, .txt; also with .gz), or .parquet, .npy, .npz, .mtx, .mtx.gz, .h5ad.
    header : bool, optional
        Whether the first line of a text table holds names; found from its cells unless told.

    Returns
    -------
    DataTable

    Raises
    ------
    TableFileError
        If the file does not hold a table.
    """
    path = Path(path)
    if not path.exists():
        raise TableFileError(f"There is no file {str(path)!r}.")
    if path.is_dir():
        raise TableFileError(f"{str(path)!r} is a folder: name a file in it.")
    name = path.name.lower()
    if name.endswith(TEXT):
        return read_text_table(path, header=header)
    for ending, reader in OTHERS.items():
        if name.endswith(ending):
            return reader(path)
    raise TableFileError(f"{str(path)!r} has no ending that tells its format: use one of {', '.join(READABLE)}.")
