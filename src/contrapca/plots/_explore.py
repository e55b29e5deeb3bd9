"""Plots of contrasts: how they change with gamma, which features make them, how reproducible and how alike they are.

Every function that draws one panel takes `ax` and returns it. Components are counted from 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._util.arrays import Array
from .._util.checks import check_count
from .._util.optional import require
from .._util.text import component_names
from ..data import named_backgrounds
from ._labels import BACKGROUND_COLOUR, COLOURS, NO_LABEL, OTHER, on_a_scale
from ._latents import axes_or_current, classes_of, latents, legend_of_figure, short_name, style_of, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..inference import Comparison, ContrastPath

NAME = {"fontsize": 8, "va": "center", "bbox": {"boxstyle": "round,pad=0.1", "fc": "white", "alpha": 0.7, "lw": 0}}
NEAR, APART = 1.04, 1.1  # lengths of an arrow to its name, heights of a name to the next
LONGEST_NAME = 20  # characters of a feature at its arrow, where they take room from the data
ROUNDS = 3  # of making room: in wider axes a name takes more of them
WRITTEN = 12  # conditions up to which the numbers are written into the fields
SQUARED_RADIUS = 5.991464547107979  # of the 95 % ellipse: the .95 quantile of chi-squared with 2 degrees of freedom


def two_components(d: int) -> None:
    if d < 2:
        raise ValueError("This plot needs two components, but there is one: use plots.latent_scatter, which draws one.")


def background_latents(model: Any, background: Any) -> Array | None:
    """The latents of all background rows, each background about its own mean, shape (m, d)."""
    if background is None:
        return None
    tables = named_backgrounds(background).items()
    return np.concatenate([np.asarray(model.transform(rows, center=name)) for name, rows in tables])


def share_labels(model: Any, chosen: list[int]) -> list[str]:
    """Two axis labels with the fractions of variance along components; the second is empty if there is none."""
    shares: Any = model.explained_variance_ratio_
    others: Any = getattr(model, "background_variance_ratio_", None)
    several = others is None or isinstance(others, dict)
    ends = [" variance" if several else f", {others[k]:.1%} of control variance" for k in chosen]
    labels = [f"component {k + 1}\n{shares[k]:.1%} of case{end}" for k, end in zip(chosen, ends, strict=True)]
    return [*labels, ""][:2]


def _ellipse(points: Array) -> Array:
    """The 95 % ellipse of a Gaussian with the points' mean and covariance, shape (2, 100)."""
    values, U = np.linalg.eigh(np.cov(points.T))
    t = np.linspace(0, 2 * np.pi, 100)
    circle = np.stack([np.cos(t), np.sin(t)])
    return points.mean(axis=0)[:, None] + U @ (np.sqrt(SQUARED_RADIUS * np.maximum(values, 0))[:, None] * circle)


def latent_scatter(
    model: Any,
    X: Any,
    *,
    background: Any = None,
    labels: Any = None,
    components: tuple[int, int] = (1, 2),
    ellipses: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Scatter plot of foreground and background latents, with 95 % ellipses of each class and of the background.

    A model of one component is drawn as strips of points, one for each class.

    Parameters
    ----------
    model : fitted estimator
    X, background : tables
    labels : array-like of shape (n,), optional
        Classes of the foreground rows.
    components : two int, default (1, 2)
        Counting from 1.
    ellipses : bool, default True
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes
    """
    Z = np.asarray(model.transform(X))
    d = Z.shape[1]
    if d > 1 and (len(components) != 2 or not all(1 <= k <= d for k in components)):
        raise ValueError(f"components={components} must be two of this model's {d} components, counting from 1.")
    chosen = [0] if d == 1 else [k - 1 for k in components]
    Z, others = Z[:, chosen], background_latents(model, background)
    others = None if others is None else others[:, chosen]
    ax = latents(Z, background=others, labels=labels, axis_labels=share_labels(model, chosen), ax=axes_or_current(ax))
    if len(chosen) == 1:
        return ax
    if ellipses:
        if labels is None or on_a_scale(labels) is None:
            for k, (name, members) in enumerate(classes_of(labels, len(Z)).items()):
                if len(members) > 2 and name not in (OTHER, NO_LABEL):
                    ax.plot(*_ellipse(Z[members]), color=style_of(k)["color"], linewidth=1.2)
        if others is not None:
            ax.plot(*_ellipse(others), color=BACKGROUND_COLOUR, linewidth=1.2, linestyle="--")
    return tidy(ax)


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


def gamma_panel(
    path: ContrastPath, X: Any, *, background: Any = None, labels: Any = None, k: int = 6, figure: Figure | None = None
) -> Figure:
    """Small multiples: scatter plots of the same rows at `k` gammas.

    Parameters
    ----------
    path : ContrastPath of two or more components
    X, background : tables
        The tables of the path, or other rows.
    labels : array-like of shape (n,), optional
        Classes of the foreground rows.
    k : int, default 6
        Number of panels, spread evenly over the path.
    figure : matplotlib Figure, optional
        By default, a new figure.

    Returns
    -------
    figure : matplotlib Figure
    """
    check_count(k, "k")
    two_components(path.n_components)
    chosen = np.unique(np.linspace(0, len(path) - 1, min(k, len(path))).round().astype(int)).tolist()
    Z, shares = path.aligned(X), path.shares().foreground
    others = [path.aligned(rows, center=name) for name, rows in named_backgrounds(background).items()]
    columns = min(3, len(chosen))
    n_rows = -(-len(chosen) // columns)
    if figure is None:
        size = (3.6 * columns, 3.2 * n_rows)
        figure = require("matplotlib.pyplot", extra="plot").figure(figsize=size, layout="constrained")
    axes = figure.subplots(n_rows, columns, squeeze=False).ravel()
    for ax, g in zip(axes, chosen, strict=False):
        names = [
            f"component {j + 1}: {shares[g, j]:.1%} of case,\n{path.background_share[g, j]:.1%} of control variance"
            for j in (0, 1)
        ]
        controls = np.concatenate([of_group[g] for of_group in others])[:, :2] if others else None
        title = f"gamma = {path.gammas[g]:.3g}"
        latents(Z[g][:, :2], background=controls, labels=labels, title=title, axis_labels=names, ax=ax)
    for ax in axes[len(chosen) :]:
        ax.set_visible(False)
    legend_of_figure(figure, axes[0])
    return figure


def path_curves(path: ContrastPath, *, ax: Axes | None = None) -> Axes:
    """Plot the fraction of each group's variance along the components against gamma; the limit is marked.

    Parameters
    ----------
    path : ContrastPath
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes
    """
    ax = axes_or_current(ax)
    ax.plot(path.gammas, path.shares().foreground.sum(axis=1), color=COLOURS[0], label="foreground")
    background = path.background_share.sum(axis=1)
    ax.plot(path.gammas, background, color=BACKGROUND_COLOUR, linestyle="--", label="background")
    if np.isfinite(path.gamma_max):
        ax.axvline(path.gamma_max, color=COLOURS[1], linewidth=1, label=f"limit {path.gamma_max:.3g}")
    ax.set(xlabel="gamma", ylabel="share of variance along the components", ylim=(0, None))
    return tidy(ax)


def loadings(model: Any, component: int = 1, *, n_features: int = 15, ax: Axes | None = None) -> Axes:
    """Bar plot of the largest loadings on one component.

    Parameters
    ----------
    model : fitted estimator
    component : int, default 1
        Counting from 1.
    n_features : int, default 15
        Number of bars.
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes
    """
    table = model.feature_table()
    names = [name for name in table if name.startswith("component_")]
    if not 1 <= component <= len(names):
        raise ValueError(f"component={component} must be one of this model's {len(names)} components, counting from 1.")
    loading = np.asarray(table[names[component - 1]])
    order = np.argsort(-np.abs(loading), kind="stable")[:n_features]
    ax = axes_or_current(ax)
    heights = np.arange(len(order))[::-1]
    ax.barh(heights, loading[order], color=[COLOURS[0] if value >= 0 else COLOURS[1] for value in loading[order]])
    ax.set_yticks(heights, [short_name(str(table["feature"][j])) for j in order])
    ax.axvline(0, color="black", linewidth=0.8)
    ax.set(xlabel=f"loading on component {component}")
    return tidy(ax, legend=False)


def scree(path: ContrastPath, gamma: float, *, ax: Axes | None = None) -> Axes:
    """Plot contrast eigenvalues and the variances of both groups, component by component.

    Parameters
    ----------
    path : ContrastPath
    gamma : float
        The nearest gamma of the path is shown.
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes
    """
    if not path.gammas[0] <= gamma <= path.gammas[-1]:
        raise ValueError(f"gamma={gamma} is outside this path ({path.gammas[0]:.4g} to {path.gammas[-1]:.4g}).")
    g = int(np.argmin(np.abs(path.gammas - gamma)))
    ax = axes_or_current(ax)
    k = np.arange(1, path.n_components + 1)
    ax.bar(k - 0.2, path.explained_variance[g], 0.4, color=COLOURS[0], label="foreground variance")
    ax.bar(k + 0.2, path.background_variance[g], 0.4, color=BACKGROUND_COLOUR, label="background variance")
    ax.plot(k, path.eigenvalues[g], "o-", color="black", label="eigenvalue of the contrast")
    ax.set(xticks=k, xlabel="component", ylabel="variance")
    return tidy(ax)


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
