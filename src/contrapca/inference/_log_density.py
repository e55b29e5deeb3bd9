"""log density and gradient of the Gibbs posterior, compiled. Imported only where numba is installed."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._util.arrays import Array
from .._util.optional import require

numba = require("numba", extra="bayes")


@numba.njit(cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def log_density(x: Array, values: Array, N: float, w: float, sigma2_min: float, d: int) -> Any:
    """w l + log(sigma2 - sigma2_min) at x = (V, log(sigma2 - sigma2_min)), and its gradient; O(D d^2) (F12).

    With G = V'V, H = V'Lambda V, M = s I + G and K = M^-1 H M^-1 (s = sigma2): log|A| = (D - d) log s + log|M|,
    q = tr(A^-1 C) = (tr Lambda - tr H M^-1) / s, dl/dv_i = v_i [(lambda_i M^-1 - K) / s - N M^-1],
    dl/ds = 1/2 [(q - tr K) / s - N ((D - d) / s + tr M^-1)]. The density's last summand is the logarithm's Jacobian.
    """
    D = values.size
    V = x[: D * d].reshape(D, d)
    excess = np.exp(x[D * d])
    s = sigma2_min + excess
    G, H = np.zeros((d, d)), np.zeros((d, d))
    for i in range(D):
        for j in range(d):
            for k in range(j + 1):
                product = V[i, j] * V[i, k]
                G[j, k] += product
                H[j, k] += values[i] * product
    for j in range(d):
        for k in range(j):
            G[k, j], H[k, j] = G[j, k], H[j, k]
        G[j, j] += s  # G is M from here on
    if not (np.isfinite(G.sum()) and s > 0 and np.isfinite(1 / s**2)):  # far off: a step that diverged
        return -np.inf, np.zeros(x.size)
    inverse = np.linalg.inv(G)
    K = inverse @ H @ inverse
    q = (values.sum() - np.sum(H * inverse)) / s
    log_determinant = (D - d) * np.log(s) + np.log(np.linalg.det(G / s)) + d * np.log(s)
    value = -0.5 * N * (D * np.log(2 * np.pi) + log_determinant) - 0.5 * q
    gradient = np.empty(x.size)
    for i in range(D):
        for j in range(d):
            total = 0.0
            for k in range(d):
                total += V[i, k] * ((values[i] * inverse[k, j] - K[k, j]) / s - N * inverse[k, j])
            gradient[i * d + j] = w * total
    in_s = 0.5 * ((q - np.trace(K)) / s - N * ((D - d) / s + np.trace(inverse)))
    gradient[D * d] = w * in_s * excess + 1.0
    return w * value + x[D * d], gradient
