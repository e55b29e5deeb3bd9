"""Scatter plots of latents."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array
from .._util.files import atomic_write
from .._util.labels import on_a_scale
from .._util.optional import require
from .._util.palette import BACKGROUND_COLOUR, COLOURS
from .._util.suggest import suggesting
from .._util.text import natural_order

SIZE = (6.4, 4.2)  # inches, of a figure with one panel
LEGEND = {"fontsize": "small", "frameon": False, "borderaxespad": 0.0, "handletextpad": 0.3, "columnspacing": 1.0}
MAX_IN_COLUMN = 14  # entries of a legend
MARKERS = ("o", "^", "s", "D", "v")  # after all colours are used
NO_LABEL_COLOUR = "#D9D9D9"
DOT = {"s": 14, "linewidths": 0}


def axes_or_current(ax: Any) -> Any:
    """The axes given, matplotlib's current ones, or those of a new figure; laid out so that nothing is cut off."""
    if ax is None:
        pyplot = require("matplotlib.pyplot", extra="plot")
        ax = pyplot.gca() if pyplot.get_fignums() else pyplot.subplots(figsize=SIZE)[1]
    figure = ax.figure
    while figure is not figure.figure:  # a part of a figure
        figure = figure.figure
    if figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")
    return ax


def shown(ax: Any, show: bool) -> Any:
    """The axes; their figure is shown first if that is wanted."""
    if show:
        require("matplotlib.pyplot", extra="plot").show()
    return ax


def tidy(ax: Any, *, legend: bool = True) -> Any:
    """Axes without a frame, with the legend beside the data, or above it where a colour bar is beside it."""
    ax.spines[["top", "right"]].set_visible(False)
    if legend and any(drawn.colorbar is not None for drawn in ax.collections):
        ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.01), ncols=3, **LEGEND)
    elif legend:
        columns = 1 + len(ax.get_legend_handles_labels()[0]) // (MAX_IN_COLUMN + 1)
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), ncols=columns, **LEGEND)
    return ax


def members_of(classes: Any) -> dict[str, npt.NDArray[np.intp]]:
    """The rows of each class, in the natural order of their names."""
    texts = np.array([str(name) for name in np.asarray(classes).tolist()], dtype=object)
    names = sorted(set(texts.tolist()))
    return {names[k]: np.flatnonzero(texts == names[k]) for k in natural_order(names)}


def style_of(k: int) -> dict[str, str]:
    """Colour and marker of the k-th class: 35 that can be told apart."""
    return {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k // len(COLOURS) % len(MARKERS)]}


@suggesting
def latents(
    foreground: Array,
    *,
    background: Array | None = None,
    labels: Any = None,
    title: str = "",
    axis_labels: Sequence[str] = ("component 1", "component 2"),
    ax: Any = None,
) -> Any:
    """Scatter plot of two latent dimensions, the foreground over the background.

    Parameters
    ----------
    foreground : ndarray of shape (n, 2)
    background : ndarray of shape (m, 2), optional
    labels : array-like of shape (n,), optional
        Classes of the foreground rows, shown as colours; more than 20 different numbers are shown on a scale.
    title : str
    axis_labels : two str
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes
    """
    ax = axes_or_current(ax)
    if labels is not None and len(labels) != len(foreground):
        raise ValueError(f"labels has {len(labels)} entries for {len(foreground)} rows: pass one per row.")
    if background is not None:
        ax.scatter(
            *background.T, s=14, marker="x", linewidths=0.7, color=BACKGROUND_COLOUR, label="controls (background)"
        )
    values = None if labels is None else on_a_scale(labels)
    if values is not None:
        _scatter_on_a_scale(ax, foreground, values)
    else:
        classes = ["cases (foreground)"] * len(foreground) if labels is None else labels
        for k, (name, members) in enumerate(members_of(classes).items()):
            ax.scatter(*foreground[members].T, **DOT, **style_of(k), alpha=0.8, label=name)
    ax.set(title=title, xlabel=axis_labels[0], ylabel=axis_labels[1])
    return tidy(ax, legend=False)


def _scatter_on_a_scale(ax: Any, points: Array, values: Array) -> None:
    """Points coloured by a number, with a colour bar; those without one are grey."""
    known = np.isfinite(values)
    if not known.all():
        ax.scatter(*points[~known].T, **DOT, color=NO_LABEL_COLOUR, label="no label")
    drawn = ax.scatter(*points[known].T, **DOT, c=values[known], cmap="viridis", label="cases (foreground)")
    ax.figure.colorbar(drawn, ax=ax, pad=0.02)


@suggesting
def side_by_side(panels: Sequence[dict[str, Any]]) -> Any:
    """Several `latents` plots in a row with one legend.

    Parameters
    ----------
    panels : sequence of dict
        Keyword arguments of `latents`, one dict for each panel.

    Returns
    -------
    figure : matplotlib Figure
    """
    width, height = SIZE
    figure = require("matplotlib.figure", extra="plot").Figure(
        figsize=(0.72 * width * len(panels), 1.1 * height), layout="constrained"
    )
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for ax, panel in zip(axes, panels, strict=True):
        latents(**panel, ax=ax)
    handles, names = axes[-1].get_legend_handles_labels()
    longest = max(map(len, names))
    columns = max(1, min(3, int(figure.get_figwidth() / (0.5 + 0.075 * longest))))  # inches of an entry, about
    figure.legend(handles, names, loc="outside lower center", ncols=columns, frameon=False)
    return figure


@suggesting
def save_figure(figure: Any, path: str | os.PathLike[str], *, dpi: int = 110) -> None:
    """Write a figure atomically, in the format that the ending names (.png, .svg, .pdf): the same bytes each time."""
    ending = Path(path).suffix[1:] or "png"
    dated = {} if ending == "png" else {"metadata": {"Date": None} if ending == "svg" else {"CreationDate": None}}
    with atomic_write(path) as file, require("matplotlib", extra="plot").rc_context({"svg.hashsalt": "contrapca"}):
        figure.savefig(file, format=ending, dpi=dpi, **dated)
