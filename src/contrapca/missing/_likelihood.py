"""The likelihood of the observed values of incomplete rows (F9)."""

from __future__ import annotations

from functools import partial

import numpy as np

from .._util.arrays import Array
from ..contrast import Evaluation, log_normaliser, masked_inverses, moments_log_likelihood, triangle, unpack
from ._rows import MaskedGroup, MaskedRows


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
            of_rows = partial(_of_rows, W=W, sigma2=sigma2, determinants=determinants)
            of_value, of_W, of_sigma2, q = group.rows.total(of_rows)
            parts.append(Evaluation(of_value, of_W, of_sigma2, [q]))
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


def _of_rows(rows: MaskedRows, W: Array, sigma2: float, *, determinants: bool) -> tuple[float, Array, float, float]:
    """The objective of masked rows, its gradients for W and sigma2, and q = sum x_o'A_o^-1 x_o.

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
    return normaliser - 0.5 * q, gradient_W, gradient_sigma2, q
