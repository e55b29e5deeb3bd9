"""Scatter plots of latents."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._files import atomic_write
from .._util.arrays import Array
from .._util.labels import NO_LABEL, as_classes, for_legend, on_a_scale
from .._util.optional import require
from .._util.palette import BACKGROUND_COLOUR, COLOURS

SIZE = (6.4, 4.2)  # inches, of a figure with one panel
LEGEND = {"fontsize": "small", "frameon": False, "borderaxespad": 0.0, "handletextpad": 0.3, "columnspacing": 1.0}
MAX_IN_COLUMN = 14  # entries of a legend; with more of them it is in a smaller font
MAX_BELOW = 4  # lines of a legend below a figure; a longer one is beside it
LONGEST_NAME = 28  # characters of a class or a feature
CASES, CONTROLS = "cases (foreground)", "controls (background)"
MARKERS = ("o", "^", "s", "D", "v")  # after all colours are used
NO_LABEL_COLOUR, ON_SCALE_COLOUR = "#D9D9D9", "#6B7680"
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
        many = len(ax.get_legend_handles_labels()[0]) > MAX_IN_COLUMN
        small = {"fontsize": "x-small", "labelspacing": 0.3} if many else {}
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), **(LEGEND | small))
    return ax


def classes_of(labels: Any, n: int) -> dict[str, npt.NDArray[np.intp]]:
    """The rows of each entry of the legend; without labels, all `n` cases."""
    if labels is None:
        return {CASES: np.arange(n)}
    names, of_row = for_legend(as_classes(labels))
    return {name: np.flatnonzero(of_row == k) for k, name in enumerate(names)}


def style_of(k: int, name: str = "") -> dict[str, str]:
    """Colour and marker of the k-th class: 35 that can be told apart; rows without a label are grey."""
    colour = NO_LABEL_COLOUR if name == NO_LABEL else COLOURS[k % len(COLOURS)]
    return {"color": colour, "marker": MARKERS[k // len(COLOURS) % len(MARKERS)]}


def short_name(name: str, longest: int = LONGEST_NAME) -> str:
    """A name without its middle if it is long, since long names often differ at their ends."""
    half = longest // 2
    return name if len(name) <= longest else f"{name[: half - 1]}…{name[-half:]}"


def latents(
    foreground: Array,
    *,
    background: Array | None = None,
    labels: Any = None,
    title: str = "",
    axis_labels: Sequence[str] = ("component 1", "component 2"),
    label_name: str | None = None,
    ax: Any = None,
) -> Any:
    """Scatter plot of two latent dimensions, the foreground over the background; strips of points for only one.

    Parameters
    ----------
    foreground : ndarray of shape (n, 2) or (n, 1)
        With one dimension, each class has a strip of its own; the height inside a strip has no meaning.
    background : ndarray of shape (m, 2) or (m, 1), optional
    labels : array-like of shape (n,), optional
        Classes of the foreground rows, shown as colours; more than 20 different numbers are shown on a scale. Of more
        than 20 classes the rarest share a colour.
    title : str
    axis_labels : two str
    label_name : str, optional
        What the labels mean, for the colour bar; by default the name of a pandas column.
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes
    """
    ax = axes_or_current(ax)
    if labels is not None and len(labels) != len(foreground):
        raise ValueError(f"labels has {len(labels)} entries for {len(foreground)} rows: pass one per row.")
    values = None if labels is None else on_a_scale(labels)
    drawn: list[tuple[str, Array, dict[str, Any]]] = []  # name, points and look of each group
    if background is not None:
        drawn.append((CONTROLS, background, {"s": 14, "marker": "x", "linewidths": 0.7, "color": BACKGROUND_COLOUR}))
    if values is None:
        for k, (name, members) in enumerate(classes_of(labels, len(foreground)).items()):
            drawn.append((short_name(name), foreground[members], DOT | style_of(k, name) | {"alpha": 0.8}))
    else:
        known = np.isfinite(values)
        if not known.all():
            drawn.append((NO_LABEL, foreground[~known], DOT | {"color": NO_LABEL_COLOUR}))
        drawn.append((CASES, foreground[known], DOT | {"c": values[known], "cmap": "viridis"}))
    flat = foreground.shape[1] == 1
    for k, (name, points, look) in enumerate(drawn):
        on_scale = "c" in look
        places = np.column_stack([points, _strip(k, len(points))]) if flat else points
        dots = ax.scatter(*places.T, **look, label=None if on_scale else name)
        if on_scale:
            ax.scatter([], [], **DOT, color=ON_SCALE_COLOUR, label=name)  # no colour of its own
            meaning = getattr(labels, "name", None) if label_name is None else label_name
            ax.figure.colorbar(dots, ax=ax, pad=0.02, label="" if meaning is None else str(meaning))
    ax.set(title=title, xlabel=axis_labels[0], ylabel="" if flat else axis_labels[1])
    if flat:
        ax.set_yticks(range(len(drawn)), [name for name, _, _ in drawn], fontsize="small")
        ax.tick_params(axis="y", length=0)
    return tidy(ax, legend=False)


def _strip(k: int, n: int) -> Array:
    """Heights of n points in the k-th strip, spread by a fixed pattern: neighbours are apart."""
    return k + (np.arange(n) * 0.618034) % 1 * 0.7 - 0.35


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
    if panels[-1]["foreground"].shape[1] > 1:
        legend_of_figure(figure, axes[-1])
    else:  # strips have names of their own
        _widen(figure, [ax.yaxis for ax in axes])
    return figure


def legend_of_figure(figure: Any, ax: Any) -> None:
    """The legend of one panel for all: below them, or if it is long, beside them in a wider figure."""
    handles, names = ax.get_legend_handles_labels()
    longest = max(map(len, names))
    columns = max(1, min(len(names), int(figure.bbox.width / figure.dpi / (0.5 + 0.075 * longest))))  # inches, about
    if len(names) <= MAX_BELOW * columns:
        figure.legend(handles, names, loc="outside lower center", ncols=columns, frameon=False)
        return
    legend = figure.legend(handles, names, loc="outside right upper", labelspacing=0.3, fontsize=9, frameon=False)
    _widen(figure, [legend])


def _widen(figure: Any, added: Sequence[Any]) -> None:
    """Make room for what was added to a figure, so that it takes none from the data."""
    if figure is figure.figure:  # not a part of one
        figure.draw_without_rendering()
        width = sum(part.get_tightbbox().width for part in added)
        figure.set_figwidth(figure.get_figwidth() + width / figure.dpi)


def save_figure(figure: Any, path: str | os.PathLike[str], *, dpi: int = 300) -> None:
    """Write a figure atomically, in the format that the ending names (.png, .svg, .pdf): the same bytes each time."""
    ending = Path(path).suffix[1:] or "png"
    dated = {} if ending == "png" else {"metadata": {"Date": None} if ending == "svg" else {"CreationDate": None}}
    with atomic_write(path) as file, require("matplotlib", extra="plot").rc_context({"svg.hashsalt": "contrapca"}):
        figure.savefig(file, format=ending, dpi=dpi, **dated)
