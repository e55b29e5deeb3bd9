"""A basis of the span of the rows, for fewer rows than features (F7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from .._util.arrays import Array
from .._util.devices import host, put


@dataclass(frozen=True)
class Basis:
    """An orthonormal basis Q of the span of the rows, defined by Z = R Q' and never formed; arrays where the rows are.

    Attributes
    ----------
    rows : array of shape (k, D)
        Z: the centred, scaled rows of all groups, one group after the other, times the roots of their weights.
    R : array of shape (k, size)
        Their coordinates.
    edges : tuple of int
        Where the rows of each group begin, and where those of the last group end.
    pivots : ndarray of shape (rank,)
        Rows whose coordinates are a triangular matrix of full rank.
    """

    rows: Any
    R: Any
    edges: tuple[int, ...]
    pivots: npt.NDArray[np.integer]

    def of_group(self, k: int) -> Self:
        """The same basis for a contrast of group k alone."""
        return replace(self, edges=(self.edges[k], self.edges[k + 1]))

    def _weighted(self, coefficients: Sequence[float]) -> tuple[slice, Any]:
        """The rows of the groups, and the coefficient of each in C, shape (rows, 1)."""
        weights = np.repeat(coefficients, np.diff(self.edges))[:, None]
        return slice(self.edges[0], self.edges[-1]), put(weights, self.rows)

    def matrix(self, coefficients: Sequence[float]) -> Any:
        """C = sum_k c_k S_k in the coordinates of the features, shape (D, D)."""
        inside, weights = self._weighted(coefficients)
        return self.rows[inside, :].T @ (weights * self.rows[inside, :])

    def vectors(self, V: Array) -> Array:
        """Q V in R^D for any V of shape (size, k), from Q = Z_p'L^-T with L the pivots' triangular coordinates.

        A linear system is solved, so nearly dependent rows cost accuracy; for eigenvectors use `lift`.
        """
        rank = self.pivots.size
        L, coefficients = host(self.R)[self.pivots, :rank], np.zeros((self.rows.shape[0], V.shape[1]))
        coefficients[self.pivots] = solve_triangular(L, V[:rank], lower=True, trans="T")
        return host(self.rows.T @ put(coefficients, self.rows))

    def lift(self, U: Array, values: Array, coefficients: Sequence[float]) -> Array:
        """Eigenvectors Q U in R^D, shape (D, d), of C = Z'J Z, from those of R'J R, J the coefficients of the rows.

        Since U = R'J R U / values, Q U = Z'(J R U / values): no system is solved, so nearly dependent rows do no harm.
        Rounding leaves multiples of vectors of larger eigenvalues in those of smaller ones; orthonormalising in this
        order removes them. The `values`, descending, must not be 0.
        """
        inside, weights = self._weighted(coefficients)
        inner = weights * (self.R[inside, :] @ put(U, self.rows)) / put(values, self.rows)
        orthonormal, triangle = np.linalg.qr(host((inner.T @ self.rows[inside, :]).T))
        return orthonormal * np.sign(np.diagonal(triangle))


@dataclass(frozen=True)
class Subspace:
    """An orthonormal basis Q of some directions, for fits that look nowhere else.

    Attributes
    ----------
    Q : ndarray of shape (D, size)
    """

    Q: Array

    def of_group(self, k: int) -> Self:
        """The same, whatever the group."""
        return self

    def vectors(self, V: Array) -> Array:
        """Q V in R^D for any V of shape (size, k)."""
        return self.Q @ V

    def lift(self, U: Array, values: Array, coefficients: Sequence[float]) -> Array:
        """Q U in R^D."""
        return self.Q @ U
