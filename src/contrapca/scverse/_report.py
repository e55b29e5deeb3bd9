"""The arguments of a report about an AnnData."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._util.arrays import Rows
from ..estimators import ContraPCA
from ..groups import Groups
from ..selection import ContrastTest, at_equal_depth, contrast_test
from ._cells import Cells, choose
from ._depth import matched
from ._donors import warn_of_donors
from ._obs import background_argument, column
from ._results import stored_choice, stored_model

SEED, MOST = 0, 10  # the same tables give the same page; dimensions tested, or as many as are shown


def report_arguments(
    adata: Any,
    *,
    key: str | None,
    groupby: str | None,
    blocks: str | None,
    labels: str | None,
    depth: str = "warn",
    **choice: Any,
) -> dict[str, Any]:
    """The model, both tables, labels, names and blocks, and perhaps the test, as `report` takes them.

    Parameters
    ----------
    adata : AnnData
    key : str or None
        Of stored results that the report is about; used if there is no `groupby`.
    groupby, blocks : str or None
        Columns of `obs`. With `groupby`, the report is about a new ContraPCA with two components.
    labels : str or None
        Column of `obs` that colours the cases.
    depth : {"warn", "match", "ignore"}
        With "match", the test is made here, where the totals over all genes are known.
    **choice
        Other arguments of `choose`.
    """
    if groupby is not None:
        if key is not None:
            raise ValueError(f"Both groupby={groupby!r} and key={key!r} were given: use key= for stored results only.")
        model, chosen = ContraPCA(random_state=0), {"groupby": groupby, "blocks": blocks} | choice
    else:
        key = "contrapca" if key is None else key
        model, chosen = stored_model(adata, key), stored_choice(adata, key)
        chosen["blocks"] = blocks or chosen["blocks"]
    cells = choose(adata, **chosen)
    warn_of_donors(adata.obs, cells)
    rows = cells.split(cells.read())
    given = None if labels is None else column(adata.obs, labels, "labels", "adata.obs")
    values = cells.groups.map(lambda own: None if given is None else given[own])
    names = cells.groups.map(lambda own: np.asarray(adata.obs_names)[own].tolist())
    tables = {"model_or_path": model, "X": rows.foreground, "background": background_argument(rows)}
    named = {"row_names": names.foreground, "background_row_names": names.background}
    labelled = {"labels": values.foreground, "background_labels": values.background}
    tested = {"test": _test_at_equal_depth(adata, cells, rows, model)} if depth == "match" else {}
    donors = {}
    if cells.blocks is not None:
        donors = {"blocks": cells.blocks.foreground, "background_blocks": background_argument(cells.blocks)}
    return tables | named | labelled | donors | tested


def _test_at_equal_depth(adata: Any, cells: Cells, rows: Groups[Rows], model: Any) -> ContrastTest:
    cells, rows = matched(adata, cells, rows, SEED)
    n_axes = max(MOST, model.n_components)
    asked = {"max_components": n_axes, "scale": model._scaling, "depth": "ignore", "random_state": SEED}
    found = contrast_test(cells.study(rows), **asked)
    return at_equal_depth(found)
