"""The paper's simulated data, with known truth, and small images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_sample_image
from sklearn.utils import Bunch

from contrapca.contrast._gaussian import LatentGaussian

SIDE = 8  # pixels in a row of scikit-learn's digits
WHITE, DIGIT_WHITE = 255.0, 16.0  # brightest pixel of photographs and of digits
TOY_COVARIANCES = {
    "estimates": (2.7, 2.6, 1.0),
    "posterior": (4.0, 2.6, 1.5),
}  # variance, covariance, distance of means


def _toy_population(kind: str) -> tuple[Any, float]:
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
    random_state : None, int or Generator

    Returns
    -------
    Bunch
        `foreground`, `background` (tables), `labels` (subgroup of each foreground row), `feature_names`, `covariance`
        (within each group), `plane` (2, 1; the axis that separates the subgroups), `description`.
    """
    matrix, distance = _toy_population(kind)
    rng = np.random.default_rng(random_state)
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
    random_state : None, int or Generator

    Returns
    -------
    Bunch
        `foreground`, `background` (tables), `foreground_model`, `background_model` (the truth: their `W` and `sigma2`,
        ``log_prob(rows)``, and ``sample(n, generator)`` for further rows of the same model), `feature_names`,
        `description`. There are no labels: neither group has subgroups.
    """
    if not 1 <= n_components < n_features:
        raise ValueError(f"n_components={n_components} must be at least 1 and less than n_features={n_features}.")
    if not noise_variance > 0:
        raise ValueError(f"noise_variance={noise_variance} must be positive.")
    rng = np.random.default_rng(random_state)
    models = [
        LatentGaussian(np.zeros(n_features), W, float(noise_variance))
        for W in rng.standard_normal((2, n_features, n_components))
    ]
    return Bunch(
        foreground=models[0].sample(n_foreground, rng),
        background=models[1].sample(n_background, rng),
        foreground_model=models[0],
        background_model=models[1],
        feature_names=[f"x{k}" for k in range(n_features)],
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
    random_state : None, int or Generator

    Returns
    -------
    Bunch
        `foreground`, `background` (tables), `foreground_covariance`, `background_covariance` (the population's, as
        `risk`, `risk_minimizer` and `divergence` take them), `beta`, `feature_names`, `description`. No labels.
    """
    n_foreground = round(beta * n)
    if not 0 < beta < 1 or not 1 <= n_foreground < n:
        raise ValueError(f"beta={beta} must be between 0 and 1 and leave both groups some of the n={n} rows.")
    rng = np.random.default_rng(random_state)
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


def make_corrupted_digits(
    n_foreground: int = 1000,
    n_background: int = 1000,
    *,
    digits: Sequence[int] = (0, 1),
    brightness: float = 0.14,
    random_state: Any = None,
) -> Bunch:
    """Handwritten digits, too faint to be seen on a photograph's texture, against the texture alone.

    A small relative of the paper's digits on grass that needs no download: scikit-learn's 8 x 8 digits and its
    photograph of a flower, in grey, cut into 8 x 8 tiles. No tile is used twice, so the groups share no pixel of the
    photograph. If there are more rows than digits, digits are used again, on other tiles.

    Parameters
    ----------
    n_foreground, n_background : int
        Numbers of rows; together at most 4240, the number of tiles.
    digits : sequence of int
        Digits to use.
    brightness : float
        Factor of a digit before it is added to a tile; white is 255 in both. With the default, PCA does not separate
        zeros from ones, but ``PCPCA(2, gamma=0.8, scale="group")`` does.
    random_state : None, int or Generator

    Returns
    -------
    Bunch
        `foreground`, `background` (tables of 64 pixels), `labels` (the digit of each foreground row), `feature_names`,
        `image_shape`, `description`.
    """
    wanted = np.unique(digits)
    if not wanted.size or not np.isin(wanted, np.arange(10)).all():
        raise ValueError(f"digits={digits!r} must be one or more of 0, 1, ..., 9.")
    tiles = _tiles("flower.jpg")
    if min(n_foreground, n_background) < 1 or n_foreground + n_background > len(tiles):
        raise ValueError(
            f"n_foreground={n_foreground} and n_background={n_background} must each be at least 1 and together at most "
            f"{len(tiles)}, the number of tiles of the photograph."
        )
    rng = np.random.default_rng(random_state)
    pixels, classes = load_digits(return_X_y=True)
    kept = rng.permutation(np.flatnonzero(np.isin(classes, wanted)))
    rows = np.resize(kept, n_foreground)  # starts again if there are too few
    tiles = rng.permutation(tiles)[: n_foreground + n_background]
    return Bunch(
        foreground=tiles[:n_foreground] + brightness * WHITE / DIGIT_WHITE * pixels[rows],
        background=tiles[n_foreground:],
        labels=classes[rows],
        feature_names=pixel_names(SIDE, SIDE),
        image_shape=(SIDE, SIDE),
        description=(
            f"Digits ({', '.join(map(str, wanted))}) times {brightness:g}, added to tiles of a photograph of a flower; "
            "background: other tiles. Both come with scikit-learn."
        ),
    )


def _tiles(photograph: str) -> Any:
    """A photograph in grey, as rows of square tiles that do not overlap."""
    grey = load_sample_image(photograph).mean(axis=2)
    windows = np.lib.stride_tricks.sliding_window_view(grey, (SIDE, SIDE))[::SIDE, ::SIDE]
    return windows.reshape(-1, SIDE * SIDE)


def random_patches(photographs: Any, n: int, side: int, rng: np.random.Generator) -> Any:
    """Random square patches of grey photographs (count, height, width), as rows of floats."""
    windows = np.lib.stride_tricks.sliding_window_view(photographs, (side, side), axis=(1, 2))
    rows, columns = rng.integers(0, windows.shape[1:3], size=(n, 2)).T
    chosen = rng.integers(0, len(windows), size=n)
    return windows[chosen, rows, columns].reshape(n, side * side).astype(np.float64)


def pixel_names(height: int, width: int) -> list[str]:
    """Names of an image's pixels, row by row."""
    return [f"row{r}_column{c}" for r in range(height) for c in range(width)]
