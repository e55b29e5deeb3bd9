"""What incomplete rows on a device add to their group's expectations: see `_expectations` (F9)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._util.arrays import Array
from .._util.devices import host, namespace, put
from ..gaussian import device_inverses, pair_products, times
from ..moments import DeviceMaskedRows
from ..objectives import device_latents


def gls_system(rows: DeviceMaskedRows, W: Array, sigma2: float) -> tuple[Callable[[Array], Array], Array]:
    """v -> sum_i L_i'A_i^-1 L_i v sigma2, and sum_i L_i'A_i^-1 (x_i - mean) sigma2, shape (D,)."""
    xp, placed = namespace(rows.values), put(W, rows.values)
    inverses, _ = device_inverses(placed, sigma2, rows.masks)

    def scatter(latents: Array) -> Array:
        return host(xp.sum((rows.masks.T @ latents) * placed, axis=1))

    def apply(v: Array) -> Array:
        inside = rows.masks @ put(W * v[:, None], rows.values)
        return rows.feature_counts * v - scatter(times(inverses, inside) * rows.weights[:, None])

    deviations = rows.values * xp.sqrt(rows.weights)[:, None]
    return apply, host(xp.sum(deviations, axis=0)) - scatter(times(inverses, deviations @ placed))


def missing_square(rows: DeviceMaskedRows, W: Array, sigma2: float) -> float:
    """Sum over missing values of E[(x - mean)^2 | observed values]."""
    xp, (n, D), d = namespace(rows.values), rows.values.shape, W.shape[1]
    placed, inverses, _, _, Z = device_latents(rows, W, sigma2)
    second = Z[:, :, None] * Z[:, None, :] + float(sigma2) * inverses * rows.weights[:, None, None]
    products = pair_products(placed)
    missing = xp.sum(products, axis=0) - rows.masks @ products  # sum over missing features of w_j w_j'
    return float(xp.sum(xp.reshape(second, (n, d * d)) * missing)) + sigma2 * (rows.weight * D - rows.cells)


def second_moment(rows: DeviceMaskedRows, U: Array, W: Array, sigma2: float) -> Array:
    """sum_i E[U'(x_i - mean)(x_i - mean)'U | observed values], shape (k, k)."""
    xp, n, d, k = namespace(rows.values), rows.values.shape[0], W.shape[1], U.shape[1]
    placed, inverses, _, _, Z = device_latents(rows, W, sigma2)
    directions = put(U, rows.values)
    # G[i, k] = W_h'u_h of row i and direction k, shape (n, k, d): the total minus the observed part.
    products = xp.reshape(directions[:, :, None] * placed[:, None, :], (U.shape[0], k * d))
    G = xp.reshape(xp.sum(products, axis=0) - rows.masks @ products, (n, k, d))
    weighted = inverses * rows.weights[:, None, None]
    along = rows.values @ directions + xp.sum(G * Z[:, None, :], axis=2)
    left, right = (xp.reshape(xp.permute_dims(part, (1, 0, 2)), (k, n * d)) for part in (G @ weighted, G))
    found = host(along.T @ along + float(sigma2) * (left @ right.T))
    return np.asarray(found + sigma2 * (U.T * (rows.weight - rows.feature_counts)) @ U)
