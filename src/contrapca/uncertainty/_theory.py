"""The theory of the Gibbs posterior as tools: risk, its minimiser and divergence from it (F14).

Foreground and background rows come from a mixture with weights beta and 1 - beta and covariances C_F and C_B; gamma is
raw here, as in the paper. With C = beta C_F - (1 - beta) gamma C_B and N = beta - (1 - beta) gamma,

    R(W, sigma2) = N / 2 log|A| + tr(A^-1 C) / 2 (+ a constant),   A = W W' + sigma2 I.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._util.arrays import Array
from ..gaussian import LatentGaussian
from ..solvers import closed_form


def _population(foreground: Any, background: Any, beta: float, gamma: float) -> tuple[float, Array]:
    """(N, C) of the population."""
    if not 0 < beta <= 1 or gamma < 0:
        raise ValueError(f"beta={beta} must be in (0, 1] and gamma={gamma} 0 or more.")
    N = beta - (1 - beta) * gamma
    if N <= 0:
        raise ValueError(f"gamma={gamma} must be below beta / (1 - beta) = {beta / (1 - beta):.4g}.")
    C_F, C_B = np.asarray(foreground, dtype=np.float64), np.asarray(background, dtype=np.float64)
    return N, beta * C_F - (1 - beta) * gamma * C_B


def risk(W: Any, sigma2: Any, foreground: Any, background: Any, *, beta: float, gamma: float) -> Array:
    """The risk of parameters, less its constant (the paper's equation for the PCPCA risk).

    Parameters
    ----------
    W : array-like of shape (..., D, d)
    sigma2 : array-like of shape (...)
    foreground, background : array-like of shape (D, D)
        Population covariances.
    beta : float
        Share of the foreground in the population.
    gamma : float, raw

    Returns
    -------
    ndarray of shape (...)
    """
    N, C = _population(foreground, background, beta, gamma)
    W, sigma2 = np.asarray(W, dtype=np.float64), np.asarray(sigma2, dtype=np.float64)
    D, d = W.shape[-2:]
    models = [
        LatentGaussian(np.zeros(D), w, float(s)) for w, s in zip(W.reshape(-1, D, d), sigma2.ravel(), strict=True)
    ]
    constant = 0.5 * N * D * np.log(2 * np.pi)
    found = [
        0.5 * model.trace_product(float(np.trace(C)), C @ model.W) - N * model.log_normaliser() for model in models
    ]
    return (np.array(found) - constant).reshape(sigma2.shape)


def risk_minimizer(foreground: Any, background: Any, d: int, *, beta: float, gamma: float) -> tuple[Array, float]:
    """(W, sigma2) of least risk: F2 with the population's N and C.

    sigma2 = sum_{i>d} lambda_i / (N (D - d)), W = U_d (Lambda_d / N - sigma2 I)^(1/2). (The paper's formula for sigma2
    lacks the division by N.)

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import divergence, risk_minimizer
    >>> foreground, background = np.diag([5.0, 1.0, 1.0]), np.eye(3)
    >>> W, sigma2 = risk_minimizer(foreground, background, 1, beta=0.5, gamma=0.5)
    >>> (W.ravel() ** 2).round(6), sigma2  # lambda_1 / N - sigma2 = 9 - 1
    (array([8., 0., 0.]), 1.0)
    >>> divergence(W, sigma2, foreground, background, beta=0.5, gamma=0.5).round(6)
    np.float64(0.0)
    """
    N, C = _population(foreground, background, beta, gamma)
    values, U = np.linalg.eigh(C)
    values, U = values[::-1], U[:, ::-1]
    D = values.size
    if not 1 <= d < D:
        raise ValueError(f"d={d} must be at least 1 and less than the number of features, {D}.")
    noise = float(values[d:].sum())
    if noise <= 0:
        raise ValueError(
            f"gamma={gamma} is too strong for these covariances: the {D - d} smallest eigenvalues of C add up to "
            f"{noise:.4g}, so that the risk has no minimum. Use a smaller gamma or d."
        )
    lengths, sigma2 = closed_form(values[:d], noise, N, D)
    return U[:, :d] * lengths, sigma2


def divergence(W: Any, sigma2: Any, foreground: Any, background: Any, *, beta: float, gamma: float) -> Array:
    """(R(theta) - R(theta*))^(1/2), the risk divergence in which posteriors contract at rate n^(-1/2), shape (...)."""
    d = np.asarray(W).shape[-1]
    best = risk_minimizer(foreground, background, d, beta=beta, gamma=gamma)
    excess = risk(W, sigma2, foreground, background, beta=beta, gamma=gamma) - risk(
        *best, foreground, background, beta=beta, gamma=gamma
    )
    return np.sqrt(np.maximum(excess, 0.0))
