"""Results that are stored in an AnnData, as models and data frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._files import unpack
from .._util.checks import check_count
from ._results import MODEL, check_component, frame, stored


def model(adata: Any, key: str = "contrapca") -> Any:
    """The fitted model that a function of `contrapca.tl` stored, with all its methods.

    Parameters
    ----------
    adata : AnnData
    key : str, default "contrapca"
        Key of `uns`: the function's name, or its `key_added`.

    Returns
    -------
    ContraPCA, PCPCA, CPCA or CLVM
        As after its fit: it transforms, scores and samples. Its features are the genes that were used, in the order of
        `adata.var_names`.

    Examples
    --------
    >>> import contrapca
    >>> adata = contrapca.datasets.make_cells(random_state=0)
    >>> contrapca.tl.contrapca(adata, groupby="condition", background="ctrl", blocks="donor", n_comps=2)
    >>> contrapca.get.model(adata)
    ContraPCA(random_state=0)
    """
    members = {name: np.asarray(value) for name, value in stored(adata, key)[MODEL].items()}  # lazy ones are read
    return unpack(members, f"adata.uns[{key!r}]['{MODEL}']")


def loadings(adata: Any, key: str = "contrapca", *, component: int | None = None, n_genes: int | None = None) -> Any:
    """The loadings of all genes that were used, strongest first.

    Parameters
    ----------
    adata : AnnData
    key : str, default "contrapca"
        Key of `uns`: the function's name, or its `key_added`.
    component : int, optional
        One component, counting from 1; by default all.
    n_genes : int, optional
        Number of genes of each component; by default all.

    Returns
    -------
    pandas.DataFrame
        One row for each component and gene, by component and then by magnitude of the loading. Columns: `component`,
        `rank` (both from 1), `gene`, `loading`, `foreground_variance` and `background_variance` of the gene (with
        several backgrounds one column for each, by name).

    Examples
    --------
    >>> import contrapca
    >>> adata = contrapca.datasets.make_cells(random_state=0)
    >>> contrapca.tl.contrapca(adata, groupby="condition", background="ctrl", blocks="donor", n_comps=2)
    >>> contrapca.get.loadings(adata, component=1, n_genes=3)["rank"].tolist()
    [1, 2, 3]
    """
    fit = model(adata, key).fit_
    W, scaling = fit.loadings, fit.scaling
    if component is not None:
        check_component(component, W.shape[1])
    shown = W.shape[0] if n_genes is None else min(check_count(n_genes, "n_genes"), W.shape[0])
    components = range(1, W.shape[1] + 1) if component is None else [component]
    orders = {k: np.argsort(-np.abs(W[:, k - 1]), kind="stable")[:shown] for k in components}
    genes = np.concatenate(list(orders.values()))
    return frame(
        {
            "component": np.repeat(list(components), shown),
            "rank": np.tile(np.arange(1, shown + 1), len(orders)),
            "gene": np.array(scaling.foreground.labels, dtype=object)[genes],
            "loading": np.concatenate([W[order, k - 1] for k, order in orders.items()]),
        }
        | dict(scaling.map_named(lambda name, own: (f"{name}_variance", own.variance[genes])))
    )
