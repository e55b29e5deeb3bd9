"""Plots of results that are stored in an AnnData. Every function takes `ax` and returns it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.checks import check_count
from .._util.text import did_you_mean, listed
from ..estimators import ContrastSolver
from ..inference import LEAST_P, contrast_path
from ..plots import BACKGROUND_COLOUR, COLOURS, axes_or_current, latents, path_curves, shown, tidy
from ..plots import loadings as loading_bars
from ._cells import choose, column
from ._get import model as stored_model
from ._results import check_component, stored, stored_choice
from ._tl import TEST


def embedding(
    adata: Any,
    key: str = "contrapca",
    *,
    color: str | None = None,
    components: tuple[int, int] = (1, 2),
    ax: Any = None,
    show: bool = False,
) -> Any:
    """Scatter plot of the latents of both groups of cells, with the controls in grey behind the others.

    Parameters
    ----------
    adata : AnnData
    key : str, default "contrapca"
        Key of the results: the function's name, or its `key_added`.
    color : str, optional
        Column of `obs`, or a gene, that colours all cells but the controls. Colours of `uns`, as scanpy stores them,
        are used.
    components : two int, default (1, 2)
        Counting from 1, as on the axes.
    ax : matplotlib Axes, optional
    show : bool, default False
        Whether to show the figure.

    Returns
    -------
    ax : matplotlib Axes
    """
    entry = stored(adata, key)
    params = entry["params"]
    place = str(entry.get("embedding", key if key in adata.obsm else f"X_{key}"))  # results of 0.2 before have no name
    Z = np.asarray(adata.obsm[place])
    if len(components) != 2 or not all(1 <= k <= Z.shape[1] for k in components):
        raise ValueError(f"components={components} must be two of the {Z.shape[1]} components, counting from 1.")
    Z = Z[:, [k - 1 for k in components]]
    background = params["background"]
    parts = background.values() if isinstance(background, Mapping) else [background]
    labels = [label for part in parts for label in np.atleast_1d(part).tolist()]
    values = column(adata.obs, params["groupby"], "groupby", "adata.obs")
    controls = np.array([value in labels for value in values.tolist()], dtype=bool)
    if not controls.any():
        raise ValueError(
            f"adata.obs[{params['groupby']!r}] no longer has {listed(labels)}, the background of these results: rename "
            "the values back, or run the function of contrapca.tl again."
        )
    cases = ~controls
    if "foreground" in params:  # others are in neither group
        chosen = np.atleast_1d(params["foreground"]).tolist()
        cases &= np.array([value in chosen for value in values.tolist()], dtype=bool)
    again = entry.get("found_again")
    names = [
        f"{place.removeprefix('X_')}{k}" + (" (not found again)" if again is not None and not again[k - 1] else "")
        for k in components  # named as scanpy labels them
    ]
    given = {} if color is None else _coloured(adata, color, cases)
    ax = latents(Z[cases], background=Z[controls], axis_labels=names, **given, ax=ax)
    ax.set(xticks=[], yticks=[])
    if (legend := tidy(ax).get_legend()) is not None:
        legend.set_title(color or "")
    return shown(ax, show)


def _coloured(adata: Any, color: str, cells: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """The values of a column or gene in some cells, and the colours that scanpy keeps for them in `uns`."""
    columns = list(adata.obs.columns)
    if color not in columns and color not in adata.var_names:
        raise ValueError(
            f"color={color!r} is neither a column of adata.obs ({listed(columns, 10)}) nor a gene."
            f"{did_you_mean(color, [*columns, *adata.var_names])}"
        )
    values = np.asarray(adata.obs[color] if color in columns else adata.obs_vector(color))
    categories = getattr(getattr(adata.obs[color], "cat", None), "categories", ()) if color in columns else ()
    colours = np.asarray(adata.uns.get(f"{color}_colors", [])).tolist()
    own = dict(zip(map(str, categories), map(str, colours), strict=False)) if len(colours) >= len(categories) else {}
    return {"labels": values[cells], "label_name": color, "colors": own}


def loadings(
    adata: Any, key: str = "contrapca", *, component: int = 1, n_genes: int = 15, ax: Any = None, show: bool = False
) -> Any:
    """Bar plot of the genes with the largest loadings on one component.

    Parameters
    ----------
    adata, key, ax, show
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
    return shown(loading_bars(model, component, n_features=n_shown, ax=axes_or_current(ax)), show)


def variance(adata: Any, key: str = "contrapca", *, ax: Any = None, show: bool = False) -> Any:
    """Plot how many times as much unseen cases vary as unseen controls along each component, with 95 % intervals.

    Components that other halves of the cells do not find again are hollow. The variances of the cells of the fit, in
    `uns`, are not evidence: axes are chosen for them.

    Parameters
    ----------
    adata, key, ax, show
        As for `contrapca.pl.embedding`.

    Returns
    -------
    ax : matplotlib Axes
    """
    entry = stored(adata, key)
    if "held_out_ratio" not in entry:
        raise ValueError(
            f"adata.uns[{key!r}] says nothing of unseen cells: that needs complete values, and at least 10 cells and 2 "
            "donors of each group."
        )
    ratios, intervals = np.asarray(entry["held_out_ratio"]), np.asarray(entry["held_out_interval"])
    again, k = np.asarray(entry["found_again"], dtype=bool), np.arange(1, ratios.size + 1)
    ax = axes_or_current(ax)
    ax.vlines(k, intervals[:, 0], intervals[:, 1], color=COLOURS[0], linewidth=1.5)
    for own, face, name in ((again, COLOURS[0], "found again"), (~again, "white", "not found again")):
        if own.any():
            ax.scatter(k[own], ratios[own], s=40, facecolors=face, edgecolors=COLOURS[0], label=name, zorder=2)
    ax.axhline(1.0, color=BACKGROUND_COLOUR, linewidth=1, linestyle="--")
    ax.set(yscale="log", xlabel="component", ylabel="variance of unseen cases\nover that of unseen controls", xticks=k)
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return shown(ax, show)


def gamma_path(adata: Any, key: str = "contrapca", *, n_gammas: int = 40, ax: Any = None, show: bool = False) -> Any:
    """Plot the fraction of each group's variance along the components against gamma.

    The contrast is computed at other gammas from the matrix that the results are from, with the same settings. The
    gamma of the results is marked.

    Parameters
    ----------
    adata, key, ax, show
        As for `contrapca.pl.embedding`.
    n_gammas : int, default 40

    Returns
    -------
    ax : matplotlib Axes
    """
    model = stored_model(adata, key)
    if not (isinstance(model, ContrastSolver) and model._contrasts):
        raise ValueError(f"adata.uns[{key!r}] is a {type(model).__name__}, which has no gamma.")
    cells = choose(adata, **stored_choice(adata, key))
    if cells.names != model.fit_.scaling.foreground.labels:
        raise ValueError(
            f"The genes are not those of adata.uns[{key!r}] any more: the mask or the order of genes has changed. Run "
            "the function of contrapca.tl again."
        )
    path = contrast_path(model, cells.study(cells.split(cells.read())), gammas=check_count(n_gammas, "n_gammas"))
    ax = path_curves(path, ax=axes_or_current(ax))
    ax.axvline(model.gamma_, color="black", linewidth=1, linestyle=":", label=f"used: {model.gamma_:.3g}")
    ax.legend(frameon=False)
    return shown(ax, show)


def verdict(adata: Any, key: str = TEST, *, ax: Any = None, show: bool = False) -> Any:
    """Plot the p-values of a test, with its verdict as the title.

    Parameters
    ----------
    adata, ax, show
        As for `contrapca.pl.embedding`.
    key : str, default "contrapca_test"
        Key of `uns`, where `contrapca.tl.test` stored the result.

    Returns
    -------
    ax : matplotlib Axes
    """
    entry, ax = stored(adata, key, what="p_values", by="tl.test"), axes_or_current(ax)
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
    ax.set_title(str(entry["verdict"]), fontsize="medium", wrap=True)
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return shown(ax, show)
