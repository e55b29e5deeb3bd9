"""CPCA: the variance of the foreground minus gamma times that of the background."""

from __future__ import annotations

import numpy as np

from .._util.arrays import Array
from ..moments import Contrast
from ._eigen import Solution, Spectrum

# Smallest and largest gamma above 0 in the default grid, since the limit may be infinite; and how near the limit it
# comes.
LEAST, LARGEST, CLOSEST = 0.01, 1000.0, 1e-3


def cpca_grid(limit: float, points: int) -> Array:
    """`points` gammas from 0 to just below the limit, or to `LARGEST`: 0, and a geometric sequence."""
    top = (1 - CLOSEST) * min(limit, LARGEST)
    return np.concatenate([[0.0], np.geomspace(min(LEAST, top / 10), top, points - 1)])


def solve_cpca(contrast: Contrast, spectrum: Spectrum) -> Solution:
    """Unit vectors, if all d eigenvalues are positive beyond rounding."""
    feasible = bool(spectrum.values[-1] > contrast.rounding)
    return Solution(spectrum, np.ones(spectrum.values.size), 0.0, feasible)
