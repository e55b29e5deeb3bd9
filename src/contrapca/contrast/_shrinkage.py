"""How much of the identity a shrunk covariance S has, in [0, 1] (F27, F47).

It is (1 - delta) S + delta (tr S / D) I. Both rules need tr S^2, tr S, the number of features D and that of rows m.
"""

from __future__ import annotations

from .._util.arrays import EPS


def ledoit_wolf(square: float, trace: float, n_features: int, m: float, fourth: float) -> float:
    """The rule of Ledoit and Wolf (2004) for rows y of any distribution; `fourth` is the mean of |y|^4."""
    apart = square - trace**2 / n_features
    return min(1.0, max(fourth - square, 0.0) / m / apart) if apart > EPS * square else 1.0


def oracle_approximating(square: float, trace: float, n_features: int, m: float) -> float:
    """That of Chen, Wiesel, Eldar and Hero (2010) for Gaussian rows, from moments alone."""
    D = n_features
    over, apart = (1 - 2 / D) * square + trace**2, (m + 1 - 2 / D) * (square - trace**2 / D)
    return min(1.0, over / apart) if apart > EPS * over else 1.0
