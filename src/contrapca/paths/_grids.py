"""Which gammas a path has."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from .._util.arrays import Array
from ..exceptions import InfeasibleGammaError
from ..methods import Method

DEFAULT_POINTS, MASKED_POINTS = 40, 20  # gammas of a path; fewer where each is a gradient fit


def checked_grid(gammas: Any, limit: float, method: Method, d: int) -> Array:
    """The gammas that were given, checked, increasing."""
    grid = np.unique(np.asarray(gammas, dtype=np.float64).ravel())
    if grid.size == 0 or not np.isfinite(grid).all() or grid[0] < 0:
        raise ValueError("gammas must be finite numbers, 0 or more, at least one.")
    if grid[-1] >= limit:
        raise InfeasibleGammaError(float(grid[-1]), limit, d, *method.refusal(limit, d))
    return grid


def number_of_points(gammas: Any, default: int) -> int | None:
    """How many gammas a default grid shall have; None where the gammas themselves are given."""
    if gammas is not None and not isinstance(gammas, numbers.Integral):
        return None
    points = default if gammas is None else int(gammas)
    if points < 2:
        raise ValueError(
            f"gammas={points} as a whole number says how many: 2 or more. For one value give [{points}.0]."
        )
    return points


def with_gamma(grid: Array, gamma: float | None) -> Array:
    """The grid with a gamma among it, in place of one that is the same but for rounding; increasing."""
    if gamma is None:
        return grid
    return np.sort(np.append(grid[~np.isclose(grid, gamma, rtol=1e-9, atol=1e-12)], gamma))
