"""The objective of PCPCA and the loss of CPCA, from the contrast of the groups (F5) or from masked rows (F9)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._array import Array
from .gaussian import LatentGaussian, masked_inverses, packed_products, triangle, unpack
from .moments import Contrast, MaskedGroup, MaskedRows, Moments


def relative_log_likelihood(contrast: Contrast, W: Array, CW: Array, sigma2: float) -> float:
    """log p(X | W, sigma2) - gamma_raw log p(Y | W, sigma2), each group about its own mean (F5).

    l = -N/2 (D log 2 pi + log|A|) - tr(A^-1 C) / 2, with A = W W' + sigma2 I.

    Parameters
    ----------
    contrast : Contrast
    W, CW : (size, d) ndarray
        Loadings in the coordinates of the contrast, and C times them.
    sigma2 : float, positive
    """
    size, D = W.shape[0], contrast.n_features
    model = LatentGaussian(np.zeros(size), W, sigma2)
    # Coordinates outside the reduced ones, if any, add log sigma2 each.
    log_determinant = model.log_determinant() + (D - size) * np.log(sigma2)
    quadratic = (contrast.trace - np.sum(model.projection() * CW)) / sigma2  # tr(A^-1 C), A^-1 as in F6
    return float(-0.5 * contrast.N * (D * np.log(2 * np.pi) + log_determinant) - 0.5 * quadratic)


def contrastive_variance(V: Array, CV: Array) -> float:
    """tr V'C V, CPCA's objective, for V with orthonormal columns, shape (size, d)."""
    return float(np.sum(V * CV))


def reconstruction_loss(contrast: Contrast, V: Array, CV: Array) -> float:
    """CPCA's geometric objective (Theorem 1 of the paper), for V with orthonormal columns.

    (1/n) sum |x - V V'x|^2 - gamma' (1/m) sum |y - V V'y|^2 = (tr C - tr V'C V) / n.
    """
    return float(least_losses(contrast, np.array([contrastive_variance(V, CV)]))[-1])


def least_losses(contrast: Contrast, values: Array) -> Array:
    """(tr C - sum_{i<=k} values_i) / n for k = 0, 1, ..., shape (len(values) + 1,).

    For the largest eigenvalues of C these are the least reconstruction losses with k components (the Corollary).
    """
    return (contrast.trace - np.concatenate([[0.0], np.cumsum(values)])) / contrast.terms[0][1].weight


@dataclass(frozen=True)
class Evaluation:
    """The objective and its gradient at (W, sigma2).

    Attributes
    ----------
    value : float
    gradient_W : ndarray of shape (D, d)
    gradient_sigma2 : float
    quadratics : list of float
        Sum of x'A^-1 x over the rows of each group.
    """

    value: float
    gradient_W: Array
    gradient_sigma2: float
    quadratics: list[float]


def observed_log_likelihood(
    terms: list[tuple[float, MaskedGroup]], W: Array, sigma2: float, *, determinants: bool = True
) -> Evaluation:
    """The relative log-likelihood of the observed values, with its gradient (F9).

    l = sum_k c_k sum_i log N(x_o; mean_o, A_o) over groups k with coefficients c_k and their rows i, o being
    the observed features of a row and A_o that part of A = W W' + sigma2 I.

    Parameters
    ----------
    terms : list of (coefficient, MaskedGroup)
    W : (D, d) ndarray
    sigma2 : float, positive
    determinants : bool, default True
        False leaves the terms log|A_o| (and 2 pi) out: -1/2 sum_k c_k sum_i x_o'A_o^-1 x_o remains.
    """
    value, gradient_W, gradient_sigma2 = 0.0, np.zeros(W.shape), 0.0
    quadratics = []
    for coefficient, group in terms:
        parts = []
        if group.complete is not None:
            parts.append(moments_log_likelihood(group.complete, W, sigma2, float(determinants)))
        if group.rows is not None:
            parts.append(_of_rows(group.rows, W, sigma2, float(determinants)))
        value += coefficient * sum(part[0] for part in parts)
        gradient_W += coefficient * sum(part[1] for part in parts)
        gradient_sigma2 += coefficient * sum(part[2] for part in parts)
        quadratics.append(sum(part[3] for part in parts))
    return Evaluation(value, gradient_W, gradient_sigma2, quadratics)


def observed_latents(rows: MaskedRows, W: Array, sigma2: float) -> tuple[Array, Array, Array, Array]:
    """M^-1 (d, d, P) and log|M| (P,) of each pattern, W_o'x_o and z = M^-1 W_o'x_o of each row, (d, n) both (F9)."""
    inverses, log_determinants = masked_inverses(W, sigma2, rows.masks)
    B = (rows.values @ W).T
    return inverses, log_determinants, B, np.einsum("ijn,jn->in", rows.by_row(inverses), B)


def _of_rows(rows: MaskedRows, W: Array, sigma2: float, h: float) -> tuple[float, Array, float, float]:
    """(l, dl/dW, dl/dsigma2, q) of masked rows, q = sum x_o'A_o^-1 x_o; `h` is 1, or 0 to leave determinants out.

    With M = sigma2 I + W_o'W_o and z = M^-1 W_o'x_o, q = (|x_o|^2 - z'W_o'x_o) / sigma2, |A_o^-1 x_o|^2 =
    (q - |z|^2) / sigma2, and row j of dl/dW is sum_i x_ij z_i / sigma2 - H_j w_j with
    H_j = sum_i (z_i z_i' / sigma2 + h M_i^-1) over the rows in which feature j is observed: products of masks and
    values with (n, d)-sized arrays only.
    """
    d = W.shape[1]
    inverses, log_determinants, B, Z = observed_latents(rows, W, sigma2)
    q = (rows.square - float(np.vdot(B, Z))) / sigma2
    length = float(np.vdot(Z, Z))
    spread = rows.by_pattern(packed_products(Z, Z)) / sigma2
    if h:
        upper, right, _ = triangle(d)
        spread += rows.counts * inverses[upper, right]
    H = unpack(spread @ rows.masks, d)
    gradient_W = (Z @ rows.values / sigma2 - np.einsum("klj,jl->kj", H, W)).T
    traces = np.einsum("iip->p", inverses)
    gradient_sigma2 = 0.5 * ((q - length) / sigma2 - h * float(rows.counts @ ((rows.observed - d) / sigma2 + traces)))
    constant = rows.observed * np.log(2 * np.pi) + (rows.observed - d) * np.log(sigma2) + log_determinants
    return -0.5 * (h * float(rows.counts @ constant) + q), gradient_W, gradient_sigma2, q


def moments_log_likelihood(
    moments: Moments, W: Array, sigma2: float, h: float = 1.0
) -> tuple[float, Array, float, float]:
    """(l, dl/dW, dl/dsigma2, q) of complete rows from their scatter S alone, with P = W M^-1 (F6).

    q = tr(A^-1 S) = (tr S - tr W'S P) / sigma2, tr(A^-1 S A^-1) = (q - tr P'S P) / sigma2,
    dl/dW = A^-1 S P - h n P.
    """
    D, d = W.shape
    model = LatentGaussian(moments.mean, W, sigma2)
    P, n = model.projection(), moments.weight
    SP = moments.scatter.dense() @ P
    q = (moments.scatter.trace - float(np.sum(W * SP))) / sigma2
    gradient_W = (SP - P @ (W.T @ SP)) / sigma2 - h * n * P
    trace = ((D - d) + sigma2 * float(np.trace(np.linalg.inv(model.M)))) / sigma2  # tr A^-1
    gradient_sigma2 = 0.5 * ((q - float(np.sum(P * SP))) / sigma2 - h * n * trace)
    return -0.5 * (h * n * (D * np.log(2 * np.pi) + model.log_determinant()) + q), gradient_W, gradient_sigma2, q
