"""How alike conditions are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._latents import axes_or_current, short_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WRITTEN = 12  # conditions up to which the numbers are written into the fields


def heatmap(similarity: Any, *, ax: Axes | None = None) -> Axes:
    """Heat map of the similarity of conditions, from 0 (orthogonal axes) to 1 (the same axes).

    Parameters
    ----------
    similarity : result of `condition_similarity`
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes
    """
    ax = axes_or_current(ax)
    values, names = similarity.similarity, [short_name(name) for name in similarity.conditions]
    image = ax.imshow(values, vmin=0, vmax=1, cmap="Blues")
    ax.set_xticks(range(len(names)), names, rotation=90)
    ax.set_yticks(range(len(names)), names)
    if len(names) <= WRITTEN:
        for (row, column), value in np.ndenumerate(values):
            colour = "white" if value > 0.6 else "black"
            ax.text(column, row, f"{value:.2f}", ha="center", va="center", color=colour, fontsize=8)
    ax.figure.colorbar(image, ax=ax, label="similarity of axes")
    return ax
