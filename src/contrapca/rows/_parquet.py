"""Tables in Parquet files."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._util.optional import require
from ..exceptions import TableFileError


class ParquetFile:
    """A Parquet file of numbers; slices of rows are arrays, NaN where values are missing."""

    def __init__(self, path: str):
        polars = require("polars", extra="tables")
        self.name, self.frame = path, polars.scan_parquet(path)
        try:
            schema = self.frame.collect_schema()
            n_rows = int(self.frame.select(polars.len()).collect().item())
        except FileNotFoundError:
            raise
        except Exception as error:
            raise TableFileError(
                f"{path!r} cannot be read as Parquet: {error}. It may be damaged or incomplete."
            ) from error
        text = [name for name, kind in schema.items() if not (kind.is_numeric() or kind == polars.Boolean)]
        if text:
            raise TableFileError(f"{path!r} has columns that are not numbers, the first is {text[0]!r}: drop them.")
        self.columns, self.shape = list(schema), (n_rows, len(schema))
        single = all(kind == polars.Float32 for kind in schema.values())
        self.dtype = np.dtype(np.float32 if single else np.float64)

    def __getitem__(self, rows: slice) -> Any:
        frame = self.frame.slice(rows.start, rows.stop - rows.start).collect()
        return frame.to_numpy().astype(self.dtype, copy=False)


def open_path(path: str) -> ParquetFile:
    """The table of a file."""
    return ParquetFile(path)
