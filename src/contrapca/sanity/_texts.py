"""Columns of text that are numbers written in another way, and so are no features."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from .._util.text import listed
from ._finding import Finding

MOSTLY = 0.9  # fraction of the cells that must look alike
NUMBER = r"[-+]?\d+(?:[.,]\d+)?"
PERCENT = re.compile(rf"{NUMBER}\s*%|{NUMBER}")
GROUPED = re.compile(r"[-+]?\d{1,3}(?:[,.' \u00a0\u202f]\d{3})+(?:[.,]\d+)?")
PLAIN = re.compile(NUMBER)
WITH_UNIT = re.compile(rf"{NUMBER}\s*(?P<unit>[^\W\d_][^\s\d]*|[°µ%‰][^\s\d]*)")
ANSWERS = ({"yes", "no"}, {"y", "n"}, {"true", "false"}, {"positive", "negative"}, {"present", "absent"})


def dropped_columns(texts: Mapping[str, Sequence[str]]) -> list[Finding]:
    """Columns that are not used because their numbers are written as text, and why.

    Parameters
    ----------
    texts : mapping from names to cells
        Columns that are not numeric; missing values are empty.
    """
    kinds: dict[str, dict[str, str]] = {}
    for name, cells in texts.items():
        found = _kind([cell for cell in cells if cell])
        if found is not None:
            kinds.setdefault(found[0], {})[name] = found[1]
    return [_finding(kind, columns) for kind, columns in kinds.items()]


def _kind(cells: list[str]) -> tuple[str, str] | None:
    """What the numbers of a column are hidden by, and an example; None for text."""
    if not cells:
        return None
    least = MOSTLY * len(cells)
    percent = [cell for cell in cells if cell.endswith("%")]
    if percent and sum(map(bool, map(PERCENT.fullmatch, cells))) >= least:
        return "percent signs", percent[0]
    grouped = [cell for cell in cells if GROUPED.fullmatch(cell)]
    if grouped and sum(bool(GROUPED.fullmatch(cell) or PLAIN.fullmatch(cell)) for cell in cells) >= least:
        return "thousands separators", grouped[0]
    units = Counter(match["unit"] for cell in cells if (match := WITH_UNIT.fullmatch(cell)))
    if units and units.most_common(1)[0][1] >= least:
        return "units", cells[0]
    values = {cell.casefold() for cell in cells}
    if any(values == answers for answers in ANSWERS):
        return "answers", cells[0]
    return None


def _finding(kind: str, columns: dict[str, str]) -> Finding:
    names, example = list(columns), next(iter(columns.values()))
    many = len(names) > 1
    not_used = f"{listed(names)} {'are' if many else 'is'} not used as {'features' if many else 'a feature'}"
    if kind == "answers":
        return Finding(
            "dropped column",
            f"{not_used}: {'they hold' if many else 'it holds'} words such as {example!r}, not numbers.",
            "Write 1 and 0 to use such answers.",
            "Write 1 and 0 to use such answers; name the column with --ignore or --labels to read no more of this.",
        )
    way_out = {
        "percent signs": "add --percent to read 12% as 0.12",
        "thousands separators": "add --thousands to read 1,234 as 1234",
        "units": "write the unit into the name of the column instead",
    }[kind]
    return Finding(
        "dropped column",
        f"{not_used}, because of {kind} (such as {example!r}).",
        "Convert such columns to numbers to use them.",
        f"To use {'them' if many else 'it'}, {way_out}; otherwise name {'them' if many else 'it'} with --ignore.",
    )
