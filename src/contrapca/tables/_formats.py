"""Tables in binary and sparse formats: NumPy, Matrix Market, Parquet, AnnData. Never pickle."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.io
import scipy.sparse as sp

from .._util.archive import HEADER
from .._util.arrays import Rows, is_sparse
from .._util.optional import require
from .._util.text import default_names, listed
from ..exceptions import MissingExtraError, TableFileError
from ._data import DataTable
from ._text import read_text

SPARSE_MEMBERS = {"data", "format", "shape"}  # of what scipy.sparse.save_npz writes


@contextlib.contextmanager
def _readable(path: Path, kind: str) -> Iterator[None]:
    """Damaged files make other libraries raise nearly anything: say which file it is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what these libraries have to say about each other
            yield
    except (TableFileError, FileNotFoundError, IsADirectoryError, PermissionError, MissingExtraError, MemoryError):
        raise
    except Exception as error:
        if path.stat().st_size == 0:
            raise TableFileError(f"{str(path)!r} is empty: it has 0 bytes.") from error
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        if "pickle" in reason:  # NumPy would advise to unpickle it
            reason = "it does not hold plain numbers or text"
        raise TableFileError(
            f"{str(path)!r} is not a readable {kind} file ({reason}): it may be damaged, incomplete or of another kind."
        ) from error


def read_npy(path: Path) -> DataTable:
    """One 2-D array of numbers."""
    with _readable(path, "NumPy"), path.open("rb") as file:
        array = np.load(file, allow_pickle=False)
    return _unnamed(path, _numeric(path, array, "it holds"))


def read_npz(path: Path) -> DataTable:
    """A sparse matrix of `scipy.sparse.save_npz`, or an archive with one 2-D array of numbers.

    1-D arrays with one entry for each row become columns of text.
    """
    with _readable(path, "NumPy"), path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        if set(archive.files) >= SPARSE_MEMBERS:
            return _unnamed(path, _numeric(path, sp.load_npz(path), "it holds"))
        if HEADER in archive.files:
            raise TableFileError(f"{str(path)!r} is a model, a path or draws that contrapca saved, and not a table.")
        arrays = {name: archive[name] for name in archive.files}
    tables = [name for name, array in arrays.items() if array.ndim == 2]
    if len(tables) != 1:
        raise TableFileError(
            f"{str(path)!r} holds {len(tables)} arrays with rows and columns where 1 belongs (its arrays: "
            f"{listed(list(arrays)) or 'none'}): save the one to be used by itself."
        )
    values = _numeric(path, arrays[tables[0]], f"{tables[0]!r} holds")
    texts = {
        name: array.astype(np.str_)
        for name, array in arrays.items()
        if array.ndim == 1 and array.size == values.shape[0] and array.dtype.kind in "biuU"
    }
    return _unnamed(path, values, texts=texts)


def read_mtx(path: Path) -> DataTable:
    """A Matrix Market file; where names of genes and cells lie beside it, genes x cells is turned round."""
    with _readable(path, "Matrix Market"):
        values = _numeric(path, scipy.io.mmread(path), "it holds")
    genes, barcodes = _beside(path, ("features", "genes")), _beside(path, ("barcodes",))
    rows, columns = values.shape
    expected = (genes and len(genes), barcodes and len(barcodes))
    notes = []
    if all(length in (None, size) for length, size in zip(expected, (rows, columns), strict=True)) and genes:
        values = values.T.tocsr() if is_sparse(values) else values.T
        notes = ["genes x cells in the file, turned round: rows are samples"]
    elif not all(length in (None, size) for length, size in zip(expected, (columns, rows), strict=True)):
        found = [
            f"{len(names)} {what}" for what, names in (("genes", genes), ("barcodes", barcodes)) if names is not None
        ]
        raise TableFileError(
            f"{str(path)!r} has {rows} rows and {columns} columns, which does not fit the {' and '.join(found)} in the "
            "files beside it."
        )
    names = _gene_names(genes) if genes else default_names(values.shape[1])
    return DataTable(
        str(path),
        names,
        values,
        named=genes is not None,
        row_names=[row[0] for row in barcodes] if barcodes else None,
        notes=notes,
    )


def _beside(path: Path, kinds: tuple[str, ...]) -> list[list[str]] | None:
    """Cells of features.tsv (older: genes.tsv) or barcodes.tsv, with the matrix's prefix; None if there is none."""
    prefix, found, _ = path.name.partition("matrix.mtx")
    for kind in kinds:
        for ending in (".tsv", ".tsv.gz"):
            file = path.with_name(f"{prefix if found else ''}{kind}{ending}")
            if file.is_file():
                return _name_lines(file)
    return None


def _name_lines(file: Path) -> list[list[str]]:
    return [line.split("\t") for line in read_text(file).splitlines() if line.strip()]


def _gene_names(genes: list[list[str]]) -> list[str]:
    """Symbols (the second column), with the identifier where a symbol occurs more than once."""
    symbols = [row[1] if len(row) > 1 else row[0] for row in genes]
    seen: dict[str, int] = {}
    for symbol in symbols:
        seen[symbol] = seen.get(symbol, 0) + 1
    return [f"{symbol} ({row[0]})" if seen[symbol] > 1 else symbol for symbol, row in zip(symbols, genes, strict=True)]


def read_parquet(path: Path) -> DataTable:
    """Columns of a Parquet file; the index that pandas stores with them becomes row names."""
    parquet = require("pyarrow.parquet", extra="parquet")
    types = require("pyarrow.types", extra="parquet")
    with _readable(path, "Parquet"):
        table = parquet.read_table(path)
        stored = table.schema.pandas_metadata or {}
        index = [name for name in stored.get("index_columns", []) if isinstance(name, str)]
        kinds = (types.is_integer, types.is_floating, types.is_decimal)
        numbers, texts = {}, {}
        for name in table.column_names:
            column = table.column(name)
            if name not in index and any(is_numeric(column.type) for is_numeric in kinds):
                numbers[name] = column.cast("float64").to_numpy()
            else:
                texts[name] = _as_text(column.to_pylist())  # to_numpy() would give missing categories the last one
    features = {name: column for name, column in numbers.items() if not np.isnan(column).all()}
    return DataTable(
        str(path),
        list(features),
        np.column_stack(list(features.values())) if features else np.empty((table.num_rows, 0)),
        texts={name: column for name, column in texts.items() if name not in index},
        row_names=texts[index[0]].tolist() if len(index) == 1 else None,
        empty=[name for name in numbers if name not in features],
    )


def read_h5ad(path: Path) -> DataTable:
    """The matrix X of an AnnData file; columns of `obs` become text."""
    anndata = require("anndata", extra="anndata")
    with _readable(path, "h5ad"):
        data = anndata.read_h5ad(path)
        if data.X is None:
            raise TableFileError(f"{str(path)!r} has no matrix X: store the values to be analysed there.")
        values = _numeric(path, data.X, "X holds")
        obs = data.obs.astype(object).where(data.obs.notna(), None)  # also pandas' NA, which is equal to nothing
        texts = {str(name): _as_text(obs[name]) for name in obs.columns}
        row_names, names = [str(name) for name in data.obs_names], [str(name) for name in data.var_names]
    return DataTable(str(path), names, values, texts=texts, row_names=row_names)


def _as_text(values: Iterable[Any]) -> npt.NDArray[Any]:
    """Values as text, empty where missing (None, NaN, NaT)."""
    return np.array(["" if value is None or value != value else str(value) for value in values], dtype=np.str_)


def _unnamed(path: Path, values: Rows, **parts: Any) -> DataTable:
    return DataTable(str(path), default_names(values.shape[1]), values, named=False, **parts)


def _numeric(path: Path, values: Any, what: str) -> Rows:
    """A 2-D table of floats, sparse ones as CSR; float32 stays."""
    if values.dtype.kind not in "biuf":
        raise TableFileError(f"{str(path)!r} cannot be used: {what} values of type {values.dtype} instead of numbers.")
    if values.ndim != 2:
        raise TableFileError(
            f"{str(path)!r} cannot be used: {what} an array of shape {values.shape} instead of rows and columns."
        )
    kind = np.float32 if values.dtype == np.float32 else np.float64
    return sp.csr_array(values, dtype=kind) if is_sparse(values) else np.asarray(values, dtype=kind)
