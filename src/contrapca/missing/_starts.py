"""Estimates of the moments of all values from those observed, and where gradient fits start."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._util.arrays import Array
from ..contrast import LOOSE, closed_form, top_eigenpairs
from ..data import Groups
from ..moments import Contrast, Moments
from ._rows import MaskedGroup, counted_terms

# Smallest noise variance and smallest squared length of a starting loading, as fractions of the median variance.
LEAST_NOISE, LEAST_LENGTH = 0.05, 0.01


@dataclass(frozen=True)
class _EstimatedScatter:
    """An estimate of the scatter of all values from those observed, for products only.

    Sums of products of deviations over the rows in which both features are observed, S_jk, estimate
    p_j p_k times the full sums if features are observed independently with probabilities p_j (p_j alone on the
    diagonal).
    """

    group: MaskedGroup

    @property
    def size(self) -> int:
        return self.group.mean.size

    @property
    def _fraction(self) -> Array:
        """Fraction of each feature's values that were observed, shape (D,)."""
        return self.group.feature_counts / self.group.weight

    def diagonal(self) -> Array:
        return self.group.squares / self._fraction

    @property
    def trace(self) -> float:
        return float(self.diagonal().sum())

    def matmul(self, V: Array) -> Array:
        group, fraction = self.group, self._fraction[:, None]
        scaled = V / fraction
        product = np.zeros(V.shape)
        if group.rows is not None:
            product += group.rows.product(scaled)
        if group.complete is not None:
            product += group.complete.scatter.matmul(scaled)
        squares = group.squares[:, None]
        return product / fraction + (squares / fraction - squares / fraction**2) * V

    def dense(self) -> Array:
        return self.matmul(np.eye(self.size))

    def scaled(self, divisor: Array) -> _EstimatedScatter:
        return _EstimatedScatter(self.group.scaled(divisor))


def estimated_moments(group: MaskedGroup) -> Moments:
    """Moments of all values, estimated from those observed."""
    return Moments(group.weight, group.mean, _EstimatedScatter(group))


def missing_edge(group: MaskedGroup) -> float:
    """The largest eigenvalue of what missing values add to an estimated scatter matrix: 2 s sqrt(n D (1 / p - 1)).

    (F24.) s is the mean variance of all features, signal included, and p the fraction of the rows in which two features
    are both observed.
    """
    n, D = group.weight, group.mean.size
    variance = estimated_moments(group).scatter.trace / (n * D)
    return 2 * variance * float(np.sqrt(D * n * max(n / group.pairs_per_entry - 1, 0.0)))


def masked_start(groups: Groups[MaskedGroup], gamma: float, d: int) -> tuple[Array, float]:
    """(W, sigma2) from the closed form (F2) on estimated moments, kept away from 0: these are not proper moments.

    Only a start: F3 must not be applied to such moments.
    """
    contrast = Contrast.of(*((c, estimated_moments(group)) for c, group in counted_terms(groups, gamma)))
    spectrum = top_eigenpairs(contrast, d, tol=LOOSE)
    variance = groups.foreground.typical_variance
    lengths, sigma2 = closed_form(
        spectrum.values,
        contrast.trace - float(spectrum.values.sum()),
        contrast.N,
        contrast.n_features,
        least_sigma2=LEAST_NOISE * variance,
        least_square=LEAST_LENGTH * variance,
    )
    return spectrum.vectors * lengths, sigma2


def random_start(groups: Groups[MaskedGroup], d: int, generator: np.random.Generator) -> tuple[Array, float]:
    """Random loadings that explain about half of each feature's variance."""
    variance = groups.foreground.variance
    W = generator.standard_normal((variance.size, d)) * np.sqrt(variance / (2 * d))[:, None]
    return W, float(variance.mean()) / 2
