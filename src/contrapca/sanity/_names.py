"""Labels and row names that are probably mistakes: spellings, repetitions, replicates."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from .._util.text import as_command, listed, plural, spelling
from ..blocks import looks_like_replicates, replicate_example
from ..exceptions import TableWarning, warn
from ..groups import Groups
from ._finding import Finding, both

SUMMARIES = re.compile(r"(?:grand )?(?:mean|average|avg|total|sum|median|sd|std|stdev|se|sem|min|max|count)s?", re.I)


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
