"""How long rows are: the one thing about them, beside their moments, that Ledoit and Wolf's shrinkage needs (F47)."""

from __future__ import annotations

from operator import add

import numpy as np

from .._util.arrays import Array, Rows, host, namespace, put
from ..data.rows import DaskRows, blocks, storage


def sum_of_fourth_powers(
    rows: Rows, mean: Array, divisor: Array, weights: Array | None = None, unit: float = 1.0
) -> float:
    """sum_i w_i (|(x_i - mean) / divisor|^2 / unit)^2, in one pass over the rows."""
    origin, nothing = mean / divisor, np.zeros((mean.size, 0))

    def of_block(block: Rows, w: Array | None) -> float:
        read = storage(block)
        squares = read.squared_lengths(read.scaled(block, divisor), origin, nothing, nothing)[0] / unit
        fourths = squares * squares if w is None else squares * squares * put(w, squares)
        return float(host(namespace(fourths).sum(fourths)))  # one number leaves a device, not one for each row

    if isinstance(rows, DaskRows):
        return rows.reduce(of_block, add, weights)
    total, start = 0.0, 0
    for block in blocks(rows):
        stop = start + block.shape[0]
        total += of_block(block, None if weights is None else weights[start:stop])
        start = stop
    return total
