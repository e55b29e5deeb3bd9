"""What searches for sparse directions share: a contrast without earlier directions, and what they find."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._util.arrays import Array
from ..moments import Contrast, Indices

KEPT_BYTES = 256 * 2**20  # of columns of C that are kept
MANY = 1 / 10  # part of the columns from which on all are formed at once, if they can be kept


class Kept:
    """C of a contrast, of which the columns that a search has come to are kept.

    Searches with other starts, sizes and penalties come to the same few features: their columns give blocks of C, and
    products with vectors of these features, without another pass over the rows.
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
class Left:
    """P C P, where P projects onto the complement of earlier directions with orthonormal basis Q (D, k)."""

    C: Kept
    Q: Array
    image: Array  # C Q

    @classmethod
    def of(cls, C: Kept, V: Array) -> Left:
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
class Sparse:
    """A direction: its features, its entries there, v'C v, what is maximised, and the steps that led to it."""

    support: Indices
    entries: Array
    value: float
    objective: float
    steps: int


def full(one: Sparse, D: int) -> Array:
    """All D entries."""
    v = np.zeros(D)
    v[one.support] = one.entries
    return v
