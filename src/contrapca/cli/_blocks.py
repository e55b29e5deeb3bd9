"""Blocks on the command line: the donor, animal or plate of each row, and columns that look like it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.text import as_command, listed
from ..blocks import PEOPLE, SUFFIX, checked_blocks
from ..groups import Groups
from ..sanity import Finding, both, replicates
from ..selection import looks_like_replicates
from ..tables import DataTable

# Names of columns that say whom or what several rows come from.
WHOSE = re.compile(f"(?:{'|'.join([*PEOPLE, 'biosample', 'plate', 'hto', 'pool', 'run'])}){SUFFIX}", re.IGNORECASE)


def block_labels(
    tables: Sequence[DataTable], column: str | None, what: str = "blocks"
) -> tuple[list[npt.NDArray[Any] | None], list[str]]:
    """The block or pair of each row of every table (None without a column for them), and what was decided, in words.

    Labels such as 309_1, 309_2, one for each row, name replicates: the part before the last separator is the block.
    """
    if column is None:
        return [None] * len(tables), []
    found = []
    for table in tables:
        if column not in table.columns:
            raise ValueError(f"--{what}: {table.path!r} has no column {column!r}, only {listed(table.columns)}.")
        labels = table.as_text(column)
        missing = int(np.sum(labels == ""))
        if missing:
            raise ValueError(
                f"--{what}: {missing} of {len(table)} rows of {table.path!r} have nothing in the column {column!r}: "
                f"remove them, or fill in their {what[:-1]}."
            )
        found.append(labels)
    every = [label for labels in found for label in labels.tolist()]
    stems = looks_like_replicates(every)
    if stems is None:
        return [*found], [f"{what} are the {len(set(every))} values of {column!r}"]
    note = f"{what} are the {len(set(stems))} beginnings of {column!r}, such as {stems[0]!r} of {every[0]!r}"
    return [*np.split(np.array(stems), np.cumsum([len(labels) for labels in found])[:-1])], [note]


def check_pairs(cases: Any, controls: Any) -> None:
    """Raise if a pair is in one group only."""
    counts = Groups.of(len(cases), len(controls))
    checked_blocks(Groups.of(cases, controls), counts, paired=True)


def names_block(column: str) -> bool:
    """Whether a column says whom or what its rows come from, by its name: donor, plate, mouse_id."""
    return bool(WHOSE.fullmatch(column))


def block_findings(tables: Sequence[DataTable]) -> list[Finding]:
    """Names of rows, or a column, that say that several rows belong together."""
    first, names = tables[0], [name for table in tables for name in table.row_names or []]
    shared = [column for column in first.texts if all(column in table.texts for table in tables)]
    # The column of the row names is among those of text, if it has a name.
    own = next((column for column in shared if first.row_names == first.as_text(column).tolist()), None)
    places: list[tuple[str, list[str], str | None]] = [("The row names", names, own)]
    for column in first.texts:
        of = tables if column in shared else tables[:1]
        places.append(
            (f"The values of {column!r}", [cell for table in of for cell in table.as_text(column).tolist()], column)
        )
    for place, labels, where in places:
        if found := replicates(labels, place, where):
            return found
    for column in tables[0].columns:
        if names_block(column) and 1 < np.unique(tables[0].as_text(column)).size <= len(tables[0]) / 2:
            return [
                both(
                    "replicates",
                    f"The column {column!r} may name whom or what several rows come from: if so, they are not "
                    "independent, and p-values that ignore it are far too small.",
                    f"Add --blocks {as_command([column])}.",
                )
            ]
    return []
