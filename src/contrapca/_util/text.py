"""Words and numbers in sentences."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

MAX_LISTED = 5  # names in a sentence


def listed(names: Sequence[Any], limit: int = MAX_LISTED) -> str:
    """Names in quotes, at most `limit` of them, and how many more there are."""
    shown = ", ".join(map(repr, names[:limit]))
    return shown + (f" and {len(names) - limit} more" if len(names) > limit else "")


def plural(count: int, word: str) -> str:
    """The count and the word, with an s unless the count is 1."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def format_gamma(value: float) -> str:
    """A value of gamma to four digits: at least four decimals and four significant digits."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    return f"{value:.{max(4, 3 - math.floor(math.log10(abs(value))))}f}"


def default_names(n_features: int) -> list[str]:
    """x0, x1, ...: the names of features that have none."""
    return [f"x{j}" for j in range(n_features)]


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or the like: does not equal itself, or will not say whether it does."""
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True


def natural_order(names: Sequence[str]) -> list[int]:
    """Indices that sort names as people do: "cluster 2" comes before "cluster 10"."""

    def key(k: int) -> list[tuple[int, int, str]]:
        parts = [part for part in re.split(r"([0-9]+)", names[k]) if part]
        numbers = [part.lstrip("0") if part[0] in "0123456789" else None for part in parts]
        return [
            (1, 0, part.casefold()) if number is None else (0, len(number), number)
            for part, number in zip(parts, numbers, strict=True)
        ]

    return sorted(range(len(names)), key=lambda k: (key(k), names[k]))
