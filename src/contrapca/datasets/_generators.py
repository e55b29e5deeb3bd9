"""Generators of foreground and background with known truth."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Bunch

from .._checks import check_option, generator
from .._util.arrays import Array
from .._util.text import default_names
from ..gaussian import LatentGaussian


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
        raise ValueError(f"n_features={n_features} must be at least 6: five directions are planted.")
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
        feature_names=default_names(n_features),
        plane=plane,
        description="Four clusters of cases, hidden under variation that cases and controls share.",
    )


TOY_COVARIANCES = {
    "estimates": (2.7, 2.6, 1.0),
    "posterior": (4.0, 2.6, 1.5),
}  # variance, covariance, distance of means


def _toy_population(kind: str) -> tuple[Array, float]:
    """Covariance within a subgroup, and its distance from the mean along each axis."""
    variance, covariance, distance = TOY_COVARIANCES[kind]
    return np.array([[variance, covariance], [covariance, variance]]), distance


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
    check_option(kind, "kind", tuple(TOY_COVARIANCES))
    matrix, distance = _toy_population(kind)
    rng = generator(random_state)
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


def make_two_ppca(
    n_foreground: int = 100,
    n_background: int = 100,
    n_features: int = 10,
    n_components: int = 2,
    *,
    noise_variance: float = 1.0,
    random_state: Any = None,
) -> Bunch:
    """The paper's simulation for missing values: each group from a PPCA model of its own.

    Rows are W z + noise, with z standard normal; the entries of each group's W are standard normal as well.

    Parameters
    ----------
    n_foreground, n_background, n_features : int
    n_components : int
        Columns of each W; fewer than `n_features`.
    noise_variance : float
        Positive; the same in both groups.
    random_state : None, int, Generator or RandomState

    Returns
    -------
    Bunch
        `foreground`, `background` (tables), `foreground_model`, `background_model` (the truth: their `W` and `sigma2`,
        ``log_prob(rows)``, and ``sample(n, generator)`` for further rows of the same model), `feature_names`,
        `description`. There are no labels: neither group has subgroups.

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca.datasets import make_two_ppca
    >>> data = make_two_ppca(random_state=0)
    >>> held_out = data.foreground_model.sample(1000, np.random.default_rng(1))
    >>> held_out.shape
    (1000, 10)
    """
    if not 1 <= n_components < n_features:
        raise ValueError(f"n_components={n_components} must be at least 1 and less than n_features={n_features}.")
    if not noise_variance > 0:
        raise ValueError(f"noise_variance={noise_variance} must be positive.")
    rng = generator(random_state)
    models = [
        LatentGaussian(np.zeros(n_features), W, float(noise_variance))
        for W in rng.standard_normal((2, n_features, n_components))
    ]
    return Bunch(
        foreground=models[0].sample(n_foreground, rng),
        background=models[1].sample(n_background, rng),
        foreground_model=models[0],
        background_model=models[1],
        feature_names=default_names(n_features),
        description=f"Two PPCA models with {n_components} components each, one for cases and one for controls.",
    )


def make_contraction_mixture(n: int = 500, *, beta: float = 0.5, random_state: Any = None) -> Bunch:
    """The paper's set for the contraction of posteriors: one two-dimensional Gaussian for each group.

    The groups have the covariances of `make_toy`'s kind "posterior", but the foreground has no subgroups: it is the
    Gaussian with the same covariance as the two together.

    Parameters
    ----------
    n : int
        Rows of both groups together.
    beta : float
        Share of the foreground; round(beta n) rows, not a random number of them.
    random_state : None, int, Generator or RandomState

    Returns
    -------
    Bunch
        `foreground`, `background` (tables), `foreground_covariance`, `background_covariance` (the population's, as
        `risk`, `risk_minimizer` and `divergence` take them), `beta`, `feature_names`, `description`. No labels.
    """
    n_foreground = round(beta * n)
    if not 0 < beta < 1 or not 1 <= n_foreground < n:
        raise ValueError(f"beta={beta} must be between 0 and 1 and leave both groups some of the n={n} rows.")
    rng = generator(random_state)
    within, distance = _toy_population("posterior")
    total = within + distance**2 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    return Bunch(
        foreground=rng.multivariate_normal([0, 0], total, n_foreground),
        background=rng.multivariate_normal([0, 0], within, n - n_foreground),
        foreground_covariance=total,
        background_covariance=within,
        beta=beta,
        feature_names=["x0", "x1"],
        description="One Gaussian of cases and one of controls, with known covariances.",
    )
