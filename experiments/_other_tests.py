"""Tests of a contrast that ours is compared with: CDE, RACT, BasCoD (docs/math.md, F38, F31), and that of version 0.1.

CDE and RACT are written from the papers' formulas. Where the published ones resample or permute rows, these move whole
units (rows, or blocks of rows), so that they can be compared with ours on donors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special

SIMILAR = 0.9  # cosine from which CDE takes a direction for shared
BASCOD_CORRELATION = 0.7  # the correlation that BasCoD takes for similar
# An excess of whitened variances below this is rounding. Where no direction has any, the largest is that of the
# directions found before, which is 0 in every labelling.
NOTHING = 1e-12
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


def bascod_statistic(target: Any, background: Any) -> tuple[float, float, Any]:
    """BasCoD's statistic, its p-value and correlations, from orthonormal loadings (D, d) and (D, R) (F31).

    Large if background loadings are not in the span of the target's. Its p-value takes the features for independent,
    which they are not: `check_background` splits the rows instead.
    """
    D, R = background.shape
    inside = target @ (target.T @ background)
    r = np.array([np.corrcoef(a, b)[0, 1] for a, b in zip(background.T, inside.T, strict=True)])
    z = (np.arctanh(np.clip(r, -1 + 1e-15, 1 - 1e-15)) - np.arctanh(BASCOD_CORRELATION)) * np.sqrt(D - 3)
    statistic = float(-2 * scipy.special.log_ndtr(z).sum())
    return statistic, float(scipy.special.chdtrc(2 * R, statistic)), r


@dataclass(frozen=True)
class PermutationTest:
    """The result of the permutation test.

    Attributes
    ----------
    p_values : ndarray of shape (k,)
        p-values of "no further dimension" at each step, up to the first that is not rejected.
    excess : ndarray of shape (k,)
        Excess of the foreground's variance over the background's along each tested direction, relative to both.
    directions : ndarray of shape (n_components, D)
        Unit vectors in scaled units: the directions with excess variance.
    """

    p_values: Any
    excess: Any
    directions: Any

    @property
    def n_components(self) -> int:
        """Dimensions that were found."""
        return len(self.directions)


def permutation_test(
    X: Any,
    Y: Any,
    *,
    max_components: int = 10,
    level: float = 0.05,
    n_permutations: int = 199,
    scale: str | None = None,
    random_state: Any = None,
) -> PermutationTest:
    """The test of version 0.1: does the foreground vary more along some direction than permuted labels allow?

    The statistic is the largest eigenvalue of cov_X - cov_Y of rows whitened by the covariance of all rows, in the
    space orthogonal to the directions found before. What is permuted are the labels of Helmert contrasts, which do not
    depend on the means and, for Gaussian rows, are exchangeable: for other rows the test does not keep its level.
    """
    rng = np.random.default_rng(random_state)
    X, Y = (table - table.mean(axis=0) for table in (X, Y))
    deviations = [X.std(axis=0), Y.std(axis=0)]
    if scale == "pooled":
        deviations = [np.vstack([X, Y]).std(axis=0)] * 2
    if scale is not None:
        X, Y = (table / np.where(sd > 0, sd, 1.0) for table, sd in zip((X, Y), deviations, strict=True))
    # Contrasts span as much as the rows: with fewer rows than features, their coordinates are all that is needed.
    x, y = helmert_contrasts(X), helmert_contrasts(Y)
    rows, basis = np.vstack([x, y]), np.eye(X.shape[1])
    if len(rows) < rows.shape[1]:
        U, s, basis = np.linalg.svd(rows, full_matrices=False)
        rows = U * s
    in_foreground = np.arange(len(rows)) < len(x)
    whitener, colour = whitening(rows)
    rows = rows @ whitener
    p_values: list[float] = []
    excess: list[float] = []
    directions: list[Any] = []
    for _ in range(min(max_components, rows.shape[1] - 1)):
        values, vectors = np.linalg.eigh(excess_matrix(rows, in_foreground))
        observed, direction = beyond_rounding(values[-1]), vectors[:, -1]
        permuted = [largest_excess(rows, rng.permutation(in_foreground)) for _ in range(n_permutations)]
        p_values.append((1 + sum(value >= observed for value in permuted)) / (1 + n_permutations))
        excess.append(observed)
        if p_values[-1] > level:
            break
        pattern = (colour @ direction) @ basis
        directions.append(pattern / np.linalg.norm(pattern))
        rows = rows - np.outer(rows @ direction, direction)
    return PermutationTest(np.array(p_values), np.array(excess), np.array(directions).reshape(-1, X.shape[1]))


def helmert_contrasts(table: Any) -> Any:
    """n - 1 orthonormal (Helmert) contrasts of n rows: same scatter, independent of the mean, exchangeable if Gaussian.

    Row k is (x_1 + ... + x_k - k x_{k+1}) / sqrt(k (k + 1)). Centred rows span one dimension fewer than their number,
    but permuted groups do not; with few rows, this alone would look like a difference.
    """
    k = np.arange(1, len(table))[:, None]
    return (np.cumsum(table, axis=0)[:-1] - k * table[1:]) / np.sqrt(k * (k + 1))


def whitening(rows: Any) -> tuple[Any, Any]:
    """(C + t I)^(-1/2) and (C + t I)^(1/2), C the covariance of all rows, t its mean variance times D / rows.

    C is the same for all labellings, so whitening keeps the test valid. It prevents directions in which both groups
    vary a lot, and whose covariances differ a lot by chance, from hiding the others.
    """
    n, D = rows.shape
    values, U = np.linalg.eigh(rows.T @ rows / n)
    values = values + max(values.mean() * D / n, np.finfo(float).tiny)
    return (U / np.sqrt(values)) @ U.T, (U * np.sqrt(values)) @ U.T


def excess_matrix(rows: Any, in_foreground: Any) -> Any:
    """cov_X - cov_Y (D, D) of a labelling of contrasts, about zero."""
    x, y = rows[in_foreground], rows[~in_foreground]
    return x.T @ x / len(x) - y.T @ y / len(y)


def largest_excess(rows: Any, in_foreground: Any) -> float:
    """The largest eigenvalue of cov_X - cov_Y of a labelling."""
    last = rows.shape[1] - 1
    matrix = excess_matrix(rows, in_foreground)
    found = scipy.linalg.eigh(matrix, eigvals_only=True, subset_by_index=[last, last], check_finite=False)
    return beyond_rounding(found[0])


def beyond_rounding(excess: float) -> float:
    """0 where an excess is rounding."""
    return 0.0 if abs(excess) < NOTHING else float(excess)
