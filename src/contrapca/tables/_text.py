"""Tables in text files (CSV, TSV and the like): layout found here, numbers parsed by polars."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, TextIO

import numpy as np

from .._util.arrays import Array
from .._util.optional import require
from .._util.text import default_names, plural
from ..exceptions import TableFileError
from ._data import DataTable, check_distinct, without_empty
from ._layout import (
    COMMENT,
    SAMPLE,
    column_names,
    find_decimal,
    find_header,
    find_separator,
    is_empty,
    lines_above,
)
from ._numerals import COMMA_TO_POINT, NUMBER_WITH_COMMA, PLAIN, Numerals
from ._text_file import TextFile

SEPARATOR_LINE = re.compile(r'"?sep=([\t;|,: ])"?[^\S\n]*\n', re.IGNORECASE)  # understood by spreadsheets
MOSTLY = 0.5  # a column with a larger share of numbers is numeric, and its other cells are mistakes
MAX_SHOWN = 40  # characters of a cell
MAX_STRAY = 10  # cells of a column that are listed


def text_table(
    path: str,
    open: Callable[[], TextIO],
    *,
    header: bool | None,
    separator: str | None,
    numerals: Numerals,
) -> DataTable:
    """Read a text table; its separator and whether it has a header are found unless given.

    A column is numeric if it holds only numbers and missing values, and at least one number. A column without a name
    holds row names, and so does a first column of distinct texts.
    """
    file, sample = _layout(path, open, header, separator, numerals)
    values, numeric, texts, lines, n_empty, n_comments = _read_columns(file, sample)
    columns = file.columns
    if numerals.percent:
        _check_percent(file, numeric)
    mixed = {}
    for j, cells in texts.items():
        places = _stray_cells(file, cells) if columns[j] else []
        if places:
            shown = [f"{cells[i][:MAX_SHOWN]!r} on line {lines[i]}" for i in places[:MAX_STRAY]]
            more = f" and {len(places) - MAX_STRAY} more" if len(places) > MAX_STRAY else ""
            mixed[columns[j]] = ", ".join(shown) + more
    row_names = None
    if 0 in texts and columns[0] not in mixed and (not columns[0] or len(set(texts[0])) == len(lines)):
        row_names = texts[0]
    notes = [] if file.has_header else ["no header"]
    if file.above and (skipped := [line.strip() for line in file.above if not SEPARATOR_LINE.match(line)]):
        first = next(filter(None, skipped), "").strip(f'"{file.separator} ')[:MAX_SHOWN]
        notes.append(f"{plural(len(skipped), 'line')} above the table skipped ({first!r})")
    if file.numerals.decimal == ",":
        notes.append("numbers with decimal commas")
    if n_empty:
        notes.append(f"{plural(n_empty, 'empty row')} left out")
    if n_comments:
        notes.append(f"{plural(n_comments, 'line')} that begin{'s' * (n_comments == 1)} with # skipped")
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
        missing=numerals.missing,
    )


def write_filled(
    table: DataTable, file: IO[bytes], names: Sequence[str], filled: Array, beside: tuple[str, list[int]] | None = None
) -> None:
    """Write a text table again with missing cells of some columns filled in; all other cells stay as they were.

    Comments in or below the table are left out.

    Parameters
    ----------
    table : DataTable
        Read from text.
    file : binary file
    names : sequence of str
        Columns to fill.
    filled : ndarray of shape (n, len(names))
        NaN where a cell stays as it is.
    beside : tuple of str and list of n numbers, optional
        A further column, the last one; left out where the table has no header, or has a column of that name.
    """
    source = table.source
    assert source is not None
    place = {source.columns.index(name): k for k, name in enumerate(names)}
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    text.write("".join(source.above))
    writer = csv.writer(text, delimiter=source.separator, lineterminator="\n")
    nothing = [np.nan] * len(names)
    values = iter([nothing, *filled.tolist()] if source.has_header else filled.tolist())
    further: Iterator[Any] = iter(())
    if beside is not None and source.has_header and beside[0] not in source.columns:
        further = iter([beside[0], *beside[1]])
    for _, row in source.rows():
        fill = nothing if is_empty(row) else next(values)
        for j, k in place.items():
            if fill[k] == fill[k] and source.numerals.is_missing(row[j]):
                row[j] = f"{fill[k]:.8g}".replace(".", source.numerals.decimal)
        writer.writerow(row if is_empty(row) else [*row, *itertools.islice(further, 1)])
    text.flush()
    text.detach()  # the file is the caller's to close


def split_rows(path: str, open: Callable[[], TextIO], separator: str | None) -> list[list[str]]:
    """All rows of a text table as cells, header included; lines above the table are left out."""
    file, _ = _layout(path, open, False, separator, PLAIN)
    return [row for _, row in file.rows()]


def _layout(
    path: str, open: Callable[[], TextIO], header: bool | None, separator: str | None, numerals: Numerals
) -> tuple[TextFile, list[list[str]]]:
    """The file with its separator and columns, and its first rows."""
    file = TextFile(path, open)
    first = [line for _, line in itertools.islice(file.lines(), 2 * SAMPLE)]
    declared = SEPARATOR_LINE.match(first[0]) if first else None
    start = bool(declared)
    file = dataclasses.replace(file, above=tuple(first[: start + lines_above(first[start:])]))
    lines = itertools.dropwhile(lambda line: not line.strip(' \t;|,"\n').strip(), (line for _, line in file.lines()))
    sample = list(itertools.islice(lines, 2 * SAMPLE))
    every, rest = sample[:SAMPLE], [line for line in sample[1:] if not line.startswith(COMMENT)]
    sample = [*sample[:1], *(rest or sample[1:])][:SAMPLE]  # without comments, unless names of rows begin with #
    if not sample:
        raise TableFileError(f"{path!r} is empty: a table needs a header and rows of values.")
    if separator is None:
        known = declared[1] if declared and declared[1] in sample[0] else None
        separator = known or find_separator(sample) or find_separator(every)  # a quoted name may have a line with #
    if separator is None:
        raise TableFileError(
            f"{path!r} has only one column: separate the columns by commas, tabs, semicolons, | or spaces."
        )
    file = dataclasses.replace(file, separator=separator)
    rows = list(itertools.islice((row for _, row in file.rows() if not is_empty(row)), SAMPLE))
    rows = [row for row in rows if not row[0].startswith(COMMENT) or len(row) - len(rows[0]) in (0, 1)]
    numerals = dataclasses.replace(numerals, decimal=find_decimal(rows, separator, thousands=numerals.thousands))
    if header is None:
        header = find_header(path, rows, numerals)
    if header and len(rows) == 1:
        raise TableFileError(f"{path!r} has a header but no rows.")
    columns = column_names(rows) if header else default_names(len(rows[0]))
    if header and rows[0][0].startswith(COMMENT) and columns[0].startswith(COMMENT):  # a header that begins with #
        columns[0] = columns[0].removeprefix(COMMENT).strip()
    check_distinct(path, [column for column in columns if column])
    values = [row for row in rows[header:] if not row[0].startswith(COMMENT) or len(row) == len(columns)]
    return dataclasses.replace(file, has_header=header, columns=columns, numerals=numerals), values


def _read_columns(
    file: TextFile, sample: list[list[str]]
) -> tuple[Array, list[int], dict[int, list[str]], list[int], int, int]:
    """Numeric columns as one array, their places, other columns by place, lines of rows, and what was left out.

    What the sample shows to be text is read as text at once; where numbers end later, the file is read again.
    """
    texts: dict[int, list[str]] = {
        j: []
        for j, (name, *cells) in enumerate(zip(file.columns, *sample, strict=False))  # uneven rows are refused below
        if not name or _numbers(cells, file.numerals) is None
    }
    numeric = [j for j in range(len(file.columns)) if j not in texts]
    late: dict[int, list[str]] = {}
    parts, lines, n_empty, n_comments = [], [], 0, 0
    for block_lines, block, block_empty, block_comments in file.blocks():
        lines += block_lines
        n_empty += block_empty
        n_comments += block_comments
        if numeric:
            parts.append(_parse_numbers(file, block, numeric, late))
        _add_texts(file, block, texts)
    values = np.empty((len(lines), len(numeric)))
    if parts:
        np.concatenate(parts, out=values)
    del parts
    if late:
        for _, block, *_ in file.blocks():
            _add_texts(file, block, late)
        values = values[:, [k for k, j in enumerate(numeric) if j not in late]]
        numeric = [j for j in numeric if j not in late]
    return values, numeric, dict(sorted((texts | late).items())), lines, n_empty, n_comments


def _parse_numbers(file: TextFile, block: str, columns: list[int], late: dict[int, list[str]]) -> Array:
    """Columns as numbers, NaN where missing; columns that hold something else are added to `late`."""
    frame = _parse(file, block.translate(COMMA_TO_POINT) if file.numerals.decimal == "," else block, columns, "Float64")
    values: Array = frame.to_numpy(writable=True)
    unread = {j: k for k, j in enumerate(columns) if j not in late and frame[str(j)].null_count()}
    again = _parse(file, block, list(unread), "String")
    for j, k in unread.items():
        rows = frame[str(j)].is_null()
        found = _numbers(again[str(j)].filter(rows).fill_null("").to_list(), file.numerals)
        if found is None:
            late[j] = []
        else:
            values[rows.to_numpy(), k] = found
    return values


def _check_percent(file: TextFile, columns: list[int]) -> None:
    """Refuse a column of numbers with and without percent signs, which would differ a hundredfold; 0 is 0%."""
    signed: dict[int, str] = {}
    bare: dict[int, str] = {}
    for _, block, *_ in file.blocks():
        frame = _parse(file, block, columns, "String")
        for j in columns:
            for cell in filter(None, map(str.strip, frame[str(j)].drop_nulls().unique(maintain_order=True))):
                if cell.endswith("%"):
                    signed.setdefault(j, cell)
                elif not file.numerals.is_missing(cell) and file.numerals.value(cell) != 0:
                    bare.setdefault(j, cell)
                if j in signed and j in bare:
                    raise TableFileError(
                        f"Column {file.columns[j]!r} of {file.path!r} has numbers with and without percent signs, such "
                        f"as {signed[j]!r} and {bare[j]!r}: --percent divides only the former by 100. Write all alike."
                    )


def _numbers(cells: Sequence[str], numerals: Numerals) -> list[float] | None:
    """Cells as numbers, NaN where missing; None if there is text."""
    known: dict[str, float] = {}  # a few words, again and again
    for cell in cells:
        if cell not in known:
            value = math.nan if numerals.is_missing(cell) else numerals.value(cell)
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


def _stray_cells(file: TextFile, cells: list[str]) -> list[int]:
    """The rows of cells that are not numbers in a column of numbers; none for a column of text."""
    numerals = file.numerals
    present = [(i, cell) for i, cell in enumerate(cells) if not numerals.is_missing(cell)]
    stray = [(i, cell) for i, cell in present if numerals.value(cell) is None]
    with_comma = [cell for _, cell in stray if NUMBER_WITH_COMMA.fullmatch(cell)]
    if with_comma and len(present) - len(stray) + len(with_comma) > MOSTLY * len(present):
        raise TableFileError(
            f"{file.path!r} has decimal commas or thousands separators, such as {with_comma[0]!r}: write 1.5 instead "
            "of 1,5; if 1,234 means 1234, add --thousands."
        )
    return [i for i, _ in stray] if len(present) - len(stray) > MOSTLY * len(present) else []
