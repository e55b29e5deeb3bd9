"""Mean and variances of a group with holes, given the model."""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from .._array import Array
from ..gaussian import LatentGaussian, masked_inverses, packed_products, triangle
from ..moments import MaskedGroup
from ..objective import observed_latents

CG_TOLERANCE, CG_STEPS = 1e-10, 1000


def gls_mean(group: MaskedGroup, W: Array, sigma2: float) -> Array:
    """The generalised-least-squares mean of a group given A = W W' + sigma2 I, shape (D,).

    It solves sum_i L_i'A_i^-1 L_i (mean) = sum_i L_i'A_i^-1 x_i, L_i picking the observed features of row i, and is
    unbiased also where the holes depend on observed values. By conjugate gradients: nothing D x D is formed.
    """
    projection = LatentGaussian(group.mean, W, sigma2).projection()
    parts = []  # calls v -> sum_i L_i'A_i^-1 L_i v sigma2
    right = np.zeros(group.mean.size)  # sum_i L_i'A_i^-1 (x_i - mean) sigma2
    if group.complete is not None:
        complete = group.complete

        def of_complete(v: Array) -> Array:
            return complete.weight * (v - projection @ (W.T @ v))

        parts.append(of_complete)
        right += of_complete(complete.mean - group.mean)
    if group.rows is not None:
        rows = group.rows
        inverses, _ = masked_inverses(W, sigma2, rows.masks)
        often = rows.counts @ rows.masks

        def scatter(latents: Array) -> Array:
            """sum_p mask_p (W latent_p), from latents (d, P)."""
            return np.einsum("kj,jk->j", latents @ rows.masks, W)

        def of_rows(v: Array) -> Array:
            inside = W.T * v @ rows.masks.T  # (d, P)
            return often * v - scatter(np.einsum("ijp,jp->ip", inverses, inside) * rows.counts)

        parts.append(of_rows)
        sums = rows.by_pattern(rows.values.T)  # (D, P)
        right += sums.sum(axis=1) - scatter(np.einsum("ijp,jp->ip", inverses, W.T @ sums))
    D = group.mean.size
    system = LinearOperator((D, D), matvec=lambda v: np.sum([part(v.ravel()) for part in parts], axis=0), dtype=float)
    scaling = LinearOperator((D, D), matvec=lambda v: v.ravel() / group.observed, dtype=float)
    shift, _ = cg(system, right, rtol=CG_TOLERANCE, maxiter=CG_STEPS, M=scaling)
    return group.mean + shift


def expected_total_variance(group: MaskedGroup, W: Array, sigma2: float) -> float:
    """E[|x - mean|^2 | observed values] under the model, averaged over rows.

    Observed squares count as they are. A hole adds w_j'E[z z'] w_j + sigma2; over the holes of a pattern the first is
    the inner product of sum_j w_j w_j' and the sum of E[z z'] over its rows.
    """
    total = float(group.squares.sum())
    if group.rows is not None:
        rows, d = group.rows, W.shape[1]
        inverses, _, _, Z = observed_latents(rows, W, sigma2)
        upper, right, _ = triangle(d)
        second = rows.by_pattern(packed_products(Z, Z)) + sigma2 * rows.counts * inverses[upper, right]
        loadings = packed_products(W.T, W.T)
        missing = loadings.sum(axis=1)[:, None] - loadings @ rows.masks.T  # sum over holes of w_j w_j', packed
        twice = np.where(upper == right, 1.0, 2.0)[:, None]  # entries off the diagonal stand for two
        holes = rows.counts @ (group.mean.size - rows.observed)
        total += float(np.sum(twice * second * missing)) + sigma2 * float(holes)
    return total / group.weight


def expected_variances(group: MaskedGroup, U: Array, W: Array, sigma2: float) -> Array:
    """E[(u'(x - mean))^2 | observed values] under the model, averaged over rows, for each column u of U, shape (d,).

    For complete rows that is the variance itself. For others the unobserved part is Gaussian given the observed one
    (F11): mean u_h'W_h z, variance sigma2 (u_h'W_h M^-1 W_h'u_h + |u_h|^2), h being the holes.
    """
    total = np.zeros(U.shape[1])
    if group.complete is not None:
        total += np.sum(U * (group.complete.scatter.dense() @ U), axis=0)
    if group.rows is not None:
        rows, d = group.rows, W.shape[1]
        inverses, _, _, Z = observed_latents(rows, W, sigma2)
        # G[p, k] = W_h'u_h of pattern p and direction k, shape (P, k, d): all less the observed part.
        products = (U[:, :, None] * W[:, None, :]).reshape(U.shape[0], -1)
        G = (products.sum(axis=0) - rows.masks @ products).reshape(-1, U.shape[1], d)
        along = rows.values @ U + np.einsum("nki,in->nk", rows.by_row(G.transpose(1, 2, 0)).transpose(2, 0, 1), Z)
        total += np.sum(along**2, axis=0)
        spread = np.einsum("pki,ijp,pkj->pk", G, inverses, G, optimize=True) + (1 - rows.masks @ U**2)
        total += sigma2 * (rows.counts @ spread)
    return total / group.weight
