"""What a check has found: a sentence, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..._util.tables import shown_as_html

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
    hint : str
        What to do about it; empty if there is nothing to do.
    command : str
        The same on the command line, where that is something else.
    """

    check: str
    sentence: str
    hint: str = ""
    command: str = ""

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
