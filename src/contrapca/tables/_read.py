"""Reading a file in the format that its extension names."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TextIO

import numpy as np

from .._util.arrays import is_sparse
from .._util.text import default_names, listed, plural
from ..exceptions import TableFileError
from ._data import DataTable, without_empty
from ._formats import read_h5ad, read_mtx, read_npy, read_npz, read_parquet, sheet_text
from ._layout import is_empty
from ._numerals import Numerals
from ._text import split_rows, text_table
from ._text_file import UTF_8, open_text

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
    transpose: bool = False,
    encoding: str | None = None,
    missing: Sequence[str] = (),
    percent: bool = False,
    thousands: bool = False,
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
    transpose : bool, default False
        Whether samples are columns in the file.
    encoding : str, optional
        Of a text table; UTF-8 by default.
    missing : sequence of str
        Words or numbers that mean a missing value, besides empty cells, NA and the like.
    percent, thousands : bool, default False
        Whether 12% is the number 0.12, and 1,234 the number 1234, in text tables and sheets.

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
    name, numerals = path.name.lower(), Numerals(percent=percent, thousands=thousands, missing=tuple(missing))
    if sheet is not None and not name.endswith(EXCEL):
        raise TableFileError(f"{str(path)!r} has no sheet {sheet!r}: only Excel files ({EXCEL}) have sheets.")
    if not name.endswith(ANNDATA) and (layer is not None or mask not in (None, "none")):
        option = "--layer" if layer is not None else "--mask"
        raise TableFileError(
            f"{option}: {str(path)!r} has neither layers nor masks: only AnnData files ({ANNDATA}) do."
        )
    is_text = name.endswith((*TEXT, ".zip"))
    if encoding is not None and not is_text:
        raise TableFileError(f"{str(path)!r} is not a text file: --encoding is for {', '.join(TEXT)} files.")
    if is_text or name.endswith(EXCEL):
        open_: Callable[[], TextIO] = partial(open_text, path, UTF_8 if encoding is None else _known(encoding))
        if not is_text:
            open_ = partial(io.StringIO, sheet_text(path, sheet))
        read = _turned_text if transpose else text_table
        table = read(str(path), open_, header=header, separator=None if is_text else ",", numerals=numerals)
    elif name.endswith(ANNDATA):
        table = read_h5ad(path, layer=layer, mask=mask)
        table = _transposed(table) if transpose else table
    else:
        reader = next((reader for extension, reader in OTHERS.items() if name.endswith(extension)), None)
        if reader is None:
            old = "save it as .xlsx" if name.endswith(".xls") else f"use one of {', '.join(READABLE)}"
            raise TableFileError(f"{str(path)!r} has no supported file extension: {old}.")
        table = reader(path)
        table = _transposed(table) if transpose else table
    return _without_codes(dataclasses.replace(table, missing=tuple(missing)), numerals) if missing else table


def _known(encoding: str) -> str:
    try:
        "".encode(encoding)
    except LookupError as error:
        raise TableFileError(
            f"There is no encoding {encoding!r}: use a name such as utf-8, utf-16, latin-1 or cp1252."
        ) from error
    return UTF_8 if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding


def _turned_text(
    path: str, open: Callable[[], TextIO], *, header: bool | None, separator: str | None, numerals: Numerals
) -> DataTable:
    """A text table that is turned over before it is read, so that names and labels find their places."""
    rows = [row for row in split_rows(path, open, separator) if not is_empty(row)]
    width = max(map(len, rows))
    if len(rows[0]) == width - 1:  # row names without a name of their own, as R writes them
        rows[0] = ["", *rows[0]]
    uneven = next((k for k, row in enumerate(rows, 1) if len(row) != width), None)
    if uneven is not None:
        raise TableFileError(
            f"Row {uneven} of {path!r} has {len(rows[uneven - 1])} cells; expected {width}: it cannot be transposed."
        )
    names, *columns = zip(*rows, strict=True)
    notes = ["transposed: samples are columns in the file"]
    about = [cells[0] for cells in columns if _describes(cells[1:], numerals)]
    if 0 < len(about) < len(columns):
        columns = [cells for cells in columns if not _describes(cells[1:], numerals)]
        notes.append(f"{plural(len(about), 'column')} of text left out ({listed(about)})")
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([names, *columns])
    turned = partial(io.StringIO, text.getvalue())
    table = text_table(f"{path} (transposed)", turned, header=header, separator=",", numerals=numerals)
    return dataclasses.replace(table, notes=[*notes, *table.notes])


def _describes(cells: Sequence[str], numerals: Numerals) -> bool:
    """Whether a column describes the features, as words about genes do: a sample has numbers."""
    return all(numerals.value(cell) is None for cell in cells) and not all(map(numerals.is_missing, cells))


def _transposed(table: DataTable) -> DataTable:
    """A table of numbers turned over: names of rows become those of columns, and the other way round."""
    names = table.row_names
    if names is None and table.texts:  # the first column of text names the features
        names = next(iter(table.texts.values())).tolist()
    values = table.values.T.tocsr() if is_sparse(table.values) else np.ascontiguousarray(table.values.T)
    return DataTable(
        path=f"{table.path} (transposed)",
        names=default_names(len(table)) if names is None else names,
        values=values,
        named=names is not None,
        row_names=table.names if table.named else None,
        notes=["transposed: samples are columns in the file", *table.notes],
    )


def _without_codes(table: DataTable, numerals: Numerals) -> DataTable:
    """The table with NaN for numbers that mean a missing value."""
    if not numerals.codes or not table.names:
        return table
    if is_sparse(table.values):
        raise TableFileError(f"{table.path!r} is sparse, which has no missing values: leave --missing out.")
    coded = np.isin(table.values, np.array(sorted(numerals.codes)))
    if not coded.any():
        return table
    names, values, empty = without_empty(table.names, np.where(coded, np.nan, table.values))
    return dataclasses.replace(table, names=names, values=values, empty=[*table.empty, *empty])
