"""The objective of PCPCA and the loss of CPCA, from the contrast of the groups alone (F5)."""

from __future__ import annotations

import numpy as np

from ._array import Array
from .gaussian import LatentGaussian
from .moments import Contrast


def relative_log_likelihood(contrast: Contrast, W: Array, sigma2: float) -> float:
    """log p(X | W, sigma2) - gamma_raw log p(Y | W, sigma2), each group about its own mean (F5).

    l = -N/2 (D log 2 pi + log|A|) - tr(A^-1 C) / 2, with A = W W' + sigma2 I.

    Parameters
    ----------
    contrast : Contrast
    W : (size, d) ndarray, in the coordinates of the contrast
    sigma2 : float, positive
    """
    size = W.shape[0]
    model = LatentGaussian(np.zeros(size), W, sigma2)
    # Coordinates outside the reduced ones, if any, add log sigma2 each.
    log_determinant = model.log_determinant() + (contrast.n_features - size) * np.log(sigma2)
    inner = np.sum(model.projection() * contrast.matmat(W))  # tr(M^-1 W'C W)
    quadratic = (contrast.trace - inner) / sigma2  # tr(A^-1 C)
    return float(-0.5 * contrast.N * (contrast.n_features * np.log(2 * np.pi) + log_determinant) - 0.5 * quadratic)


def contrastive_variance(contrast: Contrast, V: Array) -> float:
    """tr V'C V, CPCA's objective, for V with orthonormal columns, shape (size, d)."""
    return float(np.sum(V * contrast.matmat(V)))


def reconstruction_loss(contrast: Contrast, V: Array) -> float:
    """CPCA's geometric objective (Theorem 1 of the paper), for V with orthonormal columns.

    (1/n) sum |x - V V'x|^2 - gamma' (1/m) sum |y - V V'y|^2 = (tr C - tr V'C V) / n.
    """
    return (contrast.trace - contrastive_variance(contrast, V)) / contrast.terms[0][1].weight
