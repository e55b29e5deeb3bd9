"""How long rows are: a few long ones are shortened, so that they do not decide a fit (F42); fourth powers (F47)."""

from __future__ import annotations

from dataclasses import replace
from operator import add
from typing import Any

import numpy as np

from .._util.arrays import Array, Rows, chosen, host, is_sparse, namespace, on_device, put
from ..data import Tables, column_means
from ..data.rows import DaskRows, blocks, storage
from ._moments import Moments

REACH = 3 * 1.4826  # median absolute deviations: three standard deviations of Gaussian lengths
CENTRE_ROWS = 1000  # rows that the centre is the median of, at most


def shortened(tables: Tables) -> Tables:
    """The tables with weights and means that make no row longer than most.

    Row i counts in proportion to w_i s_i^2, and all rows of a group together as often as before. Here s_i = min(1,
    (median + 3 x 1.4826 MAD of the lengths) / length_i), with lengths from the medians of the features in each group;
    missing values are left out of the root mean square that a length is. So a row that is far away counts as if it were
    at the longest distance that is usual, and sparse rows stay sparse. Moments have no rows, and remain as they are.
    """
    if tables.shortened is not None or any(isinstance(rows, Moments) for rows in tables.rows):
        return tables
    factors = tables.rows.map(_factors, tables.weights)
    found = factors.map(lambda own: np.flatnonzero(own < 1))

    def weighted(weights: Array | None, own: Array) -> Array | None:
        if not np.any(own < 1):
            return weights
        before = np.ones(own.size) if weights is None else weights
        after: Array = before * own**2
        return after * (before.sum() / after.sum())

    weights = tables.weights.map(weighted, factors)
    means = tables.rows.map(
        lambda rows, mean, w, long: column_means(rows, w, allow_missing=True) if long.size else mean,
        tables.means,
        weights,
        found,
    )
    return replace(tables, weights=weights, means=means, shortened=found)


def _factors(rows: Rows, weights: Array | None) -> Array:
    """s of each row, shape (n,)."""
    some = np.ones(rows.shape[0], dtype=bool)
    if some.size > CENTRE_ROWS:
        some[np.random.default_rng(0).permutation(some.size)[CENTRE_ROWS:]] = False
    read = rows[np.flatnonzero(some)] if isinstance(rows, DaskRows) else chosen(rows, some)
    centre = _medians(read, None if weights is None else weights[some])
    if isinstance(rows, DaskRows):
        lengths = np.concatenate(rows.reduce(lambda block: [_lengths(block, centre)], add))
    else:
        lengths = np.concatenate([_lengths(block, centre) for block in blocks(rows)])
    usual = weighted_median(lengths, weights)
    reach = usual + REACH * weighted_median(np.abs(lengths - usual), weights)
    if not usual < reach < np.inf:  # most rows are alike, so nothing tells how long rows usually are
        return np.ones(lengths.size)
    least = np.finfo(np.float64).tiny ** 0.25  # weights stay above 0
    return np.maximum(np.minimum(1.0, reach / np.maximum(lengths, reach)), least)


@np.errstate(over="ignore", invalid="ignore")
def _lengths(block: Any, centre: Array) -> Array:
    """Root mean square distance of each row from the centre, over observed values, shape (n,); 0 without values."""
    block = _readable(block)
    if is_sparse(block):
        values = block.data.astype(np.float64)
        squares = np.add.reduceat(np.append(values * values, 0.0), block.indptr[:-1]) * (np.diff(block.indptr) > 0)
        total = squares - 2 * (block @ centre) + centre @ centre
        return np.asarray(np.sqrt(np.maximum(total, 0.0) / centre.size))
    distances = block - put(centre, block)
    if not isinstance(distances, np.ndarray):  # on a device, where no value is missing
        return host(namespace(block).linalg.vector_norm(distances, axis=1)).astype(np.float64) / np.sqrt(centre.size)
    total = np.einsum("ij,ij->i", distances, distances)
    if not np.isnan(total).any():  # in one pass
        return np.sqrt(total.astype(np.float64) / centre.size)
    seen = ~np.isnan(distances)
    return np.sqrt(np.sum(np.where(seen, distances * distances, 0.0), axis=1) / np.maximum(seen.sum(axis=1), 1))


def _readable(rows: Any) -> Any:
    """Rows whose values can be read: those of a library that NumPy does not know as its module prepares them."""
    known = isinstance(rows, np.ndarray) or is_sparse(rows) or on_device(rows)
    return rows if known else storage(rows).prepared(rows)


def _medians(rows: Any, weights: Array | None) -> Array:
    """Median of the observed values of each feature, shape (D,)."""
    rows = _readable(rows)
    if on_device(rows) and weights is None:
        xp, middle = namespace(rows), (rows.shape[0] - 1) // 2
        ordered = xp.sort(rows, axis=0)
        found = host(ordered[middle, :] + ordered[rows.shape[0] // 2, :]).astype(np.float64) / 2
        if not np.isnan(host(ordered[-1, :])).any():  # where a value is missing, it comes last
            return found
    if is_sparse(rows):
        columns = rows.tocsc()
        centre = np.zeros(columns.shape[1])
        # Others have more zeros than values; a zero is their median, but where nearly all values have one sign.
        for j in np.flatnonzero(np.diff(columns.indptr) >= rows.shape[0] / 2):
            inside = slice(columns.indptr[j], columns.indptr[j + 1])
            column = np.zeros(rows.shape[0])
            column[columns.indices[inside]] = columns.data[inside]
            centre[j] = weighted_median(column, weights)
        return centre
    table = host(rows).astype(np.float64)
    centre = np.median(table, axis=0) if weights is None else np.full(table.shape[1], np.nan)
    for j in np.flatnonzero(np.isnan(centre)):  # a value is missing, or rows count differently
        centre[j] = weighted_median(table[:, j], weights)
    return centre


def weighted_median(values: Array, weights: Array | None) -> float:
    """The median of values that count so often; of missing ones none does, and 0 where all are missing."""
    seen = ~np.isnan(values)
    if not seen.any():
        return 0.0
    if weights is None:
        return float(np.median(values[seen]))
    order = np.argsort(values[seen])
    ordered, total = values[seen][order], np.cumsum(weights[seen][order])
    half = total[-1] / 2
    last = ordered.size - 1
    lower = ordered[min(int(np.searchsorted(total, half * (1 - 1e-12))), last)]
    upper = ordered[min(int(np.searchsorted(total, half * (1 + 1e-12), side="right")), last)]
    return float((lower + upper) / 2)


def sum_of_fourth_powers(
    rows: Rows, mean: Array, divisor: Array, weights: Array | None = None, unit: float = 1.0
) -> float:
    """sum_i w_i (|(x_i - mean) / divisor|^2 / unit)^2, in one pass over the rows.

    Beside moments, this is all that Ledoit and Wolf's shrinkage needs (F47).
    """
    origin, nothing = mean / divisor, np.zeros((mean.size, 0))

    def of_block(block: Rows, w: Array | None) -> float:
        read = storage(block)
        squares = read.squared_lengths(read.scaled(block, divisor), origin, nothing, nothing)[0] / unit
        fourths = squares * squares if w is None else squares * squares * put(w, squares)
        return float(host(namespace(fourths).sum(fourths)))  # one number leaves a device, not one for each row

    if isinstance(rows, DaskRows):
        return rows.reduce(of_block, add, weights)
    total, start = 0.0, 0
    for block in blocks(rows):
        stop = start + block.shape[0]
        total += of_block(block, None if weights is None else weights[start:stop])
        start = stop
    return total
