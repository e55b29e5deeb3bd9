"""Dense rows of torch or cupy, on any device.

Written for the array API standard. Rows stay on their device and are read a block at a time. Means, products with few
vectors and the like come back as NumPy arrays of float64; scatter and Gram matrices, and what has one value or more
for each row, stay on the device (F8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._util.arrays import Array, Rows, float_type, host, namespace, put, row_slices

BLOCK_BYTES = 256 * 2**20  # of rows at a time, in float64: a GPU needs large products
APPLY_BYTES = BLOCK_BYTES


# The number of parts of a symmetric product, each only from the diagonal to the right: with 2 parts 3/4 of the
# multiplications. More and narrower parts leave a GPU idle, and cupy copies each.
COLUMN_PARTS, LEAST_WIDTH = 2, 256


def prepared(rows: Rows) -> Rows:
    return rows


def parts(rows: Rows) -> list[slice]:
    return [slice(0, rows.shape[0])]


def view(rows: Rows, part: slice) -> Rows:
    return rows[part, :]


def _slices(rows: Rows) -> Iterator[slice]:
    return row_slices(rows.shape[0], max(1, BLOCK_BYTES // (8 * rows.shape[1])))


def _roots(rows: Rows, weights: Array | None) -> Any:
    """Roots of the weights on the device, shape (n, 1)."""
    return None if weights is None else put(np.sqrt(weights), rows)[:, None]


def _centred(rows: Rows, mean: Array, roots: Any) -> Iterator[Any]:
    """Blocks of rows - mean in float64, times the roots of their weights (n, 1), if any."""
    xp, centre = namespace(rows), put(mean, rows)
    for part in _slices(rows):
        block = xp.astype(rows[part, :], xp.float64) - centre
        yield block if roots is None else block * roots[part, :]


@np.errstate(invalid="ignore", over="ignore")  # array_api_strict computes with NumPy
def column_sums(rows: Rows, weights: Array | None = None) -> Array:
    xp, total = namespace(rows), 0.0
    placed = put(np.ones(rows.shape[0]) if weights is None else weights, rows)  # a product is faster than cupy's sum
    for part in _slices(rows):
        total = total + placed[part] @ xp.astype(rows[part, :], xp.float64)
    return host(total)


def non_finite(rows: Rows) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    xp = namespace(rows)
    missing, infinite = np.zeros((2, rows.shape[1]), dtype=bool)
    for part in _slices(rows):
        missing |= host(xp.any(xp.isnan(rows[part, :]), axis=0))
        infinite |= host(xp.any(xp.isinf(rows[part, :]), axis=0))
    return missing, infinite


@np.errstate(invalid="ignore", over="ignore")
def scatter(rows: Rows, mean: Array, weights: Array | None = None) -> Any:
    """The matrix stays on the device. Blocks are centred before they are multiplied, in float64 (F8)."""
    xp, D = namespace(rows), rows.shape[1]
    count = max(1, min(COLUMN_PARTS, D // LEAST_WIDTH))
    spans = [slice(D * k // count, D * (k + 1) // count) for k in range(count)]
    upper: list[Any] = [0.0] * count
    for block in _centred(rows, mean, _roots(rows, weights)):
        for k, span in enumerate(spans):
            upper[k] = upper[k] + block[:, span].T @ block[:, span.start :]
    # What is left of the diagonal blocks is above them, transposed.
    lines = []
    for k, span in enumerate(spans):
        left = [upper[j][:, span.start - other.start : span.stop - other.start].T for j, other in enumerate(spans[:k])]
        lines.append(xp.concat([*left, upper[k]], axis=1))
    return xp.concat(lines, axis=0)


def weighted(rows: Rows, weights: Array) -> Callable[[int], tuple[Array, Array]]:
    def of(k: int) -> tuple[Array, Array]:
        mean = column_sums(rows, weights[:, k]) / weights[:, k].sum()
        return mean, scatter(rows, mean, weights[:, k])

    return of


@np.errstate(over="ignore")
def squares(rows: Rows, mean: Array, weights: Array | None = None) -> Array:
    xp, roots = namespace(rows), _roots(rows, weights)
    return host(sum(xp.sum(block * block, axis=0) for block in _centred(rows, mean, roots)))


def product(rows: Rows, mean: Array, V: Array, weights: Array | None = None) -> Array:
    placed = put(V, rows)
    return host(sum(block.T @ (block @ placed) for block in _centred(rows, mean, _roots(rows, weights))))


def centred_on_device(rows: Rows, mean: Array, divisor: Array, weights: Array | None = None) -> Any:
    """The rows (x - mean) / divisor in float64, times the roots of their weights, shape (n, D)."""
    xp, roots = namespace(rows), _roots(rows, weights)
    found = (xp.astype(rows, xp.float64) - put(mean, rows)) / put(divisor, rows)
    return found if roots is None else found * roots


def gram(rows: Rows, mean: Array, divisor: Array) -> Any:
    found = centred_on_device(rows, mean, divisor)
    return found @ found.T


def scaled(rows: Rows, divisor: Array) -> Rows:
    return rows if np.all(divisor == 1) else rows / put(divisor, rows, float_type(rows))


def centred_product(rows: Rows, mean: Array, P: Array) -> Any:
    kind = float_type(rows)
    return (rows - put(mean, rows, kind)) @ put(P, rows, kind)


def squared_lengths(rows: Rows, mean: Array, P: Array, W: Array) -> tuple[Any, Any]:
    xp = namespace(rows)
    deviations = xp.astype(rows, xp.float64) - put(mean, rows)
    Z = deviations @ put(P, rows)
    residuals = deviations - Z @ put(W, rows).T
    return xp.sum(residuals * residuals, axis=1), xp.sum(Z * Z, axis=1)
