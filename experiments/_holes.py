"""What both experiments with missing values share: making holes, and errors of filling them."""

from __future__ import annotations

from typing import Any

import numpy as np

from contrapca import PCPCA, PPCA

from ._common import BACKGROUND_COLOUR, interval, tidy
from ._common import COLOURS as PALETTE

METHODS = ("PCPCA", "PPCA, both groups", "PPCA, foreground", "column means")
COLOURS = dict(zip(METHODS, (*PALETTE[:3], BACKGROUND_COLOUR), strict=True))
MARKERS = dict(zip(METHODS, "osD^", strict=True))


def with_holes(table: Any, share: float, rng: np.random.Generator) -> Any:
    """A copy in which every value is missing with probability `share`."""
    return np.where(rng.random(table.shape) < share, np.nan, table)


def fit_all(foreground: Any, background: Any, d: int, gamma: float, **options: Any) -> dict[str, Any]:
    """The three models, fitted to the same holes."""
    return {
        "PCPCA": PCPCA(d, gamma=gamma, **options).fit(foreground, background=background),
        "PPCA, both groups": PPCA(d, **options).fit(np.vstack([foreground, background])),
        "PPCA, foreground": PPCA(d, **options).fit(foreground),
    }


def imputation_errors(models: dict[str, Any], foreground: Any, truth: Any) -> dict[str, float]:
    """Mean squared error of the filled values, over all holes of the foreground."""
    holes = np.isnan(foreground)
    filled = {name: model.impute(foreground) for name, model in models.items()}
    filled["column means"] = np.broadcast_to(np.nanmean(foreground, axis=0), truth.shape)
    return {name: float(np.mean((table - truth)[holes] ** 2)) for name, table in filled.items()}


def draw_curves(ax: Any, shares: list[float], curves: dict[str, Any]) -> None:
    """One curve for each method: means over repeats with 95 % intervals; `curves` holds (shares, repeats) tables."""
    for name, table in curves.items():
        means, widths = zip(*map(interval, table), strict=True)
        style = {"color": COLOURS[name], "marker": MARKERS[name], "markersize": 5, "capsize": 2, "label": name}
        ax.errorbar(shares, means, yerr=widths, **style)
    ax.set_xlabel("share of values missing, p")
    tidy(ax)
