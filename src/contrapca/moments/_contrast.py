"""The contrast of groups: all that the objective and its solvers need to know of the rows (F1, F5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._array import EPS, Array, Map
from ._moments import DenseScatter, Moments
from ._reduced import Basis
from ._two import TwoGroups


@dataclass(frozen=True)
class Contrast:
    """C = sum_k c_k S_k and N = sum_k c_k n_k over groups k (F1).

    Attributes
    ----------
    terms : tuple of (coefficient, Moments)
        (1, foreground) and (-gamma_raw, background).
    n_features : int
        D, which exceeds the size of the matrices when these are in reduced coordinates.
    """

    terms: tuple[tuple[float, Moments], ...]
    n_features: int

    @property
    def N(self) -> float:
        """Effective number of rows, n - gamma_raw m."""
        return float(sum(c * group.weight for c, group in self.terms))

    @property
    def trace(self) -> float:
        """tr C."""
        return sum(c * group.scatter.trace for c, group in self.terms)

    @property
    def rounding(self) -> float:
        """What eigenvalues and traces of C can be off by: a few ulp of sum_k |c_k| tr S_k for each feature."""
        return 4 * EPS * self.size * sum(abs(c) * group.scatter.trace for c, group in self.terms)

    @property
    def size(self) -> int:
        """Order of C as it is stored."""
        scatter = self.terms[0][1].scatter
        return scatter.matrix.shape[0] if isinstance(scatter, DenseScatter) else self.n_features

    @property
    def is_dense(self) -> bool:
        """Whether C can be had as a matrix at the cost of adding the groups' matrices."""
        return all(isinstance(group.scatter, DenseScatter) for _, group in self.terms)

    @property
    def shares(self) -> int:
        """How many threads are of use in products with C."""
        return max(group.scatter.shares for _, group in self.terms)

    def images(self, V: Array, map_: Map = map, *, skip_zero: bool = False) -> list[Array]:
        """S_k V of every group, each of the shape of V; `map_` may spread the work over threads.

        With `skip_zero`, groups that do not count (coefficient 0) are left at zero.
        """
        calls = [
            (k, call)
            for k, (c, group) in enumerate(self.terms)
            if c != 0 or not skip_zero
            for call in group.scatter.products(V)
        ]
        images: list[Array] = [np.zeros(V.shape) for _ in self.terms]
        for (k, _), product in zip(calls, map_(lambda item: item[1](), calls), strict=True):
            images[k] += product
        return images

    def combine(self, images: list[Array]) -> Array:
        """C V from the groups' images S_k V."""
        return np.sum([c * image for (c, _), image in zip(self.terms, images, strict=True)], axis=0)

    def matmat(self, V: Array, map_: Map = map) -> Array:
        """C V, shape of V."""
        return self.combine(self.images(V, map_, skip_zero=True))

    def dense(self) -> Array:
        """C, a new array, in the order that LAPACK can overwrite."""
        (c, group), *others = [(c, group) for c, group in self.terms if c != 0]
        total = c * group.scatter.dense()
        for c, group in others:
            total += c * group.scatter.dense()
        return total.T  # symmetric: transposing only changes the order


def alone(group: Moments) -> Contrast:
    """One group as a contrast with nothing to contrast with: C is its scatter, N its number of rows."""
    return Contrast(((1.0, group),), group.mean.size)


@dataclass(frozen=True)
class Pair(TwoGroups[Moments]):
    """The two groups as moments in common coordinates.

    Attributes
    ----------
    foreground : Moments
    background : Moments or None
    basis : Basis or None
        What the coordinates of the scatter matrices refer to; None: the features themselves.
    """

    basis: Basis | None = None

    def contrast(self, gamma: float) -> Contrast:
        """The contrast at gamma' = `gamma`."""
        terms = [(1.0, self.foreground)]
        if self.background is not None:
            terms.append((-gamma / self.ratio, self.background))
        return Contrast(tuple(terms), self.n_features)

    def feature_matrix(self, contrast: Contrast) -> Array:
        """C of a contrast of these groups in the coordinates of the features, shape (D, D)."""
        if self.basis is None:
            return contrast.dense()
        return self.basis.rows.T @ (self._row_weights(contrast)[:, None] * self.basis.rows)

    def lift(self, contrast: Contrast, U: Array, values: Array) -> Array:
        """Eigenvectors of a contrast of these groups in R^D, from those in the coordinates of the scatter matrices."""
        if self.basis is None:
            return U
        return self.basis.lift(U, values, self._row_weights(contrast))

    def _row_weights(self, contrast: Contrast) -> Array:
        """The coefficient of each row in C."""
        weights = [sum(c for c, other in contrast.terms if other is group) for group in self.groups]
        return np.repeat(weights, [int(group.weight) for group in self.groups])
