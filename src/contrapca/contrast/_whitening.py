"""Whitening: directions in which some rows vary alike, with a covariance that is shrunk as its rows demand (F47).

A shrunk covariance is (1 - delta) S + delta (tr S / D) I, delta in [0, 1]. The rules for delta are at the end: the
ridge of ratios follows them, too (F27).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._util.arrays import EPS, Array, host
from .._util.threads import calm_threads
from ..data import Groups
from ..exceptions import GroupError
from ..moments import MAX_DENSE, Basis, Moments, has_few_rows, reduce_rows


@dataclass(frozen=True)
class Spread:
    """How the rows of some groups vary together, each group about its own mean."""

    values: Array  # (k,): eigenvalues of their common covariance S, ascending; those that are missing are 0
    directions: Array  # (D, k)
    weight: float  # rows of all groups
    n_features: int

    @property
    def mean_variance(self) -> float:
        """t = tr S / D."""
        return float(self.values.sum()) / self.n_features

    @property
    def square(self) -> float:
        """tr S^2."""
        return float(self.values @ self.values)

    def shrinkage(self, fourth: float | None) -> float:
        """The part of the identity in a shrunk S that the rows ask for; without the mean of |y|^4 that of Gaussian
        rows."""
        facts = self.square, self.n_features * self.mean_variance, self.n_features, self.weight
        return oracle_approximating(*facts) if fourth is None else ledoit_wolf(*facts, fourth)

    def factors(self, shrinkage: float) -> tuple[Array, float]:
        """1 / sqrt((1 - delta) v + delta t) for the eigenvalues v (k,), and for those that are 0."""
        floor = shrinkage * self.mean_variance
        least = self.n_features * EPS * self.mean_variance
        lowest = 0.0 if self.values.size < self.n_features else float(self.values[0])
        if floor <= least and lowest <= least:
            raise GroupError(
                "The controls do not vary at all in some directions (beyond rounding), so nothing can be divided by "
                f"their variance there: use ridge='auto' or a number above 0, or more than {self.n_features} control "
                "rows for so many features."
            )
        found = 1 / np.sqrt((1 - shrinkage) * np.maximum(self.values, 0.0) + floor)
        return found, float(1 / np.sqrt(floor)) if floor > 0 else 1.0


def spread(groups: Sequence[Moments]) -> Spread:
    """The eigenvalues and directions of the covariance of some groups together.

    Of dense rows that are fewer than their features, those in the span of the rows (F7).
    """
    total, D = sum(group.weight for group in groups), groups[0].mean.size
    basis: Basis | None = None
    if has_few_rows(groups):
        small, basis = reduce_rows(Groups.from_items(groups, tuple(map(str, range(len(groups))))), 0)
        groups = list(small)
    elif D > MAX_DENSE:
        raise ValueError(
            f"{D} features are too many for a matrix of them all (at most {MAX_DENSE}): select some, or take principal "
            "components first."
        )
    S = groups[0].scatter.dense() / total
    for group in groups[1:]:
        S = S + group.scatter.dense() / total
    S = host(S)
    if not np.isfinite(S).all():
        raise ValueError("Input contains values too large to be squared: rescale them.")
    with calm_threads(float(len(S)) ** 2):
        values, V = np.linalg.eigh(S)
    if not values[-1] > 0:
        raise GroupError("The controls do not vary at all, so there is nothing to whiten by: check them.")
    if basis is None:
        return Spread(values, V, total, D)
    kept = values > len(S) * EPS * values[-1]
    order = np.flatnonzero(kept)[::-1]  # the largest first, as `lift` wants them
    V = basis.lift(V[:, order], values[order], [1 / total] * len(groups))
    return Spread(values[order][::-1], V[:, ::-1], total, D)


def relative_kurtosis(found: Spread, fourth: float) -> float:
    """The mean of |y|^4 over what it is for Gaussian rows: 1, and far more where a few rows are much longer than
    most."""
    return fourth / ((found.n_features * found.mean_variance) ** 2 + 2 * found.square)


def ledoit_wolf(square: float, trace: float, n_features: int, m: float, fourth: float) -> float:
    """delta by Ledoit and Wolf (2004), from tr S^2 and tr S of m rows y of any distribution, and the mean of |y|^4."""
    apart = square - trace**2 / n_features
    return min(1.0, max(fourth - square, 0.0) / m / apart) if apart > EPS * square else 1.0


def oracle_approximating(square: float, trace: float, n_features: int, m: float) -> float:
    """delta by Chen, Wiesel, Eldar and Hero (2010) for m Gaussian rows, from tr S^2 and tr S alone."""
    D = n_features
    over, apart = (1 - 2 / D) * square + trace**2, (m + 1 - 2 / D) * (square - trace**2 / D)
    return min(1.0, over / apart) if apart > EPS * over else 1.0
