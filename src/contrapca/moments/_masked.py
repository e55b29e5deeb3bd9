"""Groups of rows with holes: complete rows as moments, the others as masked rows (F9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .._array import Array
from ..exceptions import NonFiniteError
from ._accumulate import accumulate_dense
from ._moments import DenseScatter, Moments, check_finite, deviation_beyond_rounding, rounding_variance
from ._two import TwoGroups


@dataclass(frozen=True)
class MaskedRows:
    """Rows of which some values are missing; rows with the same pattern of holes stand together.

    Attributes
    ----------
    values : ndarray of shape (n, D)
        Deviations from the group's mean, 0 where missing.
    masks : ndarray of shape (P, D)
        1 where a pattern has a value, 0 where a hole; float, to be multiplied with.
    counts : ndarray of shape (P,)
        Rows of each pattern.
    """

    values: Array
    masks: Array
    counts: npt.NDArray[np.int64]

    @cached_property
    def square(self) -> float:
        """Sum of all squared values."""
        return float(np.vdot(self.values, self.values))

    @cached_property
    def observed(self) -> Array:
        """Number of values in each pattern, shape (P,)."""
        return self.masks.sum(axis=1)

    def by_row(self, of_patterns: Array) -> Array:
        """Each row's entry of an array whose last axis is the patterns."""
        return of_patterns if self.all_differ else np.repeat(of_patterns, self.counts, axis=-1)

    def by_pattern(self, of_rows: Array) -> Array:
        """Sums over the rows of each pattern, rows being the last axis."""
        return of_rows if self.all_differ else np.add.reduceat(of_rows, np.cumsum(self.counts) - self.counts, axis=-1)

    @property
    def all_differ(self) -> bool:
        """Whether no two rows have the same pattern."""
        return self.counts.size == self.values.shape[0]


@dataclass(frozen=True)
class MaskedGroup:
    """One group about a mean: what the objective needs to know of its observed values.

    Attributes
    ----------
    weight : float
        Number of rows, incomplete ones included.
    mean : ndarray of shape (D,)
    observed : ndarray of shape (D,)
        How often each feature was observed.
    complete : Moments or None
        The complete rows, where they outnumber the features; their scatter is about `mean`.
    rows : MaskedRows or None
        All others.
    squares : ndarray of shape (D,)
        Sum of squared deviations from `mean` of each feature.
    """

    weight: float
    mean: Array
    observed: Array
    complete: Moments | None
    rows: MaskedRows | None
    squares: Array

    @property
    def cells(self) -> float:
        """Number of observed values."""
        return float(self.observed.sum())

    @property
    def variances(self) -> Array:
        """Mean squared deviation of each feature from `mean`, shape (D,)."""
        return self.squares / self.observed

    @property
    def mean_variance(self) -> float:
        """Mean squared deviation of all observed values."""
        return float(self.squares.sum()) / self.cells

    def rounding_variance(self) -> float:
        """The variance that rounding of the mean can give a constant feature, at most."""
        return rounding_variance(self.weight, self.mean)

    def deviations(self) -> Array:
        """Standard deviation of each feature, 1 for features that are constant up to rounding, shape (D,)."""
        return pooled_observed_deviation([self])

    def counts(self) -> tuple[Array, Array]:
        """(values, rows): how many rows have how many observed values, shape (k,) each."""
        values: list[Array] = []
        rows: list[Array] = []
        if self.complete is not None:
            values.append(np.array([float(self.mean.size)]))
            rows.append(np.array([self.complete.weight]))
        if self.rows is not None:
            values.append(self.rows.observed)
            rows.append(self.rows.counts.astype(float))
        return np.concatenate(values), np.concatenate(rows)

    def scaled(self, divisor: Array) -> MaskedGroup:
        """The group in units of `divisor`, shape (D,)."""
        return replace(
            self,
            mean=self.mean / divisor,
            complete=None if self.complete is None else self.complete.scaled(divisor),
            rows=None if self.rows is None else replace(self.rows, values=self.rows.values / divisor),
            squares=self.squares / divisor**2,
        )

    def about(self, mean: Array) -> MaskedGroup:
        """The same rows about another mean, shape (D,)."""
        shift, rows, complete, squares = self.mean - mean, self.rows, self.complete, np.zeros(mean.size)
        if rows is not None:
            values = rows.values + rows.by_row(rows.masks.T).T * shift
            rows, squares = replace(rows, values=values), squares + np.einsum("ij,ij->j", values, values)
        if complete is not None:
            complete = _about(complete, complete.mean, self.mean, mean)
            squares = squares + complete.scatter.diagonal()
        return replace(self, mean=mean, rows=rows, complete=complete, squares=squares)


def _about(moments: Moments, centre: Array, old: Array, new: Array) -> Moments:
    """Moments whose scatter, about `old`, is moved to `new`; `centre` is the rows' own mean."""
    before, after = centre - old, centre - new
    matrix = moments.scatter.dense() + moments.weight * (np.outer(after, after) - np.outer(before, before))
    return replace(moments, scatter=DenseScatter(matrix))


def pooled_observed_deviation(groups: Sequence[MaskedGroup]) -> Array:
    """Standard deviation of each feature's observed values within the groups, 1 where constant up to rounding, (D,)."""
    counts = np.sum([group.observed for group in groups], axis=0)
    squares = np.sum([group.squares for group in groups], axis=0)
    return deviation_beyond_rounding(squares, np.maximum(counts, 1), [group.mean for group in groups])


@dataclass(frozen=True)
class MaskedPair(TwoGroups[MaskedGroup]):
    """Both groups with holes; the counterpart of `Pair`."""

    def multiplications(self, d: int) -> float:
        """Multiplications in the largest product of an evaluation of the objective with d components."""
        return max(group.weight for group in self.groups) * self.n_features * d * (d + 1) / 2

    def terms(self, gamma: float) -> list[tuple[float, MaskedGroup]]:
        """(1, foreground) and (-gamma_raw, background) at gamma' = `gamma`; groups that do not count are left out."""
        terms = [(1.0, self.foreground)]
        if self.background is not None and gamma != 0:
            terms.append((-gamma / self.ratio, self.background))
        return terms


def observe(rows: Array) -> tuple[MaskedGroup, int]:
    """A group of rows with holes (NaN) about the means of its observed values, and how many rows had no value at all.

    Parameters
    ----------
    rows : (n, D) ndarray, NaN where missing
        Infinite values are refused.
    """
    n, D = rows.shape
    holes = np.isnan(rows)
    empty = holes.all(axis=1)
    if empty.any():
        rows, holes = rows[~empty], holes[~empty]
    observed = rows.shape[0] - holes.sum(axis=0).astype(np.float64)
    filled = np.where(holes, 0.0, rows).astype(np.float64, copy=False)
    with np.errstate(invalid="ignore", over="ignore"):
        sums = filled.sum(axis=0)
    check_finite(sums, filled)
    mean = sums / np.maximum(observed, 1)
    filled -= mean
    filled[holes] = 0.0
    with np.errstate(over="ignore"):
        squares = np.einsum("ij,ij->j", filled, filled)
    if not np.isfinite(squares).all():
        worst = int(np.argmin(np.isfinite(squares)))
        raise NonFiniteError("Input contains values too large to be squared: rescale them.", worst)
    full = ~holes.any(axis=1)
    complete = None
    if np.count_nonzero(full) > D:
        own = accumulate_dense(filled[full])
        # `filled` is about `mean` already: back to the rows' own mean, and the scatter from there.
        complete = _about(replace(own, mean=own.mean + mean), own.mean, own.mean, np.zeros(D))
        filled, holes = filled[~full], holes[~full]
    weight = float(n - np.count_nonzero(empty))
    return MaskedGroup(weight, mean, observed, complete, _by_pattern(filled, holes), squares), int(empty.sum())


def _by_pattern(values: Array, holes: npt.NDArray[np.bool_]) -> MaskedRows | None:
    """Rows sorted by their pattern of holes."""
    if values.shape[0] == 0:
        return None
    packed, pattern, counts = np.unique(np.packbits(~holes, axis=1), axis=0, return_inverse=True, return_counts=True)
    masks = np.unpackbits(packed, axis=1, count=values.shape[1]).astype(np.float64)
    order = np.argsort(pattern.reshape(-1), kind="stable")
    return MaskedRows(values[order], masks, counts)
