"""The contrast of groups: everything the objective and its solvers need to know about the rows (F1, F5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from .._util.arrays import EPS, Array, on_device
from ..data import Groups
from ._moments import Moments
from ._scatter import DenseScatter, Indices, scatter_block, scatter_columns


class Weighted(Protocol):
    """Anything with a number of rows."""

    @property
    def weight(self) -> float:
        """Number of rows."""


W = TypeVar("W", bound=Weighted)


def mixture(groups: Groups[W]) -> Array:
    """The part of gamma' that each background has: its part of their rows, shape (backgrounds,) (F20)."""
    weights = np.array([group.weight for group in groups.backgrounds])
    return weights / weights.sum()


def factors(groups: Groups[W], gamma: float) -> Array:
    """The factor of each group's covariance in C / n: 1, and -gamma' times the part of each background (F20)."""
    return np.array([1.0, *(-gamma * mixture(groups))])


def mixed(groups: Groups[W], values: Groups[Array] | Groups[float]) -> Array:
    """A quantity of the backgrounds, each with its part of gamma'."""
    return np.tensordot(mixture(groups), np.array(values.backgrounds), 1)


def weighted_terms(groups: Groups[W], gamma: float) -> tuple[tuple[float, W], ...]:
    """(1, foreground) and (-gamma_raw, background), where gamma_raw = gamma' n / m for each background's part of it."""
    n, parts = groups.foreground.weight, zip(mixture(groups), groups.backgrounds, strict=True)
    return (1.0, groups.foreground), *((float(-gamma * part) * n / group.weight, group) for part, group in parts)


@dataclass(frozen=True)
class Contrast:
    """C = sum_k c_k S_k and N = sum_k c_k n_k over groups k (F1)."""

    terms: tuple[tuple[float, Moments], ...]  # (1, foreground) and (-gamma_raw, background), for every background
    N: float  # effective number of rows, n - sum of gamma_raw m
    trace: float  # tr C
    size: int  # order of the stored C
    n_features: int  # D, which is larger than `size` if the matrices are in reduced coordinates
    n_foreground: float  # number of foreground rows
    rounding: float  # rounding error of eigenvalues and traces of C: a few ulp of sum_k |c_k| tr S_k for each feature
    is_dense: bool  # whether C can be formed by adding the groups' matrices

    @classmethod
    def of(cls, *terms: tuple[float, Moments]) -> Contrast:
        """The contrast of groups with their coefficients, the foreground first."""
        first = terms[0][1]
        N = trace = magnitude = 0.0
        dense = True
        for c, group in terms:
            own = group.scatter.trace
            N, trace, magnitude = N + c * group.weight, trace + c * own, magnitude + abs(c) * own
            dense = dense and isinstance(group.scatter, DenseScatter)
        size = first.scatter.size
        return cls(terms, N, trace, size, first.mean.size, first.weight, 4 * EPS * size * magnitude, dense)

    @property
    def on_device(self) -> bool:
        """Whether C, as a matrix, is on a device."""
        return self.is_dense and on_device(self.terms[0][1].scatter.dense())

    def images(self, V: Array) -> list[Array]:
        """S_k V of every group, each of the shape of V."""
        return [group.scatter.matmul(V) for _, group in self.terms]

    def combine(self, images: list[Array]) -> Array:
        """C V from the groups' images S_k V."""
        return np.sum([c * image for (c, _), image in zip(self.terms, images, strict=True)], axis=0)

    def matmul(self, V: Array) -> Array:
        """C V, shape of V."""
        return np.sum([c * group.scatter.matmul(V) for c, group in self.terms if c != 0], axis=0)

    def diagonal(self) -> Array:
        """diag(C), shape (size,)."""
        return np.sum([c * group.scatter.diagonal() for c, group in self.terms if c != 0], axis=0)

    def block(self, chosen: Indices) -> Array:
        """The rows and columns of C that are chosen, shape (k, k)."""
        total = np.zeros((chosen.size, chosen.size))
        for c, group in self.terms:
            if c != 0:
                total += c * scatter_block(group.scatter, chosen)
        return total

    def columns(self, chosen: Indices) -> Array:
        """The columns of C that are chosen, shape (size, k)."""
        return np.sum([c * scatter_columns(group.scatter, chosen) for c, group in self.terms if c != 0], axis=0)

    def dense(self) -> Any:
        """C as a new array on the device of the rows, in the memory order that LAPACK can overwrite."""
        (c, group), *others = [(c, group) for c, group in self.terms if c != 0]
        total = float(c) * group.scatter.dense()
        for c, group in others:
            total += float(c) * group.scatter.dense()
        return total.T  # symmetric: transposing only changes the memory order


def contrast(groups: Groups[Moments], gamma: float) -> Contrast:
    """The contrast of the groups at gamma' = `gamma`."""
    return Contrast.of(*weighted_terms(groups, gamma))


def background_contrast(groups: Groups[Moments]) -> Contrast:
    """The mean covariance B of the backgrounds, each with its part of gamma', as a contrast without foreground."""
    parts = zip(mixture(groups), groups.backgrounds, strict=True)
    return Contrast.of(*((float(part) / group.weight, group) for part, group in parts if part > 0))


def mixed_background(groups: Groups[Moments]) -> Moments:
    """All backgrounds as one group, each centred by its own mean and with its part of gamma'."""
    if len(groups.backgrounds) == 1:
        return groups.backgrounds[0]
    weight = sum(group.weight for group in groups.backgrounds)
    mean = mixed(groups, groups.map(lambda group: group.mean))
    return Moments(weight, mean, DenseScatter(weight * background_contrast(groups).dense()), groups.foreground.names)


def alone(group: Moments) -> Contrast:
    """One group as a contrast without background: C is its scatter, N its number of rows."""
    return Contrast.of((1.0, group))
