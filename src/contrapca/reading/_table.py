"""What is read from a file, and the columns of two such tables in one order."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array, Rows, is_sparse
from .._util.text import Option, Worded, did_you_mean, listed, plural, spelling
from ..data.checks import same_row_names
from ..exceptions import TableFileError
from ._hidden import dropped_columns, hidden_by
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


def align(
    cases: DataTable, controls: DataTable, *, without: Collection[str] = (), common: bool = False
) -> tuple[list[str] | None, Rows, Rows]:
    """The features of two tables (None if neither has names), and the values of both in the order of the cases.

    All columns must be in both, unless only the common ones are asked for.
    """
    left = [name for name in cases.names if name not in without]
    right = [name for name in controls.names if name not in without]
    if not (cases.named and controls.named):
        _check_widths(controls, len(right), f"{cases.path!r}", len(left))
        own = left if cases.named else right if controls.named else None
        return own, cases.select(left), controls.select(right)
    names = [name for name in left if name in set(right)]
    if_transposed: list[str | Worded] = []  # then the rows of both tables have the same names
    if cases.row_names is not None and same_row_names(cases.row_names, controls.row_names):
        alike = listed(cases.row_names, 3)
        add = f". The rows of both have the same names ({alike}): if these are features, add "
        if_transposed = [add, Option("transpose", True)]
    if not names:
        texts = {name: table.as_text(name).tolist() for table in (cases, controls) for name in table.texts}
        hidden = dropped_columns({name: cells for name, cells in texts.items() if name not in without})
        about = [part for finding in hidden for part in (" ", finding)]
        neither = f"{cases.path!r} and {controls.path!r} have no numeric columns in common"
        raise TableFileError(neither, *if_transposed, ".", *about)
    for table, other, lacking in ((controls, cases, {*left} - {*right}), (cases, controls, {*right} - {*left})):
        if lacking and not common:
            way_out = ["or add ", Option("common", True), " to continue without them", *if_transposed]
            raise _lacks(table, [name for name in other.names if name in lacking], f"{other.path!r}", way_out)
    return names, cases.select(names), controls.select(names)


def align_to(names: list[str] | None, n_features: int, table: DataTable, *, without: Collection[str] = ()) -> Rows:
    """The values of a table in the order of a model's features, by name or, if one has no names, by position."""
    given = [name for name in table.names if name not in without]
    if names is None or not table.named:
        _check_widths(table, len(given), "the model", n_features)
        return table.select(given)
    if lacking := [name for name in names if name not in set(given)]:
        raise _lacks(table, lacking, "the model", ["all are needed"], without)
    return table.select(names)


def _check_widths(table: DataTable, width: int, whose: str, wanted: int) -> None:
    if width != wanted:
        raise TableFileError(
            f"{table.path!r} has {plural(width, 'numeric column')} and {whose} has {wanted}: unless both have column "
            "names, they need the same number of columns."
        )


def _lacks(
    table: DataTable, names: list[str], whose: str, way_out: list[str | Worded], without: Collection[str] = ()
) -> TableFileError:
    """An error about columns that a table lacks: which of them it has, but not as numbers, and what to do about it."""
    left_out = [name for name in names if name in without and name in table.columns]
    others = [name for name in names if name not in left_out and (name in table.texts or name in table.empty)]
    hidden = [found for name in others if (found := hidden_by(table.as_text(name).tolist()))]
    spelt = {spelling(column): column for column in table.columns if column not in left_out}
    alike = [spelt[spelling(name)] for name in names if name not in others and spelling(name) in spelt]
    why: list[str | Worded] = []
    if left_out:
        why += [f" ({listed(left_out)} left out by ", Option("ignore"), " or the like)"]
    if others:
        why += [f" ({listed(others)} not numeric there{f', {hidden[0].reason}' if hidden else ''})"]
    if alike:
        differs = "differs" if len(alike) == 1 else "differ"
        why += [f" ({listed(alike)} there {differs} only in case or blanks)"]
    to_do: list[str | Worded] = ["correct the names, "] if len(left_out) + len(others) < len(names) else []
    to_do += ["write such cells as numbers, "] if others else []
    thousands = next((found for found in hidden if found.kind == "thousands separators"), None)
    to_do += [*thousands.way_out, ", "] if thousands else []
    lacks = f"{table.path!r} lacks {plural(len(names), 'numeric column')} of {whose}: {listed(names)}"
    return TableFileError(lacks, *why, "; ", *to_do, *way_out, ".")
