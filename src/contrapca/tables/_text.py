"""Tables in text files (CSV, TSV and the like), also compressed by gzip."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import numpy as np

from .._util.arrays import Array
from ..exceptions import TableFileError
from ._data import DataTable, check_distinct
from ._layout import (
    NUMBER_WITH_COMMA,
    Decimal,
    column_names,
    find_decimal,
    find_header,
    find_separator,
    is_empty,
    is_missing,
    number,
    with_point,
)
from ._text_file import TextFile

SEPARATOR_LINE = re.compile(r'"?sep=([\t;|,: ])"?[^\S\n]*\n', re.IGNORECASE)  # as spreadsheets know it
SAMPLE_ROWS = 20  # that tell the separator and the shape of the header
CELLS_AT_ONCE, LEAST_ROWS_AT_ONCE = 50_000, 100  # few enough for the processor's cache
MOSTLY = 0.5  # a column with a larger share of numbers is one of numbers, spoilt by the others


def read_text_table(path: str | Path, *, header: bool | None = None) -> DataTable:
    """Read a text file; its separator is found, and whether its first line is a header, unless told.

    A column is numeric if it holds numbers and missing values only and at least one number. A column without a name
    is taken for row names, as tools write them in front of the others; so is a first column of distinct texts.
    """
    file = open_text_file(path, header=header)
    numbers, texts, lines, n_empty = _read_columns(file)
    columns = file.columns
    features = {columns[j]: values for j, values in numbers.items() if not np.isnan(values).all()}
    mixed = {}
    for j, cells in texts.items():
        place = _stray_cell(file, cells) if columns[j] else None
        if place is not None:
            mixed[columns[j]] = f"{cells[place]!r} in line {lines[place]}"
    row_names = None
    if 0 in texts and columns[0] not in mixed and (not columns[0] or len(set(texts[0])) == len(lines)):
        row_names = texts[0]
    notes = [] if file.has_header else ["no header"]
    if file.decimal == ",":
        notes.append("numbers with decimal commas")
    if n_empty:
        notes.append(f"{n_empty} empty row{'s' * (n_empty > 1)} left out")
    return DataTable(
        path=file.path,
        names=list(features),
        values=np.column_stack(list(features.values())) if features else np.empty((len(lines), 0)),
        named=file.has_header,
        texts={columns[j]: np.array(cells) for j, cells in texts.items() if columns[j]},
        row_names=row_names,
        mixed=mixed,
        empty=[columns[j] for j, values in numbers.items() if np.isnan(values).all()],
        notes=notes,
        source=file,
    )


def write_filled(table: DataTable, file: IO[bytes], names: Sequence[str], filled: Array) -> None:
    """Write the table's text again, missing cells of the named columns filled in; all other cells as they were.

    Parameters
    ----------
    table : DataTable that was read from text
    file : binary file
    names : of the columns that are filled
    filled : ndarray of shape (n, len(names))
        NaN where a cell stays as it is.
    """
    source = table.source
    assert source is not None
    place = {source.columns.index(name): k for k, name in enumerate(names)}
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    text.write(source.separator_line)
    writer = csv.writer(text, delimiter=source.separator, lineterminator="\n")
    nothing = [np.nan] * len(names)
    values = iter([nothing, *filled.tolist()] if source.has_header else filled.tolist())
    for _, row in source.lines():
        fill = nothing if is_empty(row) else next(values)
        for j, k in place.items():
            if fill[k] == fill[k] and is_missing(row[j]):
                row[j] = f"{fill[k]:.8g}".replace(".", source.decimal)
        writer.writerow(row)
    text.flush()
    text.detach()  # the file is the caller's to close


def open_text_file(path: str | Path, *, header: bool | None = None) -> TextFile:
    """The text of a file, its separator and its columns."""
    name, text = str(path), read_text(Path(path))
    declared = SEPARATOR_LINE.match(text)
    separator_line = declared[0] if declared else ""
    text = text[len(separator_line) :]
    filled = (line for line in io.StringIO(text) if line.strip(' \t;|,"\n'))
    sample = list(itertools.islice(filled, SAMPLE_ROWS))
    if not sample:
        raise TableFileError(f"{name!r} is empty: a header and rows of values are needed.")
    separator = declared[1] if declared and declared[1] in sample[0] else find_separator(sample)
    if separator is None:
        raise TableFileError(
            f"{name!r} has one column only, as far as commas, tabs, semicolons, | and spaces tell: separate the "
            "columns by one of them."
        )
    file = TextFile(name, text, separator, False, [], separator_line=separator_line)
    rows = list(itertools.islice((row for _, row in file.lines() if not is_empty(row)), SAMPLE_ROWS))
    decimal = find_decimal(rows, separator)
    if header is None:
        header = find_header(name, rows, decimal)
    if header and len(rows) == 1:
        raise TableFileError(f"{name!r} has a header but no rows.")
    columns = column_names(rows) if header else [f"x{j}" for j in range(len(rows[0]))]
    check_distinct(name, [column for column in columns if column])
    return TextFile(name, text, separator, header, columns, decimal, separator_line)


def read_text(path: Path) -> str:
    """The text of a file, also of one compressed by gzip."""
    compressed = path.suffix.lower() == ".gz"
    try:
        with gzip.open(path, "rt", encoding="utf-8-sig") if compressed else path.open(encoding="utf-8-sig") as file:
            text = file.read()
    except UnicodeDecodeError as error:
        raise TableFileError(f"{str(path)!r} is not text in UTF-8: save it as CSV in UTF-8 first.") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise TableFileError(f"{str(path)!r} is not a complete gzip file: compress it again.") from error
    if "\0" in text:
        raise TableFileError(f"{str(path)!r} is not a text file: save it as CSV in UTF-8 first.")
    return text


def _read_columns(file: TextFile) -> tuple[dict[int, Array], dict[int, list[str]], list[int], int]:
    """Numeric columns, other columns (stripped), the line of each row, and how many rows are empty and left out.

    Cells are turned into numbers block by block. Where a later block shows that a column is no numeric one, the text is
    gone through once more for its cells.
    """
    as_text = {j for j, name in enumerate(file.columns) if not name}
    underscores = "_" in file.text or file.decimal == ","  # Python would read 3_1 as 31
    rows_at_once = max(LEAST_ROWS_AT_ONCE, CELLS_AT_ONCE // len(file.columns))
    while True:
        numbers: dict[int, list[Array]] = {j: [] for j in range(len(file.columns)) if j not in as_text}
        texts: dict[int, list[str]] = {j: [] for j in sorted(as_text)}
        lines: list[int] = []
        n_empty = 0
        rows = file.rows()
        while block := list(itertools.islice(rows, rows_at_once)):
            values_of = [row for _, row in block if row]
            n_empty += len(block) - len(values_of)
            for j, cells in enumerate(zip(*values_of, strict=True)):
                if j in texts:
                    texts[j].extend(cell.strip() for cell in cells)
                elif j in numbers:
                    values = _numbers(cells, file.decimal, underscores)
                    if values is not None:
                        numbers[j].append(values)
                        continue
                    del numbers[j]
                    as_text.add(j)
                    if not lines:
                        texts[j] = [cell.strip() for cell in cells]
            lines.extend(line for line, row in block if row)
        if as_text == set(texts):
            columns = {j: np.concatenate(parts) for j, parts in numbers.items()}
            return columns, dict(sorted(texts.items())), lines, n_empty


def _numbers(cells: Sequence[str], decimal: Decimal, underscores: bool) -> Array | None:
    """Cells as numbers, NaN where missing; None where one is neither."""
    if decimal == ",":
        cells = [with_point(cell, decimal) for cell in cells]
    if underscores and any("_" in cell for cell in cells):
        return None
    try:
        return np.array(list(map(float, cells)))
    except ValueError:  # something is missing, or text
        pass
    try:
        return np.array([np.nan if is_missing(cell) else float(cell) for cell in cells])
    except ValueError:
        return None


def _stray_cell(file: TextFile, cells: list[str]) -> int | None:
    """The row of the first cell that is no number in a column of numbers; None in a column of text."""
    present = [(i, cell) for i, cell in enumerate(cells) if not is_missing(cell)]
    stray = [(i, cell) for i, cell in present if number(cell, file.decimal) is None]
    with_comma = [cell for _, cell in stray if NUMBER_WITH_COMMA.fullmatch(cell)]
    if with_comma and len(present) - len(stray) + len(with_comma) > MOSTLY * len(present):
        raise TableFileError(
            f"{file.path!r} has decimal commas, or commas between thousands, such as {with_comma[0]!r}: write 1.5 and "
            "not 1,5, and 1234 and not 1,234."
        )
    return stray[0][0] if len(present) - len(stray) > MOSTLY * len(present) else None
