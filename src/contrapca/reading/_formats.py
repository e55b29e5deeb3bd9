"""Reading a file in the format that its extension names: text, Excel, NumPy, Matrix Market, Parquet, AnnData."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import io
import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt
import scipy.io
import scipy.sparse as sp

from .._files import HEADER
from .._util.arrays import Rows, is_sparse
from .._util.optional import require
from .._util.text import Option, default_names, did_you_mean, listed, plural
from ..exceptions import MissingExtraError, TableFileError
from ._layout import Numerals
from ._table import DataTable, take_columns, without_empty
from ._text import UTF_8, open_text, text_errors, text_table, turned_text_table

TEXT = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
EXCEL, ANNDATA = ".xlsx", ".h5ad"
MTX_TEXT = bytes(range(32, 127)) + b"\t\r\n"  # bytes below the comments of a Matrix Market file
LONGEST_NUMBER = 400  # characters
HIGHLY_VARIABLE = "highly_variable"  # the mask that scanpy makes
SPARSE_MEMBERS = {"data", "format", "shape"}  # of what scipy.sparse.save_npz writes


@contextlib.contextmanager
def _readable(path: Path, kind: str) -> Iterator[None]:
    """Say which file is damaged: the libraries raise nearly anything."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of these libraries about each other
            yield
    except (TableFileError, FileNotFoundError, IsADirectoryError, PermissionError, MissingExtraError, MemoryError):
        raise
    except Exception as error:
        if path.stat().st_size == 0:
            raise TableFileError(f"{str(path)!r} is empty: it has 0 bytes.") from error
        reason = " ".join(str(error).split()).rstrip(".")
        if "pickle" in reason:  # NumPy would advise to unpickle it
            reason = "it does not contain plain numbers or text"
        # Other errors are in the words of a library, about its own parts.
        why = f" ({reason})" if isinstance(error, ValueError) and reason else ""
        raise TableFileError(
            f"{str(path)!r} is not a readable {kind} file{why}: it may be damaged, incomplete or of another kind."
        ) from error


def read_npy(path: Path) -> DataTable:
    """One 2-D array of numbers."""
    with _readable(path, "NumPy"), path.open("rb") as file:
        array = np.load(file, allow_pickle=False)
    return _unnamed(path, _numeric(path, array, "it contains"))


def read_npz(path: Path) -> DataTable:
    """A sparse matrix of `scipy.sparse.save_npz`, or an archive with one 2-D array of numbers.

    1-D arrays with one entry for each row become columns of text.
    """
    with _readable(path, "NumPy"), path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        if set(archive.files) >= SPARSE_MEMBERS:
            return _unnamed(path, _numeric(path, sp.load_npz(path), "it contains"))
        if HEADER in archive.files:
            raise TableFileError(f"{str(path)!r} is a model, path or posterior saved by contrapca, not a table.")
        arrays = {name: archive[name] for name in archive.files}
    tables = [name for name, array in arrays.items() if array.ndim == 2]
    if len(tables) != 1:
        raise TableFileError(
            f"{str(path)!r} contains {plural(len(tables), '2-D array')}; expected 1 (its arrays: "
            f"{listed(list(arrays)) or 'none'}): save the one to be used by itself."
        )
    values = _numeric(path, arrays[tables[0]], f"{tables[0]!r} contains")
    texts = {
        name: array.astype(np.str_)
        for name, array in arrays.items()
        if array.ndim == 1 and array.size == values.shape[0] and array.dtype.kind in "biuU"
    }
    return _unnamed(path, values, texts=texts)


def read_mtx(path: Path) -> DataTable:
    """A Matrix Market file; genes x cells is transposed if files with the names of genes and cells are next to it."""
    with _readable(path, "Matrix Market"):
        _check_mtx(path)
        values = _numeric(path, scipy.io.mmread(path), "it contains")
    genes, barcodes = _beside(path, ("features", "genes")), _beside(path, ("barcodes",))
    rows, columns = values.shape
    expected = (genes and len(genes), barcodes and len(barcodes))
    notes = []
    if all(length in (None, size) for length, size in zip(expected, (rows, columns), strict=True)) and genes:
        values = values.T.tocsr() if is_sparse(values) else values.T
        notes = ["genes x cells in the file, transposed: rows are samples"]
    elif not all(length in (None, size) for length, size in zip(expected, (columns, rows), strict=True)):
        found = [
            f"{len(names)} {what}" for what, names in (("genes", genes), ("barcodes", barcodes)) if names is not None
        ]
        raise TableFileError(
            f"{str(path)!r} has {rows} rows and {columns} columns, which does not match the {' and '.join(found)} in "
            "the files next to it."
        )
    names = default_names(values.shape[1])
    if genes:  # symbols (the second column), with the identifier if a symbol occurs more than once
        symbols = [row[1] if len(row) > 1 else row[0] for row in genes]
        repeated = {symbol for symbol, count in Counter(symbols).items() if count > 1}
        pairs = zip(symbols, genes, strict=True)
        names = [f"{symbol} ({row[0]})" if symbol in repeated else symbol for symbol, row in pairs]
    cells = [row[0] for row in barcodes] if barcodes else None
    return DataTable(str(path), names, values, named=genes is not None, row_names=cells, notes=notes)


def _check_mtx(path: Path) -> None:
    """Refuse what would kill SciPy's reader, and the process with it."""
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
        line = b"%"
        while line.startswith(b"%") or line.isspace():  # comments
            line = file.readline()
            if b"\0" in line:
                raise ValueError("it is not text")
        sizes = line.split()
        if not (len(sizes) in (2, 3) and all(map(bytes.isdigit, sizes)) and int(sizes[0]) and int(sizes[1])):
            raise ValueError("it does not begin with the numbers of rows and columns, both above 0")
        length, end = 0, line
        while block := file.read(2**20):
            if block.translate(None, MTX_TEXT):
                raise ValueError("it is not text")
            length, end = length + len(block), (end + block)[-LONGEST_NUMBER:]
        if length < (int(sizes[2]) if len(sizes) == 3 else int(sizes[0]) * int(sizes[1])):
            raise ValueError("it has fewer values than it says")
        float(end.split()[-1])  # it may end in the middle of a number


def _beside(path: Path, kinds: tuple[str, ...]) -> list[list[str]] | None:
    """Cells of features.tsv (formerly genes.tsv) or barcodes.tsv with the prefix of the matrix; None if absent."""
    prefix, found, _ = path.name.partition("matrix.mtx")
    for kind in kinds:
        for ending in (".tsv", ".tsv.gz"):
            file = path.with_name(f"{prefix if found else ''}{kind}{ending}")
            if file.is_file():
                with text_errors(str(file)), open_text(file) as text:
                    return [line.rstrip("\n").split("\t") for line in text if line.strip()]
    return None


def read_parquet(path: Path) -> DataTable:
    """Columns of a Parquet file; the index that pandas stores with them becomes row names."""
    polars = require("polars", extra="tables")
    with _readable(path, "Parquet"):
        frame = polars.read_parquet(path)
        stored = json.loads(polars.read_parquet_metadata(path).get("pandas", "{}"))
        index = [name for name in stored.get("index_columns", []) if name in frame.columns]
        numeric = [name for name in frame.columns if frame[name].dtype.is_numeric() and name not in index]
        values = np.empty((frame.height, len(numeric)))
        if numeric:
            values[:] = frame.select(polars.col(numeric).cast(polars.Float64)).to_numpy()
        texts = {name: _as_text(frame[name].to_list()) for name in frame.columns if name not in numeric}
    names, values, empty = without_empty(numeric, values)
    row_names = texts[index[0]].tolist() if len(index) == 1 else None
    texts = {name: column for name, column in texts.items() if name not in index}
    return DataTable(str(path), names, values, texts=texts, row_names=row_names, empty=empty)


def sheet_text(path: Path, sheet: str | None) -> str:
    """A sheet of an Excel file, the first unless named, as text with commas."""
    fastexcel, polars = require("fastexcel", extra="tables"), require("polars", extra="tables")
    with _readable(path, "Excel"):
        book = fastexcel.read_excel(path)
        if sheet is not None and sheet not in book.sheet_names:
            raise TableFileError(f"{str(path)!r} has no sheet {sheet!r}, only {listed(book.sheet_names)}.")
        cells, numbers = (
            book.load_sheet(sheet or 0, header_row=None, skip_rows=0, dtypes=kind).to_polars()
            for kind in ("string", "float")
        )
        text: str = cells.select(
            # As text, numbers are rounded; a line break in a cell would shift the numbers of the lines.
            polars.when(cells[name].cast(polars.Float64, strict=False) != numbers[name])
            .then(numbers[name].cast(polars.String))
            .otherwise(cells[name].str.replace_all(r"[\r\n]+", " "))
            .alias(name)
            for name in cells.columns
        ).write_csv(include_header=False)
    return text


def read_h5ad(path: Path, *, layer: str | None, mask: str | None) -> DataTable:
    """The matrix X of an AnnData file, or a layer, of all genes or those of a mask; columns of `obs` become text."""
    anndata = require("anndata", extra="anndata")
    with _readable(path, "h5ad"):
        data = anndata.read_h5ad(path)
        if layer is not None and layer not in data.layers:
            have = f"only {listed(list(data.layers))}" if len(data.layers) else "which has none"
            raise TableFileError(f"{layer!r} is not a layer of {str(path)!r}, {have}.", option="layer")
        matrix = data.X if layer is None else data.layers[layer]
        if matrix is None:
            raise TableFileError(f"{str(path)!r} has no matrix X: store the values to be analysed there.")
        values = _numeric(path, matrix, "X contains" if layer is None else f"the layer {layer!r} contains")
        genes, notes = _masked_genes(path, data.var, mask)
        obs = data.obs.astype(object).where(data.obs.notna(), None)  # also pandas' NA, which is equal to nothing
        texts = {str(name): _as_text(obs[name]) for name in obs.columns}
        row_names, names = [str(name) for name in data.obs_names], [str(data.var_names[j]) for j in genes]
    values = take_columns(values, genes)
    return DataTable(str(path), names, values, texts=texts, row_names=row_names, notes=notes, annotated=True)


def _masked_genes(path: Path, var: Any, mask: str | None) -> tuple[list[int], list[str]]:
    """The genes of a mask, and what was decided, in words."""
    if mask is None and HIGHLY_VARIABLE in var.columns:
        mask = HIGHLY_VARIABLE
    if mask is None or (mask == "none" and mask not in var.columns):
        return list(range(len(var))), []
    if mask not in var.columns:
        have = f"only {listed([str(name) for name in var.columns])}" if len(var.columns) else "which has no columns"
        raise TableFileError(f"{mask!r} is not a column of var of {str(path)!r}, {have}.", option="mask")
    flags = var[mask].tolist()
    if not all(isinstance(flag, bool) for flag in flags) or not any(flags):
        what = "is False for all genes" if not any(flags) else "has other values than True and False"
        raise TableFileError(
            f"{mask!r} of {str(path)!r} {what}: name another column, or 'none' for all genes.", option="mask"
        )
    genes = [j for j, flag in enumerate(flags) if flag]
    return genes, [f"features are the {len(genes)} of {len(flags)} genes of the mask {mask!r}"]


def _as_text(values: Iterable[Any]) -> npt.NDArray[Any]:
    """Values as text, empty where missing (None, NaN, NaT)."""
    return np.array(["" if value is None or value != value else str(value) for value in values], dtype=np.str_)


def _unnamed(path: Path, values: Rows, **parts: Any) -> DataTable:
    return DataTable(str(path), default_names(values.shape[1]), values, named=False, **parts)


def _numeric(path: Path, values: Any, what: str) -> Rows:
    """A 2-D table of floats, sparse ones as CSR; float32 stays."""
    if values.dtype.kind not in "biuf":
        raise TableFileError(f"{str(path)!r} cannot be used: {what} values of type {values.dtype}, not numbers.")
    if values.ndim != 2:
        raise TableFileError(
            f"{str(path)!r} cannot be used: {what} an array of shape {values.shape}, not rows and columns."
        )
    kind = np.float32 if values.dtype == np.float32 else np.float64
    return sp.csr_array(values, dtype=kind) if is_sparse(values) else np.asarray(values, dtype=kind)


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
    """Read a table as `read` does; the extension gives the format. Raises TableFileError."""
    path = Path(path)
    if not path.exists():
        beside = sorted(file.name for file in path.parent.iterdir()) if path.parent.is_dir() else []
        raise TableFileError(f"There is no file {str(path)!r}.{did_you_mean(path.name, beside)}")
    if path.is_dir():
        raise TableFileError(f"{str(path)!r} is a folder: name a file in it.")
    name, numerals = path.name.lower(), Numerals(percent=percent, thousands=thousands, missing=tuple(missing))
    if sheet is not None and not name.endswith(EXCEL):
        raise TableFileError(f"{str(path)!r} has no sheet {sheet!r}: only Excel files ({EXCEL}) have sheets.")
    if not name.endswith(ANNDATA) and (layer is not None or mask not in (None, "none")):
        option = "layer" if layer is not None else "mask"
        raise TableFileError(
            f"{str(path)!r} has neither layers nor masks: only AnnData files ({ANNDATA}) do.", option=option
        )
    is_text = name.endswith((*TEXT, ".zip"))
    if encoding is not None and not is_text:
        raise TableFileError(
            f"{str(path)!r} is not a text file: ", Option("encoding"), f" is for {', '.join(TEXT)} files."
        )
    if is_text or name.endswith(EXCEL):
        try:
            "".encode(encoding or UTF_8)
        except LookupError as error:
            raise TableFileError(
                f"There is no encoding {encoding!r}: use a name such as utf-8, utf-16, latin-1 or cp1252."
            ) from error
        if encoding is None or encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
            encoding = UTF_8
        open_: Callable[[], TextIO] = partial(open_text, path, encoding)
        if not is_text:
            open_ = partial(io.StringIO, sheet_text(path, sheet))
        read = turned_text_table if transpose else text_table
        called = str(path) if sheet is None else f"{path} (sheet {sheet})"
        table = read(called, open_, header=header, separator=None if is_text else ",", numerals=numerals)
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
        raise TableFileError(
            f"{table.path!r} is sparse, which has no missing values: leave ", Option("missing"), " out."
        )
    coded = np.isin(table.values, np.array(sorted(numerals.codes)))
    if not coded.any():
        return table
    names, values, empty = without_empty(table.names, np.where(coded, np.nan, table.values))
    return dataclasses.replace(table, names=names, values=values, empty=[*table.empty, *empty])
