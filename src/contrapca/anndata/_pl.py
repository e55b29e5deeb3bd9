"""Plots of results that are stored in an AnnData. Every function takes `ax` and returns it."""

from __future__ import annotations

import operator
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import is_sparse
from .._util.checks import check_count
from .._util.optional import require
from .._util.text import LEAST_P, did_you_mean, is_missing, listed
from ..data import genes_of, regress_out
from ..estimators import ContrastSolver
from ..inference import contrast_path
from ..plots import BACKGROUND_COLOUR, COLOURS, axes_or_current, latents, path_curves, tidy
from ..plots import loadings as loading_bars
from ._cells import choose, group_values, labels_in, loaded
from ._evidence import BY_GROUP, TEST
from ._results import check_component, stored, stored_choice, supported
from ._results import model as stored_model

NEITHER_COLOUR = "#CFCFCF"  # cells of neither group
TITLE_WIDTH = 72  # characters


def embedding(
    adata: Any,
    key: str = "contrapca",
    *,
    color: str | Sequence[str] | None = None,
    components: tuple[int, int] | str = (1, 2),
    layer: str | None = None,
    palette: Any = None,
    ax: Any = None,
    show: bool = False,
    save: Any = None,
) -> Any:
    """Scatter plot of the latents of all cells, with the controls in grey behind the cases.

    Cells of neither group are light grey dots. Components that unseen cells do not support (`contrapca.get.components`)
    are named so on the axes.

    Parameters
    ----------
    adata : AnnData
    key : str, default "contrapca"
        Key of the results: the function's name, or its `key_added`.
    color : str or list of str, optional
        Column of `obs`, or a gene, that colours the cases. Colours of `uns`, as scanpy stores them, are used. A list
        makes a figure with a panel for each.
    components : two int, or str, default (1, 2)
        Counting from 1, as on the axes; "1,2" as in scanpy.
    layer : str, optional
        The layer that a gene's values are from; by default X.
    palette : list of colours, dict from class to colour, or name of a colour map, optional
        For classes.
    ax : matplotlib Axes, optional
    show : bool, default False
        Whether to show the figure.
    save : str or path-like, optional
        Where to save the figure; the ending says in which format.

    Returns
    -------
    ax : matplotlib Axes, or a list of them if `color` is a list
    """
    if color is not None and not isinstance(color, str):
        if ax is not None:
            raise ValueError(f"color has {len(color)} entries, which need a panel each: leave ax= out, or name one.")
        pyplot = require("matplotlib.pyplot", extra="plot")
        size = (5.4 * len(color), 4.2)
        axes = pyplot.subplots(1, len(color), figsize=size, layout="constrained", squeeze=False)[1]
        drawn = [
            embedding(adata, key, color=own, components=components, layer=layer, palette=palette, ax=one)
            for own, one in zip(color, axes[0], strict=True)
        ]
        _finished(drawn[0], show, save)
        return drawn
    entry = stored(adata, key)
    params = entry["params"]
    place = str(entry.get("embedding", key if key in adata.obsm else f"X_{key}"))  # results of 0.2 before have no name
    if place not in adata.obsm:
        raise ValueError(f"adata.obsm[{place!r}], the latents of these results, is gone: run contrapca.tl again.")
    Z = np.asarray(adata.obsm[place])
    if Z.shape[1] == 1:
        raise ValueError(
            f"This plot needs two components, but adata.uns[{key!r}] has one: run the function of contrapca.tl with "
            "n_comps=2, or see pl.held_out and pl.loadings."
        )
    chosen = _two_components(components, Z.shape[1])
    Z = Z[:, [k - 1 for k in chosen]]
    values = group_values(adata.obs, params["groupby"]).tolist()
    background = labels_in(params["background"])
    every = [value for value in values if value not in background]
    foreground = labels_in(entry.get("cases", params.get("foreground", every)))  # results of 0.2 before have no cases
    groups = []
    for group, labels in (("foreground", foreground), ("background", background)):
        groups.append(np.array([value in labels for value in values], dtype=bool))
        if not groups[-1].any():
            raise ValueError(
                f"adata.obs[{params['groupby']!r}] no longer has {listed(labels)}, the {group} of these results: "
                "rename the values back, or run the function of contrapca.tl again."
            )
    cases, controls = groups
    known = np.isfinite(Z).all(axis=1)  # cells whose type the fit does not know have no latents
    real = supported(entry)
    names = [f"{place.removeprefix('X_')}{k}{_doubt(real, k)}" for k in chosen]  # named as scanpy labels them
    given = {} if color is None else _coloured(adata, color, cases & known, layer, palette)
    ax = latents(Z[cases & known], background=Z[controls & known], axis_labels=names, **given, ax=ax)
    if (others := ~cases & ~controls & known).any():
        size = min(own.get_sizes().min() for own in ax.collections)
        ax.scatter(*Z[others].T, s=0.7 * size, color=NEITHER_COLOUR, linewidths=0, zorder=0, label="neither group")
    ax.set(xticks=[], yticks=[])
    if (legend := tidy(ax).get_legend()) is not None:
        legend.set_title(color or "")
    return _finished(ax, show, save)


def _two_components(given: Any, count: int) -> list[int]:
    """Two of `count` components, counting from 1, as numbers or as text, "1,2"."""
    parts = given.split(",") if isinstance(given, str) else given
    try:
        found = [operator.index(int(part) if isinstance(part, str) else part) for part in parts]
    except (TypeError, ValueError):
        found = []
    if len(found) != 2 or not all(1 <= k <= count for k in found):
        raise ValueError(
            f"components={given!r} must be two of the {count} components, counting from 1, such as (1, 2)."
        )
    return found


def _doubt(real: npt.NDArray[np.bool_] | None, k: int) -> str:
    """What to add to the name of a component that unseen cells do not support."""
    return "" if real is None or real[k - 1] else " (not supported)"


def _finished(ax: Any, show: bool, save: Any) -> Any:
    """The axes, whose figure is saved and shown first if that is wanted."""
    if save is not None:
        ax.figure.savefig(save, dpi=150, bbox_inches="tight")
    if show:
        require("matplotlib.pyplot", extra="plot").show()
    return ax


def _coloured(adata: Any, color: str, cells: npt.NDArray[np.bool_], layer: str | None, palette: Any) -> dict[str, Any]:
    """The values of a column or gene in some cells, and the colours of classes: given, or those that scanpy keeps."""
    columns, of_obs = list(adata.obs.columns), color in list(adata.obs.columns)
    if not of_obs and color not in adata.var_names:
        raise ValueError(
            f"color={color!r} is neither a column of adata.obs ({listed(columns, 10)}) nor a gene."
            f"{did_you_mean(color, [*columns, *adata.var_names])}"
        )
    if of_obs:
        values = np.asarray(adata.obs[color])
    else:
        one_gene = loaded(genes_of(adata, [color], layer))
        values = np.asarray(one_gene.toarray() if is_sparse(one_gene) else one_gene, dtype=float).ravel()
    categories = getattr(getattr(adata.obs[color], "cat", None), "categories", ()) if of_obs else ()
    categories = [str(own) for own in categories] or sorted({str(own) for own in values[cells] if not is_missing(own)})
    if palette is None:
        palette = np.asarray(adata.uns.get(f"{color}_colors", [])).tolist()
        palette = palette if len(palette) >= len(categories) else []
    if isinstance(palette, str):
        palette = require("matplotlib", extra="plot").colormaps[palette].resampled(max(len(categories), 2))
        palette = [palette(k) for k in range(len(categories))]
    if not isinstance(palette, Mapping):
        palette = dict(zip(categories, palette, strict=False))
    return {"labels": values[cells], "label_name": color, "colors": {str(name): own for name, own in palette.items()}}


def loadings(
    adata: Any,
    key: str = "contrapca",
    *,
    component: int = 1,
    n_genes: int = 15,
    ax: Any = None,
    show: bool = False,
    save: Any = None,
) -> Any:
    """Bar plot of the genes with the largest loadings on one component.

    Parameters
    ----------
    adata, key, ax, show, save
        As for `contrapca.pl.embedding`.
    component : int, default 1
        Counting from 1.
    n_genes : int, default 15
        Number of genes.

    Returns
    -------
    ax : matplotlib Axes
    """
    model, n_shown = stored_model(adata, key), check_count(n_genes, "n_genes")
    check_component(component, model.components_.shape[0])
    ax = loading_bars(model, component, n_features=n_shown, ax=axes_or_current(ax))
    ax.set_xlabel(ax.get_xlabel() + _doubt(supported(stored(adata, key)), component))
    return _finished(ax, show, save)


def held_out(adata: Any, key: str = "contrapca", *, ax: Any = None, show: bool = False, save: Any = None) -> Any:
    """Plot how many times as much unseen cases vary as unseen controls along each component, with 95 % intervals.

    Components that are not supported (`contrapca.get.components`) are hollow.

    Parameters
    ----------
    adata, key, ax, show, save
        As for `contrapca.pl.embedding`.

    Returns
    -------
    ax : matplotlib Axes
    """
    entry = stored(adata, key)
    if (real := supported(entry)) is None:
        raise ValueError(
            f"adata.uns[{key!r}] says nothing of unseen cells: that needs complete values, and at least 10 cells and 2 "
            "donors of each group."
        )
    ratios, intervals = np.asarray(entry["held_out_ratio"]), np.asarray(entry["held_out_interval"])
    k = np.arange(1, ratios.size + 1)
    ax = axes_or_current(ax)
    ax.vlines(k, intervals[:, 0], intervals[:, 1], color=COLOURS[0], linewidth=1.5)
    for own, face, name in ((real, COLOURS[0], "supported"), (~real, "white", "not supported")):
        if own.any():
            ax.scatter(k[own], ratios[own], s=40, facecolors=face, edgecolors=COLOURS[0], label=name, zorder=2)
    ax.axhline(1.0, color=BACKGROUND_COLOUR, linewidth=1, linestyle="--")
    ax.set(yscale="log", xlabel="component", ylabel="variance of unseen cases\nover that of unseen controls", xticks=k)
    ticker = require("matplotlib.ticker", extra="plot")
    ax.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
    ax.yaxis.set_minor_formatter(ticker.NullFormatter())
    tidy(ax)
    return _finished(ax, show, save)


def variance(adata: Any, key: str = "contrapca", *, ax: Any = None, show: bool = False, save: Any = None) -> Any:
    """Plot the variance of cases and controls along each component, in the cells of the fit.

    It shows the sizes of components, and is no evidence: axes are chosen for their variance. That is what
    `contrapca.pl.held_out` shows; components that it does not support are pale here.

    Parameters
    ----------
    adata, key, ax, show, save
        As for `contrapca.pl.embedding`.

    Returns
    -------
    ax : matplotlib Axes
    """
    entry = stored(adata, key)
    background, real = entry["background_variance"], supported(entry)
    named = background if isinstance(background, Mapping) else {"controls": background}
    bars: list[tuple[str, Any, Any]] = [("cases", COLOURS[0], entry["variance"])]
    grey = np.array(require("matplotlib.colors", extra="plot").to_rgb(BACKGROUND_COLOUR))
    for j, (name, own) in enumerate(named.items()):  # each lighter than the one before
        bars.append((name, tuple(grey + (1 - grey) * 0.4 * j / len(named)), own))
    ax, k = axes_or_current(ax), np.arange(1, np.size(entry["variance"]) + 1)
    width = 0.8 / len(bars)
    for j, (name, colour, values) in enumerate(bars):
        drawn = ax.bar(k - 0.4 + width * (j + 0.5), np.asarray(values), width * 0.95, color=colour)
        for place, bar in enumerate(drawn):
            bar.set_alpha(1.0 if real is None or real[place] else 0.35)
        ax.plot([], [], "s", color=colour, label=name)  # the legend is not pale
    ax.set(xlabel="component" + ("" if real is None or real.all() else " (pale: not supported)"), xticks=k)
    ax.set_ylabel("variance in the cells of the fit")
    tidy(ax)
    return _finished(ax, show, save)


def by_group(adata: Any, key: str = BY_GROUP, *, ax: Any = None, show: bool = False, save: Any = None) -> Any:
    """Dot plot of `contrapca.tl.by_group`: types by components.

    The colour says how many times as much unseen cases vary as unseen controls, the size how certain that is, and a
    black ring that the component is supported: found again, and p_adjusted at most 0.025. The two strongest genes
    stand beside the dots. Types without a result have a note.

    Parameters
    ----------
    adata, ax, show, save
        As for `contrapca.pl.embedding`.
    key : str, default "contrapca_by_group"
        Key of `uns`, where `contrapca.tl.by_group` stored its table.

    Returns
    -------
    ax : matplotlib Axes
    """
    table = stored(adata, key, what="table", by="tl.by_group")["table"]
    groups = list(dict.fromkeys(table["group"].astype(str)))
    counts = table.drop_duplicates("group").set_index("group")[["n_cases", "n_controls"]]
    ax = axes_or_current(ax)
    y = np.array([len(groups) - 1 - groups.index(str(name)) for name in table["group"]])
    p, ratio = table["p_adjusted"].to_numpy(float), table["ratio"].to_numpy(float)
    judged = np.isfinite(p) & np.isfinite(ratio)
    x = table["component"].to_numpy(int)
    if judged.any():
        size = 30 + 70 * np.minimum(-np.log10(np.maximum(p[judged], LEAST_P)), 4)
        reach = max(float(np.abs(np.log2(ratio[judged])).max()), 0.5)
        edges = ["black" if real else BACKGROUND_COLOUR for real in table["supported"][judged]]
        dots = ax.scatter(
            x[judged],
            y[judged],
            s=size,
            c=np.log2(ratio[judged]),
            cmap="RdBu_r",
            vmin=-reach,
            vmax=reach,
            edgecolors=edges,
        )
        ax.figure.colorbar(dots, ax=ax, pad=0.02, label="log2 ratio of variances, unseen cells")
        for level in (0.025, 1e-3):
            ax.scatter([], [], s=30 - 70 * np.log10(level), color=BACKGROUND_COLOUR, label=f"p = {level:g}")
        ax.scatter([], [], s=100, facecolors="none", edgecolors="black", label="supported")
        ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.01), ncols=3, frameon=False, fontsize="small")
    for row, height in zip(table.itertuples(), y, strict=True):
        if row.component == 0:
            ax.annotate("not tested", (1, height), ha="center", va="center", color=BACKGROUND_COLOUR, fontsize="small")
        else:
            genes = "\n".join(str(row.genes).split(", ")[:2])
            ax.annotate(genes, (row.component, height), (14, 0), textcoords="offset points", va="center", fontsize=7)
    names = [f"{name}\n{counts.loc[name].iloc[0]} + {counts.loc[name].iloc[1]} cells" for name in groups]
    ax.set_yticks(range(len(groups)), names[::-1], fontsize="small")
    most = max(int(x.max()), 1)
    ax.set(xlabel="component", xticks=range(1, most + 1), xlim=(0.6, most + 0.7), ylim=(-0.6, len(groups) - 0.4))
    ax.spines[["top", "right"]].set_visible(False)
    return _finished(ax, show, save)


def gamma_path(
    adata: Any, key: str = "contrapca", *, n_gammas: int = 40, ax: Any = None, show: bool = False, save: Any = None
) -> Any:
    """Plot the fraction of each group's variance along the components against gamma.

    The contrast is computed at other gammas from the matrix that the results are from, with the same settings. The
    gamma of the results is marked.

    Parameters
    ----------
    adata, key, ax, show, save
        As for `contrapca.pl.embedding`.
    n_gammas : int, default 40

    Returns
    -------
    ax : matplotlib Axes
    """
    model = stored_model(adata, key)
    if not (isinstance(model, ContrastSolver) and model._contrasts):
        raise ValueError(f"adata.uns[{key!r}] is a {type(model).__name__}, which has no gamma.")
    cells = choose(adata, stored_choice(adata, key))
    if cells.names != model.fit_.scaling.foreground.labels:
        raise ValueError(
            f"The genes are not those of adata.uns[{key!r}] any more: the mask or the order of genes has changed. Run "
            "the function of contrapca.tl again."
        )
    study = cells.study(cells.split(cells.read()))
    study = study if study.covariates is None else regress_out(study)
    path = contrast_path(model, study, gammas=check_count(n_gammas, "n_gammas"))
    ax = path_curves(path, ax=axes_or_current(ax))
    ax.axvline(model.gamma_, color="black", linewidth=1, linestyle=":", label=f"used: {model.gamma_:.3g}")
    ax.legend(frameon=False)
    return _finished(ax, show, save)


def verdict(adata: Any, key: str = TEST, *, ax: Any = None, show: bool = False, save: Any = None) -> Any:
    """Plot the p-values of a test, with its verdict as the title.

    Parameters
    ----------
    adata, ax, show, save
        As for `contrapca.pl.embedding`.
    key : str, default "contrapca_test"
        Key of `uns`, where `contrapca.tl.test` stored the result.

    Returns
    -------
    ax : matplotlib Axes
    """
    entry = stored(adata, key, what="verdict", by="tl.test")
    if "p_values" not in entry:
        raise ValueError(f"There is nothing to draw. {entry['verdict']}")
    ax = axes_or_current(ax)
    p, found = np.asarray(entry["p_values"]), int(entry["n_components"])
    k = np.arange(1, p.size + 1)
    for own, colour, name in ((k <= found, COLOURS[0], "found"), (k > found, BACKGROUND_COLOUR, "not found")):
        if own.any():
            ax.scatter(k[own], np.maximum(p[own], LEAST_P), color=colour, s=40, label=name, zorder=2)
    ax.axhline(entry["level"], color="black", linewidth=1, linestyle="--", label=f"level {entry['level']:g}")
    ax.set(
        yscale="log",
        xlabel=f"dimension ({entry['units']})",
        ylabel=f"p-value (shown down to {LEAST_P:g})",
        xticks=k,
    )
    sentence = str(entry["verdict"]).partition(". ")[0].removesuffix(".")  # the next is about components
    ax.set_title(textwrap.fill(f"{sentence}.", TITLE_WIDTH), fontsize="medium")
    tidy(ax)
    return _finished(ax, show, save)
