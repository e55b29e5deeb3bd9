"""Tables in text files (CSV, TSV and the like): layout found here, numbers parsed by polars."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import math
import re
from collections.abc import Callable, Sequence
from typing import IO, Any, TextIO

import numpy as np

from .._util.arrays import Array
from .._util.optional import require
from .._util.text import plural
from ..exceptions import TableFileError
from ._data import DataTable, check_distinct, without_empty
from ._layout import (
    COMMA_TO_POINT,
    NUMBER_WITH_COMMA,
    SAMPLE,
    Decimal,
    column_names,
    find_decimal,
    find_header,
    find_separator,
    is_empty,
    is_missing,
    number,
)
from ._text_file import TextFile

SEPARATOR_LINE = re.compile(r'"?sep=([\t;|,: ])"?[^\S\n]*\n', re.IGNORECASE)  # understood by spreadsheets
MOSTLY = 0.5  # a column with a larger share of numbers is numeric, and its other cells are mistakes
MAX_SHOWN = 40  # characters of a cell


def text_table(
    path: str, open: Callable[[], TextIO], *, header: bool | None = None, separator: str | None = None
) -> DataTable:
    """Read a text table; its separator and whether it has a header are found unless given.

    A column is numeric if it holds only numbers and missing values, and at least one number. A column without a name
    holds row names, and so does a first column of distinct texts.
    """
    file, sample = _layout(path, open, header, separator)
    values, numeric, texts, lines, n_empty = _read_columns(file, sample)
    columns = file.columns
    mixed = {}
    for j, cells in texts.items():
        place = _stray_cell(file, cells) if columns[j] else None
        if place is not None:
            mixed[columns[j]] = f"{cells[place][:MAX_SHOWN]!r} on line {lines[place]}"
    row_names = None
    if 0 in texts and columns[0] not in mixed and (not columns[0] or len(set(texts[0])) == len(lines)):
        row_names = texts[0]
    notes = [] if file.has_header else ["no header"]
    if file.decimal == ",":
        notes.append("numbers with decimal commas")
    if n_empty:
        notes.append(f"{plural(n_empty, 'empty row')} left out")
    names, values, empty = without_empty([columns[j] for j in numeric], values)
    return DataTable(
        path=path,
        names=names,
        values=values,
        named=file.has_header,
        texts={columns[j]: np.array(cells) for j, cells in texts.items() if columns[j]},
        row_names=row_names,
        mixed=mixed,
        empty=empty,
        notes=notes,
        source=file,
    )


def write_filled(table: DataTable, file: IO[bytes], names: Sequence[str], filled: Array) -> None:
    """Write a text table again with missing cells of some columns filled in; all other cells stay as they were.

    Parameters
    ----------
    table : DataTable
        Read from text.
    file : binary file
    names : sequence of str
        Columns to fill.
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
    for _, row in source.rows():
        fill = nothing if is_empty(row) else next(values)
        for j, k in place.items():
            if fill[k] == fill[k] and is_missing(row[j]):
                row[j] = f"{fill[k]:.8g}".replace(".", source.decimal)
        writer.writerow(row)
    text.flush()
    text.detach()  # the file is the caller's to close


def _layout(
    path: str, open: Callable[[], TextIO], header: bool | None, separator: str | None
) -> tuple[TextFile, list[list[str]]]:
    """The file with its separator and columns, and its first rows."""
    file = TextFile(path, open)
    first = next((line for _, line in file.lines()), "")
    declared = SEPARATOR_LINE.match(first)
    file = dataclasses.replace(file, separator_line=declared[0] if declared else "")
    lines = itertools.dropwhile(lambda line: not line.strip(' \t;|,"\n').strip(), (line for _, line in file.lines()))
    sample = list(itertools.islice(lines, SAMPLE))
    if not sample:
        raise TableFileError(f"{path!r} is empty: a table needs a header and rows of values.")
    if separator is None:
        separator = declared[1] if declared and declared[1] in sample[0] else find_separator(sample)
    if separator is None:
        raise TableFileError(
            f"{path!r} has only one column: separate the columns by commas, tabs, semicolons, | or spaces."
        )
    file = dataclasses.replace(file, separator=separator)
    rows = list(itertools.islice((row for _, row in file.rows() if not is_empty(row)), SAMPLE))
    decimal = find_decimal(rows, separator)
    if header is None:
        header = find_header(path, rows, decimal)
    if header and len(rows) == 1:
        raise TableFileError(f"{path!r} has a header but no rows.")
    columns = column_names(rows) if header else [f"x{j}" for j in range(len(rows[0]))]
    check_distinct(path, [column for column in columns if column])
    return dataclasses.replace(file, has_header=header, columns=columns, decimal=decimal), rows[header:]


def _read_columns(
    file: TextFile, sample: list[list[str]]
) -> tuple[Array, list[int], dict[int, list[str]], list[int], int]:
    """Numeric columns as one array, their places, other columns by place, the line of each row, and the empty rows.

    What the sample shows to be text is read as text at once; where numbers end later, the file is read again.
    """
    texts: dict[int, list[str]] = {
        j: []
        for j, (name, *cells) in enumerate(zip(file.columns, *sample, strict=False))  # uneven rows are refused below
        if not name or _numbers(cells, file.decimal) is None
    }
    numeric = [j for j in range(len(file.columns)) if j not in texts]
    late: dict[int, list[str]] = {}
    parts, lines, n_empty = [], [], 0
    for block_lines, block, block_empty in file.blocks():
        lines += block_lines
        n_empty += block_empty
        if numeric:
            parts.append(_parse_numbers(file, block, numeric, late))
        _add_texts(file, block, texts)
    values = np.empty((len(lines), len(numeric)))
    if parts:
        np.concatenate(parts, out=values)
    del parts
    if late:
        for _, block, _ in file.blocks():
            _add_texts(file, block, late)
        values = values[:, [k for k, j in enumerate(numeric) if j not in late]]
        numeric = [j for j in numeric if j not in late]
    return values, numeric, dict(sorted((texts | late).items())), lines, n_empty


def _parse_numbers(file: TextFile, block: str, columns: list[int], late: dict[int, list[str]]) -> Array:
    """Columns as numbers, NaN where missing; columns that hold something else are added to `late`."""
    frame = _parse(file, block.translate(COMMA_TO_POINT) if file.decimal == "," else block, columns, "Float64")
    values: Array = frame.to_numpy(writable=True)
    unread = {j: k for k, j in enumerate(columns) if j not in late and frame[str(j)].null_count()}
    again = _parse(file, block, list(unread), "String")
    for j, k in unread.items():
        rows = frame[str(j)].is_null()
        found = _numbers(again[str(j)].filter(rows).fill_null("").to_list(), file.decimal)
        if found is None:
            late[j] = []
        else:
            values[rows.to_numpy(), k] = found
    return values


def _numbers(cells: Sequence[str], decimal: Decimal) -> list[float] | None:
    """Cells as numbers, NaN where missing; None if there is text."""
    known: dict[str, float] = {}  # a few words, again and again
    for cell in cells:
        if cell not in known:
            value = math.nan if is_missing(cell) else number(cell, decimal)
            if value is None:
                return None
            known[cell] = value
    return [known[cell] for cell in cells]


def _add_texts(file: TextFile, block: str, texts: dict[int, list[str]]) -> None:
    frame = _parse(file, block, sorted(texts), "String")
    for j, cells in texts.items():
        cells += [cell.strip() for cell in frame[str(j)].fill_null("").to_list()]


def _parse(file: TextFile, block: str, columns: list[int], kind: str) -> Any:
    """Some columns of a block as a polars data frame; null where a cell is empty, or not a number."""
    polars = require("polars", extra="tables")
    schema = {str(j): getattr(polars, kind) for j in range(len(file.columns))}
    if not (block and columns):
        return polars.DataFrame(schema={str(j): schema[str(j)] for j in columns})
    return polars.read_csv(
        block.encode(), has_header=False, separator=file.separator, schema=schema, columns=columns, ignore_errors=True
    )


def _stray_cell(file: TextFile, cells: list[str]) -> int | None:
    """The row of the first cell that is not a number in a column of numbers; None for a column of text."""
    present = [(i, cell) for i, cell in enumerate(cells) if not is_missing(cell)]
    stray = [(i, cell) for i, cell in present if number(cell, file.decimal) is None]
    with_comma = [cell for _, cell in stray if NUMBER_WITH_COMMA.fullmatch(cell)]
    if with_comma and len(present) - len(stray) + len(with_comma) > MOSTLY * len(present):
        raise TableFileError(
            f"{file.path!r} has decimal commas or thousands separators, such as {with_comma[0]!r}: write 1.5 instead "
            "of 1,5, and 1234 instead of 1,234."
        )
    return stray[0][0] if stray and len(present) - len(stray) > MOSTLY * len(present) else None
