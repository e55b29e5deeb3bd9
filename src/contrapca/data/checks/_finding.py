"""What a check has found: a sentence, and what to do about it, in Python or on the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..._util.display import shown_as_html

Words = Literal["python", "command"]


@dataclass(frozen=True)
class Finding:
    """Something about the tables that is probably a mistake.

    Attributes
    ----------
    check : str
        Which check found it, for example "identifier".
    sentence : str
        What was found.
    python, command : str
        What to do about it, in Python and on the command line; empty if there is nothing to do.
    """

    check: str
    sentence: str
    python: str = ""
    command: str = ""

    def text(self, words: Words = "python") -> str:
        """The sentence and the way out."""
        way_out = self.command if words == "command" else self.python
        return f"{self.sentence} {way_out}".rstrip()

    def __str__(self) -> str:
        return self.text()


class Findings(list[Finding]):
    """A list of findings: printed, their sentences, one below the other; a notebook shows them as HTML."""

    def __str__(self) -> str:
        return "\n".join(self._sentences())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return shown_as_html(*self._sentences())

    def _sentences(self) -> list[str]:
        return [str(finding) for finding in self] or ["No problems found."]


def both(check: str, sentence: str, way_out: str = "") -> Finding:
    """A finding whose way out is the same in Python and on the command line."""
    return Finding(check, sentence, way_out, way_out)
