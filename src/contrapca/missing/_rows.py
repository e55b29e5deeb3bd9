"""Groups of incomplete rows: the complete ones as moments, the others as masked rows (F9)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from operator import add
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array, Rows, row_slices
from ..data import Groups
from ..data.rows import DaskRows, storage
from ..moments import DenseScatter, Moments, weighted_terms

T = TypeVar("T")
CACHED = 2**17  # residuals computed at a time: 1 MB


@dataclass(frozen=True)
class MaskedRows:
    """Rows with missing values, sorted by pattern of missing features."""

    # (n, D): deviations from the group's mean, 0 where missing, times the roots of the rows' weights: all but the means
    # is quadratic in them
    values: Array
    masks: Array  # (P, D): 1 where a pattern has a value, 0 where it is missing; float, for products
    row_counts: npt.NDArray[np.int64]  # (P,): number of rows of each pattern
    weights: Array  # (n,): how often each row counts

    @cached_property
    def pattern_weights(self) -> Array:
        """How often the rows of each pattern count together, shape (P,)."""
        return self.by_pattern(self.weights)

    @property
    def roots(self) -> Array:
        """Roots of the weights, shape (n, 1)."""
        return np.sqrt(self.weights)[:, None]

    @cached_property
    def value_counts(self) -> Array:
        """Number of values in each pattern, shape (P,)."""
        return self.masks.sum(axis=1)

    def by_row(self, of_patterns: Array) -> Array:
        """Expand an array from patterns to rows along its last axis."""
        return of_patterns if self.all_differ else np.repeat(of_patterns, self.row_counts, axis=-1)

    def by_pattern(self, of_rows: Array) -> Array:
        """Sum over the rows of each pattern; rows are the last axis."""
        starts = np.cumsum(self.row_counts) - self.row_counts
        return of_rows if self.all_differ else np.add.reduceat(of_rows, starts, axis=-1)

    @cached_property
    def patterns(self) -> npt.NDArray[np.intp]:
        """The pattern of each row, shape (n,)."""
        return np.repeat(np.arange(self.row_counts.size), self.row_counts)

    def residual_sums(self, Z: Array, W: Array) -> tuple[float, Array]:
        """Of the residuals r = x_o - W_o z of rows with latents Z (d, n): the sum of |r|^2, and that of z r', (d, D).

        Few rows at a time, so that their residuals stay in the processor's cache.
        """
        square, products = 0.0, np.zeros(W.shape[::-1])
        for block in row_slices(self.values.shape[0], max(CACHED // W.shape[0], 1)):
            residuals = Z[:, block].T @ W.T
            residuals *= self.masks[block if self.all_differ else self.patterns[block]]
            np.subtract(self.values[block], residuals, out=residuals)
            square += float(np.vdot(residuals, residuals))
            products += Z[:, block] @ residuals
        return square, products

    @property
    def all_differ(self) -> bool:
        """Whether no two rows have the same pattern."""
        return self.row_counts.size == self.values.shape[0]

    def by_count(self) -> Array:
        """How many rows have 0, 1, ..., D observed values, shape (D + 1,)."""
        counts = self.value_counts.astype(np.intp)
        found: Array = np.bincount(counts, self.pattern_weights, minlength=self.values.shape[1] + 1).astype(np.float64)
        return found

    def total(self, function: Callable[[MaskedRows], T]) -> T:
        """The result of a function of the rows, or a tuple of results; of rows in blocks their sum."""
        return function(self)

    def column_squares(self) -> Array:
        """Sum of squared values of each feature, shape (D,)."""
        return np.einsum("ij,ij->j", self.values, self.values)

    def scaled(self, divisor: Array) -> MaskedRows:
        """The rows in units of `divisor`, shape (D,)."""
        return replace(self, values=self.values / divisor)

    def shifted(self, shift: Array) -> MaskedRows:
        """The rows with `shift` (D,) added to observed values."""
        return replace(self, values=self.values + self.roots * (self.by_row(self.masks.T).T * shift))


@dataclass(frozen=True)
class MaskedGroup:
    """One group, centred by a mean: what the objective needs to know about its observed values."""

    weight: float  # number of rows, incomplete ones included, or the sum of their weights
    mean: Array  # (D,)
    feature_counts: Array  # (D,): how often each feature was observed, by weight
    complete: Moments | None  # the complete rows, if they outnumber the features; their scatter is about `mean`
    rows: MaskedRows | MaskedBlocks | None  # all other rows
    squares: Array  # (D,): sum of squared deviations from `mean` of each feature

    @property
    def cells(self) -> float:
        """Number of observed values."""
        return float(self.feature_counts.sum())

    @property
    def variance(self) -> Array:
        """Mean squared deviation of each feature from `mean`, shape (D,)."""
        return self.squares / self.feature_counts

    @property
    def mean_variance(self) -> float:
        """Mean squared deviation of all observed values."""
        return float(self.squares.sum()) / self.cells

    @property
    def typical_variance(self) -> float:
        """The median of the features' variances, or their mean if most are constant."""
        return float(np.median(self.variance)) or self.mean_variance

    @cached_property
    def by_count(self) -> Array:
        """How many rows have 0, 1, ..., D observed values, shape (D + 1,)."""
        found = np.zeros(self.mean.size + 1) if self.rows is None else self.rows.by_count()
        found[-1] += 0.0 if self.complete is None else self.complete.weight
        return found

    def counted(self, most: int) -> float:
        """Sum over rows of their number of observed values, each counted as at most `most`."""
        return float(np.minimum(most, np.arange(self.by_count.size)) @ self.by_count)

    @property
    def pairs_per_entry(self) -> float:
        """In how many rows two features are both observed, on average over all pairs (equal ones included)."""
        D = self.mean.size
        return float(np.arange(D + 1) ** 2 @ self.by_count) / D**2

    def scaled(self, divisor: Array) -> MaskedGroup:
        """The group in units of `divisor`, shape (D,)."""
        return replace(
            self,
            mean=self.mean / divisor,
            complete=None if self.complete is None else self.complete.scaled(divisor),
            rows=None if self.rows is None else self.rows.scaled(divisor),
            squares=self.squares / divisor**2,
        )

    def about(self, mean: Array) -> MaskedGroup:
        """The same rows, centred by another mean, shape (D,)."""
        rows, complete, squares = self.rows, self.complete, np.zeros(mean.size)
        if rows is not None:
            rows = rows.shifted(self.mean - mean)
            squares = squares + rows.total(MaskedRows.column_squares)
        if complete is not None:
            before, after = complete.mean - self.mean, complete.mean - mean
            moved = np.outer(after, after) - np.outer(before, before)
            complete = replace(complete, scatter=DenseScatter(complete.scatter.dense() + complete.weight * moved))
            squares = squares + complete.scatter.diagonal()
        return replace(self, mean=mean, rows=rows, complete=complete, squares=squares)


def counted_terms(groups: Groups[MaskedGroup], gamma: float) -> list[tuple[float, MaskedGroup]]:
    """(coefficient, group) at gamma', without groups whose coefficient is 0."""
    return [(c, group) for c, group in weighted_terms(groups, gamma) if c != 0]


def multiplications(groups: Groups[MaskedGroup], d: int) -> float:
    """Multiplications in the largest product of an evaluation of the objective with d components."""
    return max(group.weight * group.mean.size for group in groups) * d * (d + 1) / 2


def observe(rows: Rows, weights: Array | None = None) -> tuple[MaskedGroup, int]:
    """A group of incomplete rows, centred by the means of its observed values, and the number of rows without any
    value; rows that count 0 times are left out."""
    if isinstance(rows, DaskRows):
        return _observe_chunks(rows, weights)
    n, D = rows.shape
    w = np.ones(n) if weights is None else weights
    if np.any(w == 0):
        rows, w = rows[w > 0], w[w > 0]
    absent = np.isnan(rows)
    empty = absent.all(axis=1)
    if empty.any():
        rows, absent, w = rows[~empty], absent[~empty], w[~empty]
    total = float(w.sum())
    counts = np.where(absent.any(axis=0), w @ ~absent, total)
    filled = np.where(absent, 0.0, rows).astype(np.float64, copy=False)
    sums = filled.sum(axis=0) if weights is None else w @ filled
    mean = sums / np.where(counts > 0, counts, 1.0)
    filled -= mean
    filled[absent] = 0.0
    if weights is not None:
        filled *= np.sqrt(w)[:, None]
    with np.errstate(over="ignore"):
        squares = np.einsum("ij,ij->j", filled, filled)
    full = ~absent.any(axis=1)
    complete = None
    n_full = int(np.count_nonzero(full))
    if n_full > D:
        # `filled` is already centred by `mean`, as the scatter must be.
        own, own_w = filled[full], w[full]
        own_mean = np.sqrt(own_w) @ own / own_w.sum() + mean
        scatter = DenseScatter(storage(own).scatter(own, np.zeros(D)))
        complete = Moments(float(own_w.sum()), own_mean, scatter)
        filled, absent, rest = filled[~full], absent[~full], w[~full]
    else:
        rest = w
    return MaskedGroup(total, mean, counts, complete, by_pattern(filled, absent, rest), squares), int(empty.sum())


def by_pattern(values: Array, absent: npt.NDArray[np.bool_], weights: Array) -> MaskedRows | None:
    """Rows sorted by pattern of missing values."""
    if values.shape[0] == 0:
        return None
    packed, pattern, counts = np.unique(np.packbits(~absent, axis=1), axis=0, return_inverse=True, return_counts=True)
    masks = np.unpackbits(packed, axis=1, count=values.shape[1]).astype(np.float64)
    order = np.argsort(pattern.reshape(-1), kind="stable")
    return MaskedRows(values[order], masks, counts, weights[order])


# ---------------------------------------------------------------------- rows in chunks


@dataclass(frozen=True)
class MaskedBlocks:
    """Rows with missing values in blocks, in place of `MaskedRows`: sums over rows are made by `total`."""

    blocks: Any
    counts: Array  # (D + 1,): how many rows have 0, 1, ..., D observed values

    def total(self, function: Callable[[MaskedRows], T]) -> T:
        found: T = self.blocks.reduce(lambda rows: None if rows is None else function(rows), _added)
        return found

    def by_count(self) -> Array:
        return self.counts.copy()

    def scaled(self, divisor: Array) -> MaskedBlocks:
        return self._map(lambda rows: rows.scaled(divisor))

    def shifted(self, shift: Array) -> MaskedBlocks:
        return self._map(lambda rows: rows.shifted(shift))

    def _map(self, function: Callable[[MaskedRows], MaskedRows]) -> MaskedBlocks:
        return replace(self, blocks=self.blocks.map(lambda rows: None if rows is None else function(rows)))


def _added(left: Any, right: Any) -> Any:
    if left is None or right is None:
        return right if left is None else left
    return tuple(map(add, left, right)) if isinstance(left, tuple) else left + right


def _observe_chunks(rows: DaskRows, weights: Array | None) -> tuple[MaskedGroup, int]:
    """`observe` of rows on a cluster: one pass for the means, one to centre the values, which then stay there."""
    D = rows.shape[1]

    def sums(block: Array, w: Array | None) -> tuple[Any, ...]:
        counted = np.ones(block.shape[0]) if w is None else w
        there = ~np.isnan(block)
        full = there.any(axis=1)
        number = there.sum(axis=1)
        by_count = np.bincount(number[full], counted[full], minlength=D + 1)
        return counted @ there, counted @ np.where(there, block, 0.0), by_count, int(np.count_nonzero(~full))

    counts, totals, by_count, empty = rows.reduce(sums, _added, weights)
    mean = totals / np.where(counts > 0, counts, 1.0)

    def centred(block: Array, w: Array | None) -> MaskedRows | None:
        absent = np.isnan(block)
        full = ~absent.all(axis=1)
        counted = np.ones(block.shape[0]) if w is None else w
        values = np.where(absent, 0.0, block.astype(np.float64) - mean)
        return by_pattern((np.sqrt(counted)[:, None] * values)[full], absent[full], counted[full])

    blocks = MaskedBlocks(rows.keep(centred, weights), by_count)
    with np.errstate(over="ignore"):
        squares = blocks.total(MaskedRows.column_squares)
    return MaskedGroup(float(by_count.sum()), mean, counts, None, blocks, squares), empty
