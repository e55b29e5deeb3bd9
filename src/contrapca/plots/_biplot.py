"""Latents with arrows of the features that make them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks import check_count
from .._util.arrays import Array
from .._util.text import component_names
from ._explore import latent_scatter_data, two_components
from ._latents import axes_or_current, latents, short_name, tidy

NAME = {"fontsize": 8, "va": "center", "bbox": {"boxstyle": "round,pad=0.1", "fc": "white", "alpha": 0.7, "lw": 0}}
NEAR, APART = 1.04, 1.1  # lengths of an arrow to its name, heights of a name to the next
LONGEST_NAME = 20  # characters of a feature at its arrow, where they take room from the data
ROUNDS = 3  # of making room: in wider axes a name takes more of them


def biplot_data(model: Any, X: Any, n_features: int = 8) -> dict[str, Any]:
    """Latents on two components, and arrows for the features with the largest loadings, scaled to fit."""
    check_count(n_features, "n_features")
    two_components(len(model.explained_variance_ratio_))
    Z = np.asarray(model.transform(X))[:, :2]
    table = model.feature_table()
    W = np.stack([np.asarray(table[name]) for name in component_names(2)], axis=-1)
    order = np.argsort(-np.sum(W**2, axis=1), kind="stable")[:n_features]
    factor = 0.8 * np.abs(Z).max() / np.linalg.norm(W[order], axis=1).max()
    return {"latents": Z, "feature": [str(table["feature"][j]) for j in order], "arrows": factor * W[order]}


def biplot(model: Any, X: Any, *, labels: Any = None, n_features: int = 8, ax: Any = None) -> Any:
    """Scatter plot of latents with arrows for the features with the largest loadings.

    Parameters
    ----------
    model : fitted estimator with two or more components
    X : table of foreground rows
    labels : array-like of shape (n,), optional
    n_features : int, default 8
        Number of arrows. Only their relative lengths are meaningful.
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes
    """
    data = biplot_data(model, X, n_features)
    ax = axes_or_current(ax)
    latents(data["latents"], labels=labels, axis_labels=latent_scatter_data(model, X)["axis_labels"], ax=ax)
    ax.update_datalim(data["arrows"])  # arrows do not widen the axes by themselves
    ax.autoscale_view()
    for arrow in data["arrows"]:
        ax.annotate("", arrow, (0, 0), arrowprops={"arrowstyle": "->", "color": "black", "linewidth": 1})
    tidy(ax, legend=labels is not None)
    _name_arrows(ax, data["feature"], data["arrows"])
    return ax


def _name_arrows(ax: Any, names: list[str], arrows: Array) -> None:
    """Names at the tips of arrows, on the outer side, one above the other where they meet; the axes make room."""
    ends, right = NEAR * arrows, arrows[:, 0] >= 0
    texts = [
        ax.text(*end, short_name(name, LONGEST_NAME), ha="left" if outwards else "right", **NAME)
        for name, end, outwards in zip(names, ends, right, strict=True)
    ]
    for _ in range(ROUNDS):
        ax.figure.draw_without_rendering()
        boxes = [text.get_window_extent() for text in texts]
        at, back = ax.transData.transform(ends), ax.transData.inverted()
        for side in (right, ~right):
            at[side, 1] = spread_out(at[side, 1], APART * max(box.height for box in boxes))
        for text, place in zip(texts, back.transform(at), strict=True):
            text.set_position(place)
        ax.update_datalim(np.vstack([text.get_window_extent().transformed(back).get_points() for text in texts]))
        ax.autoscale_view()


def spread_out(values: Array, gap: float) -> Array:
    """Values moved as little as is easy so that neighbours are at least `gap` apart, in the same order."""
    order = np.argsort(values, kind="stable")
    moved = values[order].astype(np.float64)
    for k in range(1, moved.size):
        moved[k] = max(moved[k], moved[k - 1] + gap)
    moved -= np.mean(moved - values[order])
    out = np.empty_like(moved)
    out[order] = moved
    return out
