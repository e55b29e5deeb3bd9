"""Whether cases spread more than controls along given axes (F18, F44)."""

from __future__ import annotations

import math

import numpy as np
import scipy.special

from .._util.arrays import EPS, Array
from ..data import Groups, Indices
from ._axes import Flags

# Below this fraction of the background's variance, the excess of the earlier axes cannot be inverted.
LEAST_EXCESS = 0.2

MIN_UNITS = 6  # three rows (or blocks) to find axes and three to test them: the jackknife needs so many
NO_SKEWNESS = 1e-3  # below this, Pearson III is the normal distribution
FEW_UNITS, MORE = 12, 2  # guarded: so few testing units in a group, if tied or if the other has over twice as many
RELABELLINGS = 1999
SAME = 1e-9  # of the range of all units: closer ones are equal
TIED = 1e-10  # difference of two values of a block, in units of the largest value, below which they are the same
MOST_UNITS = 200  # of the larger group, chosen at random beyond
MOST_ROWS = 1000  # of all units together


def compare_spread(
    coordinates: Groups[Array], unit_of: Groups[Indices], rng: np.random.Generator, *, within: bool = False
) -> tuple[Array, Array]:
    """Statistic and p-value of each axis on the test half of one split.

    Distances are between rows of a unit (`within` blocks of two rows or more), or between rows of different units of a
    group.

    `coordinates` (n_t, k) and (m_t, k) are those of the test rows along the axes. `rng` thins units that have more rows
    than those of the other group, and relabels units.
    """
    labels, numbers = np.unique(np.concatenate(list(unit_of)), return_inverse=True)
    codes = unit_of.like(np.split(numbers, [len(unit_of.foreground)]))
    kept = thinned(codes, rng)
    codes = codes.map(lambda own, keep: own[keep], kept)
    coordinates = coordinates.map(lambda x, keep: x[keep], kept)
    centred = coordinates.map(about_unit_means, codes) if within else coordinates
    effects = without_earlier_axes(*centred.map(lambda x: np.cov(x.T, ddof=0).reshape(x.shape[1], -1)))
    remainders = coordinates.map(lambda x: x @ effects)
    values = remainders.map(lambda x, own: unit_values(x, own, labels.size, within=within), codes)
    # Cubes of very large or small numbers would leave the range of floating point.
    largest = np.maximum(*values.map(lambda own: np.nanmax(np.abs(own), axis=0)))
    x, y = values.map(lambda own: own / np.where(largest > 0, largest, 1.0))
    x_here, y_here = values.map(lambda own: ~np.isnan(own[:, 0]))
    both = x_here & y_here
    # Independent kinds of units are added, weighted by inverse variances for units of equal variance. In blocks with
    # rows in both groups, labels are swapped within a block: that difference has no third moment.
    left, right = x[x_here & ~both], y[y_here & ~both]
    difference, variance, third, square_limit = np.zeros(x.shape[1]), np.zeros(x.shape[1]), np.zeros(x.shape[1]), 0
    if len(left) and len(right) and len(left) + len(right) > 2:
        first = np.repeat([1.0, 0.0], [len(left), len(right)])
        together = np.concatenate([left, right])
        difference, variance, third, square_limit = exchanged(together, first, np.zeros(first.size, dtype=np.intp))
    swapped = x[both] - y[both]
    swapped[np.abs(swapped) < TIED] = 0.0  # rounding, which has a sign: all of it alike would look like evidence
    variance = variance + (swapped**2).sum(axis=0) / 4
    scale = np.sqrt(np.where(variance > 0, variance, 1.0))
    statistic = (difference + swapped.sum(axis=0) / 2) / scale
    p_values = upper_tail(statistic, third / scale**3, square_limit + len(swapped))
    if _is_doubtful(remainders, codes, values, within=within):
        p_values = np.maximum(p_values, relabelled_p(remainders, codes, values, rng, within=within))
    return statistic, p_values


def without_earlier_axes(a: Array, b: Array) -> Array:
    """Each axis without the part that the earlier axes' excess explains: a combination (k, k) of all axes.

    With M = a - b, the covariances (k, k) of both groups' coordinates, x_<j M_<<^-1 M_<j is subtracted from axis j: for
    latents that only the foreground has, this is the part of axis j that comes from those found before. If M_<< is not
    clearly positive, the foreground's regression is used instead.
    """
    k = len(a)
    excess = a - b
    effects = np.eye(k)
    for j in range(1, k):
        clear = scipy.linalg.eigvalsh(excess[:j, :j])[0] >= LEAST_EXCESS * np.trace(b[:j, :j]) / j
        matrix = excess if clear else a
        effects[:j, j] = -scipy.linalg.lstsq(matrix[:j, :j], matrix[:j, j])[0]
    return effects


def exchanged(values: Array, scores: Array, groups: Indices) -> tuple[Array, Array, Array, int]:
    """T = sum a e of scores a (n,) and values e (n, k) about the means of their groups: a difference of two means if
    scores are 0 and 1. With its variance and third moment when values are exchanged within groups, and the largest
    square that it can reach once it is standardised.
    """
    order = np.argsort(groups, kind="stable")
    _, first, code, counts = np.unique(groups[order], return_index=True, return_inverse=True, return_counts=True)
    n, scores = counts[:, None], scores[order, None]

    def about_means(x: Array) -> Array:
        found: Array = x - (np.add.reduceat(x, first) / n)[code]
        return found

    a, e = about_means(scores), about_means(values[order])
    (a2, a3), (e2, e3) = ([np.add.reduceat(power, first) for power in (x * x, x * x * x)] for x in (a, e))
    variance = np.sum(a2 * e2 / np.maximum(n - 1, 1), axis=0)
    third = np.sum(np.where(n > 2, n * a3 * e3 / np.maximum((n - 1) * (n - 2), 1), 0.0), axis=0)
    differ = np.maximum.reduceat(scores, first) > np.minimum.reduceat(scores, first)
    return np.sum(a * e, axis=0), variance, third, int(np.sum((n - 1) * differ))


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


def thinned(codes: Groups[Indices], rng: np.random.Generator) -> Groups[Flags]:
    """Rows to keep, so that units of both groups have the same numbers of rows.

    A block with rows in both groups keeps as many in each. The others, sorted by their numbers of rows (ties at
    random), keep as many as the block at the same place of the other group, if these are fewer.
    """
    n_units = 1 + max(int(own.max()) for own in codes)
    sizes = codes.map(lambda own: np.bincount(own, minlength=n_units))
    if max(int(size.max()) for size in sizes) == 1:
        return codes.map(lambda own: np.ones(own.size, dtype=bool))
    x, y = sizes
    both = (x > 0) & (y > 0)
    quotas = sizes.map(lambda size: np.where(both, np.minimum(x, y), size))
    mine, theirs = (
        alone[np.lexsort((rng.random(alone.size), size[alone]))]
        for size, alone in ((x, np.flatnonzero(x * ~both)), (y, np.flatnonzero(y * ~both)))
    )
    if mine.size and theirs.size:
        for quota, size, own, other_size, others in zip(
            quotas, (x, y), (mine, theirs), (y, x), (theirs, mine), strict=True
        ):
            opposite = others[((np.arange(own.size) + 0.5) * others.size / own.size).astype(np.intp)]
            quota[own] = np.minimum(size[own], other_size[opposite])
    return codes.map(lambda own, quota: _places_in_units(own, rng.random(own.size)) < quota[own], quotas)


def _places_in_units(codes: Indices, keys: Array) -> Indices:
    """The place (0, 1, ...) of each row among the rows of its unit, in order of their keys."""
    order, counts = np.argsort(keys), np.bincount(codes)
    # A stable sort of 16-bit numbers is a radix sort: this takes a twentieth of the time of lexsort.
    units = codes.astype(np.uint16 if counts.size <= 2**16 else np.intp)
    order = order[np.argsort(units[order], kind="stable")]
    places = np.empty_like(order)
    places[order] = np.arange(codes.size) - (np.cumsum(counts) - counts)[codes[order]]
    return places


def about_unit_means(x: Array, codes: Indices) -> Array:
    """Rows (n, k) about the mean of their unit, with the variance of single rows: units may differ in size."""
    means, own = unit_means(x, codes)
    centred: Array = (x - means[own]) / np.sqrt(1 - 1 / np.bincount(own)[own])[:, None]
    return centred


def unit_values(x: Array, codes: Indices, n_units: int, *, within: bool) -> Array:
    """How far the rows of each unit are from each other (`within`), or from those of the group's other units.

    Both have the same expectation for units of any number of rows. The second are jackknife values: their mean is the
    group's mean distance, and they vary as much as independent ones would.

    `codes` has the unit of each row of x (n, k), below `n_units`. Units without rows are nan.
    """
    counts = np.bincount(codes, minlength=n_units)
    here = np.flatnonzero(counts)
    _, own = np.unique(codes, return_inverse=True)
    sizes, n = counts[here][:, None], here.size
    inside = np.zeros((n, x.shape[1]))  # mean of |x_i - x_j| over rows i and j of the unit, i = j included
    if sizes.max() > 1:
        first = np.unique(codes, return_index=True)[1]
        for column, mean in zip(x.T, inside.T, strict=True):
            coefficients = 2 * _places_in_units(own, column) - sizes[own, 0] + 1
            # About a row of the unit: equal rows get distances of exactly 0.
            mean[:] = 2 * np.bincount(own, coefficients * (column - column[first[own]])) / sizes[:, 0] ** 2
    found = np.full((n_units, x.shape[1]), np.nan)
    if within:
        found[here] = inside * sizes / (sizes - 1)
        return found
    share = 1 / sizes[own, 0]
    every = np.column_stack([np.bincount(own, share * _distances(column, share)) for column in x.T])
    apart = (every - inside) / (n - 1)
    found[here] = (2 * (n - 1) * apart - n * apart.mean(axis=0)) / (n - 2)
    return found


def _distances(x: Array, weights: Array) -> Array:
    """sum_j w_j |x_i - x_j| for every i, by sorting, shape (n,)."""
    order = np.argsort(x)
    # About a value of the middle: equal rows get distances of exactly 0, others keep their digits.
    ordered = x[order] - x[order[order.size // 2]]
    w = np.cumsum(weights[order])
    s = np.cumsum(weights[order] * ordered)
    found = np.empty_like(x)
    found[order] = ordered * (2 * w - w[-1]) - 2 * s + s[-1]
    return found


def _is_doubtful(coordinates: Groups[Array], codes: Groups[Indices], values: Groups[Array], *, within: bool) -> bool:
    """Whether few units face many, or few units are tied: a variance and a skewness may not describe the difference.

    Of four rows (a, a, b, b) all values are equal: two groups of these seem to be perfectly apart.
    """
    few, many = sorted(np.unique(own).size for own in codes)
    if few > FEW_UNITS or many > MORE * few:
        return few <= FEW_UNITS
    if within:
        return any(_has_ties(own[~np.isnan(own[:, 0])]) for own in values)
    return any(_has_ties(means) for means, _ in coordinates.map(unit_means, codes))


def _has_ties(x: Array) -> bool:
    """Whether two of the rows (n, k) are equal in some column, but for rounding."""
    return bool(np.any(np.diff(np.sort(x, axis=0), axis=0) <= SAME * np.ptp(x, axis=0)))


def unit_means(x: Array, codes: Indices) -> tuple[Array, Indices]:
    """Means of the rows (n, k) of each unit that has any, and which of these means each row belongs to, (n,)."""
    _, own = np.unique(codes, return_inverse=True)
    return np.column_stack([np.bincount(own, column) for column in x.T]) / np.bincount(own)[:, None], own


def relabelled_p(
    coordinates: Groups[Array], codes: Groups[Indices], values: Groups[Array], rng: np.random.Generator, *, within: bool
) -> Array:
    """p-value of the difference of the groups' mean distances among random exchanges of labels, shape (k,).

    Labels of blocks in both groups are swapped, those of others permuted; the same exchanges serve all axes.

    `within` blocks, it is their `values` that are exchanged; nan for units without rows.
    """
    units = codes.map(np.unique)
    sign = 1.0
    if len(units.foreground) > min(map(len, units)):  # the few units first: their labels are drawn
        sign = -1.0
        units, coordinates, codes, values = (
            own.like(list(own)[::-1])
            for own in (units, coordinates, codes, values)  # type: ignore[attr-defined]
        )
    few, many = units
    alone = np.setdiff1d(many, few)
    if alone.size > MOST_UNITS:
        many = np.sort(np.append(np.intersect1d(few, many), rng.choice(alone, MOST_UNITS, replace=False)))
    units, drawn = units.like([few, many]), _drawn_labels(few, many, rng)
    if within:
        columns = np.vstack(list(values.map(lambda own, chosen: own[chosen], units))).T
        sums, k, h = columns[:, drawn].sum(axis=2), few.size, many.size
        differences = sums / k - (columns.sum(axis=1, keepdims=True) - sums) / h
    else:
        most = max(1, MOST_ROWS // sum(map(len, units)))
        keep = codes.map(
            lambda own, chosen: np.isin(own, chosen) & (_places_in_units(own, rng.random(own.size)) < most), units
        )
        x = coordinates.map(lambda x, own, chosen: _centred_units(x[chosen], own[chosen]), codes, keep)
        first, second = codes.map(lambda own, chosen, kept: np.searchsorted(chosen, own[kept]), units, keep)
        cells = np.append(first, few.size + second)
        differences = np.array(
            [_difference_of_distances(_cell_distances(column, cells), drawn) for column in np.vstack(list(x)).T]
        )
    differences *= sign
    observed = differences[:, :1]
    as_large = differences[:, 1:] >= observed - 1e3 * EPS * np.abs(observed)  # equal exchanges are rounded differently
    return (1 + np.count_nonzero(as_large, axis=1)) / (1 + RELABELLINGS)


def _drawn_labels(few: Indices, many: Indices, rng: np.random.Generator) -> Indices:
    """Cells that make up the smaller group, (1 + RELABELLINGS, few), the observed ones first.

    Cells are the units of the smaller group, then those of the larger: a block in both has two.
    """
    both, of_few, of_many = np.intersect1d(few, many, return_indices=True)
    alone = np.concatenate(
        [np.setdiff1d(np.arange(few.size), of_few), few.size + np.setdiff1d(np.arange(many.size), of_many)]
    )
    swap = rng.random((RELABELLINGS, both.size)) < 0.5
    keys = rng.random((RELABELLINGS, alone.size))
    chosen = alone[np.argpartition(keys, few.size - both.size, axis=1)[:, : few.size - both.size]]
    drawn = np.hstack([np.where(swap, few.size + of_many, of_few), chosen])
    return np.vstack([np.arange(few.size), drawn])


def _difference_of_distances(distances: Array, drawn: Indices) -> Array:
    """Mean distance between the drawn cells less that between the others, for every relabelling."""
    k, h = drawn.shape[1], len(distances) - drawn.shape[1]
    inside = distances[drawn[:, :, None], drawn[:, None, :]].sum(axis=(1, 2))
    outside = distances.sum() - 2 * distances.sum(axis=1)[drawn].sum(axis=1) + inside
    return inside / (k * (k - 1)) - outside / (h * (h - 1))


def _centred_units(x: Array, codes: Indices) -> Array:
    """Rows about the mean of the unit means, which are stretched to the variance that they have about the true one."""
    means, own = unit_means(x, codes)
    middle = np.median(means, axis=0)
    fixed = np.mean(np.abs(means - middle) <= SAME * np.ptp(means, axis=0), axis=0) >= 0.5  # such as rows of zeros
    centre = np.where(fixed, middle, means.mean(axis=0))
    stretch = np.where(fixed, 1.0, math.sqrt(len(means) / (len(means) - 1)))
    centred: Array = x - means[own] + (stretch * (means - centre))[own]
    return centred


def _cell_distances(x: Array, cells: Indices) -> Array:
    """Mean of |x_i - x_j| over rows i and j of any two cells, 0 of a cell and itself.

    It is the integral of F (1 - G) + (1 - F) G, where F and G are the shares of the cells' rows at or below a value.
    """
    n = int(cells.max()) + 1
    if n == x.size:
        return np.abs(x[:, None] - x)[np.ix_(np.argsort(cells), np.argsort(cells))]
    order = np.argsort(x)
    steps = np.zeros((n, x.size))
    steps[cells[order], np.arange(x.size)] = (1 / np.bincount(cells))[cells[order]]
    F = np.cumsum(steps, axis=1)[:, :-1]
    half = (F * np.diff(x[order])) @ (1 - F).T
    found: Array = half + half.T
    np.fill_diagonal(found, 0.0)
    return found
