"""Ratios of variances of rows that are fewer than their features, from inner products of the rows (F27)."""

from __future__ import annotations

import numpy as np

from .._util.arrays import TINY, Array
from ..moments import RowScatter
from ._quotient import STATIONARY, Found, Quotient, Terms
from ._spectral import top_of


def from_inner_products(quotient: Quotient, d: int) -> Found:
    """The d largest ratios and their directions, with nothing factorised but inner products of the rows.

    With A = P'P and M = Q'Q + floor I, P M^-1 P' has the same eigenvalues as M^-1 A, and by Woodbury's formula it is
    (P P' - P Q'(Q Q' + floor I)^-1 Q P') / floor. None if rounding spoils the difference: the residuals tell.
    """
    floor, PQ = quotient.floor, inner_products(quotient.above, quotient.below)
    PP, QQ = (inner_products(terms, terms) for terms in (quotient.above, quotient.below))
    if PP.shape[0] < d:
        return None
    metric = QQ.copy()
    metric[np.diag_indices_from(metric)] += floor
    try:
        # NumPy's, though SciPy knows that it is symmetric: NumPy's threads, which still spin, would be in SciPy's way.
        T = np.linalg.solve(metric, PQ.T)
    except np.linalg.LinAlgError:
        return None
    K = PP - PQ @ T
    u, n_iter = top_of(lambda v: K @ v, K.shape[0], d, lambda: K)
    s = T @ u
    # Of v = P'u - Q's: P v, Q v, |v|^2, the ratio, and A v - rho M v = P'x - Q'y.
    Pv, Qv = PP @ u - PQ @ s, PQ.T @ u - QQ @ s
    square = np.sum(u * Pv, axis=0) - np.sum(s * Qv, axis=0)
    rho = np.sum(Pv**2, axis=0) / np.maximum(np.sum(Qv**2, axis=0) + floor * square, TINY)
    x, y = Pv - rho * floor * u, rho * (Qv - floor * s)
    residual = np.sum(x * (PP @ x - 2 * PQ @ y), axis=0) + np.sum(y * (QQ @ y), axis=0)
    if np.any(residual > STATIONARY**2 * np.sum(Pv * (PP @ Pv), axis=0)):
        return None
    W = _combined(quotient.above, u) - _combined(quotient.below, s)
    return rho, W / np.linalg.norm(W, axis=0), n_iter


def _rows_of(terms: Terms) -> list[tuple[float, RowScatter]]:
    """Groups of rows, with the roots of their coefficients."""
    return [(float(np.sqrt(c)), group.scatter) for c, group in terms if isinstance(group.scatter, RowScatter)]


def inner_products(left: Terms, right: Terms) -> Array:
    """P Q' of rows times the roots of their coefficients."""

    def part(c: float, one: RowScatter, e: float, other: RowScatter) -> Array:
        found = one.gram if one is other else one.centred(slice(None)) @ other.centred(slice(None)).T
        return np.asarray(c * e * found)

    parts = [[part(*one, *other) for other in _rows_of(right)] for one in _rows_of(left)]
    return np.block(parts) if len(parts) * len(parts[0]) > 1 else parts[0][0]


def _combined(terms: Terms, weights: Array) -> Array:
    """P'w for weights (rows, k), shape (D, k)."""
    groups = _rows_of(terms)
    parts = np.split(weights, np.cumsum([len(scatter.rows) for _, scatter in groups])[:-1])
    return np.sum([c * (scatter.centred(slice(None)).T @ w) for (c, scatter), w in zip(groups, parts, strict=True)], 0)
