"""Columns of `obs` that look like donors or batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..data import SOURCES_OF_CELLS, names_source
from ..exceptions import warn
from ._cells import Cells
from ._obs import levels_of


def warn_of_donors(obs: Any, cells: Cells) -> None:
    """Warn if a column of `obs` looks like donors or batches, and there are no blocks."""
    if cells.blocks is not None:
        return
    n_cells = sum(own.size for own in cells.groups)
    for name in _candidates([name for name in obs.columns if name != cells.params["groupby"]]):
        codes = levels_of(np.asarray(obs[name]))[0]
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


def _candidates(columns: list[Any]) -> Iterator[Any]:
    """Columns by what their names say, the most likely donors first."""
    for source in SOURCES_OF_CELLS:
        yield from (name for name in columns if names_source(str(name), [source]))
