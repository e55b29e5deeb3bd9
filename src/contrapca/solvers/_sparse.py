"""Directions of few features: at most s entries are not zero (F29).

For each component v'C v is maximised over unit vectors with at most s entries, C being what the components before leave
(projection deflation). On given features the best direction is the first eigenvector of that block of C, which needs
these columns of the rows only. Features are exchanged by the gradient C v, until none is worth it: nothing of size
D x D is formed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._util.arrays import EPS, Array
from ..moments import Contrast, Indices
from ._closed_form import Solution
from ._spectral import Spectrum, Unconverged, largest, top_eigenpairs, top_vectors

WIDER, COLUMNS = 4, 4  # features of a start by their variances, relative to those wanted; columns of C that are tried
LARGE = 800  # features from which on products with the rows are cheaper than a block of C
TOLERANCE, RESTARTS = 1e-10, 50  # of Lanczos there
MAX_SWAPS = 200  # exchanges of features for one component and start
LEAST_GAIN = 1e-10  # relative gain of v'C v below which an exchange is only rounding


def solve_sparse(
    contrast: Contrast, d: int, s: int, start: Array | None = None, dense: Array | None = None
) -> Solution:
    """d directions, one after the other, with at most s features each.

    Parameters
    ----------
    contrast : Contrast
        In the coordinates of the features.
    d : int
    s : int
    start : ndarray of shape (D, d), optional
        Directions near the solution, such as those with more features.
    dense : ndarray of shape (D, d), optional
        The top eigenvectors of C, if they are known: the search starts from these, too.

    Returns
    -------
    Solution
        Unit vectors, not orthogonal. The values are v'C v of the unit vector of each outside those before: they add up
        to tr C in the span of all.
    """
    D = contrast.size
    dense = top_eigenpairs(contrast, d).vectors if dense is None else dense
    values, V, products, feasible = np.zeros(d), np.zeros((D, d)), 0, True
    for k in range(d):
        left = Left.of(contrast, V[:, :k])
        found = [climb(left, v, s) for v in _starts(left, s, dense, None if start is None else start[:, k])]
        best = max(found, key=lambda one: one.value)
        V[best.support, k] = best.entries
        outside = V[:, k] - left.Q @ (left.Q.T @ V[:, k])
        values[k] = best.value / max(float(outside @ outside), EPS)
        feasible = feasible and best.value > contrast.rounding
        products += sum(one.steps for one in found)
    spectrum = Spectrum(values, V, contrast.images(V), products)
    return Solution(spectrum, np.ones(d), 0.0, feasible, eigenvectors=False)


@dataclass(frozen=True)
class Left:
    """P C P, where P projects onto the complement of earlier directions with orthonormal basis Q (D, k)."""

    contrast: Contrast
    Q: Array
    image: Array  # C Q

    @classmethod
    def of(cls, contrast: Contrast, V: Array) -> Left:
        Q = np.linalg.qr(V)[0]
        return cls(contrast, Q, contrast.matmul(Q) if Q.shape[1] else Q)

    def matmul(self, v: Array) -> Array:
        """P C P v, shape (D,)."""
        inside = v - self.Q @ (self.Q.T @ v)
        found = self.contrast.matmul(inside[:, None])[:, 0]
        return found - self.Q @ (self.Q.T @ found)

    def block(self, chosen: Indices) -> Array:
        """Its rows and columns of the chosen features."""
        Q, image = self.Q[chosen], self.image[chosen]
        return self.contrast.block(chosen) - Q @ image.T - image @ Q.T + Q @ (self.Q.T @ self.image) @ Q.T


@dataclass(frozen=True)
class Sparse:
    """A direction: the features that it has, its entries there, v'C v, and exchanges that led to it."""

    support: Indices
    entries: Array
    value: float
    steps: int


def _starts(left: Left, s: int, dense: Array, given: Array | None) -> list[Array]:
    """Directions from which features are exchanged.

    The best in the span of the eigenvectors of C; the best on the features with the largest contrast of variances,
    which wins where there are many more features than rows (Johnstone and Lu 2009); the columns of C that belong to a
    few of these features; and a given one, besides which one column is enough.
    """
    D = left.Q.shape[0]
    diagonal = left.contrast.diagonal()
    widest = _largest_of(diagonal, min(max(min(WIDER * s, LARGE), s), D))
    many = _full(_best_on(left, widest, diagonal, 0), D)
    frame = np.linalg.qr(dense - left.Q @ (left.Q.T @ dense))[0]
    small = frame.T @ np.column_stack([left.matmul(v) for v in frame.T])
    first = frame @ np.linalg.eigh((small + small.T) / 2)[1][:, -1]
    strongest = np.argsort(-diagonal)[: COLUMNS if given is None else 1]
    columns = [left.matmul(np.eye(1, D, int(j))[0]) for j in strongest]
    return [first, many, *columns, *([] if given is None else [given])]


def climb(left: Left, v: Array, s: int) -> Sparse:
    """Exchange features while v'C v grows.

    The features to keep are those with the largest entries of C v + shift v. A large enough shift makes C + shift I
    positive, and an exchange can then only gain (Yuan and Zhang 2013); so the shift grows after each that does not.
    """
    best = _best_on(left, _largest(v, s), v, 0)
    gradient, shift = left.matmul(_full(best, v.size)), 0.0
    for step in range(1, MAX_SWAPS + 1):
        scores = gradient + shift * _full(best, v.size)
        support = _largest(scores, s)
        if np.array_equal(support, best.support):
            break
        trial = _best_on(left, support, scores, step)
        if trial.value > best.value + LEAST_GAIN * abs(best.value):
            best, shift = trial, 0.0
            gradient = left.matmul(_full(best, v.size))
        else:
            shift = 2 * shift if shift else 0.1 * (abs(best.value) + float(np.abs(gradient).max()))
    return best


def _full(one: Sparse, D: int) -> Array:
    v = np.zeros(D)
    v[one.support] = one.entries
    return v


def _largest(v: Array, s: int) -> Indices:
    """Indices of the s entries of largest magnitude, increasing."""
    return _largest_of(np.abs(v), s)


def _largest_of(values: Array, count: int) -> Indices:
    """Indices of the `count` largest values, increasing."""
    return np.sort(np.argpartition(-values, count - 1)[:count])


def _best_on(left: Left, support: Indices, near: Array, steps: int) -> Sparse:
    """The best direction with these features; `near` (D,) is not far from it."""
    if support.size <= LARGE:
        block = left.block(support)
        entries = top_vectors(block, 1)[:, 0]
        return Sparse(support, entries, float(entries @ block @ entries), steps)

    def apply(entries: Array) -> Array:
        v = np.zeros(near.size)
        v[support] = entries.ravel()
        return left.matmul(v)[support]

    start = near[support] if np.any(near[support]) else np.ones(support.size)
    try:
        values, vectors = largest(apply, start, 1, TOLERANCE, RESTARTS)
    except Unconverged:
        values, vectors = np.linalg.eigh(left.block(support))
    return Sparse(support, vectors[:, -1], float(values[-1]), steps)
