"""Scatter plots of latents."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._util.arrays import Array
from .._util.files import atomic_write
from .._util.optional import require
from .._util.palette import BACKGROUND_COLOUR, COLOURS


def axes_or_current(ax: Any) -> Any:
    """The axes given, or matplotlib's current ones."""
    return require("matplotlib.pyplot", extra="plot").gca() if ax is None else ax


def shown(ax: Any, show: bool) -> Any:
    """The axes; their figure is shown first if that is wanted."""
    if show:
        require("matplotlib.pyplot", extra="plot").show()
    return ax


def latents(
    foreground: Array,
    *,
    background: Array | None = None,
    labels: Any = None,
    title: str = "",
    axis_labels: Sequence[str] = ("component 0", "component 1"),
    ax: Any = None,
) -> Any:
    """Scatter plot of two latent dimensions, the foreground over the background.

    Parameters
    ----------
    foreground : ndarray of shape (n, 2)
    background : ndarray of shape (m, 2), optional
    labels : array-like of shape (n,), optional
        Classes of the foreground rows, shown as colours.
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
    groups = np.zeros(len(foreground), dtype=int) if labels is None else np.asarray(labels)
    for k, group in enumerate(np.unique(groups)):
        name = "cases (foreground)" if labels is None else str(group)
        ax.scatter(
            *foreground[groups == group].T, s=14, alpha=0.8, linewidths=0, color=COLOURS[k % len(COLOURS)], label=name
        )
    ax.set(title=title, xlabel=axis_labels[0], ylabel=axis_labels[1])
    ax.spines[["top", "right"]].set_visible(False)
    return ax


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
    figure = require("matplotlib.figure", extra="plot").Figure(figsize=(4.6 * len(panels), 4.6), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for ax, panel in zip(axes, panels, strict=True):
        latents(**panel, ax=ax)
    handles, names = axes[-1].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
    return figure


def save_figure(figure: Any, path: str | os.PathLike[str], *, dpi: int = 110) -> None:
    """Write a figure atomically, in the format that the ending names (.png, .svg, .pdf)."""
    with atomic_write(path) as file:
        figure.savefig(file, format=Path(path).suffix[1:] or "png", dpi=dpi)
