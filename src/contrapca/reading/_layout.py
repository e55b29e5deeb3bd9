"""How a text table is written: its numbers and missing values, lines above it, its separator, decimal sign, header."""

from __future__ import annotations

import contextlib
import csv
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

from .._util.text import Option
from ..exceptions import TableFileError

MISSING = {"", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none", ".", "?"}  # in any case
NUMBER_WITH_COMMA = re.compile(r"[-+]?\d*,\d+(?:[eE][-+]?\d+)?")
MAYBE_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}")  # 1,234 may be 1.234 or 1234
MAYBE_POINTS = re.compile(r"[-+]?[1-9]\d{0,2}\.\d{3}")
SURELY_POINTS = re.compile(r"[-+]?\d{1,3}(?:(?:\.\d{3}){2,}|\.\d{3},\d+)")  # separate thousands in 1.234.567, 1.234,5
BLANKS = "\u00a0\u202f' "  # separate thousands, whatever the decimal sign

GROUPED = {
    mark: re.compile(rf"[-+]?\d{{1,3}}(?P<gap>[{re.escape(other)}{BLANKS}])\d{{3}}(?:(?P=gap)\d{{3}})*(?:[{mark}]\d+)?")
    for mark, other in ((".", ","), (",", "."))
}

# With decimal commas, a point separates thousands: an underscore makes the cell text.
COMMA_TO_POINT = bytes.maketrans(b",.", b"._")
Decimal = Literal[".", ","]
SAMPLE = 20  # lines, and then rows, that show the layout
SEPARATORS = ("\t", ";", "|", ",", " ")  # the first that fits
WHOLE_NUMBER = re.compile(r"\s*[-+]?\d+\s*")
COMMENT = "#"
COMMENTS_ABOVE = (COMMENT, "//", "%")  # above a table; % may also begin a name
MOST_TITLES = 10  # lines above a table
LEAST_CELLS = 3  # a lone text above at least this many cells is a title
LEAST_SCALE = 5  # numbers in order; fewer may be so by chance
YEARS = (1800, 2199)
Kind = Literal["missing", "number", "text"]


@dataclass(frozen=True)
class Numerals:
    """How a file writes numbers and missing values."""

    decimal: Decimal = "."
    percent: bool = False  # whether 12% is the number 0.12; otherwise it is text
    # Whether 1,234 (1.234 with decimal commas), 1 234 and 1'234 are the number 1234; otherwise they are text.
    thousands: bool = False
    # Words and numbers that mean a missing value, besides the empty cell, NA and the like.
    missing: tuple[str, ...] = ()

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset({*MISSING, *(word.strip().lower() for word in self.missing)})

    @cached_property
    def codes(self) -> frozenset[float]:
        """Numbers that mean a missing value."""
        return frozenset(value for word in self.missing if (value := self.value(word)) is not None)

    def is_missing(self, cell: str) -> bool:
        """Whether a cell means that the value is missing."""
        if cell.strip().lower() in self._words:
            return True
        return bool(self.codes) and self.value(cell) in self.codes

    def value(self, cell: str) -> float | None:
        """The number in a cell; None if it is not a number."""
        cell, divisor = cell.strip(), 1.0
        if self.percent and cell.endswith("%"):
            cell, divisor = cell[:-1].rstrip(), 100.0
        if self.thousands and (match := GROUPED[self.decimal].fullmatch(cell)):
            cell = cell.replace(match["gap"], "")
        if self.decimal == ",":
            cell = cell.encode().translate(COMMA_TO_POINT).decode()
        try:
            return None if "_" in cell else float(cell) / divisor  # Python would read 3_1 as 31
        except ValueError:
            return None


PLAIN = Numerals()


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
        if count and count < len(lines) and _heads(lines[count - 1], lines[count:]):
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


def _heads(line: str, lines: list[str]) -> bool:
    """Whether a line that begins as comments do names the cells of the lines below, as "%fat" may without a #.

    It does not if the line below it has words above numbers, or years above others, and so has the names.
    """
    separator = find_separator([line, lines[0]])
    if separator is None:
        return False
    top, *rows = (row for row in cells_of([line, *lines], separator, strict=False) if not is_empty(row))
    if not rows or len(rows[0]) < 2 or any(len(row) != len(rows[0]) for row in rows[1:-1]):
        return bool(rows) and 1 < len(rows[0]) == len(top)
    below = rows[1:-1] or rows[1:]  # the sample may end within a quoted cell
    names = all(_kind(cell, PLAIN) != "number" for cell in rows[0]) and _over_numbers(rows[0], below, PLAIN)
    if names or (below and _are_years(rows[0], below)):
        return False
    return len(top) == len(rows[0]) or (not line.startswith(COMMENT) and 1 < len(top) == len(rows[0]) - 1)


def find_separator(sample: list[str]) -> str | None:
    """The first that gives all rows one number of cells (the header may be one short), else the most frequent."""
    for separator in SEPARATORS:
        with contextlib.suppress(csv.Error):  # reported later, with its line
            rows = [row for row in cells_of(sample, separator, strict=False) if not is_empty(row)]
            if len(sample) == SAMPLE and len(rows) > 2:
                rows.pop()  # the sample may end within a quoted cell
            first, *others = map(len, rows) if rows else [0]
            if first > 1 and set(others or [first]) in ({first}, {first + 1}):
                return separator
    best = max(SEPARATORS[:-1], key=sample[0].count)
    return best if best in sample[0] else None


def find_decimal(rows: list[list[str]], separator: str, *, thousands: bool) -> Decimal:
    """A comma if it separates neither cells nor thousands and no number has a point, else a point.

    With thousands separators, also a comma if points are these, or if nothing else can be.
    """
    if separator not in "\t;|":
        return "."
    cells = [cell.strip() for row in rows for cell in row]
    if thousands and any(map(SURELY_POINTS.fullmatch, cells)):
        return ","
    with_point = [cell for cell in cells if "." in cell and PLAIN.value(cell) is not None]
    if thousands and with_point and not any("," in cell for cell in cells):
        return "," if all(map(MAYBE_POINTS.fullmatch, with_point)) else "."  # nothing else can separate thousands
    if with_point:
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
    if below and all(len(row) == len(top) + 1 for row in below) and any(row[-1] for row in below):
        return True
    kinds = [_kind(cell, numerals) for cell in top]
    if below and not top[0].strip() and "missing" not in kinds[1:]:  # above names or a count, as pandas writes an index
        first = [row[0] for row in below]
        counts = [int(cell) if WHOLE_NUMBER.fullmatch(cell) else None for cell in first]
        start = counts[0] or 0
        if all(_kind(cell, numerals) == "text" for cell in first) or counts == [*range(start, start + len(first))]:
            return True
    numbers = [cell for cell, kind in zip(top, kinds, strict=True) if kind == "number"]
    if _over_numbers(top, below, numerals) or ("text" in kinds and all(map(WHOLE_NUMBER.fullmatch, numbers))):
        return True
    values, *others = ([value for cell in row if (value := numerals.value(cell)) is not None] for row in rows)
    is_scale = len(values) >= LEAST_SCALE and not any(map(_in_order, others))
    if others and len(values) > 1 and _in_order(values) and (is_scale or _are_years(top, below)):
        raise TableFileError(
            f"It is unclear whether the first line of {path!r} contains names: its numbers are in order, from "
            f"{numbers[0].strip()} to {numbers[-1].strip()}, and those below are not. Add ",
            Option("header", True),
            " if they are names or ",
            Option("header", False),
            " if they are values.",
        )
    return False


def _over_numbers(top: list[str], below: list[list[str]], numerals: Numerals) -> bool:
    """Whether there is text above numbers in any column."""
    return any(
        _kind(name, numerals) == "text"
        and {_kind(cell, numerals) for cell in cells} in ({"number"}, {"number", "missing"})
        for name, *cells in zip(top, *below, strict=False)  # uneven rows are refused later
    )


def column_names(rows: list[list[str]]) -> list[str]:
    """Column names from the header and the first rows."""
    names = [cell.strip() for cell in rows[0]]
    if any(len(row) != len(names) + 1 for row in rows[1:]):
        return names
    if names[-1] and all(not row[-1] for row in rows[1:]):
        return [*names, ""]  # a separator at the end of each line but the header
    return ["", *names]  # row names without a name of their own, as R writes them


def _kind(cell: str, numerals: Numerals) -> Kind:
    """What a cell contains; words such as inf may be a number or a name, and count as missing."""
    value = numerals.value(cell)
    if numerals.is_missing(cell) or (value is not None and not math.isfinite(value)):
        return "missing"
    return "text" if value is None else "number"


def _are_years(top: list[str], below: list[list[str]]) -> bool:
    """Whether the numbers of the first row are years, and those below are not."""
    first, others = (
        {value for row in rows for cell in row if (value := PLAIN.value(cell)) is not None} for rows in ([top], below)
    )
    years = {value for value in first | others if value.is_integer() and YEARS[0] <= value <= YEARS[1]}
    return bool(first) and first <= years and not others & years


def _in_order(values: list[float]) -> bool:
    """Whether numbers are sorted, up or down."""
    pairs = list(pairwise(values))
    return all(a < b for a, b in pairs) or all(a > b for a, b in pairs)
