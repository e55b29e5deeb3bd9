"""Tools that judge: is it real, in which cell types, and which method is better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.stats

from .._util.arrays import Rows
from .._util.checks import check_count, check_option
from .._util.text import is_missing, listed, natural_order, plural
from ..data import DEPTHS, is_anndata
from ..estimators import ContraPCA
from ..exceptions import GroupError, InfeasibleGammaError, RankError
from ..inference import Verdict, at_equal_depth, contrast_test
from ..inference import compare as compare_tables
from ._cells import Cells, check_n_comps, choice_of, choose, column, frame, stored_seed
from ._fit import adjusted, fitted, in_own_words, on_unseen_cells
from ._get import loadings
from ._get import model as stored_model
from ._results import MODEL, Results, check_key, check_writable, evidence, storable, stored, stored_choice, write
from ._warnings import matched, warn_of_depth, warn_of_groups, warn_of_values

TEST, COMPARISON, BY_GROUP = "contrapca_test", "contrapca_compare", "contrapca_by_group"  # keys of uns
LEVEL = 0.025  # of one-sided p-values, as of 95 % intervals; adjusted for all components of all groups


def test(
    adata: Any,
    key: str | None = None,
    *,
    groupby: str | None = None,
    background: Any = None,
    foreground: Any = None,
    max_comps: int = 10,
    level: float = 0.05,
    scale: str | None = None,
    layer: str | None = None,
    obsm: str | None = None,
    mask_var: Any = "auto",
    blocks: str | None = None,
    pairs: str | None = None,
    regress_out: str | Sequence[str] | None = None,
    within: str | None = None,
    depth: str = "warn",
    key_added: str | None = None,
    copy: bool = False,
    random_state: int | None = 0,
) -> Any:
    """Test whether the cases vary more than the controls in any direction, and which stored components show it.

    With `key` (or without `groupby`) it tests the cells and genes of stored results, and judges their components on
    cells that they were not fitted to, of all cells: `contrapca.get.components` then has the answer. With `groupby` it
    tests without any fit.

    It compares how cells vary about the mean of their group (`contrapca.contrast_test`). So it does not see a shift of
    the mean alone, a gene that is higher in all cases by the same amount: tests of differential expression do. And what
    it finds need not be new: another mixture of the same cell types, such as more of a rare one, also varies more, so
    compare cells of one type (`within`).

    Values may be missing (NaN) in dense tables, at any rates; `remarks` then has the rates of both groups.

    Parameters
    ----------
    adata : AnnData
    key : str, optional
        Of the results that a function of `contrapca.tl` has stored, by default "contrapca" if `groupby` is not given.
        The arguments that choose cells and genes are then those of the results.
    groupby, background, foreground, scale, layer, obsm, mask_var, pairs, regress_out, copy
        As for `contrapca.tl.contrapca`, with one background.
    within : str, optional
        As for `contrapca.tl.contrapca`. Tests take no weights: of the types of which one group has more, a
        random part of its cells is left out.
    max_comps : int, default 10
        Maximum number of dimensions to test.
    level : float, default 0.05
    blocks : str, optional
        Column of `obs` with the donor of each cell. Whole donors are then compared; without it, p-values are far too
        small if several cells come from each donor.
    depth : {"warn", "match", "ignore"}, default "warn"
        What to do if cells of one group were sequenced less deeply, which alone makes the test reject: warn, or first
        thin the counts of both groups to equal depth (`contrapca.match_depth`). Totals over all genes are
        `obs["total_counts"]`, `obs["n_counts"]` or `obs["nCount_RNA"]`, or the sums of the counts in `raw`, in
        `layers["counts"]` or in the matrix that is used. That matrix holds counts or log-normalised values.
    key_added : str, optional
        The key of `uns` in place of "contrapca_test".
    random_state : int or None, default 0
        Random seed for the splits.

    Returns
    -------
    AnnData or None
        A copy with the results if `copy` is true; otherwise `adata.uns["contrapca_test"]` has `params`, `verdict` (a
        sentence, or two with what is known of the stored components), `remarks` (further sentences, usually none),
        `n_components` (dimensions found), `p_values` and `statistics`, `noise_ratio`, `level`, `units` (what was
        compared: cells or donors). If there are too few donors to test stored results, the `verdict` says so and the
        numbers are left out. Of stored results, `adata.uns[key]` has what unseen cells, of all cells, say of each
        component (`held_out_ratio` and the like), and `test_n_components`.
    """
    own_key = free_key(adata, TEST if key_added is None else key_added)
    check_option(depth, "depth", DEPTHS)
    choice = choice_of(groupby, background, foreground, layer, obsm, mask_var, blocks, pairs, regress_out, within)
    model = None
    if groupby is None:
        key = "contrapca" if key is None else key
        if alone := [name for name, value in choice.items() if value is not None and name != "mask_var"]:
            raise ValueError(f"{listed(alone)} need groupby=, for a test without stored results; or leave them out.")
        model, choice = stored_model(adata, key), stored_choice(adata, key)
        scale = model._scaling
    elif key is not None:
        raise ValueError(f"Both groupby={groupby!r} and key={key!r} were given: use key= for stored results only.")
    asked = {"max_comps": max_comps, "scale": scale, "depth": depth, "random_state": random_state, "key": key}
    cells, table = _read(adata, choice, copy, depth=depth)
    alike = cells.alike(stored_seed(random_state))
    rows = alike.split(table)
    if depth == "match":
        alike, rows = matched(adata, alike, rows, stored_seed(random_state))
    summary = {"params": storable(cells.params | asked), "level": level}
    try:
        found = contrast_test(
            alike.study(rows),
            max_components=max_comps,
            level=level,
            scale=scale,
            depth="ignore",
            random_state=stored_seed(random_state),
        )
    except GroupError as error:  # too few donors for a test; unseen donors may still say something
        if model is None or key is None:
            raise
        summary |= {"verdict": f"The contrast was not tested: {error}"}
    else:
        found = at_equal_depth(found) if depth == "match" else found
        summary |= {
            "verdict": found.verdict(),
            "remarks": np.array(found.remarks(), dtype=np.str_),
            "n_components": found.n_components,
            "p_values": found.p_values,
            "statistics": found.statistics,
            "noise_ratio": found.noise_ratio,
            "units": found.units,
        }
    results = {own_key: summary}
    if model is not None and key is not None:
        held_out = on_unseen_cells(cells, adjusted(model, table, cells.covariates)[0], model, most=None)
        judged = stored(adata, key) | ({} if held_out is None else evidence(held_out))
        judged.pop("test_n_components", None)
        if "n_components" in summary:
            k = model.fit_.n_shown
            genes = loadings(adata, key, n_genes=2)["gene"].to_numpy().reshape(k, -1).tolist()
            summary["verdict"] = Verdict.of(found, k).about(held_out, genes).sentence
            judged["test_n_components"] = found.n_components
        results[key] = judged
    return write(adata, Results(results), copy=copy)


def compare(
    adata: Any,
    groupby: str,
    background: Any,
    *,
    foreground: Any = None,
    n_comps: int = 2,
    labels: str | None = None,
    layer: str | None = None,
    obsm: str | None = None,
    mask_var: Any = "auto",
    blocks: str | None = None,
    key_added: str | None = None,
    copy: bool = False,
    random_state: int | None = 0,
) -> Any:
    """Compare all methods in halves of the cells, unscaled and scaled (`contrapca.compare`).

    Parameters
    ----------
    adata, groupby, background, foreground, layer, obsm, mask_var, copy
        As for `contrapca.tl.contrapca`, with one background.
    n_comps : int, default 2
    labels : str, optional
        Column of `obs` with known classes of the cases, whose silhouette is added to the table.
    blocks : str, optional
        Column of `obs` with the donor of each cell. Whole donors are then held out.
    key_added : str, optional
        The key of `uns` in place of "contrapca_compare".
    random_state : int or None, default 0
        Random seed for the folds.

    Returns
    -------
    AnnData or None
        A copy with the results if `copy` is true; otherwise `adata.uns["contrapca_compare"]` has `params`,
        `recommendation` (sentences) and `table` (a data frame with one row per method and scaling, the best first).
    """
    key = free_key(adata, COMPARISON if key_added is None else key_added)
    choice = choice_of(groupby, background, foreground, layer, obsm, mask_var, blocks, None, None, None)
    if labels is not None:
        column(adata.obs, labels, "labels", "adata.obs")
    cells, table = _read(adata, choice, copy)
    check_n_comps(n_comps, len(cells.names))
    classes = None if labels is None else np.asarray(adata.obs[labels])[cells.groups.foreground]
    study = cells.study(cells.split(table), labels=classes)
    found = compare_tables(study, n_components=n_comps, random_state=stored_seed(random_state))
    params = storable(cells.params | {"n_comps": n_comps, "labels": labels, "random_state": random_state})
    summary = {"params": params, "recommendation": found.recommendation, "table": frame(found.table())}
    return write(adata, Results({key: summary}), copy=copy)


def by_group(
    adata: Any,
    split: str,
    groupby: str,
    background: Any,
    *,
    foreground: Any = None,
    n_comps: int = 2,
    n_genes: int = 5,
    gamma: float | str = "auto",
    scale: str | None = "auto",
    layer: str | None = None,
    obsm: str | None = None,
    mask_var: Any = "auto",
    blocks: str | None = None,
    pairs: str | None = None,
    regress_out: str | Sequence[str] | None = None,
    key_added: str | None = None,
    copy: bool = False,
    random_state: int | None = 0,
) -> Any:
    """One contrast in each cell type: where do the cases vary more than the controls?

    The cells of each value of `split` are fitted by themselves (`contrapca.tl.contrapca`) and judged on cells of unseen
    donors. No composition of types can look like a contrast here.

    Parameters
    ----------
    adata : AnnData
    split : str
        Column of `obs` with the cell types, or other groups of cells. It should not be a clustering of the same genes
        with the same cells: clusters that were found in the cases' variation are cut along it.
    groupby, background, foreground, gamma, scale, layer, obsm, mask_var, blocks, pairs, regress_out, copy, random_state
        As for `contrapca.tl.contrapca`.
    n_comps : int, default 2
        Components of each type.
    n_genes : int, default 5
        Genes of each component that are listed.
    key_added : str, optional
        The key of `uns` in place of "contrapca_by_group".

    Returns
    -------
    AnnData or None
        A copy with the results if `copy` is true; otherwise `adata.uns["contrapca_by_group"]` has `params` and `table`,
        a data frame with a row for each type and component: `group`, `component`, `n_cases`, `n_controls`, `ratio` (of
        variances on unseen cells) with its interval `low` and `high`, `p` and `p_adjusted` (one-sided; false discovery
        rate over the table, Benjamini and Hochberg), `agreement`, `max_share` (of one donor, or one cell), `supported`
        (found again, and p_adjusted at most 0.025: the interval is then above 1), `genes` (the strongest) and `note`
        (why a type has no result).

    Examples
    --------
    >>> import contrapca
    >>> adata = contrapca.datasets.make_cells(n_cells=60, random_state=0)
    >>> contrapca.tl.by_group(adata, "cell_type", "condition", "ctrl", blocks="donor", n_comps=1)
    >>> adata.uns["contrapca_by_group"]["table"]["group"].tolist()
    ['B', 'Mono', 'T']
    """
    key = free_key(adata, BY_GROUP if key_added is None else key_added)
    choice = choice_of(groupby, background, foreground, layer, obsm, mask_var, blocks, pairs, regress_out, None)
    whole = choose(adata, **choice)  # raises for what is wrong with all cells
    check_n_comps(n_comps, len(whole.names))
    check_count(n_genes, "n_genes")
    check_writable(adata, copy)
    seed, names = stored_seed(random_state), column(adata.obs, split, "split", "adata.obs").tolist()
    warn_of_groups(adata.obs, whole, split)
    warn_of_depth(adata, whole)
    labels = np.array(["" if is_missing(own) else str(own) for own in names], dtype=object)
    types = sorted(set(labels[np.concatenate(list(whole.groups))]) - {""})
    rows: list[dict[str, Any]] = []
    for name in (types[k] for k in natural_order(types)):
        counts = [int(np.sum(labels[cells] == name)) for cells in whole.groups]
        about = {"group": name, "n_cases": counts[0], "n_controls": sum(counts[1:])}
        if min(counts) < 2:
            few = f"{plural(counts[0], 'case')} and {plural(about['n_controls'], 'control')}"
            rows.append(about | {"component": 0, "note": f"{few}: each group needs at least 2 cells"})
            continue
        try:
            cells = choose(adata[labels == name], **choice)
            model = ContraPCA(n_comps, gamma=gamma, scale=scale, random_state=seed)
            with in_own_words():
                model, _, held_out = fitted(cells, model)
        except (GroupError, RankError, InfeasibleGammaError) as error:
            rows.append(about | {"component": 0, "note": str(error)})
            continue
        W = model.fit_.loadings
        for k in range(n_comps):
            order = np.argsort(-np.abs(W[:, k]), kind="stable")[:n_genes]
            row = about | {"component": k + 1, "genes": ", ".join(cells.names[j] for j in order)}
            if held_out is None:
                row["note"] = "too few cells or donors, or missing values: not judged on unseen cells"
            else:
                row |= {"ratio": held_out.ratios[k], "agreement": held_out.agreement[k]}
                row |= {"low": held_out.intervals[k, 0], "high": held_out.intervals[k, 1]}
                row |= {"p": held_out.p_values[k], "max_share": held_out.largest_share[k]}
                row["found_again"] = held_out.found_again[k]
            rows.append(row)
    p = np.array([row.get("p", np.nan) for row in rows], dtype=float)
    p_adjusted = np.full(p.size, np.nan)
    if (judged := np.isfinite(p)).any():
        p_adjusted[judged] = scipy.stats.false_discovery_control(p[judged])
    again = np.array([row.get("found_again", False) for row in rows], dtype=bool)
    sizes = ("group", "component", "n_cases", "n_controls")
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in sizes}
    columns |= {name: np.array([row.get(name, np.nan) for row in rows], float) for name in ("ratio", "low", "high")}
    columns |= {"p": p, "p_adjusted": p_adjusted}
    columns |= {name: np.array([row.get(name, np.nan) for row in rows], float) for name in ("agreement", "max_share")}
    columns["supported"] = again & (p_adjusted <= LEVEL)
    columns |= {name: [row.get(name, "") for row in rows] for name in ("genes", "note")}
    params = storable(whole.params | {"split": split, "n_comps": n_comps, "gamma": gamma, "scale": scale})
    return write(adata, Results({key: {"params": params, "table": frame(columns)}}), copy=copy)


def free_key(adata: Any, key: Any) -> str:
    """A key of `uns` that holds no fitted model, which other results would replace."""
    found = check_key(key)
    if is_anndata(adata) and isinstance(entry := adata.uns.get(found), Mapping) and MODEL in entry:
        raise ValueError(
            f"key_added={found!r} is the key of a fitted model in adata.uns, which these results would replace: use "
            "another key, or delete the model first."
        )
    return found


def _read(adata: Any, choice: dict[str, Any], copy: bool, depth: str = "warn") -> tuple[Cells, Rows]:
    """The chosen cells, and the genes of all cells in memory."""
    cells = choose(adata, **choice)
    check_writable(adata, copy)
    warn_of_groups(adata.obs, cells)
    table = cells.read()
    if depth != "match":  # which takes logarithms
        warn_of_values(cells, table)
    if depth == "warn":
        warn_of_depth(adata, cells)
    return cells, table
