"""Where gradient solvers start: the closed form on moments of what is observed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._array import Array
from ..moments import Contrast, MaskedGroup, MaskedPair, Moments
from ._spectral import LOOSE, top_eigenpairs

# Of the median variance: the least noise variance and the least squared length of a loading to start from.
LEAST_NOISE, LEAST_LENGTH = 0.05, 0.01


@dataclass(frozen=True)
class _ObservedScatter:
    """An estimate of the scatter of all values from those observed, for products only.

    Sums of products of deviations over the rows in which both features are observed, S_jk, estimate
    p_j p_k times the full sums if features are observed independently in shares p_j (p_j alone on the diagonal).
    """

    group: MaskedGroup

    @property
    def share(self) -> Array:
        return self.group.observed / self.group.weight

    def diagonal(self) -> Array:
        return self.group.squares / self.share

    @property
    def trace(self) -> float:
        return float(self.diagonal().sum())

    @property
    def shares(self) -> int:
        return 1

    def products(self, V: Array) -> list[Callable[[], Array]]:
        return [lambda: self._product(V)]

    def _product(self, V: Array) -> Array:
        group, share = self.group, self.share[:, None]
        scaled = V / share
        product = np.zeros(V.shape)
        if group.rows is not None:
            product += group.rows.values.T @ (group.rows.values @ scaled)
        if group.complete is not None:
            product += group.complete.scatter.dense() @ scaled
        squares = group.squares[:, None]
        return product / share + (squares / share - squares / share**2) * V

    def dense(self) -> Array:
        return self._product(np.eye(self.group.mean.size))

    def scaled(self, divisor: Array) -> _ObservedScatter:
        return _ObservedScatter(self.group.scaled(divisor))


def observed_start(pair: MaskedPair, gamma: float, d: int) -> tuple[Array, float]:
    """(W, sigma2) from the closed form (F2) on estimated moments, kept away from 0: these are no proper moments.

    Only a start: F3 must not be applied to such moments.
    """
    contrast = Contrast(
        tuple((c, Moments(group.weight, group.mean, _ObservedScatter(group))) for c, group in pair.terms(gamma)),
        pair.n_features,
    )
    spectrum = top_eigenpairs(contrast, d, tol=LOOSE)
    variance = float(np.median(pair.foreground.variances)) or pair.foreground.mean_variance
    sigma2 = (contrast.trace - float(spectrum.values.sum())) / (contrast.N * (pair.n_features - d))
    sigma2 = max(sigma2, LEAST_NOISE * variance)
    lengths = np.sqrt(np.maximum(spectrum.values / contrast.N - sigma2, LEAST_LENGTH * variance))
    return spectrum.vectors * lengths, sigma2


def random_start(pair: MaskedPair, d: int, generator: np.random.Generator) -> tuple[Array, float]:
    """Random loadings that explain about half of each feature's variance."""
    variances = pair.foreground.variances
    W = generator.standard_normal((pair.n_features, d)) * np.sqrt(variances / (2 * d))[:, None]
    return W, float(variances.mean()) / 2
