"""A guard where few units face many, or are tied: the difference after the groups' labels are exchanged (F44)."""

from __future__ import annotations

import math

import numpy as np

from .._util.arrays import EPS, Array
from ..blocks import Indices
from ..groups import Groups
from ._unit_values import places_in_units

FEW_UNITS, MORE = 12, 2  # guarded: so few testing units in a group, if tied or if the other has over twice as many
RELABELLINGS = 1999
SAME = 1e-9  # of the range of all units: closer ones are equal
MOST_UNITS = 200  # of the larger group, chosen at random beyond
MOST_ROWS = 1000  # of all units together


def is_doubtful(coordinates: Groups[Array], codes: Groups[Indices], values: Groups[Array], *, within: bool) -> bool:
    """Whether few units face many, or few units are tied: a variance and a skewness may not describe the difference.

    Of four rows (a, a, b, b) all values are equal: two groups of these seem to be perfectly apart.
    """
    few, many = sorted(np.unique(own).size for own in codes)
    if few > FEW_UNITS or many > MORE * few:
        return few <= FEW_UNITS
    if within:
        return any(_has_ties(own[~np.isnan(own[:, 0])]) for own in values)
    return any(map(_has_ties, coordinates.map(_unit_means, codes)))


def _has_ties(x: Array) -> bool:
    """Whether two of the rows (n, k) are equal in some column, but for rounding."""
    return bool(np.any(np.diff(np.sort(x, axis=0), axis=0) <= SAME * np.ptp(x, axis=0)))


def _unit_means(x: Array, codes: Indices) -> Array:
    _, own = np.unique(codes, return_inverse=True)
    found: Array = np.column_stack([np.bincount(own, column) for column in x.T]) / np.bincount(own)[:, None]
    return found


def relabelled_p(
    coordinates: Groups[Array], codes: Groups[Indices], values: Groups[Array], rng: np.random.Generator, *, within: bool
) -> Array:
    """p-value of the difference of the groups' mean distances among random exchanges of labels, shape (k,).

    Labels of blocks in both groups are swapped, those of others permuted; the same exchanges serve all axes.

    Parameters
    ----------
    coordinates : Groups of ndarray of shape (n_t, k), (m_t, k)
    codes : Groups of ndarray of shape (n_t,), (m_t,)
    values : Groups of ndarray of shape (n_units, k)
        Unit values, nan for units without rows; `within` blocks these are what is exchanged.
    """
    units = codes.map(np.unique)
    sign = 1.0
    if len(units.foreground) > min(map(len, units)):  # the few units first: their labels are drawn
        sign = -1.0
        units, coordinates, codes, values = (
            own.like(list(own)[::-1])
            for own in (units, coordinates, codes, values)  # type: ignore[attr-defined]
        )
    few, many = units.foreground, _some(units, rng)
    units, drawn = units.like([few, many]), _drawn_labels(few, many, rng)
    if within:
        columns = np.vstack(list(values.map(lambda own, chosen: own[chosen], units))).T
        differences = np.array([_difference_of_values(column, drawn) for column in columns])
    else:
        most = max(1, MOST_ROWS // sum(map(len, units)))
        keep = codes.map(
            lambda own, chosen: np.isin(own, chosen) & (places_in_units(own, rng.random(own.size)) < most), units
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


def _some(units: Groups[Indices], rng: np.random.Generator) -> Indices:
    """Of the second group, all units in both groups and at most `MOST_UNITS` of the others."""
    few, many = units
    alone = np.setdiff1d(many, few)
    if alone.size > MOST_UNITS:
        many = np.sort(np.append(np.intersect1d(few, many), rng.choice(alone, MOST_UNITS, replace=False)))
    return many


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


def _difference_of_values(values: Array, drawn: Indices) -> Array:
    """Mean of the drawn cells less that of the others, for every relabelling."""
    k, h = drawn.shape[1], values.size - drawn.shape[1]
    sums = values[drawn].sum(axis=1)
    return sums / k - (values.sum() - sums) / h


def _difference_of_distances(distances: Array, drawn: Indices) -> Array:
    """Mean distance between the drawn cells less that between the others, for every relabelling."""
    k, h = drawn.shape[1], len(distances) - drawn.shape[1]
    inside = distances[drawn[:, :, None], drawn[:, None, :]].sum(axis=(1, 2))
    outside = distances.sum() - 2 * distances.sum(axis=1)[drawn].sum(axis=1) + inside
    return inside / (k * (k - 1)) - outside / (h * (h - 1))


def _centred_units(x: Array, codes: Indices) -> Array:
    """Rows about the mean of the unit means, which are stretched to the variance that they have about the true one."""
    _, own = np.unique(codes, return_inverse=True)
    means = _unit_means(x, codes)
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
