"""Tables in text files (CSV, TSV and the like): cells as they are written, and the numbers in them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ._array import Array
from .exceptions import TableFileError
from .io import atomic_write

SEPARATORS = (",", "\t", ";", "|")
MISSING = {"", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none", ".", "?"}  # in any case
DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")


@dataclass(frozen=True)
class TextTable:
    """A table of cells as text.

    Attributes
    ----------
    path : str
    separator : str
    header : list of str
        Names of the columns; column0, ... where the file has none.
    has_header : bool
    cells : list of list of str
        One list for each row, all of the length of the header.
    """

    path: str
    separator: str
    header: list[str]
    has_header: bool
    cells: list[list[str]]

    def numeric(self) -> list[str]:
        """Names of the columns that hold numbers and missing values only, and at least one number.

        A column without a name is taken for an index, as tools write it in front of the others.
        """
        return [name for j, name in enumerate(self.header) if name and self._is_numeric(j)]

    def empty(self) -> list[str]:
        """Names of the columns without any value."""
        return [name for j, name in enumerate(self.header) if all(_is_missing(row[j]) for row in self.cells)]

    def _is_numeric(self, j: int) -> bool:
        values = [row[j] for row in self.cells if not _is_missing(row[j])]
        return bool(values) and all(_number(value) is not None for value in values)

    def values(self, names: Sequence[str]) -> Array:
        """The named columns as numbers, NaN where missing, shape (n, len(names))."""
        columns = [self.header.index(name) for name in names]
        return np.array(
            [[np.nan if _is_missing(row[j]) else float(row[j]) for j in columns] for row in self.cells], dtype=float
        ).reshape(len(self.cells), len(columns))

    def write_filled(self, path: str | Path, names: Sequence[str], filled: Array) -> None:
        """Write the table with the missing cells of the named columns filled in; all others stay as they were."""
        columns = {self.header.index(name): k for k, name in enumerate(names)}
        text = io.StringIO()
        writer = csv.writer(text, delimiter=self.separator, lineterminator="\n")
        if self.has_header:
            writer.writerow(self.header)
        for i, row in enumerate(self.cells):
            writer.writerow(
                [
                    f"{filled[i, columns[j]]:.8g}" if j in columns and _is_missing(cell) else cell
                    for j, cell in enumerate(row)
                ]
            )
        with atomic_write(path) as file:
            file.write(text.getvalue().encode())


def read_text_table(path: str | Path, *, header: bool | None = None) -> TextTable:
    """Read a text file; its separator is found from its first line, and whether that is a header, unless told."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise TableFileError(f"{str(path)!r} is not a text file in UTF-8. Save it as CSV in UTF-8 first.") from error
    first = text.partition("\n")[0]
    separator = max(SEPARATORS, key=first.count)
    reader = csv.reader(io.StringIO(text), delimiter=separator)
    try:
        numbered = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise TableFileError(f"Line {reader.line_num} of {str(path)!r} cannot be read: {error}.") from error
    rows = [row for _, row in numbered]
    if len(rows) < 2:
        raise TableFileError(f"{str(path)!r} has {len(rows)} rows: a header and rows of values are needed.")
    if separator != "," and any(DECIMAL_COMMA.fullmatch(cell) for row in rows[1:] for cell in row):
        raise TableFileError(f"{str(path)!r} has decimal commas. Write numbers with a point: 1.5, not 1,5.")
    has_header = header
    if has_header is None:
        has_header = any(_number(cell) is None and not _is_missing(cell) for cell in rows[0])
    names = [cell.strip() for cell in rows[0]] if has_header else [f"column{j}" for j in range(len(rows[0]))]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise TableFileError(f"{str(path)!r} has more than one column named {', '.join(map(repr, repeated[:3]))}.")
    for number, row in numbered:
        if len(row) != len(names):
            raise TableFileError(f"Line {number} of {str(path)!r} has {len(row)} cells where {len(names)} belong.")
    return TextTable(str(path), separator, names, has_header, rows[1:] if has_header else rows)


def _is_missing(cell: str) -> bool:
    return cell.strip().lower() in MISSING


def _number(cell: str) -> float | None:
    try:
        return None if "_" in cell else float(cell)  # Python would read 3_1 as 31
    except ValueError:
        return None
