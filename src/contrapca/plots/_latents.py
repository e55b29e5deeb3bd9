"""Scatter plots of latents."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array
from .._util.optional import require
from ._labels import BACKGROUND_COLOUR, COLOURS, NO_LABEL, as_classes, for_legend, on_a_scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes


SIZE = (6.4, 4.2)  # inches, of a figure with one panel
LEGEND = {"fontsize": "small", "frameon": False, "borderaxespad": 0.0, "handletextpad": 0.3, "columnspacing": 1.0}
MAX_IN_COLUMN = 14  # entries of a legend; with more of them it is in a smaller font
MAX_BELOW = 4  # lines of a legend below a figure; a longer one is beside it
LONGEST_NAME = 28  # characters of a class or a feature
CASES, CONTROLS = "cases (foreground)", "controls (background)"
MARKERS = ("o", "^", "s", "D", "v")  # after all colours are used
NO_LABEL_COLOUR, ON_SCALE_COLOUR = "#D9D9D9", "#6B7680"
DOT: dict[str, Any] = {"s": 14, "linewidths": 0}
MANY, SMALLEST = 3000, 0.5  # points, from there on smaller ones; and the area of the smallest


def axes_or_current(ax: Axes | None) -> Axes:
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


def tidy(ax: Axes, *, legend: bool = True) -> Axes:
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
    colors: Mapping[str, str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Scatter plot of two latent dimensions, the foreground over the background; strips of points for only one.

    It has no legend, so that panels can share one: `ax.legend()` adds it.

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
    colors : mapping from class to colour, optional
        For classes that have colours of their own.
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
            style = {"color": colors[name]} if colors and name in colors else style_of(k, name)
            drawn.append((short_name(name), foreground[members], DOT | style | {"alpha": 0.8}))
    else:
        known = np.isfinite(values)
        if not known.all():
            drawn.append((NO_LABEL, foreground[~known], DOT | {"color": NO_LABEL_COLOUR}))
        drawn.append((CASES, foreground[known], DOT | {"c": values[known], "cmap": "viridis"}))
    flat = foreground.shape[1] == 1
    shrunk = min(1.0, max(MANY / max(sum(len(points) for _, points, _ in drawn), 1), SMALLEST / DOT["s"]))
    for k, (name, points, look) in enumerate(drawn):
        on_scale = "c" in look
        if flat:  # in strips, spread by a fixed pattern: neighbours are apart
            points = np.column_stack([points, k + (np.arange(len(points)) * 0.618034) % 1 * 0.7 - 0.35])
        smaller = look | {"s": look["s"] * shrunk, "linewidths": look["linewidths"] * shrunk**0.5}
        dots = ax.scatter(*points.T, **smaller, label=None if on_scale or shrunk < 1 else name)
        if on_scale or shrunk < 1:  # a point for the legend: of no value, and not too small to see
            ax.scatter([], [], **(DOT | {"color": ON_SCALE_COLOUR} if on_scale else look), label=name)
        if on_scale:
            meaning = getattr(labels, "name", None) if label_name is None else label_name
            ax.figure.colorbar(dots, ax=ax, pad=0.02, label="" if meaning is None else str(meaning))
    ax.set(title=title, xlabel=axis_labels[0], ylabel="" if flat else axis_labels[1])
    if flat:
        ax.set_yticks(range(len(drawn)), [name for name, _, _ in drawn], fontsize="small")
        ax.tick_params(axis="y", length=0)
    return tidy(ax, legend=False)


def legend_of_figure(figure: Any, ax: Any) -> None:
    """The legend of one panel for all: below them, in one row if it fits; a long one beside them, in a wider figure."""
    handles, names = ax.get_legend_handles_labels()
    width = figure.bbox.width / figure.dpi
    inches = [0.55 + 0.085 * len(name) for name in names]  # of an entry, about
    columns = len(names) if sum(inches) <= width else max(1, int(width / max(inches)))
    if len(names) <= MAX_BELOW * columns:
        figure.legend(handles, names, loc="outside lower center", ncols=columns, frameon=False)
        return
    columns = math.ceil(0.18 * len(names) / (figure.bbox.height / figure.dpi))
    look = {"labelspacing": 0.3, "fontsize": 9, "frameon": False, "ncols": columns}
    legend = figure.legend(handles, names, loc="outside right upper", **look)
    if figure is figure.figure:  # not a part of one: wider, so that the legend takes no room from the data
        figure.draw_without_rendering()
        figure.set_figwidth(figure.get_figwidth() + legend.get_tightbbox().width / figure.dpi)
