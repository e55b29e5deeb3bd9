"""Moments of parts of the rows to those of all: Chan's rule (F8)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._util.arrays import Array, outer

Part = tuple[float, Array, Any]  # sum of the weights, mean (D,) and centred scatter (D, D) of some rows


@np.errstate(over="ignore", invalid="ignore")  # what is too large to be squared is found in the trace
def merged(left: Part, right: Part) -> Part:
    """Weight, mean and scatter of the rows of both parts together.

    A part of negative weight and scatter is taken away.
    """
    if min(abs(left[0]), abs(right[0])) == 0:  # a part in which no row counts has no mean
        return left if left[0] else right
    weight, shift = left[0] + right[0], right[1] - left[1]
    # By its root, the added matrix is exactly symmetric; weights that are multiplied with each other could overflow.
    between = left[0] * (right[0] / weight)
    row = np.sqrt(abs(between)) * shift
    scatter = left[2] + right[2]
    scatter += outer(row, scatter) if between > 0 else -outer(row, scatter)
    return weight, left[1] + shift * (right[0] / weight), scatter
