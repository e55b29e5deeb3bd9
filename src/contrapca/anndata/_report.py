"""`tl.report`: the page about an AnnData."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.base import clone

from ..estimators import ContraPCA
from ..inference import at_equal_depth, contrast_test
from ..reporting import Report, check_libraries, summarize
from ._cells import choose, column
from ._get import model as stored_model
from ._results import stored_choice
from ._warnings import matched, warn_of_groups

SEED, MOST = 0, 10  # the same tables give the same page; dimensions tested, or as many as are shown


def report(
    adata: Any,
    key: str | None = None,
    *,
    output: str | os.PathLike[str] = "report.html",
    groupby: str | None = None,
    background: Any = None,
    foreground: Any = None,
    blocks: str | None = None,
    labels: str | None = None,
    layer: str | None = None,
    obsm: str | None = None,
    mask_var: Any = "auto",
    test: bool = True,
    depth: str = "warn",
    gammas: int | None = None,
    title: str | None = None,
    progress: bool = True,
) -> Report:
    """Write a self-contained HTML file about stored results, or about a new ContraPCA with two components.

    Parameters
    ----------
    adata : AnnData
    key : str, optional
        Of the results that a function of `contrapca.tl` has stored, by default "contrapca"; without `groupby`.
    output : str or path-like, default "report.html"
        Written atomically; an existing file is overwritten.
    groupby, background, foreground, layer, obsm, mask_var
        For a new ContraPCA, as for `contrapca.tl.contrapca`.
    blocks : str, optional
        Column of `obs` that says which cells belong together; by default that of the stored results.
    labels : str, optional
        Column of `obs` that colours the cases.
    test, gammas, title, progress
        As for `contrapca.report`.
    depth : {"warn", "match", "ignore"}, default "warn"
        What to do if counts add up to less in one group: a caveat, or a test at equal depth, as for `contrast_test`.
        The totals over all genes are known here.

    Returns
    -------
    Report
        As for `contrapca.report`.
    """
    check_libraries()
    choice = {"background": background, "foreground": foreground, "layer": layer, "obsm": obsm, "mask_var": mask_var}
    if groupby is not None:
        if key is not None:
            raise ValueError(f"Both groupby={groupby!r} and key={key!r} were given: use key= for stored results only.")
        model, chosen = ContraPCA(random_state=0), {"groupby": groupby, "blocks": blocks} | choice
    else:
        key = "contrapca" if key is None else key
        model, chosen = stored_model(adata, key), stored_choice(adata, key)
        chosen["blocks"] = blocks or chosen["blocks"]
    cells = choose(adata, **chosen)
    if cells.weights is not None or cells.covariates is not None:  # a report shows every row once, and fits to these
        cells, model = cells.alike(SEED), clone(model)
    warn_of_groups(adata.obs, cells)
    rows = cells.split(cells.read())
    own = None if labels is None else column(adata.obs, labels, "labels", "adata.obs")
    study = cells.study(
        rows,
        labels=None if own is None else tuple(own[cells] for cells in cells.groups),
        names=tuple(np.asarray(adata.obs_names)[cells].tolist() for cells in cells.groups),
        label_name=labels,
    )
    tested: Any = test
    if test and depth == "match":
        alike, alike_rows = matched(adata, cells, rows, SEED)
        tested = contrast_test(
            alike.study(alike_rows),
            max_components=max(MOST, model.n_components),
            scale=model._scaling,
            depth="ignore",
            random_state=SEED,
        )
        tested = at_equal_depth(tested)
    found = summarize(study, model, test=tested, depth=depth, gammas=gammas, title=title, progress=progress)
    found.write(output)
    return found
