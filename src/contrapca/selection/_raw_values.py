"""Raw counts and raw intensities, recognised: they want a logarithm before any method that looks at variances."""

from __future__ import annotations

import numpy as np

from .._util.arrays import Array, Rows, is_sparse

MAX_ROWS = 1000  # that are looked at, evenly spread
TOP = 99  # percentile that is compared with the median, of the values above 0
# So many times the median: for whole numbers over the whole table, for others in a typical feature. Small counts,
# answers on a scale and pixels stay below 4; exponential values reach 6.6, normal ones of any mean less than 4.
MANY_COUNTS, MANY_TIMES = 4.0, 6.0
MIN_POSITIVE = 10  # values above 0 for a feature to count

ADVICE = {
    "counts": "The values look like raw counts (whole numbers, few of them very large)",
    "intensities": "The values look like raw intensities (none negative, few of them very large)",
}


def looks_like_counts(rows: Rows) -> str | None:
    """Whether a table holds raw counts or raw intensities, whose few large values would decide everything.

    Both are non-negative. Counts are whole numbers of which the 99th percentile of those above 0 is at least 4 times
    their median; intensities are other numbers for which it is at least 6 times in a typical feature.

    Parameters
    ----------
    rows : array or sparse matrix of shape (n, D)
        Up to 1000 rows, evenly spread, are looked at; NaN is left out.

    Returns
    -------
    "counts", "intensities" or None
    """
    n = rows.shape[0]
    some = rows[np.unique(np.linspace(0, n - 1, min(n, MAX_ROWS)).astype(int))]
    dense: Array = np.asarray(some.toarray() if is_sparse(some) else some, dtype=np.float64)
    values = dense[np.isfinite(dense)]
    positive = values[values > 0]
    if positive.size < MIN_POSITIVE or values.min() < 0:
        return None
    if np.all(positive == np.rint(positive)):
        return "counts" if _top_over_median(positive) >= MANY_COUNTS else None
    columns = [column[np.isfinite(column) & (column > 0)] for column in dense.T]
    ratios = [_top_over_median(column) for column in columns if column.size >= MIN_POSITIVE]
    return "intensities" if ratios and np.median(ratios) >= MANY_TIMES else None


def _top_over_median(values: Array) -> float:
    median, top = np.percentile(values, [50, TOP])
    return float(top / median)


def advice_on_values(kind: str | None) -> list[str]:
    """What to do about raw values, in words; nothing where there is nothing to do."""
    if kind is None:
        return []
    return [f"{ADVICE[kind]}: take logarithms first, np.log1p(X), in both groups."]
