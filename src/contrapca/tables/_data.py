"""What is read from a file: numbers to analyse, and other columns."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._util.arrays import Array, Rows, is_sparse
from .._util.text import listed
from ..exceptions import TableFileError
from ._numerals import Numerals
from ._text_file import TextFile

LEVELS = {"none"}  # missing as a number, but also a group, as in "none, mild, severe"


@dataclass(frozen=True)
class DataTable:
    """A table from a file.

    Attributes
    ----------
    path : str
    names : list of str
        Names of the numeric columns; x0, x1, ... if the file has none.
    values : ndarray or CSR matrix of shape (n, len(names))
        NaN where missing.
    named : bool
        Whether the names come from the file.
    texts : dict from name to ndarray of str
        Columns that are not numeric, as written.
    row_names : list of str or None
    mixed : dict from name to str
        Among `texts`, columns that are numeric except for a few cells, with these cells and their lines.
    empty : list of str
        Names of columns that have no values.
    notes : list of str
        What the reader decided, in words.
    source : TextFile or None
        The text that it was read from, to write it again with few changes.
    missing : tuple of str
        Words that mean a missing value, besides NA and the like.
    annotated : bool
        Whether `texts` describe the rows, as `obs` of an AnnData does, and were never meant as features.
    """

    path: str
    names: list[str]
    values: Rows
    named: bool = True
    texts: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    row_names: list[str] | None = None
    mixed: dict[str, str] = field(default_factory=dict)
    empty: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    source: TextFile | None = None
    missing: tuple[str, ...] = ()
    annotated: bool = False

    def __post_init__(self) -> None:
        check_distinct(self.path, self.names)

    def __len__(self) -> int:
        return int(self.values.shape[0])

    @property
    def columns(self) -> list[str]:
        """Names of all columns: numeric, other and empty ones."""
        return [*self.names, *self.texts, *self.empty]

    def select(self, names: list[str]) -> Rows:
        """The named numeric columns in that order, shape (n, len(names))."""
        place = {name: j for j, name in enumerate(self.names)}
        return take_columns(self.values, [place[name] for name in names])

    def as_text(self, name: str) -> npt.NDArray[Any]:
        """Any column as text, shape (n,): whole numbers without a point, missing values empty."""
        if name in self.texts:
            cells, told = self.texts[name].tolist(), {word.strip().lower() for word in self.missing}
            none, is_missing = LEVELS - told, Numerals(missing=self.missing).is_missing
            return np.array(["" if is_missing(cell) and cell.lower() not in none else cell for cell in cells])
        if name in self.empty:
            return np.full(len(self), "")
        column = dense(self.select([name]))[:, 0]
        return np.array(["" if np.isnan(value) else f"{value:.12g}" for value in column.tolist()])

    def stray_words(self, name: str) -> set[str]:
        """What is no number in a column of `mixed`."""
        numerals = Numerals() if self.source is None else self.source.numerals
        return {cell for cell in self.as_text(name).tolist() if cell and numerals.value(cell) is None}


class NamedArray(np.ndarray):  # type: ignore[type-arg]
    """An ndarray with the attribute `columns` of a data frame: messages and models then have the names."""

    columns: list[str]


def with_names(values: Rows, names: list[str] | None) -> Rows:
    """The same rows, without a copy, with `columns` as a data frame has them; unchanged if there are no names."""
    if names is None:
        return values
    named: Any = sp.csr_array(values, copy=False) if is_sparse(values) else values.view(NamedArray)
    named.columns = names
    return named


def take_columns(values: Rows, columns: list[int]) -> Rows:
    """Some columns of a table; the table itself if they are all of its columns in order."""
    return values if columns == list(range(values.shape[1])) else values[:, columns]


def without_empty(names: list[str], values: Array) -> tuple[list[str], Array, list[str]]:
    """Names and values of the columns that have any, and the names of the others."""
    empty = np.asarray(np.isnan(values).all(axis=0)).tolist()
    kept = [j for j, is_empty in enumerate(empty) if not is_empty]
    return [names[j] for j in kept], take_columns(values, kept), list(itertools.compress(names, empty))


def dense(values: Rows) -> Array:
    """A table as an ndarray."""
    return np.asarray(values.toarray() if is_sparse(values) else values)


def check_distinct(path: str, names: list[str]) -> None:
    """Refuse two columns of the same name."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise TableFileError(
            f"{path!r} has more than one column named {listed(repeated)}: column names must be unique."
        )
