"""Moments of chunks of rows, shared by all splits; in a working basis if there are many features (F18)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from .._util.arrays import EPS, Array, Rows, is_sparse, row_slices
from .._util.threads import single_thread, worker_count
from ..data import Groups, Indices
from ..data.rows import DaskRows, labelled_moments, storage
from ..moments import DenseScatter, Moments
from ._splits import Flags

# The matrices of the chunks are at most 500 x 500 (80 MB for both groups). Wider tables are first rotated to the
# leading principal directions of all rows, which does not use the group of a row. F16 uses fewer than 100 of them.
WORKING_DIMENSIONS = 500

# Up to this many features, the principal directions come from a full scatter matrix (72 MB); beyond, from subspace
# iteration, whose error after 4 rounds is far below the sampling error of these directions.
EXACT_FEATURES = 3000
SUBSPACE_ROUNDS = 4
LEAST_SQUARES = 1e-290  # sums of squares below have lost digits
BLOCK_NUMBERS = 2**21  # numbers in a block of rows, dense or projected: 16 MB


@dataclass(frozen=True)
class GroupRows:
    """Rows (n, D) of one group, with the mean (D,) and divisor (D,) of each feature; in a design, with weights (n,)."""

    rows: Rows
    mean: Array
    scale: Array
    weights: Array | None = None

    def coordinates(self, directions: Array) -> Array:
        """Centred, scaled rows along directions (D, c), shape (n, c), block by block in float64."""
        P = directions / self.scale[:, None]
        if isinstance(self.rows, DaskRows):
            return storage(self.rows).centred_product(self.rows, self.mean, P)
        found = np.empty((self.rows.shape[0], P.shape[1]))
        for part, block in _blocks(self.rows, P.shape[1]):
            found[part] = storage(block).centred_product(block, self.mean, P)
        return found

    def scatter(self) -> Array:
        """The scatter matrix, shape (D, D)."""
        matrix = storage(self.rows).scatter(self.rows, self.mean, self.weights)
        matrix /= self.scale
        matrix /= self.scale[:, None]
        return matrix

    def times(self, V: Array) -> Array:
        """The scatter matrix times V (D, k), block by block."""
        P, product = V / self.scale[:, None], np.zeros_like(V)
        if isinstance(self.rows, DaskRows):
            return storage(self.rows).product(self.rows, self.mean, P) / self.scale[:, None]
        for part, block in _blocks(self.rows, V.shape[1]):
            w = None if self.weights is None else self.weights[part]
            product += storage(block).product(block, self.mean, P, w)
        return product / self.scale[:, None]


def _blocks(rows: Rows, width: int) -> Iterator[tuple[slice, Rows]]:
    """Slices of rows, and the rows in float64 (sparse ones stay sparse): a few at a time."""
    size = max(1, BLOCK_NUMBERS // max(width, 1 if is_sparse(rows) else rows.shape[1]))
    for part in row_slices(rows.shape[0], size):
        yield part, rows[part].astype(np.float64, copy=False)


@dataclass(frozen=True)
class ChunkMoments:
    """Moments of chunks of one group's rows, each about its own mean, in scaled units."""

    counts: Array
    means: Array  # of the features, (n_chunks, D)
    coordinates: Array  # the means in the working basis, (n_chunks, p)
    scatters: Array  # in the working basis, (n_chunks, p, p)
    squares: Array  # sums of squares over all features: traces of the full scatters

    def half(self, chosen: Flags, *, within: bool) -> Half:
        """Moments of the rows in the chosen chunks, about their mean; or about those of their chunks (`within`).

        About one mean, by Chan's rule (F8) for several subsets at once. Within chunks, the weight is the degrees of
        freedom plus one.
        """
        present = np.flatnonzero(chosen[: self.counts.size] & (self.counts > 0))
        weights, total = self.counts[present], float(self.squares[present].sum())
        weight, (p, D) = float(weights.sum()), (self.coordinates.shape[1], self.means.shape[1])
        if within:
            scatter = self.scatters[present].sum(axis=0)
            return Half(Moments(weight - present.size + 1, np.zeros(p), DenseScatter(scatter)), total, D)
        root, mean = np.sqrt(weights)[:, None], weights @ self.coordinates[present] / weight
        about = root * (self.coordinates[present] - mean)
        apart = root * (self.means[present] - weights @ self.means[present] / weight)
        scatter = about.T @ about
        for chunk in present:
            scatter += self.scatters[chunk]
        return Half(Moments(weight, mean, DenseScatter(scatter)), total + float(np.einsum("ij,ij->", apart, apart)), D)


@dataclass(frozen=True)
class Half:
    """One half of one group: moments in the working basis, and the trace of the scatter over all features."""

    moments: Moments
    total: float
    n_features: int

    def variances(self, U: Array) -> Array:
        """Variances along orthonormal directions."""
        found: Array = np.einsum("ij,ij->j", U, self.moments.scatter.matmul(U)) / self.moments.weight
        return found

    def outside(self, inside: Array) -> float:
        """Unbiased mean variance of the D - r dimensions outside a subspace with variances `inside` (r,)."""
        weight = self.moments.weight
        rest = max(self.total - weight * float(inside.sum()), 0.0) / max(weight - 1, 1)
        return rest / (self.n_features - inside.size)


def chunk_moments(group: GroupRows, chunks: Indices, basis: Array | None) -> ChunkMoments:
    """Moments of each chunk of rows, in the working basis; the chunks are numbered over both groups."""
    rows, scale = group.rows, group.scale
    n_chunks, D = int(chunks.max()) + 1, scale.size
    p = D if basis is None else basis.shape[1]
    counts = np.bincount(chunks, group.weights, minlength=n_chunks).astype(np.float64)
    means, coordinates = np.zeros((n_chunks, D)), np.zeros((n_chunks, p))
    scatters, squares = np.zeros((n_chunks, p, p)), np.zeros(n_chunks)
    if basis is None and isinstance(rows, DaskRows):  # all in one pass
        found = labelled_moments(rows, chunks, n_chunks)
        means = np.array([mean for _, mean, _ in found]) / scale
        scatters = np.array([scatter for _, _, scatter in found]) / scale / scale[:, None]
        return ChunkMoments(counts, means, means, scatters, np.einsum("cii->c", scatters))

    def fill(chunk: int) -> None:
        here = np.flatnonzero(chunks == chunk)
        part, w = rows[here], None if group.weights is None else group.weights[here]
        own = GroupRows(part, storage(part).column_sums(part, w) / counts[chunk], scale, w)
        means[chunk] = own.mean / scale
        if basis is None:
            coordinates[chunk], scatters[chunk] = means[chunk], own.scatter()
            squares[chunk] = np.trace(scatters[chunk])
        else:
            coordinates[chunk] = means[chunk] @ basis
            Z = own.coordinates(basis)
            scatters[chunk] = Z.T @ Z if w is None else Z.T @ (w[:, None] * Z)
            squares[chunk] = np.sum(storage(part).squares(part, own.mean, w) / scale**2)

    workers = 1 if isinstance(rows, DaskRows) else worker_count(rows.size * p // 100)  # files are read by one
    with single_thread(), ThreadPoolExecutor(workers) as pool:
        list(pool.map(fill, np.flatnonzero(counts)))
    with np.errstate(over="ignore"):
        total = squares.sum() + counts @ np.sum((means - counts @ means / counts.sum()) ** 2, axis=1)
    if not np.isfinite(total):
        raise ValueError("Input contains values too large to be squared: rescale them.")
    if total < LEAST_SQUARES and np.ptp(means[counts > 0], axis=0).any():
        raise ValueError("Input contains only values too small to be squared: rescale them.")
    return ChunkMoments(counts, means, coordinates, scatters, squares)


def working_basis(groups: Groups[GroupRows], rng: np.random.Generator) -> Array | None:
    """Leading principal directions of all rows, each centred by its group's mean, if there are too many features.

    Tables with at most `WORKING_DIMENSIONS` features, and no more features than rows, need none. In a wide table with
    few rows the basis spans all rows, and nothing is lost. Otherwise it omits what varies least in both groups
    together. It treats the rows of both groups alike, so under the null hypothesis it reveals nothing about the group
    of a row in the test half.
    """
    D, n_rows = groups.foreground.scale.size, sum(group.rows.shape[0] for group in groups)
    if min(WORKING_DIMENSIONS, n_rows) >= D:
        return None
    if n_rows - 2 <= WORKING_DIMENSIONS:
        tables = groups.map(lambda own: own.rows[:].toarray() if is_sparse(own.rows) else own.rows[:])
        Z = np.vstack(list(tables.map(lambda rows, own: (rows - own.mean) / own.scale, groups)))
        # An orthonormal basis of the span of the rows Z: Z'E L^(-1/2), with E and L the eigenpairs of Z Z'.
        values, E = np.linalg.eigh(Z @ Z.T)
        # Smaller eigenvalues are rounding errors of the Gram matrix, not directions of the rows.
        kept = values > max(values[-1], 0.0) * len(Z) * EPS
        kept[-1] = True  # even if all rows are equal
        return np.linalg.qr(Z.T @ E[:, kept])[0]
    if D <= EXACT_FEATURES:
        scatter = np.sum([group.scatter() for group in groups], axis=0)
        found: Array = scipy.linalg.eigh(scatter, subset_by_index=[D - WORKING_DIMENSIONS, D - 1], overwrite_a=True)[1]
        return found
    Q = rng.standard_normal((D, WORKING_DIMENSIONS))
    for _ in range(SUBSPACE_ROUNDS):
        Q = np.linalg.qr(np.sum([group.times(Q) for group in groups], axis=0))[0]
    return Q
