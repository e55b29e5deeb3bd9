"""The layout of a text table: lines above it, its separator, its decimal sign, and whether it has a header."""

from __future__ import annotations

import contextlib
import csv
import itertools
import math
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Literal

from ..exceptions import TableFileError
from ._numerals import MAYBE_THOUSANDS, NUMBER_WITH_COMMA, PLAIN, SURELY_POINTS, Decimal, Numerals

SAMPLE = 20  # lines, and then rows, that show the layout
SEPARATORS = ("\t", ";", "|", ",", " ")  # the first that fits
WHOLE_NUMBER = re.compile(r"\s*[-+]?\d+\s*")
COMMENT = "#"
COMMENTS_ABOVE = (COMMENT, "//", "%")  # above a table; % may also begin a name
MOST_TITLES = 10  # lines above a table
LEAST_CELLS = 3  # a lone text above so many cells is a title
LEAST_SCALE = 5  # numbers in order; fewer may be so by chance
YEARS = (1800, 2199)

Kind = Literal["missing", "number", "text"]


def cells_of(lines: Iterable[str], separator: str, *, strict: bool) -> Any:
    """A csv reader of lines; several spaces count as one separator."""
    return csv.reader(lines, delimiter=separator, skipinitialspace=separator == " ", strict=strict)


def is_empty(cells: Sequence[str]) -> bool:
    """Whether all cells are blank, as in rows that spreadsheets leave behind."""
    return not any(map(str.strip, cells))


def lines_above(lines: list[str]) -> int:
    """How many of the first lines are comments or titles above the table; 0 if the lines cannot be read.

    A comment begins with #, // or %, unless it is the header: as many cells as the line below. A title is the only
    text of its line, above lines of three cells and more.
    """
    try:
        count = 0
        while count < len(lines) and (lines[count].startswith(COMMENTS_ABOVE) or (count and not lines[count].strip())):
            count += 1
        if count and count < len(lines) and _heads(lines[count - 1], lines[count]):
            return count - 1
        for i in range(count, min(count + MOST_TITLES, len(lines))):
            separator = find_separator(lines[i + 1 :]) if any(map(str.strip, lines[i + 1 :])) else None
            if separator is None:
                break
            cells, *below = (row for row in cells_of(lines[i:], separator, strict=False) if row)
            present = [cell for cell in cells if cell.strip()]
            if len(present) > 1 or not any(len(row) >= LEAST_CELLS for row in below[:1]):
                break
            if present and (count or PLAIN.value(present[0]) is None):
                count = i + 1
        return count
    except csv.Error:  # reported later, with its line
        return 0


def _heads(line: str, below: str) -> bool:
    """Whether a line that begins as comments do names the cells of the line below it, as "%fat" may without a #."""
    separator = find_separator([line, below])
    if separator is None:
        return False
    rows = list(cells_of([line, below], separator, strict=False))
    if len(rows) < 2 or len(rows[1]) < 2:
        return False
    return len(rows[0]) == len(rows[1]) or (not line.startswith(COMMENT) and 1 < len(rows[0]) == len(rows[1]) - 1)


def is_comment(line: str, separator: str, width: int) -> bool:
    """Whether a line in or below a table is a comment: it begins with # and is no row of so many cells."""
    return line.startswith(COMMENT) and len(next(cells_of([line], separator, strict=False))) != width


def find_separator(sample: list[str]) -> str | None:
    """The first that gives all rows one number of cells (the header may be one short), else the most frequent."""
    for separator in SEPARATORS:
        with contextlib.suppress(csv.Error):  # reported later, with its line
            rows = [row for row in cells_of(sample, separator, strict=False) if not is_empty(row)]
            if len(sample) == SAMPLE and len(rows) > 2:
                rows.pop()  # the sample may end within a quoted cell
            first, *others = map(len, rows)
            if first > 1 and set(others or [first]) in ({first}, {first + 1}):
                return separator
    best = max(SEPARATORS[:-1], key=sample[0].count)
    return best if best in sample[0] else None


def find_decimal(rows: list[list[str]], separator: str, *, thousands: bool) -> Decimal:
    """A comma if it separates neither cells nor thousands and no number has a point, else a point.

    With thousands separators, also a comma if points are these.
    """
    if separator not in "\t;|":
        return "."
    cells = [cell.strip() for row in rows for cell in row]
    if thousands and any(map(SURELY_POINTS.fullmatch, cells)):
        return ","
    if any("." in cell and PLAIN.value(cell) is not None for cell in cells):
        return "."
    commas = [cell for cell in cells if "," in cell and NUMBER_WITH_COMMA.fullmatch(cell)]
    return "," if any(not MAYBE_THOUSANDS.fullmatch(cell) for cell in commas) else "."


def find_header(path: str, rows: list[list[str]], numerals: Numerals) -> bool:
    """Whether the first row contains names, by comparison with the rows below.

    It does if there is text above numbers, or row names have no name. Otherwise it does if some of it is text and none
    of its numbers has a fraction, as values do. Sorted numbers above unsorted ones, and years above other numbers, may
    be either.
    """
    top, below = rows[0], rows[1:]
    # Row names have no name, as R writes them; a mere separator at the end of lines does not count.
    one_short = all(len(row) == len(top) + 1 for row in below) and any(row[-1] for row in below)
    if below and (one_short or _is_over_row_names(top, below, numerals)):
        return True
    kinds = [_kind(cell, numerals) for cell in top]
    for kind, *cells in zip(kinds, *below, strict=False):  # uneven rows are refused later
        if kind == "text" and {_kind(cell, numerals) for cell in cells} in ({"number"}, {"number", "missing"}):
            return True
    numbers = [cell for cell, kind in zip(top, kinds, strict=True) if kind == "number"]
    if "text" in kinds and all(map(WHOLE_NUMBER.fullmatch, numbers)):
        return True
    if _is_scale(top, below, numerals):
        raise TableFileError(
            f"It is unclear whether the first line of {path!r} contains names: its numbers are in order, from "
            f"{numbers[0].strip()} to {numbers[-1].strip()}, and those below are not. Add --header if they are names "
            "or --no-header if they are values."
        )
    return False


def column_names(rows: list[list[str]]) -> list[str]:
    """Column names from the header and the first rows."""
    names = [cell.strip() for cell in rows[0]]
    if any(len(row) != len(names) + 1 for row in rows[1:]):
        return names
    if all(not row[-1] for row in rows[1:]):
        return [*names, ""]  # a separator at the end of each line
    return ["", *names]  # row names without a name of their own, as R writes them


def _kind(cell: str, numerals: Numerals) -> Kind:
    """What a cell contains; words such as inf may be a number or a name, and count as missing."""
    value = numerals.value(cell)
    if numerals.is_missing(cell) or (value is not None and not math.isfinite(value)):
        return "missing"
    return "text" if value is None else "number"


def _is_over_row_names(top: list[str], below: list[list[str]], numerals: Numerals) -> bool:
    """Whether only the first cell is empty, above names or a count of the rows, as pandas writes an index."""
    if top[0].strip() or any(_kind(cell, numerals) == "missing" for cell in top[1:]):
        return False
    first = [row[0] for row in below]
    if all(_kind(cell, numerals) == "text" for cell in first):
        return True
    counts = [int(cell) if WHOLE_NUMBER.fullmatch(cell) else None for cell in first]
    return counts == list(range(counts[0] or 0, (counts[0] or 0) + len(counts)))


def _is_scale(top: list[str], below: list[list[str]], numerals: Numerals) -> bool:
    """Whether the first row may name the columns by numbers: in order, as others are not, or years above others."""
    values, *others = ([value for cell in row if (value := numerals.value(cell)) is not None] for row in [top, *below])
    if not (len(values) > 1 and others and _in_order(values)):
        return False
    if all(map(_is_year, values)) and not any(map(_is_year, itertools.chain(*others))):
        return True
    return len(values) >= LEAST_SCALE and not any(map(_in_order, others))


def _is_year(value: float) -> bool:
    return value.is_integer() and YEARS[0] <= value <= YEARS[1]


def _in_order(values: list[float]) -> bool:
    """Whether numbers are sorted, up or down."""
    pairs = list(pairwise(values))
    return all(a < b for a, b in pairs) or all(a > b for a, b in pairs)
