"""The moments of one group of rows, whatever holds its scatter matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .._array import EPS, Array, Rows, is_sparse, row_slices
from ..exceptions import NonFiniteError

OBSERVED_BLOCK = 1000  # rows at a time, so that no copy of the table is made


class Scatter(Protocol):
    """A centred scatter matrix S = sum_i (x_i - mean)(x_i - mean)', a sum and not a mean.

    The storage varies (a matrix, or the rows themselves), the mathematics does not.
    """

    @property
    def trace(self) -> float:
        """tr S."""

    def diagonal(self) -> Array:
        """diag(S), shape (D,)."""

    def products(self, V: Array) -> list[Callable[[], Array]]:
        """Calls that return summands of S V, for V of shape (D, k); threads may share them."""

    @property
    def shares(self) -> int:
        """Into how many calls `products` splits the work: as many threads are of use."""

    def dense(self) -> Array:
        """S itself, shape (D, D)."""

    def scaled(self, divisor: Array) -> Scatter:
        """The scatter of the rows divided by `divisor`, shape (D,)."""


@dataclass(frozen=True)
class DenseScatter:
    """A scatter matrix held as a symmetric (D, D) array."""

    matrix: Array

    @property
    def trace(self) -> float:
        return float(np.trace(self.matrix))

    def diagonal(self) -> Array:
        return np.diagonal(self.matrix)

    def products(self, V: Array) -> list[Callable[[], Array]]:
        return [lambda: self.matrix @ V]

    @property
    def shares(self) -> int:
        return 1

    def dense(self) -> Array:
        return self.matrix

    def scaled(self, divisor: Array) -> DenseScatter:
        return DenseScatter(self.matrix / divisor[:, None] / divisor)


@dataclass(frozen=True)
class Moments:
    """Sum of weights, mean and centred scatter of one group of rows.

    Attributes
    ----------
    weight : float
        Sum of the row weights; the number of rows when rows are not weighted.
    mean : ndarray of shape (D,)
    scatter : Scatter
    """

    weight: float
    mean: Array
    scatter: Scatter

    def standard_deviation(self) -> Array:
        """Per-feature sd (ddof 0), with 1 for features that are constant up to rounding."""
        return pooled_deviation([self])

    def total_variance(self) -> float:
        """tr cov, 0 where it is only rounding."""
        total = self.scatter.trace / self.weight
        return total if total > self.mean.size * self.rounding_variance() else 0.0

    def rounding_variance(self) -> float:
        """The variance that rounding of the mean can give a constant feature, at most."""
        return rounding_variance(self.weight, self.mean)

    def scaled(self, divisor: Array) -> Moments:
        """The moments of the rows divided by `divisor`, shape (D,)."""
        return Moments(self.weight, self.mean / divisor, self.scatter.scaled(divisor))


def pooled_deviation(groups: Sequence[Moments]) -> Array:
    """Per-feature sd within the groups (ddof 0), 1 for features constant in each up to rounding, shape (D,)."""
    weight = sum(group.weight for group in groups)
    squares = np.sum([group.scatter.diagonal() for group in groups], axis=0)
    return deviation_beyond_rounding(squares, weight, [group.mean for group in groups])


def deviation_beyond_rounding(squares: Array, counts: Array | float, means: Sequence[Array]) -> Array:
    """Per-feature sd from sums of squares of `counts` values, 1 where rounding of the means explains it, (D,)."""
    variance = squares / counts
    rounding = counts * EPS * np.max(np.abs(means), axis=0)
    return np.where(variance > rounding**2, np.sqrt(np.maximum(variance, 0.0)), 1.0)


def rounding_variance(weight: float, mean: Array) -> float:
    """The variance that rounding of the mean can give a constant feature, at most."""
    return float((weight * EPS * np.abs(mean).max()) ** 2)


def finite_column_means(rows: Rows) -> Array:
    """Column means in float64, shape (D,); NaN and infinity are refused."""
    with np.errstate(invalid="ignore", over="ignore"):
        mean = np.asarray(rows.sum(axis=0, dtype=np.float64)).ravel() / rows.shape[0]
    check_finite(mean, rows)
    return mean


def check_finite(mean: Array, rows: Rows) -> None:
    """Refuse NaN and infinity: one bad value spoils its column's mean, so no pass of its own is needed."""
    bad = np.flatnonzero(~np.isfinite(mean))
    if not bad.size:
        return
    column = rows[:, [bad[0]]]
    missing = bool(np.isnan(column.data if is_sparse(rows) else column).any())
    where = f"in {bad.size} of {mean.size} features (the first is column {bad[0]}, counted from 0)"
    if missing:
        message = (
            f"Input contains NaN {where}. Only PPCA and PCPCA take missing values, in tables that are not sparse: use "
            "one of them, or fill the values first, for example with their impute()."
        )
    else:
        message = f"Input contains infinity or values too large to be summed {where}. Remove or rescale them."
    raise NonFiniteError(message, int(bad[0]), missing)


def has_holes(rows: Rows) -> bool:
    """Whether dense rows have missing values (NaN); infinity, and NaN in sparse rows, are refused."""
    try:
        finite_column_means(rows)
    except NonFiniteError as error:
        if not error.missing or is_sparse(rows):
            raise
        check_finite(np.where(np.isinf(rows).any(axis=0), np.inf, 0.0), np.where(np.isnan(rows), 0.0, rows))
        return True
    return False


def observed_columns(rows: Rows) -> tuple[Array, Array]:
    """Mean and standard deviation of the observed values of each column, block by block."""
    if is_sparse(rows):
        mean = np.asarray(rows.mean(axis=0)).ravel()
        square = np.asarray(rows.multiply(rows).mean(axis=0)).ravel()
        return mean, np.sqrt(np.maximum(square - mean**2, 0))
    count, total, squares = (np.zeros(rows.shape[1]) for _ in range(3))
    first = np.asarray(rows[:OBSERVED_BLOCK], dtype=np.float64)
    origin = np.nansum(first, axis=0) / np.maximum(
        np.sum(~np.isnan(first), axis=0), 1
    )  # squares about it do not cancel
    for part in row_slices(rows.shape[0], OBSERVED_BLOCK):
        block = np.asarray(rows[part], dtype=np.float64) - origin
        count += np.sum(~np.isnan(block), axis=0)
        total += np.nansum(block, axis=0)
        squares += np.nansum(block**2, axis=0)
    mean = total / np.maximum(count, 1)
    return mean + origin, np.sqrt(np.maximum(squares / np.maximum(count, 1) - mean**2, 0))
