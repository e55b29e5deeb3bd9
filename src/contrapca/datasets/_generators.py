"""Generators of foreground and background with known truth."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Bunch

from .._validation import generator


def make_hidden_clusters(
    n_foreground: int = 400,
    n_background: int = 400,
    n_features: int = 30,
    *,
    separation: float = 4.0,
    nuisance: float = 4.0,
    random_state: Any = None,
) -> Bunch:
    """Four clusters of cases, hidden under stronger variation that cases and controls share.

    Rows are centre + nuisance + noise. The centres (foreground only) are the corners of a square of side
    2 `separation` / sqrt(2) in a random plane; the nuisance varies with standard deviation `nuisance` along each
    of three random directions orthogonal to it, in both groups; the noise has variance 1.

    Parameters
    ----------
    n_foreground, n_background, n_features : int
        Sizes; at least 6 features.
    separation : float
        Distance of a cluster's centre from the mean.
    nuisance : float
        Standard deviation along each nuisance direction.
    random_state : None, int, Generator or RandomState

    Returns
    -------
    Bunch
        `foreground`, `background` (tables), `labels` (cluster of each foreground row), `feature_names`,
        `plane` (n_features, 2; the true contrastive directions), `description`.
    """
    if n_features < 6:
        raise ValueError(f"n_features={n_features} must be 6 or more: the planted directions need room.")
    rng = generator(random_state)
    directions = np.linalg.qr(rng.standard_normal((n_features, 5)))[0]
    plane, shared = directions[:, :2], directions[:, 2:]

    def rows(n: int) -> Any:
        return nuisance * rng.standard_normal((n, 3)) @ shared.T + rng.standard_normal((n, n_features))

    labels = np.arange(n_foreground) % 4
    angle = np.pi / 4 + labels * np.pi / 2
    centres = separation * np.column_stack([np.cos(angle), np.sin(angle)]) @ plane.T
    return Bunch(
        foreground=rows(n_foreground) + centres,
        background=rows(n_background),
        labels=labels,
        feature_names=[f"x{j}" for j in range(n_features)],
        plane=plane,
        description="Four clusters of cases, hidden under variation that cases and controls share.",
    )


TOY_COVARIANCES = {
    "estimates": (2.7, 2.6, 1.0),
    "posterior": (4.0, 2.6, 1.5),
}  # variance, covariance, distance of means


def make_toy(
    n_foreground: int = 200, n_background: int = 200, *, kind: str = "estimates", random_state: Any = None
) -> Bunch:
    """The paper's two-dimensional example: two subgroups of cases across an axis that both groups share.

    All rows have the covariance (a b; b a); half the cases are centred at (c, -c), the others at (-c, c).

    Parameters
    ----------
    n_foreground, n_background : int
    kind : {"estimates", "posterior"}
        The paper's values a, b, c for its figures of estimates (2.7, 2.6, 1) and of posteriors (4, 2.6, 1.5).
    random_state : None, int, Generator or RandomState

    Returns
    -------
    Bunch
        `foreground`, `background` (tables), `labels` (subgroup of each foreground row), `feature_names`, `covariance`
        (within each group), `plane` (2, 1; the axis that separates the subgroups), `description`.
    """
    if kind not in TOY_COVARIANCES:
        raise ValueError(f"kind={kind!r} is not known. Use one of {', '.join(map(repr, TOY_COVARIANCES))}.")
    variance, covariance, distance = TOY_COVARIANCES[kind]
    rng = generator(random_state)
    matrix = np.array([[variance, covariance], [covariance, variance]])
    labels = np.arange(n_foreground) % 2
    centres = distance * np.where(labels == 0, 1.0, -1.0)[:, None] * [1.0, -1.0]
    return Bunch(
        foreground=rng.multivariate_normal([0, 0], matrix, n_foreground) + centres,
        background=rng.multivariate_normal([0, 0], matrix, n_background),
        labels=labels,
        feature_names=["x0", "x1"],
        covariance=matrix,
        plane=np.array([[1.0], [-1.0]]) / np.sqrt(2),
        description="Two subgroups of cases across an axis of variation that cases and controls share.",
    )
