"""Rows in the feature space of a kernel, in coordinates of the span of some of them (F32)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from .._util.arrays import Array
from ._dual import pivoted_factor
from ._moments import Indices

KERNELS = ("rbf", "poly", "linear", "precomputed")
# Squared distance of a landmark from the span of the others, relative to its length, below which it is only rounding.
TOLERANCE, FLOAT32_TOLERANCE = 1e-11, 1e-5
INDEFINITE = 100  # times the tolerance: a residual of the factor that rounding cannot explain
SAME = 1e-14  # squared distance of a row from itself, relative to twice its squared length, by rounding
ASYMMETRIC = 1e-6  # difference of k(x, y) and k(y, x), relative to the largest entry


@dataclass(frozen=True)
class Kernel:
    """The inner product of rows x and z in a feature space.

    Attributes
    ----------
    name : {"rbf", "poly", "linear", "precomputed"}
        exp(-|x - z|^2 / (2 h^2)), (x'z / h^2 + c)^p, x'z, or the given values.
    bandwidth : float
        h.
    degree : int
        p.
    coef0 : float
        c.
    """

    name: str
    bandwidth: float
    degree: int
    coef0: float

    def __call__(self, rows: Array, landmarks: Array) -> Array:
        """k(x, z) for every row x and landmark z, shape (n, l); for given values landmarks (l, 1) are their columns."""
        if self.name == "precomputed":
            return rows[:, landmarks[:, 0].astype(np.intp)]
        if self.name == "linear":
            return rows @ landmarks.T
        if self.name == "poly":
            with np.errstate(over="ignore"):
                values: Array = (rows @ landmarks.T / self.bandwidth**2 + self.coef0) ** self.degree
            if not np.isfinite(values).all():
                raise ValueError(
                    f"Kernel values of degree {self.degree} and bandwidth {self.bandwidth:.4g} are too large to be "
                    "stored: use a smaller degree or a larger bandwidth."
                )
            return values
        return np.exp(squared_distances(rows, landmarks) / (-2 * self.bandwidth**2))


def squared_distances(rows: Array, others: Array) -> Array:
    """|x - z|^2 of every row and other row, shape (n, l); 0 if it is only rounding of their lengths."""
    lengths = [np.einsum("ij,ij->i", table, table) for table in (rows, others)]
    both = lengths[0][:, None] + lengths[1]
    squares = both - 2 * (rows @ others.T)
    squares[squares < SAME * both] = 0.0
    return squares


def median_bandwidth(groups: Sequence[Array], weights: Sequence[Array | None]) -> float:
    """h with 2 h^2 = the median squared distance of two rows of a group, mean over the groups (F33).

    Distances between groups do not count: they grow with the difference of the means, which is no contrast of
    variances. Rows that count twice are two rows.
    """
    typical = []
    for rows, own in zip(groups, weights, strict=True):
        counts = np.ones(len(rows)) if own is None else own
        squares, pairs = squared_distances(rows, rows).ravel(), np.outer(counts, counts).ravel()
        pairs = np.where(squares > 0, pairs, 0.0)  # not a row and itself, or its copies
        order = np.argsort(squares)
        reached = np.cumsum(pairs[order])
        typical.append(squares[order[np.searchsorted(reached, reached[-1] / 2)]])
    return float(np.sqrt(np.mean(typical) / 2)) or 1.0


def choose_landmarks(counts: Sequence[int], size: int | None, rng: np.random.Generator) -> list[Indices]:
    """Rows of each group that are landmarks: all (None), or `size` in total, equally many of each group if possible."""
    left, chosen = sum(counts) if size is None else size, [np.empty(0, dtype=np.intp)] * len(counts)
    for done, k in enumerate(np.argsort(counts, kind="stable")):  # a small group leaves more to the others
        share = min(counts[k], left // (len(counts) - done))
        chosen[k] = np.sort(rng.choice(counts[k], share, replace=False)) if share < counts[k] else np.arange(share)
        left -= share
    return chosen


@dataclass(frozen=True)
class FeatureSpace:
    """The span of landmarks in the feature space, with an orthonormal basis Q: landmarks = L Q'.

    Attributes
    ----------
    kernel : Kernel
    landmarks : ndarray of shape (r, D)
        Independent ones, in the kernel's units.
    triangle : ndarray of shape (r, r)
        L, lower triangular, with k(z_i, z_j) = (L L')_ij.
    """

    kernel: Kernel
    landmarks: Array
    triangle: Array

    @classmethod
    def spanned(cls, kernel: Kernel, gram: Array, landmarks: Array, tolerance: float = TOLERANCE) -> FeatureSpace:
        """The span of landmarks (l, D) with these inner products (l, l); those that depend on others are left out.

        Beside the factor R nothing is left of a positive semidefinite matrix, so that a rest tells one that is not.
        """
        R, pivots = pivoted_factor(np.array(gram, order="F"), 0, len(gram), tolerance)
        if kernel.name == "precomputed" and np.abs(gram - R @ R.T).max() > INDEFINITE * tolerance * np.abs(gram).max():
            refuse_indefinite(gram)
        return cls(kernel, landmarks[pivots], R[pivots])

    @property
    def size(self) -> int:
        """r."""
        return len(self.landmarks)

    def coordinates(self, rows: Array) -> Array:
        """Coordinates of the rows' projections onto the span, shape (n, r)."""
        found: Array = solve_triangular(self.triangle, self.kernel(rows, self.landmarks).T, lower=True).T
        return found

    def coefficients(self, V: Array) -> Array:
        """a of shape (r, k): the coordinate of any row x along the columns of V (r, k) is k(x, landmarks) a."""
        found: Array = solve_triangular(self.triangle, V, lower=True, trans="T")
        return found


def check_precomputed(matrix: Array) -> None:
    """Raise if a square matrix cannot be the inner products of rows, as far as single entries tell."""
    diagonal, largest = np.diagonal(matrix), float(np.abs(matrix).max())
    if largest > 0 and not diagonal.any():
        raise ValueError(
            "The diagonal of the precomputed kernel is 0: it looks like a matrix of distances, but must hold "
            "similarities. For distances D, use np.exp(-D**2 / np.median(D**2))."
        )
    i, j = np.unravel_index(np.argmax(np.abs(matrix - matrix.T)), matrix.shape)
    if abs(matrix[i, j] - matrix[j, i]) > ASYMMETRIC * largest:
        raise ValueError(
            f"The precomputed kernel is not symmetric: row {i} has {matrix[i, j]:.6g} in column {j}, but row {j} has "
            f"{matrix[j, i]:.6g} in column {i} (cases first, then controls, counting from 0). Rows and columns must be "
            "the same samples in the same order. If only rounding differs, pass (K + K.T) / 2."
        )
    if diagonal.min() < 0:
        refuse_indefinite(matrix[diagonal < 0][:, diagonal < 0])


def check_definite(lengths: Array, coordinates: Array, gram: Array, tolerance: float) -> None:
    """Raise if rows are shorter than their projections: their given inner products are not those of any features.

    Parameters
    ----------
    lengths : ndarray of shape (n,)
        k(x, x) of every row.
    coordinates : ndarray of shape (n, r)
    gram : ndarray of shape (l, l)
        Inner products of the landmarks, for the message.
    """
    missing = np.einsum("ij,ij->i", coordinates, coordinates) - lengths
    if np.any(missing > INDEFINITE * tolerance * lengths.max()):
        refuse_indefinite(gram)


def refuse_indefinite(gram: Array) -> None:
    """Raise for inner products with a negative eigenvalue."""
    values = np.linalg.eigvalsh(gram)
    raise ValueError(
        f"The precomputed kernel is not positive semidefinite: eigenvalues of its landmarks go from {values[0]:.3g} to "
        f"{values[-1]:.3g}, so it is not an inner product of any features. Check that it holds similarities, not "
        "distances. If it is a similarity that is no kernel, or rounded, pass "
        "K - np.linalg.eigvalsh(K)[0] * np.eye(len(K)), which has none below 0."
    )
