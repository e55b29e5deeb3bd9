"""The objective of PCPCA and the loss of CPCA, from the contrast of the groups alone (F5)."""

from __future__ import annotations

import numpy as np

from ._array import Array
from .gaussian import LatentGaussian
from .moments import Contrast


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
