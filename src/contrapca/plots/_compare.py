"""Plot of a comparison of methods: how reproducible their contrast is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._util.palette import BACKGROUND_COLOUR, COLOURS
from ._latents import axes_or_current, tidy

if TYPE_CHECKING:
    from ..selection import Comparison


def comparison_data(comparison: Comparison) -> dict[str, Any]:
    """Names and scores of the methods, best first, without those that failed."""
    entries = [entry for entry in comparison.entries if entry.scores is not None]
    scores = [entry.scores for entry in entries if entry.scores is not None]
    return {
        "names": [entry.name for entry in entries],
        "scores": np.array([entry.score for entry in entries]),
        "ranges": np.array([[np.min(own), np.max(own)] for own in scores]),
        "recommended": [entry is comparison.recommended for entry in entries],
    }


def comparison(comparison: Comparison, *, ax: Any = None) -> Any:
    """Plot the reproducible contrast of all methods, with its range over splits of the rows; 0 is no contrast.

    Parameters
    ----------
    comparison : Comparison
        The result of `contrapca.compare`.
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes
    """
    data = comparison_data(comparison)
    ax = axes_or_current(ax)
    for k, (score, (low, high), chosen) in enumerate(
        zip(data["scores"], data["ranges"], data["recommended"], strict=True)
    ):
        colour = COLOURS[1] if chosen else COLOURS[0]
        ax.plot([low, high], [k, k], color=colour, linewidth=1.5)
        ax.plot([score], [k], "o", color=colour, markersize=5)
    ax.axvline(0.0, color=BACKGROUND_COLOUR, linewidth=1, linestyle="--")
    ax.set_yticks(range(len(data["names"])), data["names"])
    ax.invert_yaxis()
    ax.set_xlabel("reproducible contrast\n(agreement of halves x contrast on unseen rows)")
    return tidy(ax, legend=False)
