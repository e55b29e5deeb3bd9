"""Console output: text for people, or one JSON object for programs."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from typing import Any


class Console:
    """Console output of commands.

    Parameters
    ----------
    quiet : bool
        Say nothing.
    as_json : bool
        Say nothing but the summary, as JSON.

    Attributes
    ----------
    progress : bool
        Whether progress may be shown.
    """

    def __init__(self, quiet: bool, as_json: bool):
        self.quiet, self.as_json, self.progress = quiet, as_json, not quiet

    def say(self, *lines: Any) -> None:
        """Print lines for people."""
        if lines and not (self.quiet or self.as_json):
            print(*map(_harmless, map(str, lines)), sep="\n")

    def summarise(self, summary: Mapping[str, Any]) -> None:
        """Print the summary, if it was asked for."""
        if self.as_json:
            print(json.dumps(plain(summary), indent=2))


def caution(*sentences: str) -> None:
    """Print possible mistakes to standard error, also with --quiet and --json."""
    for sentence in sentences:
        print(f"contrapca: caution: {_harmless(' '.join(sentence.split()))}", file=sys.stderr)


def _harmless(text: str) -> str:
    """Text without control characters: names in a file may contain them, and a terminal would obey them."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def printable(text: str) -> str:
    """Text that can be written as UTF-8: names of files may hold bytes that are not characters."""
    return text.encode("utf-8", "backslashreplace").decode()


def plain(value: Any) -> Any:
    """A value as JSON can hold it: numbers that are not finite become null."""
    if hasattr(value, "tolist"):  # arrays and NumPy's numbers
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
