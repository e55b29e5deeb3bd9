"""The test on the second half of the rows: does the foreground spread more along the axes? (F18)"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.special

from .._util.arrays import TINY, Array
from ..blocks import Indices
from ..groups import Groups
from ._splits import Flags

# Below this fraction of the background's variance, the excess of the earlier axes cannot be inverted.
LEAST_EXCESS = 0.2
# A p-value near 1 would outweigh any evidence in the Cauchy rule (its score tends to minus infinity): truncate.
LARGEST_P = 0.99
SMALLEST_P = 1e-300  # keeps scores finite
NO_SKEWNESS = 1e-3  # below this, Pearson III is the normal distribution


def compare_spread(
    coordinates: Groups[Array], unit_of: Groups[Indices], *, within: bool = False
) -> tuple[Array, Array]:
    """Statistic and p-value of each axis on the test half of one split.

    Deviations are from the mean of the unit (`within` blocks of two rows or more), or from the median of the group.

    Parameters
    ----------
    coordinates : Groups of ndarray of shape (n_t, k), (m_t, k)
        Coordinates of the test rows along the axes.
    unit_of : Groups of ndarray of shape (n_t,), (m_t,)

    Returns
    -------
    statistics, p_values : ndarray of shape (k,)
    """
    labels, numbers = np.unique(np.concatenate(list(unit_of)), return_inverse=True)
    codes = unit_of.like(np.split(numbers, [len(unit_of.foreground)]))
    if within:
        coordinates = coordinates.map(lambda x, own: _about_unit_means(x, own, labels.size), codes)
    remainders = _without_earlier_axes(coordinates)
    deviations = remainders.map(np.abs if within else lambda x: np.abs(x - np.median(x, axis=0)))
    (x_means, x_here), (y_means, y_here) = deviations.map(lambda x, own: _unit_means(x, own, labels.size), codes)
    n, m = int(x_here.sum()), int(y_here.sum())
    if not within:
        # Deviations from a group's own median are too small by about sqrt(1 - 1 / units): make both equally so.
        y_means = y_means * math.sqrt((1 - 1 / n) / (1 - 1 / m))
    both = x_here & y_here
    alone, paired = _unpaired(x_means[x_here & ~both], y_means[y_here & ~both]), _paired(x_means[both], y_means[both])
    variance = alone.variance + paired.variance
    scale = np.sqrt(np.where(variance > 0, variance, 1.0))
    statistic = (alone.difference + paired.difference) / scale
    skewness = (alone.third + paired.third) / scale**3
    return statistic, upper_tail(statistic, skewness, alone.square_limit + paired.square_limit)


def _without_earlier_axes(coordinates: Groups[Array]) -> Groups[Array]:
    """Coordinates along each axis, without the part that the earlier axes' excess explains.

    With M = cov_X - cov_Y of the coordinates, x_<j M_<<^-1 M_<j is subtracted from axis j: for latents that only the
    foreground has, this is the part of axis j that comes from those found before. If M_<< is not clearly positive, the
    foreground's regression is used instead.
    """
    k = coordinates.foreground.shape[1]
    a, b = coordinates.map(lambda x: np.cov(x.T, ddof=0).reshape(k, k))
    excess = a - b
    effects = np.eye(k)  # remainder of each axis, as a combination of all axes
    for j in range(1, k):
        clear = scipy.linalg.eigvalsh(excess[:j, :j])[0] >= LEAST_EXCESS * np.trace(b[:j, :j]) / j
        matrix = excess if clear else a
        effects[:j, j] = -scipy.linalg.lstsq(matrix[:j, :j], matrix[:j, j])[0]
    return coordinates.map(lambda x: x @ effects)


def _unit_means(deviations: Array, codes: Indices, n_units: int) -> tuple[Array, Flags]:
    """Mean deviation of each unit (n_units, k), and which units have rows."""
    counts = np.bincount(codes, minlength=n_units)
    sums = np.column_stack([np.bincount(codes, weights=column, minlength=n_units) for column in deviations.T])
    return sums / np.maximum(counts, 1)[:, None], counts > 0


def _about_unit_means(x: Array, codes: Indices, n_units: int) -> Array:
    """Rows (n, k) about the mean of their unit, with the variance of single rows: units may differ in size."""
    means, _ = _unit_means(x, codes, n_units)
    counts = np.bincount(codes, minlength=n_units)[codes]
    centred: Array = (x - means[codes]) / np.sqrt(1 - 1 / counts)[:, None]
    return centred


@dataclass(frozen=True)
class _Exchange:
    """A weighted difference of means (k,) and its distribution when group labels are permuted at random.

    Independent kinds of units are added, weighted by inverse variances for units of equal variance.

    Attributes
    ----------
    difference, variance, third : ndarray of shape (k,)
        The observed difference, and its variance and third moment over permutations.
    square_limit : int
        The largest square that the standardised difference can reach.
    """

    difference: Array
    variance: Array
    third: Array
    square_limit: int


def _unpaired(x: Array, y: Array) -> _Exchange:
    """Units with rows in one group, (n, k) and (m, k): all labels are permuted."""
    n, m = len(x), len(y)
    M = n + m
    if min(n, m) == 0 or M <= 2:
        nothing = np.zeros(x.shape[1])
        return _Exchange(nothing, nothing, nothing, 0)
    values = np.concatenate([x, y])
    centred = values - values.mean(axis=0)
    square = np.mean(centred**2, axis=0)
    skewness = np.mean(centred**3, axis=0) / np.where(square > 0, square, 1.0) ** 1.5
    weight = n * m / M
    variance = weight * square * M / (M - 1)
    third = variance**1.5 * skewness * (M - 2 * n) * math.sqrt(M - 1) / ((M - 2) * math.sqrt(n * m))
    return _Exchange(weight * (x.mean(axis=0) - y.mean(axis=0)), variance, third, M - 1)


def _paired(x: Array, y: Array) -> _Exchange:
    """Blocks with rows in both groups, (P, k) each: labels are swapped within a block."""
    difference = x - y
    return _Exchange(difference.sum(axis=0) / 2, (difference**2).sum(axis=0) / 4, np.zeros(x.shape[1]), len(difference))


def upper_tail(statistic: Array, skewness: Array, square_limit: int) -> Array:
    """Upper tail probability of a standardised statistic: the larger of Student's and Pearson III's.

    A statistic standardised by the variance of all units, whose square cannot exceed a limit c, is Student's t with c -
    1 degrees of freedom after t = z sqrt((c - 1) / (c - z^2)): exactly for Gaussian units, and to two moments under
    permuted labels. For many units this is the normal distribution. Pearson III adds the skewness.
    """
    freedom = square_limit - 1
    room = np.maximum(square_limit - statistic**2, TINY)
    student = scipy.special.stdtr(freedom, -statistic * np.sqrt(freedom / room))
    small = np.abs(skewness) < NO_SKEWNESS
    shape = 4 / np.where(small, 1.0, skewness) ** 2
    at = np.maximum(shape + np.sign(skewness) * np.sqrt(shape) * statistic, 0.0)
    pearson = np.where(skewness > 0, scipy.special.gammaincc(shape, at), scipy.special.gammainc(shape, at))
    return np.maximum(student, np.where(small, 0.0, pearson))


def cauchy_combination(p_values: Array) -> Array:
    """Combine p-values (n_splits, k) into one per column: Cauchy rule (Liu & Xie 2020), corrected for dependence.

    Splits share rows. For equicorrelated normal statistics, the rule exceeds its level by a factor that grows with
    their number: at level .05 and the worst correlation by 1.09, 1.23, 1.35, 1.44 and 1.59 for 2, 5, 11, 21 and 51
    splits (simulated; less at lower levels). 1 + log(n_splits) / 7 follows these.
    """
    excess = 1 + math.log(len(p_values)) / 7
    p_values = np.clip(p_values, SMALLEST_P, LARGEST_P)
    score = np.mean(1 / np.tan(np.pi * p_values), axis=0)
    return np.minimum(excess * np.arctan2(1.0, score) / np.pi, 1.0)
