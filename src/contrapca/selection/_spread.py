"""The test on the second half of the rows: does the foreground spread more along the axes? (F18, F44)"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.special

from .._util.arrays import EPS, Array
from ..blocks import Indices
from ..groups import Groups
from ._relabel import is_doubtful, relabelled_p
from ._unit_values import about_unit_means, thinned, unit_values

# Below this fraction of the background's variance, the excess of the earlier axes cannot be inverted.
LEAST_EXCESS = 0.2
# A p-value near 1 would outweigh any evidence in the Cauchy rule (its score tends to minus infinity): truncate.
LARGEST_P = 0.99
SMALLEST_P = 1e-300  # keeps scores finite
NO_SKEWNESS = 1e-3  # below this, Pearson III is the normal distribution
TRIMMED = 20  # one in so many splits, those with the smallest p-values, counts no more than the next


def compare_spread(
    coordinates: Groups[Array], unit_of: Groups[Indices], rng: np.random.Generator, *, within: bool = False
) -> tuple[Array, Array]:
    """Statistic and p-value of each axis on the test half of one split.

    Distances are between rows of a unit (`within` blocks of two rows or more), or between rows of different units of a
    group.

    Parameters
    ----------
    coordinates : Groups of ndarray of shape (n_t, k), (m_t, k)
        Coordinates of the test rows along the axes.
    unit_of : Groups of ndarray of shape (n_t,), (m_t,)
    rng : Generator
        Thins units that have more rows than those of the other group, and relabels units.

    Returns
    -------
    statistics, p_values : ndarray of shape (k,)
    """
    labels, numbers = np.unique(np.concatenate(list(unit_of)), return_inverse=True)
    codes = unit_of.like(np.split(numbers, [len(unit_of.foreground)]))
    kept = thinned(codes, rng)
    codes = codes.map(lambda own, keep: own[keep], kept)
    coordinates = coordinates.map(lambda x, keep: x[keep], kept)
    effects = _without_earlier_axes(coordinates.map(about_unit_means, codes) if within else coordinates)
    remainders = coordinates.map(lambda x: x @ effects)
    values = remainders.map(lambda x, own: unit_values(x, own, labels.size, within=within), codes)
    # Cubes of very large or small numbers would leave the range of floating point.
    largest = np.maximum(*values.map(lambda own: np.nanmax(np.abs(own), axis=0)))
    x, y = values.map(lambda own: own / np.where(largest > 0, largest, 1.0))
    x_here, y_here = values.map(lambda own: ~np.isnan(own[:, 0]))
    both = x_here & y_here
    alone, paired = _unpaired(x[x_here & ~both], y[y_here & ~both]), _paired(x[both], y[both])
    variance = alone.variance + paired.variance
    scale = np.sqrt(np.where(variance > 0, variance, 1.0))
    statistic = (alone.difference + paired.difference) / scale
    skewness = (alone.third + paired.third) / scale**3
    p_values = upper_tail(statistic, skewness, alone.square_limit + paired.square_limit)
    if is_doubtful(remainders, codes, values, within=within):
        p_values = np.maximum(p_values, relabelled_p(remainders, codes, values, rng, within=within))
    return statistic, p_values


def _without_earlier_axes(coordinates: Groups[Array]) -> Array:
    """Each axis without the part that the earlier axes' excess explains: a combination (k, k) of all axes.

    With M = cov_X - cov_Y of the coordinates, x_<j M_<<^-1 M_<j is subtracted from axis j: for latents that only the
    foreground has, this is the part of axis j that comes from those found before. If M_<< is not clearly positive, the
    foreground's regression is used instead.
    """
    k = coordinates.foreground.shape[1]
    a, b = coordinates.map(lambda x: np.cov(x.T, ddof=0).reshape(k, k))
    excess = a - b
    effects = np.eye(k)
    for j in range(1, k):
        clear = scipy.linalg.eigvalsh(excess[:j, :j])[0] >= LEAST_EXCESS * np.trace(b[:j, :j]) / j
        matrix = excess if clear else a
        effects[:j, j] = -scipy.linalg.lstsq(matrix[:j, :j], matrix[:j, j])[0]
    return effects


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
    squares = centred * centred
    square = squares.mean(axis=0)
    skewness = np.mean(squares * centred, axis=0) / np.where(square > 0, square, 1.0) ** 1.5
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
    room = np.maximum(square_limit - statistic**2, EPS * square_limit)
    student = scipy.special.stdtr(freedom, -statistic * np.sqrt(freedom / room))
    small = np.abs(skewness) < NO_SKEWNESS
    shape = 4 / np.where(small, 1.0, skewness) ** 2
    at = np.maximum(shape + np.sign(skewness) * np.sqrt(shape) * statistic, 0.0)
    pearson = np.where(skewness > 0, scipy.special.gammaincc(shape, at), scipy.special.gammainc(shape, at))
    return np.maximum(student, np.where(small, 0.0, pearson))


def cauchy_combination(p_values: Array) -> Array:
    """Combine p-values (n_splits, k) into one per column: the trimmed Cauchy rule (F44).

    Splits share rows. For equicorrelated normal statistics the plain Cauchy rule (Liu & Xie 2020) exceeds its level by
    a factor that grows with their number: at level .05 and the worst correlation 1.44 for 21 and 1.59 for 51 splits.
    Its excess comes from the smallest few p-values, which trimming replaces by the next.
    """
    p_values = np.sort(np.clip(p_values, SMALLEST_P, LARGEST_P), axis=0)
    trimmed = min(max(len(p_values) // TRIMMED, 1), len(p_values) - 1)
    score = np.mean(1 / np.tan(np.pi * np.maximum(p_values, p_values[trimmed])), axis=0)
    return np.arctan2(1.0, score) / np.pi
