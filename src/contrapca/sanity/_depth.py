"""Counts of unequal depth in cases and controls, which look like a contrast (F46)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._util.arrays import Array, Rows, is_sparse
from ..depth import counts_in, depth_gap, kind_of, smallest_counts, typical_ratio
from ..exceptions import TableWarning, warn
from ..groups import Groups
from ._finding import Finding
from ._raw_values import looks_like_counts

MAX_ROWS = 1000  # of each group, evenly spread
UNEQUAL, SURE = 1.2, 1e-3  # ratio of median totals, either way, and p-value of equal totals


def unequal_depth(tables: Groups[Rows]) -> list[Finding]:
    """A finding where the counts of the cases add up to more, or less, than those of a background.

    Counts are taken as they are, or recovered from log-normalised rows; nothing is said of other tables, nor of rows
    that are not in memory.
    """
    found = []
    for rows in tables:
        counts = _counts(rows)
        if counts is None:
            return []
        found.append(counts)
    totals = [np.asarray(counts.sum(axis=1), dtype=np.float64).ravel() for counts in found]
    typical = [typical_ratio(found[0], other) for other in found[1:]]
    every = zip(totals[1:], typical, strict=True)
    return [finding for other, ratio in every for finding in depth_finding(totals[0], other, ratio)][:1]


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


def warn_of_depth(tables: Groups[Rows]) -> None:
    """Warn of unequal depth."""
    for finding in unequal_depth(tables):
        warn(finding.text(), TableWarning)


def _counts(rows: Rows) -> Any:
    """Counts of some rows as a CSR matrix; None if there are none, or whole numbers unlike counts of molecules."""
    if not (isinstance(rows, np.ndarray) or is_sparse(rows)):
        return None
    some = rows[:: -(-rows.shape[0] // MAX_ROWS)]
    kind = kind_of(some)
    if kind is None or (kind == "counts" and looks_like_counts(some) != "counts"):
        return None
    counts = counts_in(some, kind)
    # Of molecules, some gene has a single one; sums of money have none.
    if kind == "counts" and np.median(smallest_counts(counts)) > 1:
        return None
    return counts
