"""Warnings about cells before they are analysed: their values, their donors, and how deeply they are sequenced."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._util.arrays import Array, Rows, in_memory
from .._util.optional import require
from .._util.text import listed
from ..data import (
    SOURCES_OF_CELLS,
    Groups,
    Indices,
    counts_in,
    kind_of,
    match_depth,
    names_source,
    totals_in,
    typical_ratio,
)
from ..data.checks import are_counts, depth_finding
from ..exceptions import TableWarning, warn
from ._cells import Cells, background_argument, is_lazy, labels_of

TOTALS = ("total_counts", "n_counts", "nCount_RNA")  # columns of obs, as scanpy and Seurat name them
MAX_ROWS = 1000  # of each group, for the warning
MOST = 0.99  # of the cells that must have totals of at least the sums of their genes


def warn_of_values(cells: Cells, table: Rows) -> None:
    """Warn of counts, and of counts over totals, that are not logarithms."""
    if cells.of_genes and are_counts(table):
        warn_of_counts()
    elif cells.of_genes and kind_of(table) == "normalised":
        warn(
            "The values look like counts divided by the total of their cell, without logarithms, so few large ones "
            "would dominate: call sc.pp.log1p(adata), or name a layer that has log values with layer=."
        )


def warn_of_counts() -> None:
    """Warn that values look like counts, not like their logarithms."""
    warn(
        "The values look like counts (whole numbers, none negative), whose few large ones would dominate: use log "
        "values, for example sc.pp.normalize_total(adata) and sc.pp.log1p(adata), or name a layer that has them with "
        "layer=."
    )


def warn_of_groups(obs: Any, cells: Cells, split: str | None = None) -> None:
    """Warn of case groups that are pooled without being asked for, and of donors that are neither used nor split by."""
    groupby = cells.choice.groupby
    labels = labels_of(obs, groupby, cells.groups.foreground)
    if cells.choice.foreground is None and len(labels) > 1:
        warn(
            f"The cases are all cells with {listed(labels)} in adata.obs[{groupby!r}], about one mean, so a difference "
            "between the means of these groups looks like a contrast: name one with foreground=, or all of them in a "
            "list if that is meant."
        )
    # A column of `obs` may look like donors or batches.
    if cells.blocks is not None:
        return
    n_cells = sum(own.size for own in cells.groups)
    columns = [name for name in obs.columns if name not in (groupby, split)]
    # The most likely donors first, by what their names say.
    for name in (name for source in SOURCES_OF_CELLS for name in columns if names_source(str(name), [source])):
        codes = require("pandas", extra="anndata").factorize(np.asarray(obs[name]))[0]  # -1 where there is none
        found = [np.unique(codes[own][codes[own] >= 0]) for own in cells.groups]
        if not 1 < np.unique(np.concatenate(found)).size <= n_cells / 2:
            continue
        numbers = " + ".join(str(own.size) for own in found)
        advice = f"pass blocks={name!r}"
        if min(own.size for own in found) < 2:
            advice = f"with {numbers} of them, the results cannot be generalised to others"
        warn(
            f"adata.obs[{name!r}] seems to say where cells come from ({numbers} in foreground and background), but "
            "blocks= does not use it. Cells of one donor or batch are not independent. Ignoring this makes p-values "
            f"far too small and ratios on held-out cells too large: {advice}."
        )
        return


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
    X, Y, *kept = match_depth(
        rows.foreground,
        background=background_argument(rows),
        totals=totals[0],
        background_totals=totals[1],
        random_state=random_state,
    )
    groups = cells.groups.map(lambda own, left: own[left], cells.groups.like(kept))
    return replace(cells, groups=groups), rows.like([X, Y])


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
