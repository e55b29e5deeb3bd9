"""The likelihood of the observed values of incomplete rows (F9)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._util.arrays import Array
from .._util.devices import host, namespace, put
from ..gaussian import device_inverses, log_normaliser, masked_inverses, times, triangle, unpack
from ..moments import DeviceMaskedRows, MaskedBlocks, MaskedGroup, MaskedRows
from ._complete import Evaluation, moments_log_likelihood


def masked_log_likelihood(
    terms: list[tuple[float, MaskedGroup]], W: Array, sigma2: float, *, determinants: bool = True
) -> Evaluation:
    """The relative log-likelihood of the observed values, with its gradient (F9).

    l = sum_k c_k sum_i log N(x_o; mean_o, A_o) over groups k with coefficients c_k and their rows i, where o are the
    observed features of a row and A_o that part of A = W W' + sigma2 I.

    Parameters
    ----------
    terms : list of (coefficient, MaskedGroup)
    W : (D, d) ndarray
    sigma2 : float, positive
    determinants : bool, default True
        False omits the terms log|A_o| (and 2 pi): -1/2 sum_k c_k sum_i x_o'A_o^-1 x_o remains.
    """
    # In latents along the principal axes of W, long and short columns do not mix: M can then be inverted accurately
    # even if features differ by many orders of magnitude.
    U, lengths, rotation = np.linalg.svd(W, full_matrices=False)
    W = U * lengths
    value, gradient_W, gradient_sigma2 = 0.0, np.zeros(W.shape), 0.0
    quadratics = []
    for coefficient, group in terms:
        parts = []
        if group.complete is not None:
            parts.append(moments_log_likelihood(group.complete, W, sigma2, determinants=determinants))
        if group.rows is not None:
            of_rows: Any = OF_ROWS[type(group.rows)]
            parts.append(of_rows(group.rows, W, sigma2, determinants=determinants))
        value += coefficient * sum(part.value for part in parts)
        gradient_W += coefficient * sum(part.gradient_W for part in parts)
        gradient_sigma2 += coefficient * sum(part.gradient_sigma2 for part in parts)
        quadratics.append(sum(part.quadratics[0] for part in parts))
    return Evaluation(value, gradient_W @ rotation, gradient_sigma2, quadratics)


def masked_latents(rows: MaskedRows, W: Array, sigma2: float) -> tuple[Array, Array, Array]:
    """M^-1 (d, d, P) and log|M| (P,) of each pattern, and z = M^-1 W_o'x_o of each row, (d, n) (F9)."""
    inverses, log_determinants = masked_inverses(W, sigma2, rows.masks)
    Z = np.einsum("ijn,jn->in", rows.by_row(inverses), (rows.values @ W).T)
    return inverses, log_determinants, Z


def _of_rows(rows: MaskedRows, W: Array, sigma2: float, *, determinants: bool) -> Evaluation:
    """The objective of masked rows, q = sum x_o'A_o^-1 x_o.

    With M = sigma2 I + W_o'W_o, z = M^-1 W_o'x_o and the residual r = x_o - W_o z: A_o^-1 x_o = r / sigma2, q =
    |r|^2 / sigma2 + |z|^2, and row j of dl/dW is sum_i r_ij z_i / sigma2 - H_j w_j, where H_j = sum_i M_i^-1 over the
    rows in which feature j is observed comes from the determinants. Nothing cancels, however small sigma2 is.
    """
    d = W.shape[1]
    inverses, log_determinants, Z = masked_latents(rows, W, sigma2)
    square, products = rows.residual_sums(Z, W)
    square /= sigma2
    q = square + float(np.vdot(Z, Z))
    gradient_W = (products / sigma2).T
    normaliser = traces = 0.0
    if determinants:
        upper, right, _ = triangle(d)
        H = unpack(rows.pattern_weights * inverses[upper, right] @ rows.masks, d)
        gradient_W -= np.einsum("klj,jl->jk", H, W)
        normaliser = float(rows.pattern_weights @ log_normaliser(rows.value_counts, d, sigma2, log_determinants))
        # tr A_o^-1 of each pattern
        traces = float(rows.pattern_weights @ ((rows.value_counts - d) / sigma2 + np.einsum("iip->p", inverses)))
    gradient_sigma2 = 0.5 * (square / sigma2 - traces)
    return Evaluation(normaliser - 0.5 * q, gradient_W, gradient_sigma2, [q])


def device_latents(rows: DeviceMaskedRows, W: Array, sigma2: float) -> tuple[Any, Any, Any, Any, Any]:
    """W, M^-1 (n, d, d), log|M| (n,), W_o'x_o and z = M^-1 W_o'x_o (n, d), all on the device of the rows (F9)."""
    placed = put(W, rows.values)
    inverses, log_determinants = device_inverses(placed, sigma2, rows.masks)
    B = rows.values @ placed
    return placed, inverses, log_determinants, B, times(inverses, B)


def _of_device_rows(rows: DeviceMaskedRows, W: Array, sigma2: float, *, determinants: bool) -> Evaluation:
    """The same on a device: products with the values and the masks; gradient and numbers leave it."""
    xp, sigma2, (n, D), d = namespace(rows.values), float(sigma2), rows.values.shape, W.shape[1]
    placed, inverses, log_determinants, _, Z = device_latents(rows, W, sigma2)
    residuals = rows.values - (Z @ placed.T) * rows.masks
    gradient_W = residuals.T @ Z / sigma2
    traces = xp.sum(xp.linalg.diagonal(inverses), axis=1)
    weighted = [rows.weights @ log_determinants, rows.weights @ traces]
    square, length, log_M, total = host(xp.stack([xp.sum(residuals**2), xp.sum(Z * Z), *weighted])).tolist()
    q = square / sigma2 + length
    normaliser = 0.0
    if determinants:  # log_normaliser is linear in all but sigma2, so the sums over rows will do
        H = xp.reshape(rows.masks.T @ xp.reshape(inverses * rows.weights[:, None, None], (n, d * d)), (D, d, d))
        gradient_W = gradient_W - times(H, placed)
        normaliser = float(log_normaliser(rows.cells, rows.weight * d, sigma2, log_M))
        total += (rows.cells - rows.weight * d) / sigma2
    gradient_sigma2 = 0.5 * (square / sigma2**2 - (total if determinants else 0.0))
    return Evaluation(normaliser - 0.5 * q, host(gradient_W), gradient_sigma2, [q])


def _of_blocks(blocks: MaskedBlocks, W: Array, sigma2: float, *, determinants: bool) -> Evaluation:
    """The same of rows on a cluster: every block's is computed there, and their sum comes back."""

    def of_block(rows: MaskedRows) -> tuple[float, Array, float, float]:
        found = _of_rows(rows, W, sigma2, determinants=determinants)
        return found.value, found.gradient_W, found.gradient_sigma2, found.quadratics[0]

    value, gradient_W, gradient_sigma2, q = blocks.total(of_block)
    return Evaluation(value, gradient_W, gradient_sigma2, [q])


OF_ROWS = {MaskedRows: _of_rows, DeviceMaskedRows: _of_device_rows, MaskedBlocks: _of_blocks}
