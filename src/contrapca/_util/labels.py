"""Labels of rows: the names of classes, or numbers on a scale."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np

from .arrays import Array
from .text import is_missing

MAX_CLASSES = 20  # more different numbers than this are a scale, more words are too many for a legend


def on_a_scale(labels: Any) -> Array | None:
    """Labels as numbers if they are a scale, shape (n,); None if they are classes.

    A scale has more than 20 different numbers; NaN stands for what is missing or infinite. Text and truth values are
    always classes: whoever reads a file decides whether its text means numbers.
    """
    given = np.asarray(labels, dtype=object).tolist()
    known = [label for label in given if not is_missing(label)]
    if any(isinstance(label, bool) or not isinstance(label, numbers.Real) for label in known):
        return None
    values = np.array([math.nan if is_missing(label) or math.isinf(label) else label for label in given], dtype=float)
    return values if np.unique(values[~np.isnan(values)]).size > MAX_CLASSES else None
