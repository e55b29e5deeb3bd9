"""Covariates: from columns to numbers, and the regression that takes them out of rows (F35)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .._files import check_values
from .._util.arrays import Array, Rows, is_sparse, on_device
from .._util.text import is_missing, listed, plural, said_group
from ..exceptions import GroupError
from ._groups import Groups
from ._names import aligned, column_names
from ._tables import Tables, column_means, is_moments

CATEGORIES = ("categor", "enum")  # how the types of such columns begin
Values = npt.NDArray[Any]  # one column: numbers, or text as objects
Flags = npt.NDArray[np.bool_]
CONSTANT = 1e-12  # spread of a column, relative to its size, below which it is rounding
REDUNDANT = 1e-8  # part of a column that is left after those before it, below which it is a combination of them
ROUNDING = 1e3  # of the values' precision: deviations that are smaller are all rounding


@dataclass(frozen=True)
class Column:
    """One covariate: its name and, if it is categorical, its levels; the first is the reference."""

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
    """Names and values of the columns (n, q), without missing ones: numbers, or categories as text.

    `argument` is what the user calls them; they stand `beside` a table of features, whose row names they must have.
    Columns that are known to be `categorical` are that whatever they hold.
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
        texts = np.array(list(map(str, values)), dtype=object)
        if categorical or not all(is_text):
            return texts
        try:
            texts.astype(np.float64)
        except ValueError:
            return texts
        raise GroupError(
            f"{where} has numbers written as text, such as {values[0]!r}. Convert them to numbers or, if they name "
            "categories, to words or pandas' category type."
        )
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        kind = type(values[0]).__name__
        raise GroupError(f"{where} has values of type {kind}: covariates are numbers or text.") from error
    if not np.isfinite(numbers).all():
        raise GroupError(f"{where} is infinite in row {np.argmin(np.isfinite(numbers))}, counting from 0.")
    return numbers


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


@dataclass(frozen=True)
class Encoded:
    """Covariates of all groups as numbers, and what else is regressed out with them.

    Attributes
    ----------
    columns : tuple of Column
    numbers : Groups of ndarray of shape (n_k, q)
        The last columns are those of a design, which new rows do not have.
    """

    columns: tuple[Column, ...]
    numbers: Groups[Array]

    @property
    def names(self) -> list[str]:
        """Names of the columns of covariates."""
        return [name for column in self.columns for name in column.encoded]


def encoded_covariates(tables: Tables, covariates: Groups[dict[str, Values]]) -> Encoded:
    """Covariates as numbers; `covariates` has the columns of all rows of the tables as they were given."""
    given = covariates.map(
        lambda own, kept: [values if kept is None else values[kept] for values in own.values()], tables.kept
    )
    columns = []
    for j, name in enumerate(covariates.foreground):
        values = [own[j] for own in given]
        levels = sorted({str(value) for own in values for value in own.tolist()})
        columns.append(Column(name, tuple(levels) if any(own.dtype == object for own in values) else None))
    numbers = given.map(lambda own: numbers_of(columns, own, "covariates"))
    return _checked(Encoded(tuple(columns), numbers), tables)


def checked_covariates(given: Groups[Any], rows: Groups[Any]) -> Groups[dict[str, Values]] | None:
    """The columns of covariates of all groups, by name; None if there are none.

    Rows that have names must have those of their covariates.
    """
    if all(own is None for own in given):
        return None
    found: list[dict[str, Values]] = []
    for group, own, table in zip(given.names, given, rows, strict=True):
        if own is None:
            raise GroupError(
                f"The {group} has no covariates, but the other group has: pass those of both, since both groups are "
                "adjusted alike."
            )
        names, values = columns_of(own, int(table.shape[0]), f"covariates of the {group}", table)
        if found:
            check_same(names, list(found[0]), f"covariates of the {group}")
        found.append(dict(zip(names, values, strict=True)))
    labels = next((list(own) for own in found if list(own) != unnamed(len(own))), list(found[0]))
    for j, name in enumerate(labels):
        if len({list(own.values())[j].dtype == object for own in found}) > 1:
            raise GroupError(f"covariates: {name!r} is text in one group, and a column of numbers in another.")
    return given.like(dict(zip(labels, own.values(), strict=True)) for own in found)


def check_dense(rows: Rows, group: str) -> None:
    """Raise unless rows are a NumPy array: adjusted rows are dense, and in memory."""
    if isinstance(rows, np.ndarray):
        return
    if is_sparse(rows):
        how = "is sparse: pass X.toarray(), of fewer features if that is too large"
    elif is_moments(rows):
        how = "was given as Moments: adjust the rows first (regress_out), and take the moments of the result"
    elif on_device(rows):
        how = "is on a device: pass it as a NumPy array, for example X.cpu().numpy() (torch) or cupy.asnumpy(X)"
    else:
        how = "is read in blocks: pass it as an array in memory, for example with numpy.asarray"
    raise TypeError(f"Adjusted rows are dense, but the {group} {how}.")


def _checked(encoded: Encoded, tables: Tables) -> Encoded:
    """The covariates as numbers; raise if they say nothing, or too much."""
    for column in encoded.columns:
        if not column.encoded:  # one level
            raise _constant(column.name)
    for name, numbers in zip(encoded.numbers.names, encoded.numbers, strict=True):
        if np.linalg.matrix_rank(numbers - numbers.mean(axis=0)) >= len(numbers) - 1:
            raise GroupError(
                "The covariates explain the ",
                said_group(name),
                f" entirely: {plural(len(encoded.names), 'column')} of numbers "
                f"({listed(encoded.names)}) for {plural(len(numbers), 'row')}. Use fewer covariates or levels; a "
                "category of its own for each row explains everything.",
            )
    centred = about_means(encoded.numbers, tables.weights)
    size = np.abs(np.vstack(list(encoded.numbers))).max(axis=0)
    if np.any(same := np.abs(centred).max(axis=0) <= CONSTANT * size):
        raise _constant(encoded.names[int(np.argmax(same))])
    # The part of each column that is left after those before it.
    left = np.abs(np.diag(np.linalg.qr(centred / np.linalg.norm(centred, axis=0), mode="r")))
    if np.any(left < REDUNDANT):
        raise GroupError(
            f"The covariate {encoded.names[int(np.argmax(left < REDUNDANT))]!r} is a combination of those before it "
            f"({listed(encoded.names)}): leave it out."
        )
    return encoded


def _constant(name: str) -> GroupError:
    return GroupError(
        f"The covariate {name!r} is the same in all rows of each group, so it explains nothing within them, and means "
        "of groups are never compared: leave it out."
    )


def about_means(numbers: Groups[Array], weights: Groups[Array | None]) -> Array:
    """Columns of numbers about the means of each group, times the square roots of the weights, stacked."""
    return np.vstack(list(numbers.map(about_mean, weights)))


def about_mean(table: Array, weights: Array | None) -> Array:
    """Rows about their mean, times the square roots of their weights."""
    centred: Array = table - np.average(table, axis=0, weights=weights)
    return centred if weights is None else centred * np.sqrt(weights)[:, None]


@dataclass(frozen=True)
class Regression:
    """What covariates explain of the features, the same in all groups.

    Attributes
    ----------
    columns : tuple of Column
        The covariates as they were given; q columns of numbers stand for them.
    reference : ndarray of shape (q,)
        Their mean over all rows: rows are adjusted to it.
    coefficients : ndarray of shape (q, D)
        The effect of one unit of each on each feature, in original units.
    """

    columns: tuple[Column, ...]
    reference: Array
    coefficients: Array

    @property
    def names(self) -> list[str]:
        """Names of the q columns of numbers."""
        return [name for column in self.columns for name in column.encoded]

    @property
    def of_covariates(self) -> Regression | None:
        """Without the coefficients of a design, which are those of the rows that it was made for."""
        q = len(self.names)
        return Regression(self.columns, self.reference[:q], self.coefficients[:q]) if q else None

    def encoded(self, covariates: Any, X: Any, n_rows: int) -> Array:
        """Covariates of new rows as numbers, shape (n, q); a dict has the checked columns of a `Study`."""
        known = [column.levels is not None for column in self.columns]
        if isinstance(covariates, dict):
            names, values = list(covariates), list(covariates.values())
        else:
            names, values = columns_of(covariates, n_rows, "covariates", X, known)
        check_same(names, [column.name for column in self.columns], "covariates")
        return numbers_of(self.columns, values, "covariates")

    def effect(self, numbers: Array) -> Array:
        """What differs from rows with average covariates, shape (n, D)."""
        return (numbers - self.reference) @ self.coefficients

    def adjusted(self, rows: Rows, numbers: Array, group: str = "table") -> Rows:
        """Rows as they would be with average covariates; missing values stay missing."""
        check_dense(rows, group)
        return rows - self.effect(numbers).astype(rows.dtype)

    def _check_values(self) -> None:
        """Raise if no fit has these."""
        sizes = check_values(self, {"reference": "q", "coefficients": "qD"})
        if not self.columns or len(self.names) != sizes["q"]:
            raise ValueError("its covariates do not fit its coefficients")


def regression(tables: Tables, encoded: Encoded, chosen: Groups[Flags] | None = None) -> Regression:
    """Coefficients from all rows, or the chosen ones, each group about its own means (F35)."""
    for group, table in zip(tables.rows.names, tables.rows, strict=True):
        check_dense(table, group)
    rows, numbers, weights = tables.rows, encoded.numbers, tables.weights
    if chosen is not None:
        rows, numbers, weights = (_some(one, chosen) for one in (rows, numbers, weights))
    coefficients = _coefficients(rows, numbers, weights)
    for j in np.flatnonzero(np.isnan(coefficients[0])).tolist():
        column = rows.map(lambda table, j=j: table[:, j : j + 1])  # type: ignore[misc]
        observed = column.map(lambda values: ~np.isnan(values[:, 0]))
        counts = [int(own.sum()) for own in observed]
        if min(counts) == 0 or sum(counts) - len(counts) <= len(coefficients):
            raise GroupError(
                f"The feature {tables.feature(j)} is observed in too few rows ({listed(counts)}) to regress the "
                f"covariates {listed(encoded.names)} out of it: drop it from both groups, or use fewer covariates."
            )
        some = (_some(one, observed) for one in (column, numbers, weights))
        coefficients[:, j] = _coefficients(*some)[:, 0]
    totals = numbers.map(lambda Z, w: len(Z) if w is None else w.sum(), weights)
    means = numbers.map(lambda Z, w: np.average(Z, axis=0, weights=w), weights)
    return Regression(encoded.columns, np.average(list(means), axis=0, weights=list(totals)), coefficients)


def _some(values: Groups[Any], chosen: Groups[Flags]) -> Groups[Any]:
    return values.map(lambda own, rows: None if own is None else own[rows], chosen)


def _coefficients(rows: Groups[Array], numbers: Groups[Array], weights: Groups[Array | None]) -> Array:
    """Least squares with an intercept for each group, shape (q, D); nan for features with missing values.

    Of several solutions the shortest: a level that these rows lack has no effect.
    """
    Z = about_means(numbers, weights)
    norms = np.linalg.norm(Z, axis=0)
    constant = norms <= CONSTANT * np.linalg.norm(np.vstack(list(numbers)), axis=0)  # what is left is rounding
    Z[:, constant], norms[constant] = 0.0, 1.0
    U, s, Vt = np.linalg.svd(Z / norms, full_matrices=False)
    clear = s > REDUNDANT * s[0]
    ends = np.cumsum([len(table) for table in rows])[:-1]
    parts = zip(np.split(U[:, clear], ends), rows, weights, strict=True)
    inside: Any = sum(own.T @ about_mean(np.asarray(table, dtype=np.float64), w) for own, table, w in parts)
    found: Array = Vt[clear].T @ (inside / s[clear, None]) / norms[:, None]
    return found


def without_covariates(tables: Tables, encoded: Encoded, known: Regression | None = None) -> tuple[Tables, Regression]:
    """Tables adjusted to average covariates, by a known regression or by their own."""
    found = regression(tables, encoded) if known is None else known
    rows = tables.rows.map(found.adjusted, encoded.numbers)
    means = rows.map(lambda table, w: column_means(table, w, allow_missing=True), tables.weights)
    for name, before, after in zip(rows.names, tables.rows, rows, strict=True):
        total, left = (float(np.nansum((table - np.nanmean(table, axis=0)) ** 2)) for table in (before, after))
        if total > 0 and left <= (ROUNDING * np.finfo(after.dtype).eps) ** 2 * total:
            raise GroupError(
                f"The covariates {listed(found.names)} explain the ",
                said_group(name),
                " entirely: nothing is left to contrast. Use fewer of them. Is a feature among the covariates?",
            )
    return replace(tables, rows=rows, means=means), found
