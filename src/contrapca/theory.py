"""Tools from the paper's theory: the risk of the Gibbs posterior (F14), and CPCA's reconstruction loss.

Risk: foreground and background rows come from a mixture with weights beta and 1 - beta and covariances C_F and C_B;
gamma is raw here, as in the paper. With C = beta C_F - (1 - beta) gamma C_B and N = beta - (1 - beta) gamma,

    R(W, sigma2) = N / 2 log|A| + tr(A^-1 C) / 2 (+ a constant),   A = W W' + sigma2 I.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from ._checks import check_fixed_gamma, check_n_components
from ._util.arrays import Array
from ._util.devices import host
from .gaussian import LatentGaussian
from .groups import Groups
from .moments import Complete, Moments, collect, contrast, read
from .objectives import least_losses
from .objectives import reconstruction_loss as contrast_loss
from .solvers import closed_form, top_eigenpairs

__all__ = ["divergence", "loss_by_components", "reconstruction_loss", "risk", "risk_minimizer"]


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
    """The risk of parameters without its constant (the paper's equation for the PCPCA risk).

    Parameters
    ----------
    W : array-like of shape (..., D, d)
    sigma2 : array-like of shape (...)
    foreground, background : array-like of shape (D, D)
        Population covariances.
    beta : float
        Fraction of foreground rows in the population.
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
    """The (W, sigma2) that minimise the risk: F2 with the population's N and C.

    sigma2 = sum_{i>d} lambda_i / (N (D - d)), W = U_d (Lambda_d / N - sigma2 I)^(1/2). (The paper's formula for sigma2
    lacks the division by N.)

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca.theory import divergence, risk_minimizer
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
            f"gamma={gamma} is too large for these covariances: the {D - d} smallest eigenvalues of C add up to "
            f"{noise:.4g}, so the risk has no minimum. Use a smaller gamma or d."
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


def _groups(X: Any, background: Any, d: int, solver: str, name: str) -> Groups[Moments]:
    tables = read(X, None, background, name=name, needs_background=True).with_one_background(name)
    data = collect(tables, check_n_components(d, tables.n_features), None, solver)
    assert isinstance(data, Complete)
    return data.groups


def reconstruction_loss(X: Any, components: Any, *, background: Any, gamma: float) -> float:
    """CPCA's geometric objective (the paper's Theorem 1) for any orthonormal components.

    ``(1/n) sum |x - V V'x|^2 - gamma (1/m) sum |y - V V'y|^2``, each group about its own mean.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix of shape (n, D)
    components : array-like of shape (d, D), orthonormal rows
    background : array-like, data frame or sparse matrix of shape (m, D)
    gamma : float

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import CPCA
    >>> from contrapca.theory import reconstruction_loss
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(50, 4)) * [3, 2, 1, 1], rng.normal(size=(40, 4))
    >>> model = CPCA(1, gamma=0.5).fit(X, background=Y)
    >>> loss = reconstruction_loss(X, model.components_, background=Y, gamma=0.5)
    >>> np.isclose(loss, model.reconstruction_error_)
    np.True_
    >>> bool(loss < reconstruction_loss(X, np.eye(4)[3:], background=Y, gamma=0.5))  # the last feature is worse
    True
    """
    V = check_array(host(components), dtype=np.float64).T
    if not np.allclose(V.T @ V, np.eye(V.shape[1]), atol=1e-6):
        raise ValueError("components must have orthonormal rows, like components_ of a fitted estimator.")
    C = contrast(_groups(X, background, 1, "lanczos", "reconstruction_loss"), check_fixed_gamma(gamma))
    if V.shape[0] != C.n_features:
        raise ValueError(f"components have {V.shape[0]} features, but the tables have {C.n_features}.")
    return contrast_loss(C, V, C.matmul(V))


def loss_by_components(X: Any, *, background: Any, gamma: float, max_components: int) -> Array:
    """The smallest reconstruction loss with 0, 1, ..., `max_components` components (the paper's Corollary).

    The loss with d components is (tr C - sum_{i<=d} lambda_i) / n. Another component lowers it only if its eigenvalue
    is positive, so the curve rises again when a strong contrast leaves no more directions.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix of shape (n, D)
    background : array-like, data frame or sparse matrix of shape (m, D)
    gamma : float
    max_components : int, less than D

    Returns
    -------
    loss : ndarray of shape (max_components + 1,)

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca.theory import loss_by_components
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(50, 4)) * [3, 2, 1, 1], rng.normal(size=(40, 4))
    >>> loss = loss_by_components(X, background=Y, gamma=0.5, max_components=3)
    >>> loss.shape, bool(np.all(np.diff(loss) < 0))
    ((4,), True)
    """
    C = contrast(_groups(X, background, max_components, "auto", "loss_by_components"), check_fixed_gamma(gamma))
    return least_losses(C, top_eigenpairs(C, max_components).values)
