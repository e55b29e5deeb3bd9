"""Objectives of complete rows: functions of only the contrast or one group's moments (F5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._util.arrays import Array
from ..gaussian import LatentGaussian
from ..moments import Contrast, Moments


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
    model = LatentGaussian(np.zeros(W.shape[0]), W, sigma2)
    normaliser = model.log_normaliser(contrast.n_features)
    return contrast.N * normaliser - 0.5 * model.trace_product(contrast.trace, CW)


def contrastive_variance(V: Array, CV: Array) -> float:
    """tr V'C V, CPCA's objective, for V with orthonormal columns, shape (size, d)."""
    return float(np.sum(V * CV))


@dataclass(frozen=True)
class Evaluation:
    """An objective and its gradient at (W, sigma2).

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


def moments_log_likelihood(moments: Moments, W: Array, sigma2: float, *, determinants: bool = True) -> Evaluation:
    """The log-likelihood of complete rows from only their scatter S, with P = W M^-1 (F6).

    q = tr(A^-1 S), tr(A^-1 S A^-1) = (q - tr P'S P) / sigma2, dl/dW = A^-1 S P - n P. Without `determinants` the terms
    log|A| (and 2 pi) are left out.
    """
    D, d = W.shape
    model = LatentGaussian(moments.mean, W, sigma2)
    P, n = model.projection(), moments.weight if determinants else 0.0
    SP = moments.scatter.matmul(P)
    q = (moments.scatter.trace - float(np.sum(W * SP))) / sigma2
    gradient_W = (SP - P @ (W.T @ SP)) / sigma2 - n * P
    trace = ((D - d) + float(np.trace(model.latent_covariance()))) / sigma2  # tr A^-1
    gradient_sigma2 = 0.5 * ((q - float(np.sum(P * SP))) / sigma2 - n * trace)
    return Evaluation(n * model.log_normaliser() - 0.5 * q, gradient_W, gradient_sigma2, [q])
