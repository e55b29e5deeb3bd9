"""How the cells of a text table are laid out: their separator, the decimal sign, and whether names stand on top."""

from __future__ import annotations

import contextlib
import csv
import math
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Literal

from ..exceptions import TableFileError

MISSING = {"", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none", ".", "?"}  # in any case
SEPARATORS = ("\t", ";", "|", ",", " ")  # of those that fit, the first
NUMBER_WITH_COMMA = re.compile(r"[-+]?\d*,\d+(?:[eE][-+]?\d+)?")
MAYBE_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}")  # 1,234 is one number here and another there
WHOLE_NUMBER = re.compile(r"\s*[-+]?\d+\s*")
# A point beside decimal commas separates thousands: the underscore is in no number.
COMMA_TO_POINT = str.maketrans(",.", "._")
LEAST_SCALE = 5  # numbers in order; fewer are so by chance

Decimal = Literal[".", ","]
Kind = Literal["missing", "number", "text"]


def is_missing(cell: str) -> bool:
    """Whether a cell says that there is no value."""
    return cell.strip().lower() in MISSING


def cells_of(lines: Iterable[str], separator: str, *, strict: bool) -> Any:
    """A reader of the cells of lines; several spaces separate once."""
    return csv.reader(lines, delimiter=separator, skipinitialspace=separator == " ", strict=strict)


def is_empty(cells: Sequence[str]) -> bool:
    """Whether no cell holds anything, as in rows that spreadsheets leave behind."""
    return not any(map(str.strip, cells))


def with_point(cell: str, decimal: Decimal) -> str:
    """A cell as Python reads numbers."""
    return cell if decimal == "." or is_missing(cell) else cell.translate(COMMA_TO_POINT)


def number(cell: str, decimal: Decimal = ".") -> float | None:
    """The number in a cell; None where there is none."""
    cell = with_point(cell, decimal)
    try:
        return None if "_" in cell else float(cell)  # Python would read 3_1 as 31
    except ValueError:
        return None


def find_separator(sample: list[str]) -> str | None:
    """The first that gives all lines one number of cells (the header may be one short), else the most frequent."""
    for separator in SEPARATORS:
        with contextlib.suppress(csv.Error):  # which is reported with its line later
            first, *others = [len(row) for row in cells_of(sample, separator, strict=False)]
            if first > 1 and set(others or [first]) in ({first}, {first + 1}):
                return separator
    best = max(SEPARATORS[:-1], key=sample[0].count)
    return best if best in sample[0] else None


def find_decimal(rows: list[list[str]], separator: str) -> Decimal:
    """A comma only where it separates nothing else: no cells, no thousands, and no number has a point."""
    if separator not in "\t;|":
        return "."
    cells = [cell.strip() for row in rows for cell in row]
    if any("." in cell and number(cell) is not None for cell in cells):
        return "."
    commas = [cell for cell in cells if "," in cell and NUMBER_WITH_COMMA.fullmatch(cell)]
    return "," if any(not MAYBE_THOUSANDS.fullmatch(cell) for cell in commas) else "."


def find_header(path: str, rows: list[list[str]], decimal: Decimal) -> bool:
    """Whether the first row holds names, by comparison with those below.

    It does where text stands over numbers, and where row names have no name. Otherwise it does if some of it is text
    and it has no number with a fraction, as values have. Numbers in order over numbers that are not may be either.
    """
    top, below = rows[0], rows[1:]
    if below and (_is_one_short(top, below) or _is_over_row_names(top, below, decimal)):
        return True
    kinds = [_kind(cell, decimal) for cell in top]
    for kind, *cells in zip(kinds, *below, strict=False):  # lines of other lengths are refused later
        if kind == "text" and {_kind(cell, decimal) for cell in cells} in ({"number"}, {"number", "missing"}):
            return True
    numbers = [cell for cell, kind in zip(top, kinds, strict=True) if kind == "number"]
    if "text" in kinds and all(map(WHOLE_NUMBER.fullmatch, numbers)):
        return True
    if len(numbers) >= LEAST_SCALE and _in_order(top, decimal) and not any(_in_order(row, decimal) for row in below):
        raise TableFileError(
            f"Whether the first line of {path!r} holds names cannot be told: its numbers are in order, from "
            f"{numbers[0].strip()} to {numbers[-1].strip()}, and those below are not. Add --header if they are names, "
            "or --no-header if they are values."
        )
    return False


def column_names(rows: list[list[str]]) -> list[str]:
    """Names of the cells of a row, from the header and the first rows."""
    names = [cell.strip() for cell in rows[0]]
    if any(len(row) != len(names) + 1 for row in rows[1:]):
        return names
    if all(not row[-1] for row in rows[1:]):
        return [*names, ""]  # a separator at the end of each line
    return ["", *names]  # row names without a name of their own, as R writes them


def _kind(cell: str, decimal: Decimal) -> Kind:
    """What a cell holds; words such as inf are a number or a name, and tell nothing."""
    value = number(cell, decimal)
    if is_missing(cell) or (value is not None and not math.isfinite(value)):
        return "missing"
    return "text" if value is None else "number"


def _is_one_short(top: list[str], below: list[list[str]]) -> bool:
    """Row names have no name, as R writes them; not only a separator at the end of the other lines."""
    return all(len(row) == len(top) + 1 for row in below) and any(row[-1] for row in below)


def _is_over_row_names(top: list[str], below: list[list[str]], decimal: Decimal) -> bool:
    """An empty first cell over names or a count of the rows, as pandas writes an index, and nothing else empty."""
    if top[0].strip() or any(_kind(cell, decimal) == "missing" for cell in top[1:]):
        return False
    first = [row[0] for row in below]
    if all(_kind(cell, decimal) == "text" for cell in first):
        return True
    counts = [int(cell) if WHOLE_NUMBER.fullmatch(cell) else None for cell in first]
    return counts == list(range(counts[0] or 0, (counts[0] or 0) + len(counts)))


def _in_order(cells: list[str], decimal: Decimal) -> bool:
    """Whether the numbers of a row grow from each to the next, or all fall."""
    values = [value for cell in cells if (value := number(cell, decimal)) is not None]
    pairs = list(pairwise(values))
    return len(values) >= LEAST_SCALE and (all(a < b for a, b in pairs) or all(a > b for a, b in pairs))
