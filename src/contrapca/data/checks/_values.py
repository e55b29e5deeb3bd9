"""Values that are not what a contrast needs: raw counts, counts of unequal depth (F46), imputed values."""

from __future__ import annotations

import numpy as np

from ..._util.arrays import Array, Rows, is_sparse, spread_out
from .._depth import counts_in, depth_gap, kind_of, smallest_counts, typical_ratio
from .._groups import Groups
from ._finding import Finding, every_few

MAX_ROWS = 1000  # rows that are checked, evenly spread
TOP = 99  # percentile that is compared with the median, of the values above 0

# Multiples of the median: for whole numbers over the whole table, for others in a typical feature. Small counts, rating
# scales and pixels stay below 4; exponential values reach 6.6, normal ones of any mean less than 4.
MANY_COUNTS, MANY_TIMES = 4.0, 6.0
MIN_POSITIVE = 10  # minimum number of values above 0 for a feature to count
ADVICE = {
    "counts": "The values look like raw counts (whole numbers, few of them very large)",
    "intensities": "The values look like raw intensities (none negative, few of them very large)",
    "normalised": "The values look like counts divided by the total of their row, without logarithms",
}
UNEQUAL, SURE = 1.2, 1e-3  # ratio of median totals, either way, and p-value of equal totals
IMPUTED = "imputed"  # the column of a file, and the entry of a data frame's `attrs`, that say so


def are_counts(rows: Rows) -> bool:
    """Whether values are whole numbers, none negative and some above 1; up to 1000 rows, evenly spread, are checked."""
    some = rows[spread_out(rows.shape[0], MAX_ROWS)]
    values = np.ravel(some.data if is_sparse(some) else some)
    return bool(values.size and values.min() >= 0 and values.max() > 1 and np.all(values == np.rint(values)))


def looks_like_counts(rows: Rows) -> str | None:
    """Whether a table looks like "counts", "normalised" (over totals) or "intensities": few large values dominate.

    All are non-negative. For counts (whole numbers), the 99th percentile of the values above 0 is at least 4 times
    their median; for intensities (other numbers), at least 6 times in a typical feature; counts over totals are
    multiples of one value in each row, another in each. Up to 1000 rows, evenly spread, are checked; NaN is ignored.
    """
    some = rows[spread_out(rows.shape[0], MAX_ROWS)]
    dense: Array = np.asarray(some.toarray() if is_sparse(some) else some, dtype=np.float64)
    values = dense[np.isfinite(dense)]
    positive = values[values > 0]
    if positive.size < MIN_POSITIVE or values.min() < 0:
        return None
    if np.all(positive == np.rint(positive)):
        return "counts" if _top_over_median(positive) >= MANY_COUNTS else None
    if kind_of(rows) == "normalised":
        return "normalised"
    columns = [column[np.isfinite(column) & (column > 0)] for column in dense.T]
    ratios = [_top_over_median(column) for column in columns if column.size >= MIN_POSITIVE]
    return "intensities" if ratios and np.median(ratios) >= MANY_TIMES else None


def _top_over_median(values: Array) -> float:
    median, top = np.percentile(values, [50, TOP])
    return float(top / median)


def advice_on_values(tables: Groups[Rows]) -> list[Finding]:
    """Advice about raw values; none unless all tables hold the same kind of values."""
    kind, *others = {looks_like_counts(rows) for rows in tables}
    if kind is None or others:
        return []
    return [Finding("raw values", f"{ADVICE[kind]}.", "Take logarithms first, log(1 + x), in both tables.")]


def unequal_depth(tables: Groups[Rows]) -> list[Finding]:
    """A finding where the counts of the cases add up to more, or less, than those of a background.

    Counts are taken as they are, or recovered from log-normalised rows; nothing is said of other tables, nor of rows
    that are not in memory.
    """
    found = []
    for rows in tables:
        if not (isinstance(rows, np.ndarray) or is_sparse(rows)):
            return []
        some = every_few(rows, MAX_ROWS)
        kind = kind_of(some)
        if kind is None or (kind == "counts" and looks_like_counts(some) != "counts"):
            return []
        counts = counts_in(some, kind)
        # Of molecules, some gene has a single one; sums of money have none.
        if kind == "counts" and np.median(smallest_counts(counts)) > 1:
            return []
        found.append(counts)
    first, *others = (np.asarray(counts.sum(axis=1), dtype=np.float64).ravel() for counts in found)
    for totals, counts in zip(others, found[1:], strict=True):
        if finding := depth_finding(first, totals, typical_ratio(found[0], counts)):
            return finding
    return []


def depth_finding(own: Array, other: Array, typical: float = np.nan) -> list[Finding]:
    """A finding if the totals of cases (n,) and controls (m,) differ much, and not by chance or in few genes.

    `typical` is the ratio of a typical gene (`typical_ratio`), nan if it is not known.
    """
    own, other = own[own > 0], other[other > 0]
    if not (own.size and other.size):
        return []
    ratio, p = depth_gap(own, other)
    few_genes = np.log(typical) * np.sign(np.log(ratio)) < np.log(UNEQUAL) / 2
    if max(ratio, 1 / ratio) < UNEQUAL or p >= SURE or few_genes:
        return []
    return [
        Finding(
            "depth",
            f"Counts add up to {ratio:.2g} times as much in the cases as in the controls (medians "
            f"{np.median(own):,.0f} and {np.median(other):,.0f}): unequal depth alone can look like a contrast, also "
            "after normalisation.",
            'Test with depth="match", or thin both tables with match_depth.',
            "Test with --depth match.",
        )
    ]


def imputed_values(count: int, where: str) -> Finding:
    """A finding for a table with `count` imputed values."""
    return Finding(
        "imputed values",
        f"{count} values of {where} were imputed. Imputed values vary less than measured ones, which can look like a "
        "contrast.",
        "Use the table as it was: values can be missing in both groups.",
    )
