"""Which gammas a path has."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from .._array import Array
from ..exceptions import InfeasibleGammaError
from ._fit import AUTO_FRACTION

DEFAULT_POINTS, OBSERVED_POINTS = 40, 20  # gammas of a path; fewer where each is a gradient fit
# The default grid: limit * (1 - t^BEND) for t from 1 down to (almost) 0, so that points gather near the limit.
BEND, CLOSEST = 1.7, 1e-3
CPCA_LEAST, CPCA_LARGEST = 0.01, 1000.0  # of gamma above 0 in CPCA's default grid; its limit may be infinite


def default_grid(limit: float, points: int = DEFAULT_POINTS) -> Array:
    """`points` gammas in [0, limit), dense near the limit."""
    t = np.linspace(1.0, CLOSEST ** (1 / BEND), points)
    return limit * (1 - t**BEND)


def default_observed_grid(bound: float, points: int = OBSERVED_POINTS) -> Array:
    """`points` gammas below an upper bound of the limit, where values are missing."""
    return default_grid(AUTO_FRACTION * bound, points)


def default_cpca_grid(limit: float, points: int = DEFAULT_POINTS) -> Array:
    """0 and `points` - 1 gammas in equal ratios up to (almost) the limit, or to 1000."""
    top = (1 - CLOSEST) * min(limit, CPCA_LARGEST)
    return np.concatenate([[0.0], np.geomspace(min(CPCA_LEAST, top / 10), top, points - 1)])


def checked_grid(gammas: Any, limit: float, method: str, d: int) -> Array:
    """Checked gammas, increasing."""
    points = number_of_points(gammas, DEFAULT_POINTS)
    if points is not None:
        return (default_grid if method == "pcpca" else default_cpca_grid)(limit, points)
    grid = np.unique(np.asarray(gammas, dtype=np.float64).ravel())
    if grid.size == 0 or not np.isfinite(grid).all() or grid[0] < 0:
        raise ValueError("gammas must be finite numbers, 0 or more, at least one.")
    if grid[-1] >= limit:
        raise InfeasibleGammaError(method, float(grid[-1]), limit, d, False)
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
