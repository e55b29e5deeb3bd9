"""Components of few features (F29)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._util.arrays import EPS, Array
from .._util.threads import single_thread
from ..moments import Contrast, Indices
from ._eigen import TIGHT, Solution, Spectrum, Unconverged, largest, top_eigenpairs, top_vectors

WIDER, COLUMNS = 4, 4  # features of a start by their variances, relative to those wanted; columns of C that are tried
LARGE = 800  # with more features, products with the rows are cheaper than a block of C
ITERATED = 150  # with more features, Lanczos is cheaper than a direct solution
TOLERANCE, RESTARTS = 1e-10, 50  # of Lanczos with products
MAX_SWAPS = 200  # exchanges of features for one component and start
LEAST_GAIN = 1e-10  # relative gain of v'C v below which an exchange is only rounding
KEPT_BYTES = 256 * 2**20  # of columns of C that are kept
MANY = 1 / 10  # above this part of the columns, all are formed at once, if they can be kept


def solve_sparse(contrast: Contrast, d: int, sizes: Sequence[int]) -> list[Solution]:
    """d sparse directions for each of some sizes, the largest number of features of a direction.

    Directions are unit vectors, not orthogonal. The values are v'C v of the unit vector of each outside those before:
    they add up to tr C in the span of all. A solution is feasible if v'C v is positive along all directions.
    """
    C, dense = _Columns(contrast), top_eigenpairs(contrast, d).vectors
    with single_thread():  # products with the rows use threads of their own
        return [_solved(C, dense, size) for size in sizes]


def _solved(C: _Columns, dense: Array, size: int) -> Solution:
    """The directions of one size, as many as there are eigenvectors of C (D, d), from which the search starts."""
    D, d = dense.shape
    values, V, steps, feasible = np.zeros(d), np.zeros((D, d)), 0, True
    for k in range(d):
        C.make_room()
        left = _Left.of(C, V[:, :k])
        best = _climb(left, _starts(left, size, dense), size)
        V[best.support, k] = best.entries
        outside = V[:, k] - left.Q @ (left.Q.T @ V[:, k])
        values[k] = best.value / max(float(outside @ outside), EPS)
        feasible = feasible and best.value > C.contrast.rounding
        steps += best.steps
    return Solution(Spectrum(values, V, C.contrast.images(V), steps), np.ones(d), 0.0, feasible, eigenvectors=False)


# ---------------------------------------------------------------------- the matrix that is searched


class _Columns:
    """C of a contrast; the columns that a search has come to are kept.

    Searches with other starts and sizes come to the same few features: their columns give blocks of C, and products
    with vectors of these features, without another pass over the rows.
    """

    def __init__(self, contrast: Contrast) -> None:
        self.contrast = contrast
        self._columns = np.empty((0, contrast.size))  # one in each row
        self._place = np.full(contrast.size, -1)  # of each feature in it
        self._count = 0

    def make_room(self) -> None:
        """Forget all columns if there is little room for others."""
        if self._count < self.contrast.size and self._count * self.contrast.size * 8 > KEPT_BYTES / 2:
            self._place[:], self._count = -1, 0

    def _places(self, features: Indices) -> Indices | None:
        """Where their columns are; None if they would be too many to keep."""
        if self._count == self.contrast.size:
            return features
        new = features[self._place[features] < 0]
        total, D = self._count + new.size, self.contrast.size
        if total * D * 8 > KEPT_BYTES:
            return None
        if total > MANY * D and D * D * 8 <= KEPT_BYTES:
            self._columns, self._place, self._count = self.contrast.dense().T, np.arange(D), D
        elif new.size:
            if total > len(self._columns):
                grown = np.empty((min(2 * total, max(total, KEPT_BYTES // (8 * D))), D))
                grown[: self._count] = self._columns[: self._count]
                self._columns = grown
            self._columns[self._count : total] = self.contrast.columns(new).T
            self._place[new], self._count = np.arange(self._count, total), total
        return np.asarray(self._place[features])

    def block(self, chosen: Indices) -> Array:
        """Rows and columns of the chosen features, shape (k, k)."""
        places = self._places(chosen)
        return self.contrast.block(chosen) if places is None else self._columns[np.ix_(places, chosen)]

    def matmul(self, V: Array) -> Array:
        """C V for V (D, k), with few features or not."""
        features = np.flatnonzero(V.any(axis=1))
        rows = sum(group.weight for _, group in self.contrast.terms)
        # Columns are gathered, then multiplied; blocks of rows are read once and multiplied twice.
        places = self._places(features) if 3 * features.size < min(rows, V.shape[0]) else None
        return self.contrast.matmul(V) if places is None else np.asarray(self._columns[places].T @ V[features])


@dataclass(frozen=True)
class _Left:
    """P C P, where P projects onto the complement of earlier directions with orthonormal basis Q (D, k)."""

    C: _Columns
    Q: Array
    image: Array  # C Q

    @classmethod
    def of(cls, C: _Columns, V: Array) -> _Left:
        Q = np.linalg.qr(V)[0]
        return cls(C, Q, C.matmul(Q) if Q.shape[1] else Q)

    def matmul(self, V: Array) -> Array:
        """P C P V, shape of V: (D,) or (D, k)."""
        inside = V - self.Q @ (self.Q.T @ V)
        found = self.C.matmul(inside.reshape(inside.shape[0], -1)).reshape(inside.shape)
        return np.asarray(found - self.Q @ (self.Q.T @ found))

    def block(self, chosen: Indices) -> Array:
        """Its rows and columns of the chosen features."""
        block = self.C.block(chosen)
        if not self.Q.shape[1]:
            return block
        Q, image = self.Q[chosen], self.image[chosen]
        return block - Q @ image.T - image @ Q.T + Q @ (self.Q.T @ self.image) @ Q.T


@dataclass(frozen=True)
class _Sparse:
    """A direction: its features, its entries there, v'C v, and the exchanges that led to it."""

    support: Indices
    entries: Array
    value: float
    steps: int

    def full(self, D: int) -> Array:
        """All D entries."""
        v = np.zeros(D)
        v[self.support] = self.entries
        return v


# ---------------------------------------------------------------------- the search


def _starts(left: _Left, s: int, dense: Array) -> list[Array]:
    """Directions from which features are exchanged.

    The best in the span of the eigenvectors of C; the best on the features with the largest contrast of variances,
    which wins where there are many more features than rows (Johnstone and Lu 2009); and the columns of C that belong to
    a few of these features.
    """
    D = left.Q.shape[0]
    diagonal = left.C.contrast.diagonal()
    widest = _largest(diagonal, min(max(min(WIDER * s, LARGE), s), D))
    many = _best_on(left, widest, diagonal, 0).full(D)
    frame = np.linalg.qr(dense - left.Q @ (left.Q.T @ dense))[0]
    small = frame.T @ left.matmul(frame)
    first = frame @ np.linalg.eigh((small + small.T) / 2)[1][:, -1]
    strongest = np.argsort(-diagonal)[:COLUMNS]
    units = np.zeros((D, strongest.size))
    units[strongest, np.arange(strongest.size)] = 1.0
    return [first, many, *left.matmul(units).T]


def _climb(left: _Left, starts: list[Array], s: int) -> _Sparse:
    """Exchange features while v'C v grows, from several starts side by side: one product with the rows serves all.

    Where one comes to features that another has been at, it is left out: they would end alike.
    """
    reached = [_best_on(left, _largest(np.abs(v), s), v, 0) for v in starts]
    best, seen = max(reached, key=lambda one: one.value), set[bytes]()
    for _ in range(MAX_SWAPS):
        new = {key: one for one in reached if (key := one.support.tobytes()) not in seen}
        if not new:
            break
        seen |= new.keys()
        V = np.column_stack([one.full(left.Q.shape[0]) for one in new.values()])
        pairs = zip(new.values(), V.T, left.matmul(V).T, strict=True)
        reached = [better for one, v, gradient in pairs if (better := _exchanged(left, one, v, gradient, s))]
        best = max([best, *reached], key=lambda one: one.value)
    return best


def _exchanged(left: _Left, best: _Sparse, v: Array, gradient: Array, s: int) -> _Sparse | None:
    """A better direction after an exchange of features; None if none is worth it.

    The features to keep are those with the largest entries of C v + shift v. A large enough shift makes C + shift I
    positive, and an exchange can then only gain (Yuan and Zhang 2013); so the shift grows after each that does not.
    """
    shift = 0.0
    while not np.array_equal(support := _largest(np.abs(gradient + shift * v), s), best.support):
        trial = _best_on(left, support, gradient + shift * v, best.steps + 1)
        if trial.value > best.value + LEAST_GAIN * abs(best.value):
            return trial
        shift = 2 * shift or 0.1 * (abs(best.value) + float(np.abs(gradient).max())) or 1.0
    return None


def _largest(values: Array, count: int) -> Indices:
    """Indices of the `count` largest values, increasing."""
    return np.sort(np.argpartition(-values, count - 1)[:count])


def _best_on(left: _Left, support: Indices, near: Array, steps: int) -> _Sparse:
    """The best direction with these features; `near` (D,) is not far from it."""
    s = support.size
    start = near[support] if np.any(near[support]) else np.ones(s)
    # Perturb, so that the start is not orthogonal to the first eigenvector.
    start = start + 1e-3 * np.linalg.norm(start) / np.sqrt(s) * np.random.default_rng(0).standard_normal(s)
    if s > LARGE:

        def apply(entries: Array) -> Array:
            v = np.zeros(near.size)
            v[support] = entries.ravel()
            return left.matmul(v)[support]

        try:
            values, vectors = largest(apply, start, 1, TOLERANCE, RESTARTS)
        except Unconverged:
            values, vectors = np.linalg.eigh(left.block(support))
        return _Sparse(support, vectors[:, -1], float(values[-1]), steps)
    block = left.block(support)
    try:
        if s < ITERATED:
            raise Unconverged("not tried")
        entries = largest(lambda v: block @ v, start, 1, TIGHT, RESTARTS)[1][:, 0]
    except Unconverged:
        entries = top_vectors(block, 1)[:, 0]
    return _Sparse(support, entries, float(entries @ block @ entries), steps)
