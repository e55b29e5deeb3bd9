"""Plots of contrasts: how they change with gamma, and which features make them.

Every function draws data from a matching function (`..._data`), takes `ax` and returns it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._checks import check_count
from .._util.arrays import Array
from .._util.labels import NO_LABEL, OTHER, on_a_scale
from .._util.optional import require
from .._util.palette import BACKGROUND_COLOUR, COLOURS
from .._util.text import component_names
from ..backgrounds import named_backgrounds
from ..gaussian import gaussian_ellipse
from ._latents import axes_or_current, classes_of, latents, legend_of_figure, short_name, style_of, tidy

if TYPE_CHECKING:
    from ..paths import ContrastPath


def two_components(d: int) -> None:
    if d < 2:
        raise ValueError("This plot needs two components, but there is one: use plots.latent_scatter, which draws one.")


def ellipse_data(points: Any, n: int = 100) -> Array:
    """The 95 % ellipse of a Gaussian with the points' mean and covariance, shape (n, 2)."""
    return gaussian_ellipse(np.asarray(points, dtype=np.float64), n)


def latent_scatter_data(
    model: Any, X: Any, *, background: Any = None, components: tuple[int, int] = (0, 1)
) -> dict[str, Any]:
    """Latents of both groups along two components, or the only one, and axis labels with fractions of variance.

    Background rows are centred by the background's mean.
    """
    d = len(model.explained_variance_ratio_)
    if d > 1 and not all(0 <= k < d for k in components):
        raise ValueError(f"components={components} must be two of this model's {d} components, counting from 0.")
    chosen = list(components) if d > 1 else [0]
    shares: Any = model.explained_variance_ratio_
    other: Any = getattr(model, "background_variance_ratio_", None)

    def label(k: int) -> str:
        text = f"component {k + 1}\n{shares[k]:.0%} of case"
        several = other is None or isinstance(other, dict)
        return text + (" variance" if several else f", {other[k]:.0%} of control variance")

    return {
        "foreground": np.asarray(model.transform(X))[:, chosen],
        "background": None
        if background is None
        else np.concatenate(
            [
                np.asarray(model.transform(rows, center=name))[:, chosen]
                for name, rows in named_backgrounds(background).items()
            ]
        ),
        "axis_labels": [*map(label, chosen), ""][:2],
    }


def latent_scatter(
    model: Any,
    X: Any,
    *,
    background: Any = None,
    labels: Any = None,
    components: tuple[int, int] = (0, 1),
    ellipses: bool = True,
    ax: Any = None,
) -> Any:
    """Scatter plot of foreground and background latents, with 95 % ellipses of each class and of the background.

    A model of one component is drawn as strips of points, one for each class.

    Parameters
    ----------
    model : fitted estimator
    X, background : tables
    labels : array-like of shape (n,), optional
        Classes of the foreground rows.
    components : two int, default (0, 1)
    ellipses : bool, default True
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes
    """
    data = latent_scatter_data(model, X, background=background, components=components)
    ax = axes_or_current(ax)
    latents(data["foreground"], background=data["background"], labels=labels, axis_labels=data["axis_labels"], ax=ax)
    if data["foreground"].shape[1] == 1:
        return ax
    if ellipses:
        if labels is None or on_a_scale(labels) is None:
            for k, (name, members) in enumerate(classes_of(labels, len(data["foreground"])).items()):
                if len(members) > 2 and name not in (OTHER, NO_LABEL):
                    ax.plot(*ellipse_data(data["foreground"][members]).T, color=style_of(k)["color"], linewidth=1.2)
        if data["background"] is not None:
            ax.plot(*ellipse_data(data["background"]).T, color=BACKGROUND_COLOUR, linewidth=1.2, linestyle="--")
    return tidy(ax)


def gamma_panel_data(path: ContrastPath, X: Any, *, background: Any = None, k: int = 6) -> list[dict[str, Any]]:
    """Aligned latents of both groups at `k` gammas spread over the path: `gamma`, `foreground`, `background`."""
    check_count(k, "k")
    two_components(path.n_components)
    chosen = np.unique(np.linspace(0, len(path) - 1, min(k, len(path))).round().astype(int))
    foreground = path.aligned(X)
    rows = named_backgrounds(background)
    other = np.concatenate([path.aligned(own, center=name) for name, own in rows.items()], axis=1) if rows else None
    foreground_shares, background_shares = path.shares().foreground, path.background_share
    return [
        {
            "gamma": path.gammas[g],
            "axis_labels": [
                f"component {j + 1}: {foreground_shares[g, j]:.0%} of case,\n"
                f"{background_shares[g, j]:.0%} of control variance"
                for j in (0, 1)
            ],
            "foreground": foreground[g][:, :2],
            "background": None if other is None else other[g][:, :2],
        }
        for g in chosen
    ]


def gamma_panel(
    path: ContrastPath, X: Any, *, background: Any = None, labels: Any = None, k: int = 6, figure: Any = None
) -> Any:
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
    panels = gamma_panel_data(path, X, background=background, k=k)
    columns = min(3, len(panels))
    if figure is None:
        size = (3.6 * columns, 3.2 * -(-len(panels) // columns))
        figure = require("matplotlib.pyplot", extra="plot").figure(figsize=size, layout="constrained")
    axes = figure.subplots(-(-len(panels) // columns), columns, squeeze=False).ravel()
    for ax, panel in zip(axes, panels, strict=False):
        title, names = f"gamma = {panel['gamma']:.3g}", panel["axis_labels"]
        both = {"foreground": panel["foreground"], "background": panel["background"]}
        latents(**both, labels=labels, title=title, axis_labels=names, ax=ax)
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    legend_of_figure(figure, axes[0])
    return figure


def path_curves_data(path: ContrastPath) -> dict[str, Any]:
    """Total fraction of variance along the components at each gamma, and the limit."""
    foreground, background = (share.sum(axis=1) for share in (path.shares().foreground, path.background_share))
    return {
        "gamma": path.gammas,
        "foreground": foreground,
        "background": background,
        "limit": path.gamma_max,
    }


def path_curves(path: ContrastPath, *, ax: Any = None) -> Any:
    """Plot the fraction of each group's variance along the components against gamma; the limit is marked.

    Parameters
    ----------
    path : ContrastPath
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes
    """
    data = path_curves_data(path)
    ax = axes_or_current(ax)
    ax.plot(data["gamma"], data["foreground"], color=COLOURS[0], label="foreground")
    ax.plot(data["gamma"], data["background"], color=BACKGROUND_COLOUR, linestyle="--", label="background")
    if np.isfinite(data["limit"]):
        ax.axvline(data["limit"], color=COLOURS[1], linewidth=1, label=f"limit {data['limit']:.3g}")
    ax.set(xlabel="gamma", ylabel="share of variance along the components", ylim=(0, None))
    return tidy(ax)


def loadings_data(model: Any, component: int = 0, n_features: int = 15) -> dict[str, Any]:
    """The largest loadings on a component: `feature` and `loading`, largest magnitude first."""
    table = model.feature_table()
    d = len(model.explained_variance_ratio_)
    if not 0 <= component < d:
        raise ValueError(f"component={component} must be one of this model's {d} components, counting from 0.")
    loading = np.asarray(table[component_names(d)[component]])
    order = np.argsort(-np.abs(loading), kind="stable")[:n_features]
    return {"feature": [str(table["feature"][j]) for j in order], "loading": loading[order]}


def loadings(model: Any, component: int = 0, *, n_features: int = 15, ax: Any = None) -> Any:
    """Bar plot of the largest loadings on one component.

    Parameters
    ----------
    model : fitted estimator
    component : int, default 0
    n_features : int, default 15
        Number of bars.
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes
    """
    data = loadings_data(model, component, n_features)
    ax = axes_or_current(ax)
    heights = np.arange(len(data["feature"]))[::-1]
    colours = [COLOURS[0] if value >= 0 else COLOURS[1] for value in data["loading"]]
    ax.barh(heights, data["loading"], color=colours)
    ax.set_yticks(heights, list(map(short_name, data["feature"])))
    ax.axvline(0, color="black", linewidth=0.8)
    ax.set(xlabel=f"loading on component {component + 1}")
    return tidy(ax, legend=False)


def scree_data(path: ContrastPath, gamma: float) -> dict[str, Array]:
    """Contrast eigenvalues and both groups' variances along the components, at the path's gamma nearest to `gamma`."""
    if not path.gammas[0] <= gamma <= path.gammas[-1]:
        raise ValueError(f"gamma={gamma} is outside this path ({path.gammas[0]:.4g} to {path.gammas[-1]:.4g}).")
    g = int(np.argmin(np.abs(path.gammas - gamma)))
    return {
        "eigenvalue": path.eigenvalues[g],
        "foreground": path.explained_variance[g],
        "background": path.background_variance[g],
    }


def scree(path: ContrastPath, gamma: float, *, ax: Any = None) -> Any:
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
    data = scree_data(path, gamma)
    ax = axes_or_current(ax)
    k = np.arange(data["eigenvalue"].size)
    ax.bar(k - 0.2, data["foreground"], 0.4, color=COLOURS[0], label="foreground variance")
    ax.bar(k + 0.2, data["background"], 0.4, color=BACKGROUND_COLOUR, label="background variance")
    ax.plot(k, data["eigenvalue"], "o-", color="black", label="eigenvalue of the contrast")
    ax.set_xticks(k, [str(j + 1) for j in k])
    ax.set(xlabel="component", ylabel="variance")
    return tidy(ax)


def samples_data(model: Any, n: int = 9, shape: tuple[int, int] | None = None, random_state: Any = 0) -> Array:
    """`n` new rows of a model, shape (n, D), or with `shape`, images (n, height, width)."""
    rows = np.asarray(model.sample(n, random_state=random_state))
    return rows if shape is None else rows.reshape(n, *shape)


def samples(
    model: Any, n: int = 9, *, shape: tuple[int, int] | None = None, random_state: Any = 0, ax: Any = None
) -> Any:
    """Plot new rows of a model as lines over the features or, with `shape`, as images side by side.

    Parameters
    ----------
    model : fitted PPCA, PCPCA or CLVM
    n : int, default 9
    shape : two int, optional
        Height and width of a row as an image.
    random_state : None, int, Generator or RandomState, default 0
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes
    """
    data = samples_data(model, n, shape, random_state)
    ax = axes_or_current(ax)
    if shape is None:
        for k, row in enumerate(data):
            ax.plot(row, color=COLOURS[k % len(COLOURS)], linewidth=0.8)
        ax.set(xlabel="feature", ylabel="value")
        return tidy(ax, legend=False)
    columns = int(np.ceil(np.sqrt(n)))
    padded = np.concatenate([data, np.full((-n % columns, *shape), np.nan)])
    grid = padded.reshape(-1, columns, *shape).swapaxes(1, 2).reshape(-1, columns * shape[1])
    ax.imshow(grid, cmap="gray")
    ax.set_axis_off()
    return ax
