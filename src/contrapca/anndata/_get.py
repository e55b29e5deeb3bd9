"""Results that are stored in an AnnData, as models and data frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._files import unpack
from .._util.arrays import Array
from .._util.checks import check_count
from ._cells import frame
from ._results import MODEL, check_component, stored, supported


def model(adata: Any, key: str = "contrapca") -> Any:
    """The fitted model that a function of `contrapca.tl` stored, with all its methods.

    Parameters
    ----------
    adata : AnnData
    key : str, default "contrapca"
        Key of `uns`: the function's name, or its `key_added`.

    Returns
    -------
    ContraPCA, PCPCA, CPCA, CLVM, RatioPCA or SparseCPCA
        As after its fit: it transforms, scores and samples. Its features are the genes that were used, in the order of
        `adata.var_names`. An AnnData in place of a table is taken by the names of these genes, from the layer of the
        fit, `get.model(adata).transform(new)`; without one, tables have exactly these columns.

    Examples
    --------
    >>> import contrapca
    >>> adata = contrapca.datasets.make_cells(random_state=0)
    >>> contrapca.tl.contrapca(adata, groupby="condition", background="ctrl", blocks="donor", n_comps=2)
    >>> contrapca.get.model(adata)
    ContraPCA(random_state=0)
    """
    members = {name: np.asarray(value) for name, value in stored(adata, key)[MODEL].items()}  # lazy ones are read
    found = unpack(members, f"adata.uns[{key!r}]['{MODEL}']")
    found._layer = stored(adata, key)["params"].get("layer")
    return found


def components(adata: Any, key: str = "contrapca", *, n_genes: int = 5) -> Any:
    """What is known of each stored component: is it more than chance, is it found again, does one donor carry it?

    Parameters
    ----------
    adata : AnnData
    key : str, default "contrapca"
        Key of `uns`: the function's name, or its `key_added`. After `contrapca.tl.test(adata, key)`, all cells have
        judged the components, and the test counts; before, at most 5000 of each group.
    n_genes : int, default 5
        Number of genes that are listed for each.

    Returns
    -------
    pandas.DataFrame
        One row for each component, counting from 1. Columns: `component`; `supported` (the interval is above 1, other
        halves find the component again, and the test, if there was one, has found something); `ratio` of the cases'
        variance to the controls' on unseen cells, `low` and `high` of its 95 % interval, and `p` of "no more than in
        the controls", for each component by itself; `agreement` of halves and `found_again`; `max_donor_share` (without
        donors `max_cell_share`), the largest part of the cases' variance that is of one of them; `genes`, the
        strongest. If unseen cells could not judge, only `component` and `genes`.

    Examples
    --------
    >>> import contrapca
    >>> adata = contrapca.datasets.make_cells(random_state=0)
    >>> contrapca.tl.contrapca(adata, groupby="condition", background="ctrl", blocks="donor", n_comps=2)
    >>> contrapca.get.components(adata)["supported"].tolist()
    [True, False]
    """
    entry, W, names = stored(adata, key), *_loadings(model(adata, key))
    orders = np.argsort(-np.abs(W), axis=0, kind="stable")[: check_count(n_genes, "n_genes")]
    columns: dict[str, Any] = {"component": np.arange(1, W.shape[1] + 1)}
    if (known := supported(entry)) is not None:
        interval, params = np.asarray(entry["held_out_interval"]), entry["params"]
        by_donor = "blocks" in params or "pairs" in params
        columns |= {"supported": known, "ratio": np.asarray(entry["held_out_ratio"])}
        columns |= {"low": interval[:, 0], "high": interval[:, 1]}
        if "held_out_p" in entry:  # not in results of older versions
            columns["p"] = np.asarray(entry["held_out_p"])
        columns |= {"agreement": np.asarray(entry["agreement"]), "found_again": np.asarray(entry["found_again"], bool)}
        columns["max_donor_share" if by_donor else "max_cell_share"] = np.asarray(entry["largest_share"])
    return frame(columns | {"genes": [", ".join(names[order]) for order in orders.T]})


def _loadings(fitted: Any) -> tuple[Array, npt.NDArray[Any]]:
    """Loadings (D, k) of a model, and the names of its genes."""
    return fitted.fit_.loadings, np.array(fitted.fit_.scaling.foreground.labels, dtype=object)


def loadings(
    adata: Any,
    key: str = "contrapca",
    *,
    component: int | None = None,
    n_genes: int | None = None,
    wide: bool = False,
) -> Any:
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
    wide : bool, default False
        A matrix for enrichment analysis instead: a row for each gene, in the order of `adata.var_names`, and a column
        for each component. `gseapy.prerank` takes a column of it, and decoupler its transpose.

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
    fitted = model(adata, key)
    W, names = _loadings(fitted)
    if component is not None:
        check_component(component, W.shape[1])
    components = range(1, W.shape[1] + 1) if component is None else [component]
    if wide:
        return frame({f"{key}{k}": W[:, k - 1] for k in components}).set_index(names)
    shown = W.shape[0] if n_genes is None else min(check_count(n_genes, "n_genes"), W.shape[0])
    orders = [np.argsort(-np.abs(W[:, k - 1]), kind="stable")[:shown] for k in components]
    genes = np.concatenate(orders)
    table = {
        "component": np.repeat(list(components), shown),
        "rank": np.tile(np.arange(1, shown + 1), len(orders)),
        "gene": names[genes],
        "loading": np.concatenate([W[order, k - 1] for k, order in zip(components, orders, strict=True)]),
    }
    return frame(
        table | dict(fitted.fit_.scaling.map_named(lambda name, own: (f"{name}_variance", own.variance[genes])))
    )
