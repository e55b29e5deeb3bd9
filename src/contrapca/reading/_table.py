"""What is read from a file."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array, Rows, is_sparse
from .._util.text import did_you_mean, listed
from ..exceptions import TableFileError
from ._layout import Numerals

LEVELS = {"none"}  # missing as a number, but also a group, as in "none, mild, severe"


@dataclass(frozen=True)
class DataTable:
    """A table from a file."""

    path: str
    names: list[str]  # names of the numeric columns; x0, x1, ... if the file has none
    values: Rows  # shape (n, len(names)), NaN where missing
    named: bool = True  # whether the names come from the file
    texts: dict[str, npt.NDArray[Any]] = field(default_factory=dict)  # columns that are not numeric, as written
    row_names: list[str] | None = None
    # Among `texts`, columns that are numeric except for a few cells, with these cells and their lines.
    mixed: dict[str, str] = field(default_factory=dict)
    empty: list[str] = field(default_factory=list)  # names of columns that have no values
    notes: list[str] = field(default_factory=list)  # what the reader decided, in words
    source: Any = None  # the text that it was read from, to write it again with few changes
    missing: tuple[str, ...] = ()  # words that mean a missing value, besides NA and the like
    # Whether `texts` describe the rows, as `obs` of an AnnData does, and were never meant as features.
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
        column = self.select([name])
        column = np.asarray(column.toarray() if is_sparse(column) else column)[:, 0]
        return np.array(["" if np.isnan(value) else f"{value:.12g}" for value in column.tolist()])

    def as_numbers(self, name: str) -> npt.NDArray[Any]:
        """A column as numbers where all of it are, also if they are among the annotations of an h5ad; else as text."""
        if name in self.names and not is_sparse(self.values):
            return np.asarray(self.select([name])[:, 0])
        try:
            return self.as_text(name).astype(np.float64)
        except ValueError:
            return self.as_text(name)

    def check_has(self, names: Collection[str], option: str) -> None:
        """Refuse columns that the table lacks, with the one that was probably meant."""
        if unknown := [name for name in names if name not in self.columns]:
            hint = did_you_mean(unknown[0], self.columns)
            have = "." if hint else f", only {listed(self.columns)}."
            raise TableFileError(f"{self.path!r} has no column {listed(unknown)}{have}{hint}", option=option)


def take_columns(values: Rows, columns: list[int]) -> Rows:
    """Some columns of a table; the table itself if they are all of its columns in order."""
    return values if columns == list(range(values.shape[1])) else values[:, columns]


def without_empty(names: list[str], values: Array) -> tuple[list[str], Array, list[str]]:
    """Names and values of the columns that have any, and the names of the others."""
    empty = np.asarray(np.isnan(values).all(axis=0)).tolist()
    kept = [j for j, is_empty in enumerate(empty) if not is_empty]
    return [names[j] for j in kept], take_columns(values, kept), list(itertools.compress(names, empty))


def check_distinct(path: str, names: list[str]) -> None:
    """Refuse two columns of the same name."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise TableFileError(
            f"{path!r} has more than one column named {listed(repeated)}: column names must be unique."
        )
