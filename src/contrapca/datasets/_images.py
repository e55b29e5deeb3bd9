"""Digits hidden in a texture, made from images that come with scikit-learn; small tools for images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits, load_sample_image
from sklearn.utils import Bunch

from .._checks import generator
from .._util.arrays import Array
from .._util.optional import require

SIDE = 8  # pixels in a row of scikit-learn's digits
WHITE, DIGIT_WHITE = 255.0, 16.0  # brightest pixel of photographs and of digits


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
    random_state : None, int, Generator or RandomState

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
    rng = generator(random_state)
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


def _tiles(photograph: str) -> Array:
    """A photograph in grey, as rows of square tiles that do not overlap."""
    require("PIL.Image", extra="plot")  # scikit-learn reads photographs with it
    grey = load_sample_image(photograph).mean(axis=2)
    windows = np.lib.stride_tricks.sliding_window_view(grey, (SIDE, SIDE))[::SIDE, ::SIDE]
    return windows.reshape(-1, SIDE * SIDE)


def random_patches(photographs: npt.NDArray[Any], n: int, side: int, rng: np.random.Generator) -> Array:
    """Random square patches of grey photographs (count, height, width), as rows of floats."""
    windows = np.lib.stride_tricks.sliding_window_view(photographs, (side, side), axis=(1, 2))
    rows, columns = rng.integers(0, windows.shape[1:3], size=(n, 2)).T
    chosen = rng.integers(0, len(windows), size=n)
    return windows[chosen, rows, columns].reshape(n, side * side).astype(np.float64)


def pixel_names(height: int, width: int) -> list[str]:
    """Names of an image's pixels, row by row."""
    return [f"row{r}_column{c}" for r in range(height) for c in range(width)]
