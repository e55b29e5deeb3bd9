"""Plots of draws: subspaces over the data, intervals of loadings, traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._util.arrays import spread_out
from ._labels import BACKGROUND_COLOUR, COLOURS
from ._latents import axes_or_current, short_name, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..inference import ContrastPosterior


TITLES = {"bootstrap": "bootstrap", "gibbs": "Gibbs posterior"}


def subspace_draws(
    posterior: ContrastPosterior, foreground: Any, *, background: Any = None, n_draws: int = 100, ax: Axes | None = None
) -> Axes:
    """Plot drawn directions as lines over two-dimensional data, with the estimate on top.

    Parameters
    ----------
    posterior : ContrastPosterior
        With 2 features and 1 component.
    foreground : array-like of shape (n, 2)
    background : array-like of shape (m, 2), optional
    n_draws : int, default 100
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes
    """
    D, d = posterior.estimate.shape
    if (D, d) != (2, 1):
        raise ValueError(f"subspace_draws needs 2 features and 1 component; this posterior has {D} and {d}.")
    flat = posterior.loadings.reshape(-1, 2)
    draws = flat[spread_out(len(flat), n_draws)] * posterior.scale
    estimate = posterior.estimate[:, 0] * posterior.scale
    draws, estimate = draws / np.linalg.norm(draws, axis=1, keepdims=True), estimate / np.linalg.norm(estimate)
    ax = axes_or_current(ax)
    X = np.asarray(foreground)
    if background is not None:
        Y = np.asarray(background)
        ax.scatter(Y[:, 0], Y[:, 1], s=14, marker="x", linewidths=0.7, color=BACKGROUND_COLOUR, label="controls")
    ax.scatter(X[:, 0], X[:, 1], s=14, linewidths=0, color=COLOURS[0], label="cases")
    reach = 1.1 * np.abs(X - posterior.mean).max()
    for k, direction in enumerate(draws):
        ends = posterior.mean + reach * np.outer([-1, 1], direction)
        ax.plot(*ends.T, color=COLOURS[1], alpha=0.12, linewidth=1, label="draws" if k == 0 else None)
    ends = posterior.mean + reach * np.outer([-1, 1], estimate)
    ax.plot(*ends.T, color="black", linewidth=1.8, label="estimate")
    ax.set(aspect="equal", xlabel=posterior.feature_names[0], ylabel=posterior.feature_names[1])
    return tidy(ax)


def loading_intervals(
    posterior: ContrastPosterior,
    component: int = 1,
    *,
    n_features: int = 20,
    probability: float = 0.9,
    ax: Axes | None = None,
) -> Axes:
    """Plot intervals of the largest loadings on one component (a forest plot).

    Parameters
    ----------
    posterior : ContrastPosterior
    component : int, default 1
        Counting from 1.
    n_features : int, default 20
    probability : float, default 0.9
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes
    """
    data = posterior.largest_loadings(component, n_features, probability)
    ax = axes_or_current(ax)
    heights = np.arange(len(data["feature"]))[::-1]
    ax.axvline(0, color=BACKGROUND_COLOUR, linewidth=1)
    ax.hlines(heights, data["lower"], data["upper"], color=COLOURS[0], linewidth=2, label=f"{probability:.0%} interval")
    ax.plot(data["median"], heights, "o", color=COLOURS[0], markersize=5, label="median")
    ax.plot(data["estimate"], heights, "|", color="black", markersize=11, markeredgewidth=1.6, label="estimate")
    ax.set_yticks(heights, list(map(short_name, data["feature"])))
    ax.set(xlabel=f"loading on component {component}", title=TITLES[posterior.kind])
    return tidy(ax)


def trace(posterior: ContrastPosterior, *, ax: Axes | None = None) -> Axes:
    """Trace plot of an identified quantity in each chain: chains that have mixed look alike.

    Parameters
    ----------
    posterior : ContrastPosterior
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes
    """
    name, chains = "noise variance", posterior.noise_variance
    if chains is None:
        name, chains = "largest angle to the estimate, radians", posterior.angles()[..., 0]
    ax = axes_or_current(ax)
    for k, chain in enumerate(chains):
        ax.plot(chain, color=COLOURS[k % len(COLOURS)], linewidth=0.6, alpha=0.8, label=f"chain {k + 1}")
    ax.set(xlabel="draw", ylabel=name)
    return tidy(ax)
