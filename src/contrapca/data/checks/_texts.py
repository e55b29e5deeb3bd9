"""Labels, names of rows, and columns of text that are probably mistakes."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..._util.text import as_command, listed, plural, spelling
from ...exceptions import TableWarning, warn
from .._blocks import looks_like_replicates, replicate_example
from .._groups import Groups
from ._finding import Finding, both

SUMMARIES = re.compile(r"(?:grand )?(?:mean|average|avg|total|sum|median|sd|std|stdev|se|sem|min|max|count)s?", re.I)


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
WAYS_OUT = {
    "answers": "write 1 and 0 to use such answers",
    "percent signs": "add --percent to read 12% as 0.12",
    "thousands separators": "add --thousands to read 1,234 as 1234",
    "units": "write the unit into the name of the column instead",
    "units that differ": "convert all to one unit, and write it into the name of the column",
    "currency signs": "write the currency into the name of the column instead",
    "errors after ±": "leave only the number before ±",
    "second numbers in the cells": "leave one number in each, or make two columns",
    "brackets": "write the numbers without them, and with a minus sign if that is what they mean",
    "signs around the numbers": "write the numbers alone",
}


def alike_labels(labels: Iterable[str], what: str) -> list[Finding]:
    """Labels that differ only in upper and lower case or in blanks.

    Parameters
    ----------
    labels : iterable of str
    what : str
        What the labels are, for the sentence: "Labels", "Values of 'stage'".
    """
    groups: dict[str, Counter[str]] = {}
    for label in labels:
        groups.setdefault(spelling(label), Counter())[label] += 1
    found = [counts for counts in groups.values() if len(counts) > 1]
    if not found:
        return []
    shown = "; ".join(
        ", ".join(f"{label!r} ({plural(count, 'row')})" for label, count in sorted(counts.items()))
        for counts in found[:3]
    )
    return [
        both(
            "spelling",
            f"{what} differ only in case or blanks: {shown}{'; ...' * (len(found) > 3)}.",
            "If they mean the same, spell them alike.",
        )
    ]


def repeated_names(names: Sequence[str] | None, group: str) -> list[Finding]:
    """Row names that occur more than once in one table."""
    repeated = [name for name, count in Counter(names or []).items() if count > 1]
    if not repeated:
        return []
    occur = "occurs" if len(repeated) == 1 else "occur"
    return [
        Finding(
            "repeated names",
            f"{plural(len(repeated), 'row name')} of the {group} {occur} more than once ({listed(repeated, 3)}).",
            "If a row was entered twice, drop one; if they are replicates, pass a Study with blocks=.",
            "If a row was entered twice, delete one; for replicates, add --blocks with a column that names them.",
        )
    ]


def summary_rows(names: Sequence[str] | None) -> list[Finding]:
    """Rows such as "mean" and "total" that spreadsheets add below the samples."""
    found = [name for name in names or [] if SUMMARIES.fullmatch(name.strip())]
    if not found:
        return []
    one = len(found) == 1
    return [
        both(
            "summary row",
            f"{'The row' if one else 'Rows'} named {listed(found)} {'looks' if one else 'look'} like a summary of the "
            f"table, not like {'a sample' if one else 'samples'}.",
            f"Remove {'it' if one else 'them'}.",
        )
    ]


def replicates(names: Sequence[str], what: str = "The row names", column: str | None = None) -> list[Finding]:
    """Names such as 309_1, 309_2 that say that several rows belong together; `column` is where a file has them."""
    stems = looks_like_replicates(names)
    if stems is None:
        return []
    return [
        Finding(
            "replicates",
            f"{what} look like replicates ({replicate_example(names, stems)}). Rows of one donor, animal or plate are "
            "not independent, and p-values that ignore this are far too small.",
            "Pass a Study with blocks=.",
            f"Add --blocks {as_command([column])}."
            if column
            else "Give the column that they are in a name in both files, such as donor, and add --blocks donor.",
        )
    ]


def shows_replicates(findings: Iterable[Finding]) -> bool:
    """Whether rows look like replicates, and no blocks say which belong together."""
    return any(finding.check == "replicates" for finding in findings)


def warn_of_replicates(names: Groups[list[str] | None]) -> bool:
    """Warn if the row names of the groups look like replicates, and say so; None where rows have no names."""
    found = replicates([name for own in names if own is not None for name in own])
    for finding in found:
        warn(finding.text(), TableWarning)
    return bool(found)


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
    def way_out(self) -> str:
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
    return [_finding(list(columns), next(iter(columns.values()))) for columns in kinds.values()]


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


def _finding(names: list[str], hidden: Hidden) -> Finding:
    many = len(names) > 1
    it = "them" if many else "it"
    not_used = f"{listed(names)} {'are' if many else 'is'} not used as {'features' if many else 'a feature'}"
    if hidden.kind == "answers":
        return Finding(
            "dropped column",
            f"{not_used}: {'they hold' if many else 'it holds'} words such as {hidden.example!r}, not numbers.",
            "Write 1 and 0 to use such answers.",
            "Write 1 and 0 to use such answers; add --ignore or --labels with its name to silence this.",
        )
    return Finding(
        "dropped column",
        f"{not_used}, {hidden.reason}.",
        "Convert such columns to numbers to use them.",
        f"To use {it}, {hidden.way_out}; otherwise name {it} with --ignore.",
    )
