"""Tools that judge: is it real, in which cell types, which method is better; and the page that says so."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.stats
from sklearn.base import clone

from .._util.arrays import Rows
from .._util.checks import check_count, check_option
from .._util.text import is_missing, listed, natural_order, plural
from ..data import DEPTHS, is_anndata
from ..estimators import ContraPCA
from ..exceptions import GroupError, InfeasibleGammaError, RankError
from ..inference import Verdict, at_equal_depth, contrast_test
from ..inference import compare as compare_tables
from ..reporting import Report, check_libraries, summarize
from ._cells import TEST_COPIES, Cells, Choice, check_n_comps, choose, column, frame, stored_seed
from ._fit import adjusted, fitted, in_own_words, on_unseen_cells
from ._results import MODEL, check_key, check_writable, evidence, loadings, storable, stored, stored_choice, write
from ._results import model as stored_model
from ._warnings import matched, warn_of_depth, warn_of_groups, warn_of_values

TEST, COMPARISON, BY_GROUP = "contrapca_test", "contrapca_compare", "contrapca_by_group"  # keys of uns
BY_GROUP_COLUMNS = {  # of the table, with what stands where nothing is known
    **{"group": "", "component": 0, "n_cases": 0, "n_controls": 0},
    **dict.fromkeys(("ratio", "low", "high", "p", "p_adjusted", "agreement", "max_share"), np.nan),
    **{"supported": False, "genes": "", "note": ""},
}
SEED, MOST = 0, 10  # of reports: the same tables give the same page; dimensions tested, or as many as are shown
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
    choice = Choice(groupby, background, foreground, layer, obsm, mask_var, blocks, pairs, regress_out, within)
    model = None
    if groupby is None:
        key = "contrapca" if key is None else key
        if alone := [name for name, value in vars(choice).items() if value is not None and name != "mask_var"]:
            raise ValueError(f"{listed(alone)} need groupby=, for a test without stored results; or leave them out.")
        model, choice = stored_model(adata, key), stored_choice(adata, key)
        scale = model._scaling
    elif key is not None:
        raise ValueError(f"Both groupby={groupby!r} and key={key!r} were given: use key= for stored results only.")
    asked = {"max_comps": max_comps, "scale": scale, "depth": depth, "random_state": random_state, "key": key}
    seed = stored_seed(random_state)
    cells, table = _read(adata, choice, copy, depth=depth)
    alike = cells.alike(seed)
    rows = alike.split(table)
    if depth == "match":
        alike, rows = matched(adata, alike, rows, seed)
    summary = {"params": storable(vars(cells.choice) | asked), "level": level}
    settings: dict[str, Any] = {"max_components": max_comps, "level": level, "scale": scale, "random_state": seed}
    try:
        found = contrast_test(alike.study(rows), depth="ignore", **settings)
    except GroupError as error:  # too few donors for a test; unseen donors may still say something
        if model is None:
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
        held_out = on_unseen_cells(cells, adjusted(model, table, cells.covariates)[0], model, by_all=True)
        judged = stored(adata, key) | ({} if held_out is None else evidence(held_out))
        judged.pop("test_n_components", None)
        if "n_components" in summary:
            k = model.fit_.n_shown
            genes = loadings(adata, key, n_genes=2)["gene"].to_numpy().reshape(k, -1).tolist()
            summary["verdict"] = Verdict.of(found, k).about(held_out, genes).sentence
            judged["test_n_components"] = found.n_components
        results[key] = judged
    return write(adata, copy, uns=results)


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
    classes = None if labels is None else column(adata.obs, labels, "labels", "adata.obs")
    cells, table = _read(adata, Choice(groupby, background, foreground, layer, obsm, mask_var, blocks), copy)
    check_n_comps(n_comps, len(cells.names))
    study = cells.study(cells.split(table), labels=classes)
    found = compare_tables(study, n_components=n_comps, random_state=stored_seed(random_state))
    params = vars(cells.choice) | {"n_comps": n_comps, "labels": labels, "random_state": random_state}
    summary = {"params": storable(params), "recommendation": found.recommendation, "table": frame(found.table())}
    return write(adata, copy, uns={key: summary})


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
    choice = Choice(groupby, background, foreground, layer, obsm, mask_var, blocks, pairs, regress_out)
    whole = choose(adata, choice)  # raises for what is wrong with all cells
    check_n_comps(n_comps, len(whole.names))
    check_count(n_genes, "n_genes")
    check_writable(adata, copy)
    seed, names = stored_seed(random_state), column(adata.obs, split, "split", "adata.obs").tolist()
    warn_of_groups(adata.obs, whole, split)
    warn_of_depth(adata, whole)
    labels = np.array(["" if is_missing(own) else str(own) for own in names], dtype=object)
    types = sorted(set(labels[np.concatenate(list(whole.groups))]) - {""})
    rows: list[dict[str, Any]] = []  # of the table, with what is known
    for name in (types[k] for k in natural_order(types)):
        counts = [int(np.sum(labels[cells] == name)) for cells in whole.groups]
        about = {"group": name, "component": 0, "n_cases": counts[0], "n_controls": sum(counts[1:])}
        if min(counts) < 2:
            few = f"{plural(counts[0], 'case')} and {plural(about['n_controls'], 'control')}"
            rows.append(about | {"note": f"{few}: each group needs at least 2 cells"})
            continue
        try:
            cells = choose(adata[labels == name], choice)
            model = ContraPCA(n_comps, gamma=gamma, scale=scale, random_state=seed)
            with in_own_words():
                model, _, held_out = fitted(cells, model)
        except (GroupError, RankError, InfeasibleGammaError) as error:
            rows.append(about | {"note": str(error)})
            continue
        for k, of_genes in enumerate(model.fit_.loadings.T):
            order = np.argsort(-np.abs(of_genes), kind="stable")[:n_genes]
            row = about | {"component": k + 1, "genes": ", ".join(cells.names[j] for j in order)}
            if held_out is None:
                row["note"] = "too few cells or donors, or missing values: not judged on unseen cells"
            else:
                row |= {"ratio": held_out.ratios[k], "agreement": held_out.agreement[k]}
                row |= {"low": held_out.intervals[k, 0], "high": held_out.intervals[k, 1]}
                row |= {"p": held_out.p_values[k], "max_share": held_out.largest_share[k]}
                row["supported"] = held_out.found_again[k]  # and, below, at most so many false discoveries
            rows.append(row)
    table = frame({name: [row.get(name, other) for row in rows] for name, other in BY_GROUP_COLUMNS.items()})
    judged = table["p"].notna()
    if judged.any():
        table.loc[judged, "p_adjusted"] = scipy.stats.false_discovery_control(table["p"][judged])
    table["supported"] &= table["p_adjusted"] <= LEVEL
    params = vars(whole.choice) | {"split": split, "n_comps": n_comps, "gamma": gamma, "scale": scale}
    return write(adata, copy, uns={key: {"params": storable(params), "table": table}})


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
    if groupby is not None:
        if key is not None:
            raise ValueError(f"Both groupby={groupby!r} and key={key!r} were given: use key= for stored results only.")
        model = ContraPCA(random_state=0)
        choice = Choice(groupby, background, foreground, layer, obsm, mask_var, blocks)
    else:
        key = "contrapca" if key is None else key
        model, choice = stored_model(adata, key), stored_choice(adata, key)
        choice = replace(choice, blocks=blocks or choice.blocks)
    cells = choose(adata, choice)
    if cells.weights is not None or cells.covariates is not None:  # a report shows every row once, and fits to these
        cells, model = cells.alike(SEED), clone(model)
    warn_of_groups(adata.obs, cells)
    rows = cells.split(cells.read(TEST_COPIES))
    classes = None if labels is None else column(adata.obs, labels, "labels", "adata.obs")
    study = cells.study(rows, labels=classes, names=np.asarray(adata.obs_names), label_name=labels)
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


def free_key(adata: Any, key: Any) -> str:
    """A key of `uns` that holds no fitted model, which other results would replace."""
    found = check_key(key)
    if is_anndata(adata) and isinstance(entry := adata.uns.get(found), Mapping) and MODEL in entry:
        raise ValueError(
            f"key_added={found!r} is the key of a fitted model in adata.uns, which these results would replace: use "
            "another key, or delete the model first."
        )
    return found


def _read(adata: Any, choice: Choice, copy: bool, depth: str = "warn") -> tuple[Cells, Rows]:
    """The chosen cells, and the genes of all cells in memory."""
    cells = choose(adata, choice)
    check_writable(adata, copy)
    warn_of_groups(adata.obs, cells)
    table = cells.read(TEST_COPIES)
    if depth != "match":  # which takes logarithms
        warn_of_values(cells, table)
    if depth == "warn":
        warn_of_depth(adata, cells)
    return cells, table
