"""What covariates explain of each feature, and rows without it (F35)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._files import check_values
from .._util.arrays import Array, Rows
from .._util.text import listed
from ..exceptions import GroupError
from ..groups import Groups, Tables, column_means
from ._columns import Column, check_same, columns_of, numbers_of
from ._design import REDUNDANT, Design, Flags, about_mean, about_means, check_dense

ROUNDING = 1e3  # of the values' precision: deviations that are smaller are all rounding


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

    def design(self, covariates: Any, X: Any, n_rows: int) -> Array:
        """Covariates of new rows as numbers, shape (n, q); a dict has the checked columns of a `Study`."""
        known = [column.levels is not None for column in self.columns]
        if isinstance(covariates, dict):
            names, values = list(covariates), list(covariates.values())
        else:
            names, values = columns_of(covariates, n_rows, "covariates", X, known)
        check_same(names, [column.name for column in self.columns], "covariates")
        return numbers_of(self.columns, values, "covariates")

    def effect(self, design: Array) -> Array:
        """What differs from rows with average covariates, shape (n, D)."""
        return (design - self.reference) @ self.coefficients

    def adjusted(self, rows: Rows, design: Array, group: str = "table") -> Rows:
        """Rows as they would be with average covariates; missing values stay missing."""
        check_dense(rows, group)
        return rows - self.effect(design).astype(rows.dtype)

    def _check_values(self) -> None:
        """Raise if no fit has these."""
        sizes = check_values(self, {"reference": "q", "coefficients": "qD"})
        if not self.columns or len(self.names) != sizes["q"]:
            raise ValueError("its covariates do not fit its coefficients")


def regression(tables: Tables, design: Design, chosen: Groups[Flags] | None = None) -> Regression:
    """Coefficients from all rows, or the chosen ones, each group about its own means (F35)."""
    for group, table in zip(tables.rows.names, tables.rows, strict=True):
        check_dense(table, group)
    rows, numbers, weights = tables.rows, design.numbers, tables.weights
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
                f"covariates {listed(design.names)} out of it: drop it from both groups, or use fewer covariates."
            )
        some = (_some(one, observed) for one in (column, numbers, weights))
        coefficients[:, j] = _coefficients(*some)[:, 0]
    totals = numbers.map(lambda Z, w: len(Z) if w is None else w.sum(), weights)
    means = numbers.map(lambda Z, w: np.average(Z, axis=0, weights=w), weights)
    return Regression(design.columns, np.average(list(means), axis=0, weights=list(totals)), coefficients)


def _some(values: Groups[Any], chosen: Groups[Flags]) -> Groups[Any]:
    return values.map(lambda own, rows: None if own is None else own[rows], chosen)


def _coefficients(rows: Groups[Array], numbers: Groups[Array], weights: Groups[Array | None]) -> Array:
    """Least squares with an intercept for each group, shape (q, D); nan for features with missing values.

    Of several solutions the shortest: a level that these rows lack has no effect.
    """
    Z = about_means(numbers, weights)
    norms = np.linalg.norm(Z, axis=0)
    norms[norms == 0] = 1.0
    U, s, Vt = np.linalg.svd(Z / norms, full_matrices=False)
    clear = s > REDUNDANT * s[0]
    ends = np.cumsum([len(table) for table in rows])[:-1]
    parts = zip(np.split(U[:, clear], ends), rows, weights, strict=True)
    inside: Any = sum(own.T @ about_mean(np.asarray(table, dtype=np.float64), w) for own, table, w in parts)
    found: Array = Vt[clear].T @ (inside / s[clear, None]) / norms[:, None]
    return found


def without_covariates(tables: Tables, design: Design, known: Regression | None = None) -> tuple[Tables, Regression]:
    """Tables adjusted to average covariates, by a known regression or by their own."""
    found = regression(tables, design) if known is None else known
    rows = tables.rows.map(found.adjusted, design.numbers)
    means = rows.map(lambda table, w: column_means(table, w, allow_missing=True), tables.weights)
    for name, before, after in zip(rows.names, tables.rows, rows, strict=True):
        total, left = (float(np.nansum((table - np.nanmean(table, axis=0)) ** 2)) for table in (before, after))
        if total > 0 and left <= (ROUNDING * np.finfo(after.dtype).eps) ** 2 * total:
            raise GroupError(
                f"The covariates {listed(found.names)} explain the {name} entirely: nothing is left to contrast. Use "
                "fewer of them. Is a feature among the covariates?"
            )
    return replace(tables, rows=rows, means=means), found
