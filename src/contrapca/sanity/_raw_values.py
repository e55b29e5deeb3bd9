"""Detection of raw counts, raw intensities and counts over totals, which need a logarithm before anything else."""

from __future__ import annotations

import numpy as np

from .._util.arrays import Array, Rows, is_sparse
from ..depth import kind_of
from ..groups import Groups
from ._finding import Finding

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


def are_counts(rows: Rows) -> bool:
    """Whether values are whole numbers, none negative and some above 1; up to 1000 rows, evenly spread, are checked."""
    some = _some(rows)
    values = np.ravel(some.data if is_sparse(some) else some)
    return bool(values.size and values.min() >= 0 and values.max() > 1 and np.all(values == np.rint(values)))


def looks_like_counts(rows: Rows) -> str | None:
    """Whether a table looks like counts, counts over totals or intensities, whose few large values would dominate.

    All are non-negative. For counts (whole numbers), the 99th percentile of the values above 0 is at least 4 times
    their median; for intensities (other numbers), at least 6 times in a typical feature; counts over totals are
    multiples of one value in each row, another in each.

    Parameters
    ----------
    rows : array or sparse matrix of shape (n, D)
        Up to 1000 rows, evenly spread, are checked; NaN is ignored.

    Returns
    -------
    "counts", "normalised", "intensities" or None
    """
    some = _some(rows)
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


def _some(rows: Rows) -> Rows:
    n = rows.shape[0]
    return rows[np.unique(np.linspace(0, n - 1, min(n, MAX_ROWS)).astype(int))]


def _top_over_median(values: Array) -> float:
    median, top = np.percentile(values, [50, TOP])
    return float(top / median)


def advice_on_values(tables: Groups[Rows]) -> list[Finding]:
    """Advice about raw values; none unless all tables hold the same kind of values."""
    kinds = {looks_like_counts(rows) for rows in tables}
    if len(kinds) > 1 or None in kinds:
        return []
    return [
        Finding(
            "raw values",
            f"{ADVICE[kind]}.",
            "Take logarithms first, np.log1p(X), in both groups.",
            "Take logarithms first, log(1 + x), in both tables.",
        )
        for kind in kinds
        if kind
    ]
