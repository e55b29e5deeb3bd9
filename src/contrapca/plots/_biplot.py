"""Latents with arrows of the features that make them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._util.arrays import Array
from .._util.checks import check_count
from .._util.text import component_names
from ._explore import background_latents, share_labels, two_components
from ._latents import axes_or_current, latents, short_name, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes


NAME = {"fontsize": 8, "va": "center", "bbox": {"boxstyle": "round,pad=0.1", "fc": "white", "alpha": 0.7, "lw": 0}}
NEAR, APART = 1.04, 1.1  # lengths of an arrow to its name, heights of a name to the next
LONGEST_NAME = 20  # characters of a feature at its arrow, where they take room from the data
ROUNDS = 3  # of making room: in wider axes a name takes more of them


def biplot(
    model: Any, X: Any, *, background: Any = None, labels: Any = None, n_features: int = 8, ax: Axes | None = None
) -> Axes:
    """Scatter plot of the first two latents with arrows for the features with the largest loadings.

    Parameters
    ----------
    model : fitted estimator with two or more components
    X, background : tables
    labels : array-like of shape (n,), optional
    n_features : int, default 8
        Number of arrows. Only their relative lengths are meaningful.
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes
    """
    check_count(n_features, "n_features")
    Z = np.asarray(model.transform(X))[:, :2]
    two_components(Z.shape[1])
    table = model.feature_table()
    W = np.stack([np.asarray(table[name]) for name in component_names(2)], axis=-1)
    order = np.argsort(-np.sum(W**2, axis=1), kind="stable")[:n_features]
    arrows = 0.8 * np.abs(Z).max() / np.linalg.norm(W[order], axis=1).max() * W[order]  # they fit into the rows
    others = background_latents(model, background)
    others = None if others is None else others[:, :2]
    ax = axes_or_current(ax)
    latents(Z, background=others, labels=labels, axis_labels=share_labels(model, [0, 1]), ax=ax)
    ax.update_datalim(arrows)  # arrows do not widen the axes by themselves
    ax.autoscale_view()
    for arrow in arrows:
        ax.annotate("", arrow, (0, 0), arrowprops={"arrowstyle": "->", "color": "black", "linewidth": 1})
    tidy(ax, legend=labels is not None or background is not None)
    _name_arrows(ax, [str(table["feature"][j]) for j in order], arrows)
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
            at[side, 1] = moved_apart(at[side, 1], APART * max(box.height for box in boxes))
        for text, place in zip(texts, back.transform(at), strict=True):
            text.set_position(place)
        ax.update_datalim(np.vstack([text.get_window_extent().transformed(back).get_points() for text in texts]))
        ax.autoscale_view()


def moved_apart(values: Array, gap: float) -> Array:
    """Values moved as little as is easy so that neighbours are at least `gap` apart, in the same order."""
    order = np.argsort(values, kind="stable")
    moved = values[order].astype(np.float64)
    for k in range(1, moved.size):
        moved[k] = max(moved[k], moved[k - 1] + gap)
    moved -= np.mean(moved - values[order])
    out = np.empty_like(moved)
    out[order] = moved
    return out
