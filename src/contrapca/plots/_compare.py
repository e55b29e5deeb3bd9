"""Plot of a comparison of methods: held-out ratios with their errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._util.palette import BACKGROUND_COLOUR, COLOURS
from .._util.suggest import suggesting
from ._latents import axes_or_current, tidy

if TYPE_CHECKING:
    from ..selection import Comparison


@suggesting
def comparison_data(comparison: Comparison) -> dict[str, Any]:
    """Names, held-out ratios and their ranges (two standard errors), best first, without methods that failed."""
    entries = [entry for entry in comparison.entries if not entry.failure and np.isfinite(entry.mean)]
    table = comparison.table()
    kept = np.array([entry in entries for entry in comparison.entries], dtype=bool)
    return {
        "names": [entry.name for entry in entries],
        "ratios": table["held_out_ratio"][kept],
        "ranges": np.column_stack([table["from"][kept], table["to"][kept]]),
        "recommended": [entry is comparison.recommended for entry in entries],
    }


@suggesting
def comparison(comparison: Comparison, *, ax: Any = None) -> Any:
    """Plot the held-out ratios of all methods on a logarithmic scale, with two standard errors; 1 is no contrast.

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
    for k, (ratio, (low, high), chosen) in enumerate(
        zip(data["ratios"], data["ranges"], data["recommended"], strict=True)
    ):
        colour = COLOURS[1] if chosen else COLOURS[0]
        ax.plot([low, high], [k, k], color=colour, linewidth=1.5)
        ax.plot([ratio], [k], "o", color=colour, markersize=5)
    ax.axvline(1.0, color=BACKGROUND_COLOUR, linewidth=1, linestyle="--")
    ax.set_xscale("log")
    ax.set_yticks(range(len(data["names"])), data["names"])
    ax.invert_yaxis()
    ax.set_xlabel("variance of unseen cases over that of unseen controls")
    return tidy(ax, legend=False)
