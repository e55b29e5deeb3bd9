"""Columns of covariates, as numbers or as named categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array, is_sparse
from .._util.devices import on_device
from .._util.text import is_missing, listed, plural
from ..exceptions import GroupError
from ..groups import aligned, column_names

CATEGORIES = ("categor", "enum")  # how the types of such columns begin

Values = npt.NDArray[Any]  # one column: numbers, or text as objects


@dataclass(frozen=True)
class Column:
    """One covariate: its name and, if it is categorical, its levels, of which the first is the reference."""

    name: str
    levels: tuple[str, ...] | None = None

    @property
    def encoded(self) -> list[str]:
        """Names of the columns of numbers that stand for it."""
        return [self.name] if self.levels is None else [f"{self.name}={level}" for level in self.levels[1:]]

    def _check_values(self) -> None:
        """Raise if there is no such covariate."""
        if self.levels is not None and len(self.levels) < 2:
            raise ValueError(f"the levels of its covariate {self.name!r} are impossible")

    def numbers(self, values: Values, argument: str) -> Array:
        """The columns of numbers, shape (n, 1), or (n, levels - 1)."""
        if self.levels is None:
            if values.dtype == object:
                raise GroupError(f"{argument}: {self.name!r} was a column of numbers in the fit, and is text here.")
            return values[:, None]
        texts = list(map(str, values.tolist()))
        unknown = sorted(set(texts) - set(self.levels))
        if unknown:
            raise GroupError(
                f"{argument}: {self.name!r} is {listed(unknown)} in some rows, but the fit had only "
                f"{listed(self.levels)}, so the effect of other values is unknown. Leave these rows out."
            )
        return np.array([[float(text == level) for level in self.levels[1:]] for text in texts])


def unnamed(count: int) -> list[str]:
    """Names of columns that have none."""
    return [f"covariate {j + 1}" for j in range(count)]


def columns_of(
    table: Any, n_rows: int, argument: str, beside: Any, categorical: Sequence[bool] = ()
) -> tuple[list[str], list[Values]]:
    """Names and values of the columns, without missing ones: numbers, or categories as text.

    Parameters
    ----------
    table : array-like or data frame of shape (n, q)
        The covariates.
    n_rows : int
    argument : str
        What the user calls them.
    beside : array-like or data frame of shape (n, D)
        The table of features, whose rows they are of.
    categorical : sequence of bool
        Which columns are known to be categories.
    """
    if is_sparse(table) or on_device(table):
        raise TypeError(f"{argument} must be a NumPy array or a data frame, with one row per sample.")
    table = aligned(table, beside, argument)
    numeric = isinstance(table, np.ndarray) and table.dtype.kind in "biuf"
    values = np.asarray(table, dtype=np.float64 if numeric else object)
    one = values.ndim == 1
    values = values[:, None] if one else values
    if values.ndim != 2 or len(values) != n_rows or values.shape[1] == 0:
        raise GroupError(
            f"{argument} has shape {np.shape(table)} for {plural(n_rows, 'row')}: pass one row for each row of the "
            "table, and a column for each covariate."
        )
    given = [name] if one and (name := getattr(table, "name", None)) is not None else column_names(table)
    names = unnamed(values.shape[1]) if given is None else list(map(str, given))
    if len(set(names)) < len(names):
        raise GroupError(f"{argument} has several columns of the same name: {listed(names)}.")
    # Numbers may name categories, which pandas and polars say of their column.
    kinds = [getattr(table, "dtype", None)] if one else getattr(table, "dtypes", [None] * len(names))
    named = [str(kind).lower().startswith(CATEGORIES) for kind in kinds]
    known = [*categorical, *[False] * len(names)]
    parts = zip(values.T, names, named, known, strict=False)
    return names, [_typed(own, f"{argument}: {name!r}", a or b) for own, name, a, b in parts]


def _typed(values: Values, where: str, categorical: bool) -> Values:
    """A column as floats, or as an array of objects if it is text or named categories."""
    if values.dtype == object:
        missing = np.array([is_missing(value) or value == "" for value in values])
    else:
        missing = np.isnan(values)
    if missing.any():
        raise GroupError(
            f"{where} is missing in {plural(int(missing.sum()), 'row')} (the first is row {np.argmax(missing)}, "
            "counting from 0): fill it in, or leave these rows out."
        )
    is_text = [isinstance(value, str) for value in values] if values.dtype == object else [False]
    if categorical or any(is_text):
        if all(is_text) and not categorical and _are_numbers(values):
            raise GroupError(
                f"{where} has numbers written as text, such as {values[0]!r}. Convert them to numbers or, if they name "
                "categories, to words or pandas' category type."
            )
        return np.array(list(map(str, values)), dtype=object)
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        kind = type(values[0]).__name__
        raise GroupError(f"{where} has values of type {kind}: covariates are numbers or text.") from error
    if not np.isfinite(numbers).all():
        raise GroupError(f"{where} is infinite in row {np.argmin(np.isfinite(numbers))}, counting from 0.")
    return numbers


def _are_numbers(texts: Values) -> bool:
    try:
        texts.astype(np.float64)
    except ValueError:
        return False
    return True


def levels_of(values: Sequence[Values]) -> tuple[str, ...] | None:
    """Sorted levels of a column in all groups; None for numbers."""
    if all(own.dtype != object for own in values):
        return None
    return tuple(sorted({str(value) for own in values for value in own.tolist()}))


def numbers_of(columns: Sequence[Column], values: Sequence[Values], argument: str) -> Array:
    """The columns of numbers of all covariates, shape (n, q)."""
    return np.hstack([column.numbers(own, argument) for column, own in zip(columns, values, strict=True)])


def check_same(names: list[str], wanted: list[str], argument: str) -> None:
    """Raise unless the columns are the wanted ones, by name where both have names."""
    if len(names) != len(wanted) or (names != wanted and unnamed(len(wanted)) not in (names, wanted)):
        raise GroupError(
            f"{argument} has the columns {listed(names)}, but those of the others, or of the fit, are "
            f"{listed(wanted)}: pass the same, in the same order."
        )
