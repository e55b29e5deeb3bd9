"""The same as `_dual` for rows on a device, whose libraries have no pivoted Cholesky factor (F7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from .._util.arrays import EPS, Array
from .._util.devices import host, namespace, put
from ..groups import Groups
from ..rows._array_api import centred
from ._moments import DenseScatter, Moments, RowScatter


@dataclass(frozen=True)
class DeviceBasis:
    """An orthonormal basis Q of the span of the rows, defined by Z = R Q' and never formed; arrays on a device.

    Attributes
    ----------
    rows : array of shape (k, D)
        Z: the centred, scaled rows of all groups, one group after the other.
    R : array of shape (k, size)
        Their coordinates.
    inverse : array of shape (k, rank)
        R^-1': Q = Z'R^-1'.
    edges : tuple of int
        Where the rows of each group begin, and where those of the last group end.
    """

    rows: Any
    R: Any
    inverse: Any
    edges: tuple[int, ...]

    def of_group(self, k: int) -> DeviceBasis:
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
        """Q V in R^D for any V of shape (size, k); nearly dependent rows cost accuracy."""
        rank = self.inverse.shape[1]
        return host(self.rows.T @ (self.inverse @ put(V[:rank], self.rows)))

    def lift(self, U: Array, values: Array, coefficients: Sequence[float]) -> Array:
        """Eigenvectors Q U in R^D, shape (D, d), of C = Z'J Z, from those of R'J R: see `_dual.HostBasis.lift`."""
        inside, weights = self._weighted(coefficients)
        inner = weights * (self.R[inside, :] @ put(U, self.rows)) / put(values, self.rows)
        orthonormal, triangle = np.linalg.qr(host(self.rows[inside, :].T @ inner))
        return orthonormal * np.sign(np.diagonal(triangle))


def reduce_device_rows(groups: Groups[Moments], n_null: int) -> tuple[Groups[Moments], DeviceBasis]:
    """Scatter matrices in an orthonormal basis of the span of all centred rows, Z = R Q': see `_dual.reduce_rows`.

    With Z = diag(l) Z_1, rows of Z_1 of unit length, and Z_1 Z_1' = V diag(e) V', R = diag(l) V diag(e)^(1/2) and
    Q = Z_1'V diag(e)^(-1/2). Eigenvalues that are only rounding are left out.
    """
    scatters = [group.scatter for group in groups if isinstance(group.scatter, RowScatter)]
    xp = namespace(scatters[0].rows)
    rows = xp.concat([centred(one.rows, one.mean, one.divisor, one.weights) for one in scatters], axis=0)
    edges = np.cumsum([0, *(one.rows.shape[0] for one in scatters)])
    k, D = rows.shape
    lengths = xp.sqrt(xp.sum(rows * rows, axis=1))
    lengths = xp.where(lengths == 0, xp.ones_like(lengths), lengths)[:, None]
    unit = rows / lengths
    found = xp.linalg.eigh(unit @ unit.T)
    values = host(found.eigenvalues)
    rank = min(int(np.sum(values > 4 * EPS * k * values[-1])), D)
    vectors, roots = found.eigenvectors[:, k - rank :], xp.sqrt(found.eigenvalues[k - rank :])
    null = xp.zeros((k, min(D, rank + n_null) - rank), dtype=xp.float64, device=rows.device)
    R = xp.concat([lengths * vectors * roots, null], axis=1)
    matrices = groups.like(R[a:b, :].T @ R[a:b, :] for a, b in pairwise(edges.tolist()))
    reduced = groups.map(lambda group, matrix: replace(group, scatter=DenseScatter(matrix)), matrices)
    return reduced, DeviceBasis(rows, R, vectors / roots / lengths, tuple(edges.tolist()))
