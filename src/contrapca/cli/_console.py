"""Console output: sentences and tables for people, or one JSON object for programs."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any


def say(lines: Sequence[Any], facts: Mapping[str, Any], *, quiet: bool, as_json: bool) -> None:
    """Print what a command has to say: its facts as JSON, or its lines, or nothing."""
    if as_json:
        print(json.dumps(plain(facts), indent=2))
    elif lines and not quiet:
        print(*map(_harmless, map(str, lines)), sep="\n")


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
