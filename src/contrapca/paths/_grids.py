"""The gammas of a path."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from .._util.arrays import Array
from ..fitting import Latents
from ..methods import Method

DEFAULT_POINTS, MASKED_POINTS = 40, 20  # gammas of a path; fewer where each is a gradient fit


def checked_grid(gammas: Any, limit: float, method: Method, latents: Latents) -> Array:
    """Check the given gammas and sort them."""
    grid = np.unique(np.asarray(gammas, dtype=np.float64).ravel())
    if grid.size == 0 or not np.isfinite(grid).all() or grid[0] < 0:
        raise ValueError("gammas must contain at least one value, all finite and 0 or more.")
    if grid[-1] >= limit:
        raise method.refusal(float(grid[-1]), limit, latents.rank, latents.parameter)
    return grid


def number_of_points(gammas: Any, default: int) -> int | None:
    """The number of gammas of a default grid; None if the gammas themselves are given."""
    if gammas is not None and not isinstance(gammas, numbers.Integral):
        return None
    points = default if gammas is None else int(gammas)
    if points < 2:
        raise ValueError(
            f"gammas={points}: an integer is the number of values, at least 2. For a single value pass [{points}.0]."
        )
    return points


def with_gamma(grid: Array, gamma: float | None) -> Array:
    """The grid with a gamma inserted in order, replacing one that is equal up to rounding."""
    if gamma is None:
        return grid
    return np.sort(np.append(grid[~np.isclose(grid, gamma, rtol=1e-9, atol=1e-12)], gamma))
