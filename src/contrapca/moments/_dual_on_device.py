"""The same as `_dual` for rows on a device, whose libraries have no pivoted Cholesky factor (F7)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from .._util.arrays import EPS, Array
from .._util.devices import host, namespace, put
from ..groups import Groups
from ..rows._array_api import centred
from ._basis import Basis
from ._moments import DenseScatter, Moments, RowScatter


@dataclass(frozen=True)
class DeviceBasis(Basis):
    """A basis from eigenvectors, on a device.

    Attributes
    ----------
    inverse : array of shape (k, rank)
        R^-1'.
    """

    inverse: Any

    def vectors(self, V: Array) -> Array:
        """Q V, from Q = Z'R^-1'."""
        rank = self.inverse.shape[1]
        return host(self.rows.T @ (self.inverse @ put(V[:rank], self.rows)))


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
    return reduced, DeviceBasis(rows, R, tuple(edges.tolist()), vectors / roots / lengths)
