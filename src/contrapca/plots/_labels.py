"""Labels of rows, the names of classes or numbers on a scale, and the colours of all pictures."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array
from .._util.text import is_missing, natural_order

# Okabe and Ito's palette, distinguishable with any colour vision, with violet in place of its yellow, which is faint on
# white (contrast 1.2); its grey is kept for the background.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8B2BE2")
BACKGROUND_COLOUR = "#9A9A9A"
MAX_CLASSES = 20  # more different numbers than this are a scale, more words are too many for a legend
OTHER, NO_LABEL = "all other labels", "no label"


def on_a_scale(labels: Any) -> Array | None:
    """Labels as numbers if they are a scale, shape (n,); None if they are classes.

    A scale has more than 20 different numbers; NaN stands for missing or infinite values. Text, dates and truth
    values are always classes: the reader of a file decides whether its text means numbers.
    """
    if np.asarray(labels).dtype.kind in "mM":  # numbers of nanoseconds, for NumPy
        return None
    given = np.asarray(labels, dtype=object).tolist()
    known = [label for label in given if not is_missing(label)]
    if any(isinstance(label, bool) or not isinstance(label, numbers.Real) for label in known):
        return None
    values = np.array([math.nan if is_missing(label) or math.isinf(label) else label for label in given], dtype=float)
    return values if np.unique(values[~np.isnan(values)]).size > MAX_CLASSES else None


def as_classes(labels: Any) -> npt.NDArray[np.str_]:
    """Labels as the names of classes, shape (n,); "" where the label is missing."""
    given = np.asarray(labels)
    absent = np.array([is_missing(label) for label in given], dtype=bool)
    if given.dtype.kind == "M":
        days = given.astype("datetime64[D]")
        whole = np.array_equal(days[~absent], given[~absent])
        names = np.datetime_as_string(days if whole else given.astype("datetime64[s]"))
        return np.where(absent, "", names)
    present = given[~absent].tolist()
    if all(type(label) in (int, float) and float(label).is_integer() for label in present):
        present = [int(label) for label in present]  # classes read as 1.0, 2.0
    classes = np.full(given.shape, "", dtype=object)
    classes[~absent] = [str(label) for label in present]
    return classes.astype(np.str_)


def for_legend(classes: npt.NDArray[np.str_]) -> tuple[list[str], npt.NDArray[np.intp]]:
    """The entries of a legend in natural order, at most 20, and the entry of each row.

    If there are more classes, the rarest share an entry; rows without a label ("") come last.
    """
    names, of_row, counts = np.unique(classes, return_inverse=True, return_counts=True)
    named = np.array([k for k in natural_order(names.tolist()) if names[k]], dtype=np.intp)
    frequent = named
    if named.size > MAX_CLASSES:
        frequent = named[np.sort(np.argsort(-counts[named], kind="stable")[: MAX_CLASSES - 1])]
    place = np.full(names.size, frequent.size)  # of the others together
    place[frequent] = np.arange(frequent.size)
    place[names == ""] = frequent.size + 1
    entries = np.array([*names[frequent].tolist(), OTHER, NO_LABEL], dtype=object)
    used, of_row = np.unique(place[of_row], return_inverse=True)
    return entries[used].tolist(), of_row
