"""Depth: how many molecules were counted in each row, and tables thinned to equal depths (F46)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.stats

from .._util.arrays import Array, Rows, is_sparse, spread_out
from .._util.checks import generator
from .._util.text import Said, plural, said_group
from ..exceptions import GroupError
from ._names import like_table
from ._samples import Indices
from ._study import Study, refuse, study_of, with_rows
from ._tables import refuse_devices

DEPTHS = ("warn", "match", "ignore")


# What a table holds, and what its values are multiplied by to be natural logarithms of 1 + x; 0 for no logarithm.
KINDS = {"counts": 0.0, "log": 1.0, "log2": np.log(2.0), "log10": np.log(10.0), "normalised": 0.0}
MAX_ROWS = 100  # rows that tell the kind, evenly spread
MIN_FEATURES = 10  # the total of fewer says nothing about depth
MIN_ROWS, MOST = 5, 0.9  # rows with different counts, and the fraction of them that must be multiples of one value
LARGEST = 1e5  # count that single precision tells from the next
WHOLE, ROUNDING = 1e-3, 1e-6  # how far from whole multiples may be: by chance, and per multiple (float32)
DIVISORS = 6  # the smallest count of a row is at most this
OFTEN = 20  # counts of a gene, in both groups together, whose ratio is told
LEAST_TOTAL = 20  # rows left with fewer molecules are dropped


def match_depth(
    X: Any, *, background: Any = None, totals: Any = None, background_totals: Any = None, random_state: Any = 0
) -> Any:
    """Thin counts at random until both groups are equally deep, and take their logarithms.

    Cells (or samples) with fewer counted molecules vary more, and in other directions, than deeply sequenced ones,
    also after normalisation: unequal depth looks like a contrast. Here every row gives up molecules until the
    totals of both groups have one distribution, the lower of the two at each rank. Then all rows are normalised to one
    total, and log(1 + x) is taken. Use the tables for `contrast_test`; axes suffer little from unequal depth, so fit
    models to all counts.

    Parameters
    ----------
    X : Study, or array-like, data frame or sparse matrix of shape (n, D)
        A `Study` without weights, or the foreground: counts, or counts that were divided by the row's total, with or
        without the logarithm of 1 + x to base e, 2 or 10, from which counts are recovered. Values are complete and in
        memory; sparse tables stay sparse.
    background : array-like, data frame or sparse matrix of shape (m, D), optional
        The background, of the same or another of these kinds, if `X` is not a Study.
    totals, background_totals : array-like of shape (n,), (m,), optional
        How many molecules were counted in each row, over all genes; needed if the tables hold only some of them. By
        default the sums of the rows' counts.
    random_state : None, int, Generator or RandomState, default 0

    Returns
    -------
    study : Study
        Given a Study: without the samples that are left with fewer than 20 molecules, or whose counts cannot be
        recovered. Given tables, their tuple:
    X : ndarray, data frame or sparse array of shape (n', D)
        The thinned foreground, normalised, as log(1 + x).
    background : ndarray, data frame or sparse array of shape (m', D)
    rows, background_rows : ndarray of int of shape (n',), (m',)
        Which rows were kept, for labels and blocks: those left with fewer than 20 molecules are dropped, and those
        whose counts cannot be recovered.

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import match_depth
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.poisson(2, size=(100, 50)), rng.poisson(4, size=(100, 50))  # cases half as deep
    >>> X, Y, rows, background_rows = match_depth(X, background=Y, random_state=0)
    >>> round(float(np.expm1(Y).sum(axis=1).mean() / np.expm1(X).sum(axis=1).mean()), 2)
    1.0
    """
    name = "match_depth"
    study = study_of(X, background, name)
    refuse(study, name, weights="leave them out", missing=True)
    tables = study.tables
    refuse_devices(tables, name)
    rng, rows = generator(random_state), tables.with_one_background(name).rows
    counts = rows.map_named(_counts_of_group)
    given = rows.like([(totals, "totals"), (background_totals, "background_totals")])
    own = counts.map(lambda found, asked: _totals_of_group(found, *asked), given)
    first, second = own
    targets = own.like([matched_totals(first, second, rng), matched_totals(second, first, rng)])
    thin = counts.map(lambda found, has, gets: thinned(found, has, gets, rng), own, targets)
    kept = thin.map_named(lambda group, found: _deep_enough(group, found[1]))
    common = float(np.median(np.concatenate([left[some] for (_, left), some in zip(thin, kept, strict=True)])))
    matched = thin.map(
        lambda own, left, table, given: _as_logs(own, left, table, given, common), kept, rows, study.rows
    )
    return with_rows(study, matched, kept) if isinstance(X, Study) else (*matched, *kept)


def kind_of(rows: Rows) -> str | None:
    """What a table in memory (n, D) holds: "counts", their "log", "log2" or "log10", "normalised", or None of these.

    Counts are whole numbers. Otherwise all values of a row must be multiples of one value, the smallest or a fraction
    of it, and without logarithm this value must differ between rows, as decimal places do not. Scaled values are none
    of these, and neither are tables with missing values.
    """
    if rows.shape[1] < MIN_FEATURES:
        return None
    some = _stored(rows[spread_out(rows.shape[0], MAX_ROWS)])
    if not some.nnz or not np.isfinite(some.data).all() or some.data.min() < 0:
        return None
    if np.array_equal(some.data, np.rint(some.data)):
        return "counts" if some.data.max() > 1 else None
    lengths = np.diff(some.indptr)
    for kind in ("log", "log2", "log10", "normalised"):
        values = linear(some.data, kind)
        units = molecule_values(values, some.indptr)
        smallest, largest = (_by_row(reduce, values, some.indptr) for reduce in (np.minimum, np.maximum))
        telling = (lengths > 1) & (largest > 1.5 * smallest)
        if telling.sum() < MIN_ROWS or np.isfinite(units[telling]).mean() < MOST:
            continue
        different = np.unique(np.round(np.log(units[telling & np.isfinite(units)]), 5)).size
        if kind != "normalised" or different > telling.sum() / 2:
            return kind
    return None


def linear(values: Array, kind: str) -> Array:
    """Values without the logarithm of this kind, in float64."""
    values = np.asarray(values, dtype=np.float64)
    with np.errstate(over="ignore"):
        return np.expm1(KINDS[kind] * values) if KINDS[kind] else values


def molecule_values(values: Array, indptr: Indices) -> Array:
    """The value of one molecule in each row: the largest common divisor of its values; nan if there is none.

    `values` (nnz,) are those of a CSR matrix, positive and without logarithms, with its `indptr` (n + 1,).
    """
    lengths = np.diff(indptr)
    smallest = _by_row(np.minimum, values, indptr)
    units = np.full(lengths.size, np.nan)
    open_rows = lengths > 0
    for divisor in range(1, DIVISORS + 1):
        inside = np.repeat(open_rows, lengths)
        with np.errstate(over="ignore", invalid="ignore"):  # of values that are not logarithms, and overflow
            multiples = values[inside] / np.repeat(smallest[open_rows] / divisor, lengths[open_rows])
            error = np.abs(multiples - np.rint(multiples)) - ROUNDING * multiples
        error[~(multiples < LARGEST)] = np.inf
        bounds = np.concatenate([[0], np.cumsum(lengths[open_rows])])
        whole = _by_row(np.maximum, error, bounds) < WHOLE
        rows = np.flatnonzero(open_rows)[whole]
        units[rows] = smallest[rows] / divisor
        open_rows[rows] = False
        if not open_rows.any():
            break
    return units


def counts_in(rows: Rows, kind: str) -> Any:
    """The counts behind a table of a known kind, (n, D) in CSR; of rows where they cannot be recovered, nothing."""
    stored = _stored(rows)
    values, lengths = linear(stored.data, kind), np.diff(stored.indptr)
    units = np.ones(lengths.size) if kind == "counts" else molecule_values(values, stored.indptr)
    with np.errstate(invalid="ignore"):
        multiples = np.nan_to_num(values / np.repeat(units, lengths), posinf=0.0)
    found = sp.csr_array((np.rint(multiples).astype(np.int64), stored.indices, stored.indptr), shape=stored.shape)
    found.eliminate_zeros()
    return found


def smallest_counts(counts: Any) -> Array:
    """The smallest count of each row that has any."""
    return np.asarray([own for own in _by_row(np.minimum, counts.data, counts.indptr) if own == own])


def totals_in(rows: Rows) -> Array | None:
    """The sum of the counts of each row, shape (n,), 0 where they cannot be recovered; None if there are no counts."""
    kind = kind_of(rows)
    return None if kind is None else np.asarray(counts_in(rows, kind).sum(axis=1), dtype=np.float64)


def matched_totals(own: Array, other: Array, rng: np.random.Generator) -> Array:
    """What is left of the totals of one group (n,) at the depth of the other (m,): the smaller at each rank (F46)."""
    rank = np.empty(own.size)
    rank[np.lexsort((rng.random(own.size), own))] = np.arange(own.size) + 0.5  # ties at random
    return np.minimum(own, np.maximum(np.floor(np.quantile(other, rank / own.size)), 1.0))


def thinned(counts: Any, totals: Array, targets: Array, rng: np.random.Generator) -> tuple[Any, Array]:
    """Counts (n, D) with each molecule kept with probability target / total, and the totals (n,) that are left.

    Molecules of the totals that are not in the table are thinned alike, so that the new totals are over all genes.
    """
    kept = np.minimum(targets / np.maximum(totals, 1.0), 1.0)
    inside = np.asarray(counts.sum(axis=1)).ravel()
    left = rng.binomial(counts.data, np.repeat(kept, np.diff(counts.indptr)))
    found = sp.csr_array((left, counts.indices, counts.indptr), shape=counts.shape)
    elsewhere = rng.binomial(np.rint(totals).astype(np.int64) - inside, kept)
    return found, np.asarray(found.sum(axis=1), dtype=np.float64).ravel() + elsewhere


def depth_gap(own: Array, other: Array) -> tuple[float, float]:
    """Ratio of the median totals of two groups, and the p-value of Mann and Whitney's test of equal totals."""
    equal = np.all(own == own[0]) and np.all(other == own[0])
    p = 1.0 if equal else float(scipy.stats.mannwhitneyu(own, other, method="asymptotic").pvalue)
    medians = float(np.median(own)), float(np.median(other))
    return (medians[0] / medians[1] if medians[1] > 0 else np.inf), p


def typical_ratio(own: Any, other: Any) -> float:
    """How many times as much a typical gene is counted in one group as in the other; nan if all are rare.

    Depth changes all genes alike, a programme of cells only some: the median over genes with 20 counts or more in the
    middle half of the rows (n, D) by how many genes they have, as few rows may have most of the counts.
    """
    sums, sizes = [], []
    for counts in (own, other):
        order = np.argsort(np.diff(counts.indptr), kind="stable")
        middle = order[order.size // 4 : order.size - order.size // 4]
        sums.append(np.asarray(counts[middle].sum(axis=0), dtype=np.float64).ravel())
        sizes.append(middle.size)
    often = sums[0] + sums[1] >= OFTEN
    ratios = (sums[0][often] + 0.5) / (sums[1][often] + 0.5) * (sizes[1] / sizes[0])
    return float(np.median(ratios)) if ratios.size else np.nan


def _stored(rows: Rows) -> Any:
    """The values of a table that are not 0, as a CSR matrix of its own."""
    found = sp.csr_array(rows if is_sparse(rows) else np.asarray(rows), copy=True)
    found.eliminate_zeros()
    return found


def _by_row(reduce: np.ufunc, values: Array, indptr: Indices) -> Array:
    """The smallest or largest stored value of each row, shape (n,); nan for rows without one."""
    found = np.full(indptr.size - 1, np.nan)
    filled = np.diff(indptr) > 0
    if filled.any():
        found[filled] = reduce.reduceat(values, indptr[:-1][filled])
    return found


def _counts_of_group(group: str, rows: Rows) -> Any:
    if not (isinstance(rows, np.ndarray) or is_sparse(rows)):
        raise GroupError(
            f"match_depth needs rows in memory, but the {group} is read in blocks: read the genes that you use first."
        )
    kind = kind_of(rows)
    if kind is None or (kind == "counts" and not np.array_equal(values := _stored(rows).data, np.rint(np.abs(values)))):
        raise GroupError(
            "No counts can be recovered from the ",
            said_group(group),
            Said(": match_depth", ": --depth match"),
            f" takes counts (whole numbers, none negative) of at least {MIN_FEATURES} features, or counts divided by "
            "each row's total, also as logarithms of 1 + x to base e, 2 or 10. Pass those, not scaled or otherwise "
            "transformed values.",
        )
    return counts_in(rows, kind)


def _totals_of_group(counts: Any, given: Any, name: str) -> Array:
    """The totals of the rows: those given, which must hold their counts, or the sums of the counts."""
    sums = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
    if given is None:
        return sums
    totals = np.asarray(given, dtype=np.float64)
    if totals.shape != sums.shape:
        raise ValueError(f"{name} has shape {totals.shape} for {sums.size} rows: pass one total per row.")
    if bad := int(np.sum(~((totals >= sums - 0.5) & np.isfinite(totals)))):
        raise ValueError(
            f"{name} is missing or smaller than the sum of the counts in {plural(bad, 'row')}: pass the number of all "
            "molecules counted in each row."
        )
    return np.maximum(np.rint(totals), sums)


def _deep_enough(group: str, totals: Array) -> Indices:
    """The rows that are left with enough molecules."""
    rows = np.flatnonzero(totals >= LEAST_TOTAL)
    if rows.size < 2:
        raise GroupError(
            f"At equal depths the {group} has {plural(rows.size, 'row')} with at least {LEAST_TOTAL} counts: one group "
            "is too shallow to be compared. Pass totals= and background_totals= if these are few genes of many, or "
            "leave shallow rows of the other group out."
        )
    return rows


def _as_logs(thin: tuple[Any, Array], kept: Indices, rows: Rows, table: Any, common: float) -> Any:
    """log(1 + count x common / total) of the rows that are kept, sparse, dense or a data frame as the table is."""
    counts, totals = thin
    found = counts[kept].astype(np.float64)
    found.data = np.log1p(found.data * np.repeat(common / totals[kept], np.diff(found.indptr)))
    found.eliminate_zeros()
    found = found.astype(rows.dtype)
    if is_sparse(rows):
        return found
    if isinstance(table, np.ndarray):
        return found.toarray()
    return like_table(found.toarray(), table.iloc[kept] if hasattr(table, "iloc") else table)
