"""Numbers at every gamma, packed for the browser, which multiplies two small tables to get them back."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array

# Error, relative to the largest number at a gamma, above which more columns or 64 bits are used.
PACKING_ERROR = 3e-7


def pack(numbers: Array) -> dict[str, Any]:
    """A table of each gamma, shape (G, n, d), as `scores` (n, rank) times `maps[g]` (rank, d).

    Neighbouring gammas are much alike, so the rank is far below G d. Each gamma counts alike, on any scale.
    """
    G, n, d = numbers.shape
    largest = np.abs(numbers).max(axis=(1, 2))
    largest[largest == 0] = 1.0
    side_by_side = (numbers / largest[:, None, None]).transpose(1, 0, 2).reshape(n, G * d)
    directions = np.linalg.eigh(side_by_side.T @ side_by_side)[1][:, ::-1]  # orthonormal, the strongest first
    scores = side_by_side @ directions
    # No number changes by more than the length of the scores that are left out, because directions are orthonormal.
    left_out = np.sqrt(np.max(np.cumsum(scores[:, ::-1] ** 2, axis=1), axis=0)[::-1])
    rank = max(1, int(np.count_nonzero(left_out > PACKING_ERROR / 2)))
    scores, directions = scores[:, :rank], directions[:, :rank]
    coarse = scores.astype(np.float32)
    error = np.abs(coarse.astype(np.float64) @ directions.T - side_by_side).max()
    maps = directions.T.reshape(rank, G, d).swapaxes(0, 1) * largest[:, None, None]
    return {
        "n": n,
        "rank": rank,
        "bytes": 4 if error <= PACKING_ERROR else 8,
        "scores": to_base64(coarse if error <= PACKING_ERROR else scores),
        "maps": to_base64(maps),
    }


def to_base64(array: npt.NDArray[Any]) -> str:
    """The bytes of an array, little-endian as browsers read them."""
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return base64.b64encode(np.ascontiguousarray(little).tobytes()).decode()
