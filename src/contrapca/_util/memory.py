"""Amounts of memory."""

from __future__ import annotations

import numbers
import re
from typing import Any

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def bytes_of(memory_limit: Any) -> int:
    """Bytes from a number, or from text such as "500 MB" and "2 GiB"."""
    found = None
    if isinstance(memory_limit, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", memory_limit.lower())
        found = float(match[1]) * UNITS[match[2]] if match and match[2] in UNITS else None
    elif isinstance(memory_limit, numbers.Real) and not isinstance(memory_limit, bool):
        found = float(memory_limit)
    if found is None or not 0 < found < float("inf"):
        raise ValueError(f"memory_limit={memory_limit!r} must be a number of bytes above 0, or text such as '500 MB'.")
    return int(found)


def in_words(n_bytes: float) -> str:
    """An amount of memory, such as 1.2 GB."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if n_bytes >= size:
            return f"{n_bytes / size:.3g} {unit}"
    return f"{n_bytes / 1e3:.3g} kB"
