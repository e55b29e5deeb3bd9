"""What checks look at, and what they find: a sentence, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..._util.arrays import Array, Rows
from ..._util.tables import shown_as_html
from ..._util.text import Worded, Words, default_names, worded
from .._groups import Groups

MAX_ROWS = 100_000  # rows of a group that most checks look at, evenly spread


@dataclass(frozen=True)
class Finding:
    """Something about the tables that is probably a mistake.

    Attributes
    ----------
    check : str
        Which check found it, for example "identifier".
    sentence : str
        What was found.
    hint : str
        What to do about it; empty if there is nothing to do.
    command : str
        The same on the command line, where that is something else.
    """

    check: str
    sentence: str
    hint: str = ""
    command: str = ""

    @classmethod
    def worded(cls, check: str, sentence: str, *hint: str | Worded) -> Finding:
        """A finding whose hint names options, in the words of Python and of the command line."""
        return cls(check, sentence, worded(hint, "python"), worded(hint, "command"))

    def text(self, words: Words = "python") -> str:
        """The sentence and the hint."""
        hint = self.command if words == "command" and self.command else self.hint
        return f"{self.sentence} {hint}".rstrip()

    def __str__(self) -> str:
        return self.text()


class Findings(list[Finding]):
    """A list of findings: their sentences, one below the other; a notebook shows them as HTML."""

    def __str__(self) -> str:
        return "\n".join(self._sentences())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return shown_as_html(*self._sentences())

    def _sentences(self) -> list[str]:
        return [str(finding) for finding in self] or ["No problems found."]


@dataclass(frozen=True)
class Given:
    """What the checks look at."""

    rows: Groups[Rows]
    columns: Sequence[str] | None  # names of the features
    names: Groups[list[str] | None]  # of the rows
    labels: Any = None  # of the cases
    has_blocks: bool = False  # whether it is known which rows belong together

    @property
    def people(self) -> list[str]:
        """What the rows of each group are called in sentences."""
        return ["cases", "controls"] if len(self.rows) == 2 else ["cases", *self.rows.names[1:]]

    @property
    def features(self) -> Sequence[str]:
        """Names of the features; x0, x1, ... if there are none."""
        return default_names(self.rows.foreground.shape[1]) if self.columns is None else self.columns

    @cached_property
    def arrays(self) -> list[Array]:
        """The rows of all groups; empty if some group is sparse or not in memory."""
        known = all(isinstance(table, np.ndarray) for table in self.rows)
        return [np.asarray(table) for table in self.rows] if known else []

    @cached_property
    def parts(self) -> list[Array]:
        """At most 100,000 rows of each group, evenly spread."""
        return [every_few(table, MAX_ROWS) for table in self.arrays]

    @cached_property
    def two(self) -> list[Array]:
        """The groups in `parts`, with the backgrounds in one."""
        return [*self.parts[:1], np.vstack(self.parts[1:])] if len(self.parts) > 2 else self.parts

    @property
    def pairs(self) -> list[tuple[Array, Array]]:
        """The cases with each background."""
        return [(self.parts[0], own) for own in self.parts[1:]]


def every_few(table: Rows, most: int) -> Rows:
    """At most this many rows of a table, evenly spread; a view."""
    return table[:: -(-table.shape[0] // most)]
