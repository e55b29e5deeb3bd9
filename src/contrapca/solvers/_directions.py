"""Directions that are searched by products with blocks of vectors: for rows that are no matrix (F49).

A block moves the rows through memory once for all its vectors, so that products with it cost a fraction of those with
single vectors, as ARPACK makes them. The basis only grows, which needs memory, but no restarts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._util.arrays import Array
from ..moments import RowScatter, Scatter
from ._path import outside

BLOCK = 16  # vectors at a time
CANCELLED = 1e-3  # what is left of a unit vector outside a basis, below which rounding errors need a second step
DEPENDENT = 1e-3  # the same of a vector outside those of its block, below which they are orthogonalised with more care


class Directions:
    """An orthonormal basis that grows, and what scatter matrices make of it.

    Parameters
    ----------
    scatters : sequence of Scatter
        Sparse float32 rows are multiplied in float32, so images are right to some six digits.
    """

    def __init__(self, scatters: Sequence[Scatter]):
        self.scatters, self.size = scatters, 0
        self._arrays = np.empty((1 + len(scatters), 8 * BLOCK, scatters[0].size))  # transposed: the basis, and images
        self.inner = [np.empty((0, 0)) for _ in scatters]  # Q'S Q of each scatter

    @property
    def basis(self) -> Array:
        """Q, shape (D, p)."""
        return self._arrays[0, : self.size].T

    @property
    def images(self) -> list[Array]:
        """S Q of each scatter, shape (D, p)."""
        return [own[: self.size].T for own in self._arrays[1:]]

    def add(self, vectors: Array, images: Array | None = None) -> bool:
        """Add what of the vectors is new; whether anything was. `images` are those of the first scatter, if they are
        known of orthonormal vectors from which the search starts."""
        new = _outside(self.basis, vectors) if images is None else vectors
        before, self.size = self.size, self.size + new.shape[1]
        while self.size > self._arrays.shape[1]:
            self._arrays = np.concatenate([self._arrays, np.empty_like(self._arrays)], axis=1)
        self._arrays[0, before : self.size] = new.T
        known = [] if images is None else [images]
        for scatter in self.scatters[len(known) :]:
            known.append(scatter.coarse_matmul(new) if isinstance(scatter, RowScatter) else scatter.matmul(new))
        # The basis is read once for all: blocks are so narrow that this takes nearly as long as their products.
        columns = self.basis.T @ np.hstack(known)
        for k, image in enumerate(known):
            self._arrays[1 + k, before : self.size] = image.T
            own, inner = columns[:, k * new.shape[1] : (k + 1) * new.shape[1]], np.empty((self.size, self.size))
            inner[:before, :before] = self.inner[k]
            inner[:, before:], inner[before:] = own, own.T
            self.inner[k] = inner
        return bool(new.size)

    def lifted(self, coordinates: Array) -> tuple[Array, Array]:
        """Vectors Q z, and their images under the first scatter, shape (D, k) each."""
        return self.basis @ coordinates, self.images[0] @ coordinates


def _outside(basis: Array, vectors: Array) -> Array:
    """Orthonormal directions of vectors of any lengths outside the basis."""
    lengths = np.linalg.norm(vectors, axis=0)
    rest = vectors[:, lengths > 0] / lengths[lengths > 0]
    rest -= basis @ (basis.T @ rest)
    if basis.shape[1] and np.min(np.linalg.norm(rest, axis=0), initial=1.0) < CANCELLED:
        rest -= basis @ (basis.T @ rest)
    Q, triangle = np.linalg.qr(rest)
    if np.min(np.abs(np.diagonal(triangle)), initial=1.0) > DEPENDENT:
        return Q
    return outside(basis, rest)


def random_block(size: int) -> Array:
    """Any vectors to start from, always the same."""
    return np.random.default_rng(0).standard_normal((size, min(BLOCK, size)))
