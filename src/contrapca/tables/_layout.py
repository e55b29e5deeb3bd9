"""The layout of a text table: its separator, its decimal sign, and whether it has a header."""

from __future__ import annotations

import contextlib
import csv
import math
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Literal

from ..exceptions import TableFileError

SAMPLE = 20  # lines, and then rows, that show the layout
MISSING = {"", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none", ".", "?"}  # in any case
SEPARATORS = ("\t", ";", "|", ",", " ")  # the first that fits
NUMBER_WITH_COMMA = re.compile(r"[-+]?\d*,\d+(?:[eE][-+]?\d+)?")
MAYBE_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}")  # 1,234 may be 1.234 or 1234
WHOLE_NUMBER = re.compile(r"\s*[-+]?\d+\s*")
# With decimal commas, a point separates thousands: an underscore makes the cell text.
COMMA_TO_POINT = str.maketrans(",.", "._")
LEAST_SCALE = 5  # numbers in order; fewer may be so by chance

Decimal = Literal[".", ","]
Kind = Literal["missing", "number", "text"]


def is_missing(cell: str) -> bool:
    """Whether a cell means that the value is missing."""
    return cell.strip().lower() in MISSING


def cells_of(lines: Iterable[str], separator: str, *, strict: bool) -> Any:
    """A csv reader of lines; several spaces count as one separator."""
    return csv.reader(lines, delimiter=separator, skipinitialspace=separator == " ", strict=strict)


def is_empty(cells: Sequence[str]) -> bool:
    """Whether all cells are blank, as in rows that spreadsheets leave behind."""
    return not any(map(str.strip, cells))


def number(cell: str, decimal: Decimal = ".") -> float | None:
    """The number in a cell; None if it is not a number."""
    if decimal == ",":
        cell = cell.translate(COMMA_TO_POINT)
    try:
        return None if "_" in cell else float(cell)  # Python would read 3_1 as 31
    except ValueError:
        return None


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


def find_decimal(rows: list[list[str]], separator: str) -> Decimal:
    """A comma if it separates neither cells nor thousands and no number has a point, else a point."""
    if separator not in "\t;|":
        return "."
    cells = [cell.strip() for row in rows for cell in row]
    if any("." in cell and number(cell) is not None for cell in cells):
        return "."
    commas = [cell for cell in cells if "," in cell and NUMBER_WITH_COMMA.fullmatch(cell)]
    return "," if any(not MAYBE_THOUSANDS.fullmatch(cell) for cell in commas) else "."


def find_header(path: str, rows: list[list[str]], decimal: Decimal) -> bool:
    """Whether the first row contains names, by comparison with the rows below.

    It does if there is text above numbers, or row names have no name. Otherwise it does if some of it is text and none
    of its numbers has a fraction, as values do. Sorted numbers above unsorted ones may be either.
    """
    top, below = rows[0], rows[1:]
    if below and (_is_one_short(top, below) or _is_over_row_names(top, below, decimal)):
        return True
    kinds = [_kind(cell, decimal) for cell in top]
    for kind, *cells in zip(kinds, *below, strict=False):  # uneven rows are refused later
        if kind == "text" and {_kind(cell, decimal) for cell in cells} in ({"number"}, {"number", "missing"}):
            return True
    numbers = [cell for cell, kind in zip(top, kinds, strict=True) if kind == "number"]
    if "text" in kinds and all(map(WHOLE_NUMBER.fullmatch, numbers)):
        return True
    if len(numbers) >= LEAST_SCALE and _in_order(top, decimal) and not any(_in_order(row, decimal) for row in below):
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


def _kind(cell: str, decimal: Decimal) -> Kind:
    """What a cell contains; words such as inf may be a number or a name, and count as missing."""
    value = number(cell, decimal)
    if is_missing(cell) or (value is not None and not math.isfinite(value)):
        return "missing"
    return "text" if value is None else "number"


def _is_one_short(top: list[str], below: list[list[str]]) -> bool:
    """Whether row names have no name, as R writes them; a mere separator at the end of lines does not count."""
    return all(len(row) == len(top) + 1 for row in below) and any(row[-1] for row in below)


def _is_over_row_names(top: list[str], below: list[list[str]], decimal: Decimal) -> bool:
    """Whether only the first cell is empty, above names or a count of the rows, as pandas writes an index."""
    if top[0].strip() or any(_kind(cell, decimal) == "missing" for cell in top[1:]):
        return False
    first = [row[0] for row in below]
    if all(_kind(cell, decimal) == "text" for cell in first):
        return True
    counts = [int(cell) if WHOLE_NUMBER.fullmatch(cell) else None for cell in first]
    return counts == list(range(counts[0] or 0, (counts[0] or 0) + len(counts)))


def _in_order(cells: list[str], decimal: Decimal) -> bool:
    """Whether the numbers of a row are sorted, up or down."""
    values = [value for cell in cells if (value := number(cell, decimal)) is not None]
    pairs = list(pairwise(values))
    return len(values) >= LEAST_SCALE and (all(a < b for a, b in pairs) or all(a > b for a, b in pairs))
