"""Columns of text that hide numbers: percent signs, units, brackets and the like, and the way out."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .._util.text import Option, Worded, listed
from ..data.checks import Finding

MOSTLY = 0.9  # fraction of the cells that must look alike
NUMBER = r"[-+]?\d+(?:[.,]\d+)?"
PERCENT = re.compile(rf"{NUMBER}\s*%|{NUMBER}")
GROUPED = re.compile(r"[-+]?\d{1,3}(?:[,.' \u00a0\u202f]\d{3})+(?:[.,]\d+)?")
PLAIN = re.compile(NUMBER)
WITH_UNIT = re.compile(rf"{NUMBER}\s*(?P<unit>[^\W\d_][^\s\d]*|[°µ%‰][^\s\d]*)")

# Words after a space, of which a few may take turns: "5 mg" and "1 g", but not the codes "5a" and "6b".
WITH_WORD = re.compile(rf"{NUMBER}\s+(?P<unit>[^\W\d_][^\s\d]*)")
MANY_WORDS = 0.25  # fraction of different words above which they are not units
NUMBERS = re.compile(r"[-+]?[.,]?\d(?:[\d.,'\u00a0\u202f]*\d)?(?:[eE][-+]?\d+)?")
NO_SIGN = re.compile(r"[\w#:]")  # in codes, numbers of things, and times of day
PLUS_MINUS = re.compile(r"\+\s?/?\s?[-\N{MINUS SIGN}]")
BRACKETS = ("()", "[]", "{}")
BETWEEN_TWO = ("/", "\N{EN DASH}")  # a hyphen is also part of dates and codes
ANSWERS = ({"yes", "no"}, {"y", "n"}, {"true", "false"}, {"positive", "negative"}, {"present", "absent"})

# What hides numbers, and the way out.
WAYS_OUT: dict[str, tuple[str | Worded, ...]] = {
    "answers": ("write 1 and 0 to use such answers",),
    "percent signs": ("add ", Option("percent", True), " to read 12% as 0.12"),
    "thousands separators": ("add ", Option("thousands", True), " to read 1,234 as 1234"),
    "units": ("write the unit into the name of the column instead",),
    "units that differ": ("convert all to one unit, and write it into the name of the column",),
    "currency signs": ("write the currency into the name of the column instead",),
    "errors after ±": ("leave only the number before ±",),
    "second numbers in the cells": ("leave one number in each, or make two columns",),
    "brackets": ("write the numbers without them, and with a minus sign if that is what they mean",),
    "signs around the numbers": ("write the numbers alone",),
}


class Hidden(NamedTuple):
    """What hides the numbers of a column of text, and an example of it."""

    kind: str
    example: str

    @property
    def reason(self) -> str:
        """Why the column is text."""
        if self.kind == "answers":
            return f"because of words such as {self.example!r}"
        return f"because of {self.kind} (such as {self.example!r})"

    @property
    def way_out(self) -> tuple[str | Worded, ...]:
        """How to use it as numbers."""
        return WAYS_OUT[self.kind]


def dropped_columns(texts: Mapping[str, Sequence[str]]) -> list[Finding]:
    """Columns that are not used because their numbers are written as text, and why.

    Parameters
    ----------
    texts : mapping from names to cells
        Columns that are not numeric; missing values are empty.
    """
    kinds: dict[str, dict[str, Hidden]] = {}
    for name, cells in texts.items():
        found = hidden_by(cells)
        if found is not None:
            kinds.setdefault(found.kind, {})[name] = found
    findings = []
    for kind, columns in kinds.items():
        names, hidden, many = list(columns), next(iter(columns.values())), len(columns) > 1
        it, they_hold = ("them", "they hold") if many else ("it", "it holds")
        not_used = f"{listed(names)} {'are' if many else 'is'} not used as {'features' if many else 'a feature'}"
        hint: list[str | Worded]
        if kind == "answers":
            sentence = f"{not_used}: {they_hold} words such as {hidden.example!r}, not numbers."
            hint = ["Write 1 and 0 to use such answers; add ", Option("ignore"), " or ", Option("labels")]
            hint += [" to silence this."]
        else:
            sentence = f"{not_used}, {hidden.reason}."
            hint = [f"To use {it}, ", *hidden.way_out, f"; otherwise name {it} with ", Option("ignore"), "."]
        findings.append(Finding.worded("dropped column", sentence, *hint))
    return findings


def hidden_by(cells: Sequence[str]) -> Hidden | None:
    """What the numbers of a column of text are hidden by; None for other text."""
    cells = [cell for cell in cells if cell]
    if not cells:
        return None
    least = MOSTLY * len(cells)
    percent = [cell for cell in cells if cell.endswith("%")]
    if percent and sum(map(bool, map(PERCENT.fullmatch, cells))) >= least:
        return Hidden("percent signs", percent[0])
    grouped = [cell for cell in cells if GROUPED.fullmatch(cell)]
    if grouped and sum(bool(GROUPED.fullmatch(cell) or PLAIN.fullmatch(cell)) for cell in cells) >= least:
        return Hidden("thousands separators", grouped[0])
    units = Counter(match["unit"] for cell in cells if (match := WITH_UNIT.fullmatch(cell)))
    if units and units.most_common(1)[0][1] >= least:
        return Hidden("units", cells[0])
    values = {cell.casefold() for cell in cells}
    if any(values == answers for answers in ANSWERS):
        return Hidden("answers", cells[0])
    words = [match["unit"] for cell in cells if (match := WITH_WORD.fullmatch(cell))]
    if len(words) >= least and len(set(words)) <= MANY_WORDS * len(cells):
        return Hidden("units that differ", cells[0])
    signed = {cell: kind for cell in cells if (kind := _signs(cell))}
    if signed and sum(cell in signed or bool(PLAIN.fullmatch(cell)) for cell in cells) >= least:
        example = next(iter(signed))
        return Hidden(signed[example], example)
    return None


def _signs(cell: str) -> str | None:
    """What is before, between or after the numbers of a cell; None if there is nothing, or more than signs."""
    parts = [part.strip() for part in NUMBERS.split(PLUS_MINUS.sub("±", cell))]
    if len(parts) == 1:
        return None
    before, *between, after = parts
    around = before + after
    if NO_SIGN.search(around + "".join(between)):
        return None
    if between:
        if between[0] == "±":
            return "errors after ±"
        pair = (len(between) == 1 and between[0] in BETWEEN_TWO) or between[0] + after in BRACKETS
        return "second numbers in the cells" if pair and not before else None
    if any(unicodedata.category(sign) == "Sc" for sign in around):
        return "currency signs"
    return "brackets" if around in BRACKETS else "signs around the numbers" if around else None
