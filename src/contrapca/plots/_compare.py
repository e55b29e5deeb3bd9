"""Plot of a comparison of methods: how reproducible their contrast is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ._labels import BACKGROUND_COLOUR, COLOURS
from ._latents import axes_or_current, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..inference import Comparison


def comparison(comparison: Comparison, *, ax: Axes | None = None) -> Axes:
    """Plot the reproducible contrast of all methods, with its range over splits of the rows; 0 means no contrast.

    Parameters
    ----------
    comparison : Comparison
        The result of `contrapca.compare`.
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes
    """
    ax = axes_or_current(ax)
    entries = [(entry, entry.scores) for entry in comparison.entries if entry.scores is not None]  # the best first
    for k, (entry, scores) in enumerate(entries):
        colour = COLOURS[1] if entry is comparison.recommended else COLOURS[0]
        ax.plot([np.min(scores), np.max(scores)], [k, k], color=colour, linewidth=1.5)
        ax.plot([entry.score], [k], "o", color=colour, markersize=5)
    ax.axvline(0.0, color=BACKGROUND_COLOUR, linewidth=1, linestyle="--")
    ax.set_yticks(range(len(entries)), [entry.name for entry, _ in entries])
    ax.invert_yaxis()
    ax.set_xlabel("reproducible contrast\n(agreement of halves x contrast on unseen rows)")
    return tidy(ax, legend=False)
