"""Results inside an AnnData: written all or none, and read as they are, as a model or as data frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .._files import unpack
from .._util.arrays import Array
from .._util.checks import check_count
from .._util.text import did_you_mean, listed
from ..inference import HeldOutContrast
from ._cells import Choice, frame

MODEL = "model"  # the arrays of a saved model, in uns


def check_key(key_added: Any) -> str:
    """A key that files can have."""
    if not isinstance(key_added, str) or not key_added or "/" in key_added:
        raise ValueError(
            f"key_added={key_added!r} cannot be a key: use a text that is not empty and has no '/', which files take "
            "for a folder."
        )
    return key_added


def check_writable(adata: Any, copy: bool) -> None:
    """Raise before the work if results could not be stored."""
    if adata.isbacked and (copy or adata.is_view):
        what = "copy=True" if copy else "This view"
        raise ValueError(
            f"{what} would need a new file, as this AnnData is backed by one: use adata.to_memory(), or store the "
            "results in the whole backed AnnData without a copy (they are kept in memory; the file stays as it is)."
        )


def write(adata: Any, copy: bool, **results: Mapping[str, Any]) -> Any:
    """Store results in places of the AnnData (returns None), or of a copy (returns it); None removes an older one."""
    target = adata.copy() if copy else adata
    for place, entries in results.items():
        for key, value in entries.items():
            if value is not None:
                getattr(target, place)[key] = value
            elif key in getattr(target, place):
                del getattr(target, place)[key]
    return target if copy else None


def evidence(held_out: HeldOutContrast) -> dict[str, Any]:
    """What unseen cells say of each component, as `uns` holds it; and of each condition, if there are several."""
    of_conditions = held_out.cells and {
        "conditions": np.array(held_out.cells.cells),
        "condition_ratio": np.exp(held_out.cells.log_ratios),
        "condition_interval": held_out.cells.intervals,
    }
    return (of_conditions or {}) | {
        "held_out_ratio": held_out.ratios,
        "held_out_interval": held_out.intervals,
        "held_out_p": held_out.p_values,
        "agreement": held_out.agreement,
        "found_again": held_out.found_again,
        "largest_share": held_out.largest_share,
    }


def supported(entry: Mapping[str, Any]) -> npt.NDArray[np.bool_] | None:
    """Which components unseen cells vary more along and other halves find again, shape (k,); None if nothing is known.

    None of them is if a test of the same cells has found nothing.
    """
    if "held_out_interval" not in entry:
        return None
    found = np.asarray(entry["found_again"], dtype=bool) & (np.asarray(entry["held_out_interval"])[:, 0] > 1)
    return found & (int(entry.get("test_n_components", 1)) > 0)


def storable(params: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as h5ad and zarr files can hold them: None is left out, lists become arrays, also inside dicts."""
    kept: dict[str, Any] = {}
    for name, value in params.items():
        if isinstance(value, Mapping):
            kept[str(name)] = storable(value)
        elif value is not None:
            kept[str(name)] = np.array(list(value)) if isinstance(value, list | tuple | set) else value
    return kept


def stored(adata: Any, key: str, *, what: str = MODEL, by: str = "tl.contrapca") -> dict[str, Any]:
    """What a function stored under a key of `uns`."""
    entry = adata.uns.get(key) if hasattr(adata, "uns") else None
    if not isinstance(entry, Mapping) or what not in entry:
        known = [name for name, value in adata.uns.items() if isinstance(value, Mapping) and what in value]
        have = f"only {listed(known)}" if known else f"run contrapca.{by} first"
        meant = f" Did you mean output={key!r}?" if str(key).endswith(".html") else did_you_mean(key, known)
        raise ValueError(f"There are no such results in adata.uns[{key!r}], {have}.{meant}")
    return dict(entry)


def check_component(component: Any, n_components: int) -> None:
    """Raise unless it is one of the components, counting from 1."""
    if check_count(component, "component") > n_components:
        raise ValueError(f"component={component} must be one of the {n_components} components, counting from 1.")


def stored_choice(adata: Any, key: str) -> Choice:
    """The choice of cells and genes that is stored with results."""
    params = stored(adata, key)["params"]
    choice = Choice(**{field.name: _as_given(params.get(field.name)) for field in fields(Choice)})
    mask = params.get("mask_var")
    return replace(choice, mask_var=mask if mask is None or isinstance(mask, str) else np.asarray(mask))


def _as_given(value: Any) -> Any:
    """A stored setting as it was given."""
    if isinstance(value, Mapping):
        return {name: _as_given(part) for name, part in value.items()}
    return value.tolist() if hasattr(value, "tolist") else value


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
