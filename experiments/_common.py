"""What several experiments share: silhouettes, plain values for results.json, the look of figures."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import silhouette_score

from contrapca.plots._latents import BACKGROUND_COLOUR, COLOURS

__all__ = ["BACKGROUND_COLOUR", "COLOURS", "new_figure", "permuted", "plain", "silhouette", "tidy", "unit_variance"]


def unit_variance(latents: Any) -> Any:
    """Latents (n, d), each dimension divided by its standard deviation."""
    return latents / latents.std(axis=0)


def silhouette(latents: Any, labels: Any, *, rows: int | None = None, seed: int = 0) -> float:
    """Silhouette of the labels on unit-variance latents, on a seeded sample of `rows` rows where there are more."""
    Z, labels = unit_variance(np.asarray(latents)), np.asarray(labels)
    if rows is not None and len(Z) > rows:
        chosen = np.random.default_rng(seed).choice(len(Z), rows, replace=False)
        Z, labels = Z[chosen], labels[chosen]
    return float(silhouette_score(Z, labels))


def permuted(labels: Any, seed: int = 0) -> Any:
    """The same labels in random order: what any claim about labels must fail on."""
    return np.random.default_rng(seed).permutation(np.asarray(labels))


def plain(values: Any, digits: int = 5) -> Any:
    """Numbers as (nested) lists, rounded to `digits` significant ones so that results stay small."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        return array.tolist()
    flat = [float(f"{value:.{digits}g}") if array.dtype.kind == "f" else value for value in array.ravel().tolist()]
    shaped = np.empty(array.shape, dtype=object)
    shaped.ravel()[:] = flat
    return shaped.tolist()


def new_figure(columns: int = 1, rows: int = 1, *, width: float = 3.6, height: float = 3.4) -> tuple[Any, Any]:
    """A figure and its axes, shape (rows, columns); no window is opened."""
    from matplotlib.figure import Figure  # late: runs do without matplotlib

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def tidy(ax: Any) -> Any:
    """Axes without a frame at the top and on the right."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax
