"""How many molecules were counted in each cell, over all genes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._util.arrays import Array, Rows, in_memory
from ..data import Groups, Indices, counts_in, kind_of, match_depth, totals_in, typical_ratio
from ..data.checks import depth_finding
from ..exceptions import TableWarning, warn
from ._cells import Cells, is_lazy
from ._obs import background_argument

TOTALS = ("total_counts", "n_counts", "nCount_RNA")  # columns of obs, as scanpy and Seurat name them
MAX_ROWS = 1000  # of each group, for the warning
MOST = 0.99  # of the cells that must have totals of at least the sums of their genes


def totals_of(adata: Any, cells: Cells, chosen: Sequence[Indices], used: Iterable[Rows] = ()) -> list[Any] | None:
    """The totals of some cells of each group; None if nothing tells them.

    They are a column of `obs` if that holds whole numbers, else the sums of the counts, raw or recovered, of `raw`, of
    the layer "counts" or of the matrix that is used, with all genes. Totals below the sums of the counts in the
    rows that are `used` is something else.
    """
    if not cells.of_genes:
        return None
    every = np.concatenate(chosen)
    sums = [own for rows in used if (own := totals_in(rows)) is not None]
    least = np.concatenate(sums) if len(sums) == len(chosen) else np.zeros(every.size)
    for totals in _candidates(adata, cells, every):
        if np.mean(totals >= least) > MOST:
            return np.split(np.maximum(totals, least), np.cumsum([own.size for own in chosen])[:-1])
    return None


def matched(adata: Any, cells: Cells, rows: Groups[Rows], random_state: int | None) -> tuple[Cells, Groups[Rows]]:
    """The cells and rows of two groups at equal depth (`match_depth`), without the cells that are dropped."""
    totals = totals_of(adata, cells, list(cells.groups), rows) or [None, None]
    given = {"totals": totals[0], "background_totals": totals[1], "random_state": random_state}
    X, Y, *kept = match_depth(rows.foreground, background=background_argument(rows), **given)
    groups = cells.groups.map(lambda own, left: own[left], cells.groups.like(kept))
    blocks = None if cells.blocks is None else cells.blocks.map(lambda own, left: own[left], cells.groups.like(kept))
    return replace(cells, groups=groups, blocks=blocks), rows.like([X, Y])


def _candidates(adata: Any, cells: Cells, rows: Indices) -> Iterator[Array]:
    for name in TOTALS:
        values = np.asarray(adata.obs[name])[rows] if name in adata.obs.columns else np.empty(0)
        if values.size and values.dtype.kind in "iuf" and np.array_equal(values, np.rint(values)):
            yield values.astype(np.float64)
    raw = None if adata.isbacked or adata.raw is None else adata.raw.X
    for matrix in (raw, adata.layers.get("counts"), cells.matrix):
        if matrix is not None and not is_lazy(matrix):
            totals = totals_in(in_memory(matrix[rows]))
            if totals is not None:
                yield totals


def warn_of_depth(adata: Any, cells: Cells) -> None:
    """Warn if cells of one group are sequenced less deeply."""
    some = [own[:: -(-own.size // MAX_ROWS)] for own in cells.groups]
    totals = totals_of(adata, cells, some)
    if totals is None:
        return
    typical = [np.nan] * len(totals)
    if not is_lazy(cells.matrix) and (kind := kind_of(in_memory(cells.matrix[some[0]]))) is not None:
        counts = [counts_in(in_memory(cells.matrix[rows]), kind) for rows in some]
        typical = [typical_ratio(counts[0], other) for other in counts]
    every = zip(totals[1:], typical[1:], strict=True)
    for finding in [found for other, ratio in every for found in depth_finding(totals[0], other, ratio)][:1]:
        warn(f'{finding.sentence} contrapca.tl.test with depth="match" tests at equal depth.', TableWarning)
