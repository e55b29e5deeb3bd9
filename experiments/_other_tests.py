"""Small versions of two published tests of a contrast, for comparison: CDE and RACT (docs/math.md, F38).

Both are written from the papers' formulas. Where the published ones resample or permute rows, these move whole units
(rows, or blocks of rows), so that they can be compared with ours on donors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

SIMILAR = 0.9  # cosine from which CDE takes a direction for shared
MOST_NORMS = 10  # Ky Fan norms that RACT adapts over


@dataclass(frozen=True)
class ContrastiveDimension:
    """CDE's estimate.

    Attributes
    ----------
    n_dimensions : int
        Dimensions of the foreground's subspace that the background's lacks.
    cosines : ndarray of shape (min(d_x, d_y),), descending
        Of the principal angles between the two subspaces.
    p_value : float
        Of "the background has all dimensions of the foreground".
    """

    n_dimensions: int
    cosines: Any
    p_value: float


@dataclass(frozen=True)
class UnitMoments:
    """Moments of each unit of a table that was centred: resampled and permuted covariances are sums of them.

    Attributes
    ----------
    counts : ndarray of shape (u,)
    sums : ndarray of shape (u, D)
    squares : ndarray of shape (u, D, D)
        Sums of outer products.
    """

    counts: Any
    sums: Any
    squares: Any

    @classmethod
    def of(cls, X: Any, units: Any) -> UnitMoments:
        """Of a table (n, D) with the unit of each row."""
        rows = X - X.mean(axis=0)
        parts = [rows[units == unit] for unit in np.unique(units)]
        sums, squares = ([part.sum(axis=0) for part in parts], [part.T @ part for part in parts])
        return cls(np.array([len(part) for part in parts]), np.array(sums), np.array(squares))

    def __add__(self, other: UnitMoments) -> UnitMoments:
        """The units of both."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in ("counts", "sums", "squares"))
        return UnitMoments(*map(np.concatenate, pairs))

    def covariances(self, times: Any) -> Any:
        """Covariances (r, D, D) of the rows when each unit is taken `times` (r, u)."""
        counts = times @ self.counts
        means = times @ self.sums / counts[:, None]
        about_zero = np.tensordot(times, self.squares, 1) / counts[:, None, None]
        return about_zero - means[:, :, None] * means[:, None, :]


def contrastive_dimension(
    X: UnitMoments, Y: UnitMoments, d_x: int, d_y: int, n_resamples: int, rng: np.random.Generator
) -> ContrastiveDimension:
    """CDE (Hawke, Ma and Li 2024), for two tables with d_x and d_y dimensions each.

    Its statistic is the smallest cosine, compared with that of resamples of X and of X and Y together, after centring.
    """
    n, m = len(X.counts), len(Y.counts)
    own = np.vstack([np.ones(n), _resampled(n, n, n_resamples, rng)])
    other = np.vstack([np.repeat([0, 1], [n, m]), _resampled(n + m, m, n_resamples, rng)])
    U, V = (
        np.linalg.eigh(covariances)[1][:, :, -d:]
        for covariances, d in ((X.covariances(own), d_x), ((X + Y).covariances(other), d_y))
    )
    cosines = np.linalg.svd(np.swapaxes(U, 1, 2) @ V, compute_uv=False)
    n_dimensions = int(np.count_nonzero(cosines[0] < SIMILAR)) + max(d_x - d_y, 0)
    smaller = np.count_nonzero(cosines[1:, -1] < cosines[0, -1])
    return ContrastiveDimension(n_dimensions, cosines[0], (1 + smaller) / (1 + n_resamples))


def _resampled(n_units: int, size: int, n_resamples: int, rng: np.random.Generator) -> Any:
    """How often each unit is drawn, with replacement, shape (n_resamples, n_units)."""
    return rng.multinomial(size, np.full(n_units, 1 / n_units), size=n_resamples)


def ract_p_value(X: UnitMoments, Y: UnitMoments, n_permutations: int, rng: np.random.Generator) -> float:
    """RACT (Veitch, He and Park 2023): do two covariances differ?

    For k = 1, 2, ... the sum of the k largest singular values of cov_X - cov_Y is standardised by its mean and standard
    deviation over permutations; the statistic is the largest of these. Centred units are permuted between the groups.
    """
    n, m = len(X.counts), len(Y.counts)
    first = np.repeat([1, 0], [n, m])
    times = np.vstack([first, [rng.permutation(first) for _ in range(n_permutations)]])
    norms = ky_fan_norms((X + Y).covariances(times) - (X + Y).covariances(1 - times))
    spread = norms.std(axis=0)
    highest = np.max((norms - norms.mean(axis=0)) / np.where(spread > 0, spread, 1.0), axis=1)
    return float(np.mean(highest >= highest[0]))


def ky_fan_norms(differences: Any) -> Any:
    """Sums of the k largest singular values of symmetric matrices (r, D, D), for the first k, shape (r, k)."""
    values = np.sort(np.abs(np.linalg.eigvalsh(differences)), axis=1)
    return np.cumsum(values[:, ::-1], axis=1)[:, :MOST_NORMS]
