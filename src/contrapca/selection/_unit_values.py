"""How far apart the rows of units are, whatever their numbers of rows (F44)."""

from __future__ import annotations

import numpy as np

from .._util.arrays import Array
from ..blocks import Indices
from ..groups import Groups
from ._splits import Flags


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
    return codes.map(lambda own, quota: places_in_units(own, rng.random(own.size)) < quota[own], quotas)


def places_in_units(codes: Indices, keys: Array) -> Indices:
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
    counts = np.maximum(np.bincount(codes), 1)
    means = np.column_stack([np.bincount(codes, weights=column) for column in x.T]) / counts[:, None]
    centred: Array = (x - means[codes]) / np.sqrt(1 - 1 / counts[codes])[:, None]
    return centred


def unit_values(x: Array, codes: Indices, n_units: int, *, within: bool) -> Array:
    """How far the rows of each unit are from each other (`within`), or from those of the group's other units.

    Both have the same expectation for units of any number of rows. The second are jackknife values: their mean is the
    group's mean distance, and they vary as much as independent ones would.

    Parameters
    ----------
    x : ndarray of shape (n, k)
    codes : ndarray of shape (n,)
        The unit of each row, below `n_units`.
    within : bool

    Returns
    -------
    ndarray of shape (n_units, k)
        nan for units without rows.
    """
    counts = np.bincount(codes, minlength=n_units)
    here = np.flatnonzero(counts)
    _, own = np.unique(codes, return_inverse=True)
    sizes, n = counts[here][:, None], here.size
    inside = np.zeros((n, x.shape[1]))  # mean of |x_i - x_j| over rows i and j of the unit, i = j included
    if sizes.max() > 1:
        inside = np.column_stack([_distances_inside(column, own, sizes[:, 0]) for column in x.T])
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


def _distances_inside(x: Array, codes: Indices, sizes: Indices) -> Array:
    """Mean of |x_i - x_j| over all pairs of rows of each unit, i = j included, shape (n_units,)."""
    coefficients = 2 * places_in_units(codes, x) - sizes[codes] + 1
    first = x[np.unique(codes, return_index=True)[1]]  # about a row of the unit
    return 2 * np.bincount(codes, coefficients * (x - first[codes])) / sizes**2
