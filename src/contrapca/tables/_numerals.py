"""How a text file writes numbers and missing values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

MISSING = {"", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none", ".", "?"}  # in any case
NUMBER_WITH_COMMA = re.compile(r"[-+]?\d*,\d+(?:[eE][-+]?\d+)?")
MAYBE_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}")  # 1,234 may be 1.234 or 1234
SURELY_POINTS = re.compile(r"[-+]?\d{1,3}(?:(?:\.\d{3}){2,}|\.\d{3},\d+)")  # separate thousands in 1.234.567, 1.234,5
BLANKS = "\u00a0\u202f' "  # separate thousands, whatever the decimal sign
GROUPED = {
    mark: re.compile(rf"[-+]?\d{{1,3}}(?P<gap>[{re.escape(other)}{BLANKS}])\d{{3}}(?:(?P=gap)\d{{3}})*(?:[{mark}]\d+)?")
    for mark, other in ((".", ","), (",", "."))
}
# With decimal commas, a point separates thousands: an underscore makes the cell text.
COMMA_TO_POINT = str.maketrans(",.", "._")

Decimal = Literal[".", ","]


@dataclass(frozen=True)
class Numerals:
    """How a file writes numbers and missing values.

    Attributes
    ----------
    decimal : "." or ","
    percent : bool
        Whether 12% is the number 0.12; otherwise it is text.
    thousands : bool
        Whether 1,234 (1.234 with decimal commas), 1 234 and 1'234 are the number 1234; otherwise they are text.
    missing : tuple of str
        Words and numbers that mean a missing value, besides the empty cell, NA and the like.
    """

    decimal: Decimal = "."
    percent: bool = False
    thousands: bool = False
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
            cell = cell.translate(COMMA_TO_POINT)
        try:
            return None if "_" in cell else float(cell) / divisor  # Python would read 3_1 as 31
        except ValueError:
            return None


PLAIN = Numerals()
