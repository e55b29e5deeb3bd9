"""Names of rows and of columns that say whom or what rows come from: donors, plates, replicates."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from .._util.text import listed

# The last part of a name such as 309_1, s7-b or patient3.rep2: a short number, one letter, or rep with a number.
REPLICATE = re.compile(r"(?P<stem>.*\w)[_.\- ](?P<last>\d{1,3}|[A-Za-z]|(?:r|rep|replicate|run)[_.\- ]?\d{1,3})")
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")  # names of rows that are numbers, such as -0.713

# What a column is called that says whom rows come from, and the ends of such names: donor, patient_id, Mouse.number.
PEOPLE = (
    "donor",
    "patient",
    "subject",
    "individual",
    "ind",
    "participant",
    "person",
    "animal",
    "mouse",
    "litter",
    "family",
)
SUFFIX = r"s?(?:[ _.-]?(?:id|nr|no|number|name))?"

# Whom or what several rows of any table come from; and where rows are cells, the most likely donors first.
SOURCES = (*PEOPLE, "biosample", "plate", "hto", "pool", "run")
SOURCES_OF_CELLS = (
    *PEOPLE,
    *("sample", "biosample", "specimen", "replicate", r"orig[._]?ident", "library", "batch", "plate", "channel"),
    *("lane", "hto", "pool", "run"),
)
MIN_STEMS = 3  # one or two common beginnings are the names of groups (case_1, ..., control_1, ...)
MIN_REPEATED = 0.5  # fraction of the rows that share their beginning with another row


def names_source(column: str, sources: Sequence[str] = SOURCES) -> bool:
    """Whether a column says whom or what its rows come from, by its name: donor, plate, mouse_id."""
    return re.fullmatch(f"(?:{'|'.join(sources)}){SUFFIX}", column, re.IGNORECASE) is not None


def looks_like_replicates(names: Sequence[str]) -> list[str] | None:
    """The block of each row as suggested by the row names; None if they suggest none.

    Names such as 309_1, 309_2, 311_1 suggest blocks: several rows share a beginning, followed by a separator and a
    short number or letter. Names with only one or two beginnings do not (case_1, case_2, ..., control_1, ...).

    Parameters
    ----------
    names : sequence of str

    Returns
    -------
    list of str, or None
    """
    matches = [REPLICATE.fullmatch(name) for name in names]
    if all(map(NUMBER.fullmatch, names)) and not _count_up(matches):
        return None
    if not matches or sum(match is not None for match in matches) < MIN_REPEATED * len(matches):
        return None
    stems = [name if match is None else match["stem"] for name, match in zip(names, matches, strict=True)]
    counts = Counter(stems)
    repeated = sum(count for count in counts.values() if count > 1)
    distinct = len(set(names)) == len(names)
    return stems if distinct and len(counts) >= MIN_STEMS and repeated >= MIN_REPEATED * len(names) else None


def _count_up(matches: Sequence[re.Match[str] | None]) -> bool:
    """Whether the numbers after each beginning are 1, 2, ..., as in 309.1, 309.2; decimals of measurements are not."""
    last: dict[str, list[int]] = {}
    for match in matches:
        if match is not None:
            last.setdefault(match["stem"], []).append(int(match["last"]))
    return all(
        sorted(counts) in (list(range(len(counts))), list(range(1, len(counts) + 1))) for counts in last.values()
    )


def replicate_example(names: Sequence[str], stems: Sequence[str]) -> str:
    """Three example names, two with the same beginning."""
    first = next(stem for stem, count in Counter(stems).items() if count > 1)
    same = [name for name, stem in zip(names, stems, strict=True) if stem == first][:2]
    other = next(name for name, stem in zip(names, stems, strict=True) if stem != first)
    return f"{listed([*same, other])}, ..."
