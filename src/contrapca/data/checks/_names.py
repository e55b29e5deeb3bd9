"""Names and labels of rows, and names of tables: spelt alike, repeated, of summaries, of replicates, swapped."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ..._util.text import as_command, is_missing, listed, plural, spelling
from .._names import looks_like_replicates, replicate_example
from ._finding import Finding, Given

SUMMARIES = re.compile(r"(?:grand )?(?:mean|average|avg|total|sum|median|sd|std|stdev|se|sem|min|max|count)s?", re.I)
CASES = re.compile(r"(?:^|[^a-z])(?:cases?|patients?|diseased?|ill|tumou?rs?|treated|affected|positive)(?![a-z])", re.I)
CONTROLS = re.compile(
    r"(?:^|[^a-z])(?:controls?|ctrls?|healthy|normals?|background|untreated|unaffected|wild[ _-]?types?|wt)(?![a-z])",
    re.I,
)


def labels_alike(given: Given) -> list[Finding]:
    """Labels of the cases that differ only in upper and lower case or in blanks."""
    labels = [] if given.labels is None else np.asarray(given.labels).tolist()
    return alike_labels([label for label in labels if not is_missing(label) and isinstance(label, str)], "Labels")


def alike_labels(labels: Iterable[str], what: str) -> list[Finding]:
    """Labels that differ only in upper and lower case or in blanks; `what` they are: "Values of 'stage'"."""
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
        Finding(
            "spelling",
            f"{what} differ only in case or blanks: {shown}{'; ...' * (len(found) > 3)}.",
            "If they mean the same, spell them alike.",
        )
    ]


def names_of_rows(given: Given) -> Iterator[Finding]:
    """Names that occur twice, that are those of summaries, or that look like replicates without blocks."""
    every = zip(given.people, given.names, strict=True)
    repeated = [finding for group, names in every for finding in repeated_names(names, group)]
    yield from repeated
    for names in given.names:
        # Spreadsheets add rows such as "mean" and "total" below the samples.
        if found := [name for name in names or [] if SUMMARIES.fullmatch(name.strip())]:
            one = len(found) == 1
            yield Finding(
                "summary row",
                f"{'The row' if one else 'Rows'} named {listed(found)} {'looks' if one else 'look'} like a summary of "
                f"the table, not like {'a sample' if one else 'samples'}.",
                f"Remove {'it' if one else 'them'}.",
            )
    if not given.has_blocks and not repeated:
        yield from replicates([name for names in given.names for name in names or []])


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


def swapped_names(cases: str, controls: str) -> list[Finding]:
    """Names of tables or groups that say the opposite of what they are used for."""
    if CONTROLS.search(cases) and CASES.search(controls) and not CASES.search(cases) and not CONTROLS.search(controls):
        return [
            Finding(
                "swapped",
                f"{cases!r} is used as the cases and {controls!r} as the controls: by their names it should be the "
                "other way round.",
                "If so, swap them.",
            )
        ]
    return []
