"""Quotients of two groups' variances: what the ratio family maximises, for any storage (F26, F27)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._util.arrays import Array
from .._util.devices import put
from ..exceptions import GroupError
from ..moments import MAX_DENSE, Contrast, DenseScatter, Moments, Scatter

FOREGROUND, BACKGROUND, BOTH = "foreground", "background", "both"
STATIONARY = 1e-9  # for |A v - rho M v|, relative to |A v|

Terms = tuple[tuple[float, Moments], ...]
Found = tuple[Array, Array, int] | None  # ratios (d,), unit vectors (size, d), iterations; None where there are none


@dataclass(frozen=True)
class Quotient:
    """v'A v / v'M v, with A = sum c_k S_k over the groups `above` and M = sum c_k S_k + floor I over those `below`."""

    above: Terms
    below: Terms
    floor: float

    @classmethod
    def of(cls, contrast: Contrast, end: str) -> Quotient:
        """That of the groups of a contrast at its gamma; for the background's end, with the groups exchanged."""
        gamma = strength(contrast)
        parts = contrast.terms[:1], contrast.terms[1:]
        above, below = (mean_of(part) for part in (parts if end == FOREGROUND else parts[::-1]))
        if not any(group.total_variance() > 0 for _, group in below):
            constant = BACKGROUND if end == FOREGROUND else FOREGROUND
            raise GroupError(f"The {constant} does not vary at all, so there is no ratio of variances: check it.")
        floor = (1 - gamma) * sum(c * group.scatter.trace for c, group in below) / contrast.n_features
        return cls(above, tuple((gamma * c, group) for c, group in below), floor)

    @property
    def needs_matrices(self) -> bool:
        """Whether A and M are formed: they are stored, or only they tell where M does not vary."""
        if all(isinstance(group.scatter, DenseScatter) for _, group in (*self.above, *self.below)):
            return True
        if self.floor == 0 and self.size > MAX_DENSE:
            raise ValueError(
                f"ridge=0 needs matrices of all features, and {self.size} are too many (at most {MAX_DENSE}): use "
                "ridge='auto' or a number above 0, such as ridge=0.1."
            )
        return self.floor == 0

    @property
    def size(self) -> int:
        return self.above[0][1].scatter.size

    def images(self, V: Array) -> tuple[Array, Array]:
        """A V and M V."""
        return product(self.above, V), product(self.below, V) + self.floor * V

    def over(self, scatters: Callable[[Scatter], Scatter]) -> Quotient:
        """The same of other scatters."""

        def replaced(terms: Terms) -> Terms:
            return tuple((c, replace(group, scatter=scatters(group.scatter))) for c, group in terms)

        return Quotient(replaced(self.above), replaced(self.below), self.floor)


@dataclass(frozen=True)
class DeflatedScatter:
    """P S P for the projection P onto the complement of orthonormal columns V, only applied."""

    scatter: Scatter
    V: Array

    @property
    def size(self) -> int:
        return self.scatter.size

    @property
    def trace(self) -> float:
        return self.scatter.trace - float(np.sum(self.V * self.scatter.matmul(self.V)))

    def diagonal(self) -> Array:
        image = self.scatter.matmul(self.V)
        inner = self.V @ (self.V.T @ image)
        return self.scatter.diagonal() - np.sum(self.V * (2 * image - inner), axis=1)

    def matmul(self, V: Array) -> Array:
        return self._outside(self.scatter.matmul(self._outside(V)))

    def dense(self) -> Any:
        return self._outside(self._outside(self.scatter.dense()).T)

    def scaled(self, divisor: Array) -> DeflatedScatter:
        return DeflatedScatter(self.scatter.scaled(divisor), self.V)

    def _outside(self, V: Any) -> Any:
        found = put(self.V, V)
        return V - found @ (found.T @ V)


def strength(contrast: Contrast) -> float:
    """gamma of a contrast, from its coefficients 1 and -gamma n / m."""
    _, *backgrounds = contrast.terms
    return -sum(c * group.weight for c, group in backgrounds) / contrast.n_foreground


def mean_of(terms: Terms) -> Terms:
    """Coefficients that make one covariance of the groups' scatters, in the parts of the contrast; by rows at gamma =
    0."""
    sizes = [abs(c) for c, _ in terms] if any(c for c, _ in terms) else [1.0] * len(terms)
    weight = sum(size * group.weight for size, (_, group) in zip(sizes, terms, strict=True))
    return tuple((size / weight, group) for size, (_, group) in zip(sizes, terms, strict=True))


def product(terms: Terms, V: Array) -> Array:
    return np.sum([c * group.scatter.matmul(V) for c, group in terms], axis=0)


def matrix(terms: Terms) -> Any:
    """sum c_k S_k as a new array on the device of the rows."""
    (c, group), *others = terms
    total = float(c) * group.scatter.dense()
    for c, group in others:
        total += float(c) * group.scatter.dense()
    return total
