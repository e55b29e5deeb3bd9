"""Tools from the paper's theory: the risk of the Gibbs posterior and its minimiser (docs/math.md, F14).

Foreground and background rows come from a mixture with weights beta and 1 - beta and covariances C_F and C_B; gamma is
raw here, as in the paper. With C = beta C_F - (1 - beta) gamma C_B and N = beta - (1 - beta) gamma,

    R(W, sigma2) = N / 2 log|A| + tr(A^-1 C) / 2 (+ a constant),   A = W W' + sigma2 I.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def _population(foreground: Any, background: Any, beta: float, gamma: float) -> tuple[float, Any]:
    """(N, C) of the population."""
    if not 0 < beta <= 1 or gamma < 0:
        raise ValueError(f"beta={beta} must be in (0, 1] and gamma={gamma} 0 or more.")
    N = beta - (1 - beta) * gamma
    if N <= 0:
        raise ValueError(f"gamma={gamma} must be below beta / (1 - beta) = {beta / (1 - beta):.4g}.")
    return N, beta * np.asarray(foreground, dtype=float) - (1 - beta) * gamma * np.asarray(background, dtype=float)


def risk(W: Any, sigma2: Any, foreground: Any, background: Any, *, beta: float, gamma: float) -> Any:
    """The risk of parameters without its constant, for W (..., D, d), sigma2 (...) and covariances (D, D)."""
    N, C = _population(foreground, background, beta, gamma)
    W, sigma2 = np.asarray(W, dtype=float), np.asarray(sigma2, dtype=float)
    A = W @ np.swapaxes(W, -1, -2) + sigma2[..., None, None] * np.eye(len(C))
    trace = np.trace(np.linalg.solve(A, np.broadcast_to(C, A.shape)), axis1=-2, axis2=-1)
    return 0.5 * (N * np.linalg.slogdet(A)[1] + trace)


def risk_minimizer(foreground: Any, background: Any, d: int, *, beta: float, gamma: float) -> tuple[Any, float]:
    """The (W, sigma2) that minimise the risk: F2 with the population's N and C.

    sigma2 = sum_{i>d} lambda_i / (N (D - d)), W = U_d (Lambda_d / N - sigma2 I)^(1/2). (The paper's formula for sigma2
    lacks the division by N.)
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
            f"gamma={gamma} is too large for these covariances: the {D - d} smallest eigenvalues of C add up to "
            f"{noise:.4g}, so the risk has no minimum. Use a smaller gamma or d."
        )
    sigma2 = noise / (N * (D - d))
    return U[:, :d] * np.sqrt(np.maximum(values[:d] / N - sigma2, 0)), sigma2


def divergence(W: Any, sigma2: Any, foreground: Any, background: Any, *, beta: float, gamma: float) -> Any:
    """(R(theta) - R(theta*))^(1/2), the risk divergence in which posteriors contract at rate n^(-1/2), shape (...)."""
    best = risk_minimizer(foreground, background, np.shape(W)[-1], beta=beta, gamma=gamma)
    excess = risk(W, sigma2, foreground, background, beta=beta, gamma=gamma) - risk(
        *best, foreground, background, beta=beta, gamma=gamma
    )
    return np.sqrt(np.maximum(excess, 0.0))
