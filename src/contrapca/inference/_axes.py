"""The axes that the finding half of a split shows, from moments of chunks of rows that all splits share (F18).

If there are many features everything is in a working basis.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg

from .._util.arrays import EPS, Array, Rows, is_sparse, row_slices
from .._util.threads import single_thread, worker_count
from ..contrast import contrast_axes, latent_rank, noise_is_visible, noise_rank, top_eigenpairs
from ..data import Groups, Indices
from ..data.rows import DaskRows, labelled_moments, storage
from ..moments import DenseScatter, Moments, contrast

Flags = npt.NDArray[np.bool_]

# The matrices of the chunks are at most 500 x 500 (80 MB for both groups). Wider tables are first rotated to the
# leading principal directions of all rows, which does not use the group of a row. F16 uses fewer than 100 of them.
WORKING_DIMENSIONS = 500

# Up to this many features, the principal directions come from a full scatter matrix (72 MB); beyond, from subspace
# iteration, whose error after 4 rounds is far below the sampling error of these directions.
EXACT_FEATURES = 3000
SUBSPACE_ROUNDS = 4
LEAST_SQUARES = 1e-290  # sums of squares below have lost digits
BLOCK_NUMBERS = 2**21  # numbers in a block of rows, dense or projected: 16 MB
MOST_LEVERAGE = 0.9  # of a row in its regression: the variance of longer ones is not known


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


def left_by(columns: Array, x: Array) -> Array:
    """What a regression on columns (n, q) leaves of x (n, k), each row with the variance that it has without it."""
    U, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    Q = U[:, sizes > 1e-9 * sizes[0]]
    leverage = np.minimum(np.sum(Q**2, axis=1), MOST_LEVERAGE)
    found: Array = (x - Q @ (Q.T @ x)) / np.sqrt(1 - leverage)[:, None]
    return found


@dataclass(frozen=True)
class RefitRows:
    """Rows of one group in the working basis, from which the same columns are regressed out in each half by itself."""

    coordinates: Array  # of both groups, (N, p)
    columns: Array  # (N, q)
    chunks: Indices  # (N,)
    weights: Array  # (N,): 0 in the other group
    outside: Array  # squares of the rows outside of the basis, (N,)
    n_features: int
    counts: Array  # weights of the chunks

    def half(self, chosen: Flags, *, within: bool) -> Half:
        """Moments of the group's rows in the chosen chunks, about the mean model of these chunks."""
        rows = chosen[self.chunks]
        left, weights = left_by(self.columns[rows], self.coordinates[rows]), self.weights[rows]
        own = weights > 0
        scatter = left[own].T @ (weights[own, None] * left[own])
        total = float(np.trace(scatter) + weights @ self.outside[rows])
        moments = Moments(float(weights.sum()), np.zeros(len(scatter)), DenseScatter(scatter))
        return Half(moments, total, self.n_features)


def refit_rows(
    groups: Groups[GroupRows], chunks: Groups[Indices], basis: Array | None, columns: Groups[Array]
) -> Groups[RefitRows]:
    """The rows of both groups, for means of their own in each half: a regression on `columns` (n, q)."""
    every, D = np.concatenate(list(chunks)), groups.foreground.scale.size
    directions = np.eye(D) if basis is None else basis
    Z = np.concatenate([own.coordinates(directions) for own in groups])
    outside = np.zeros(every.size)
    if basis is not None:
        lengths = np.concatenate([np.sum(((own.rows - own.mean) / own.scale) ** 2, axis=1) for own in groups])
        outside = np.maximum(lengths - np.sum(Z**2, axis=1), 0.0)
    x, y = (own.weights for own in groups)
    assert x is not None
    assert y is not None
    both = np.concatenate([x, np.zeros(y.size)]), np.concatenate([np.zeros(x.size), y])
    known = Z, np.concatenate(list(columns)), every
    return groups.like(RefitRows(*known, w, outside, D, np.bincount(every, w).astype(float)) for w in both)


Chunks = ChunkMoments | RefitRows  # rows of a group, of which a half has moments


@dataclass(frozen=True)
class SharedAxes:
    """What all rows of both groups together show: the same for all splits, and blind to the group of a row."""

    rank: int  # dimensions above the noise
    vectors: Array  # the leading principal directions (p, r), as many as any model of a split has
    has_noise: bool  # whether enough dimensions of each group are left to know the noise by


def shared_axes(chunks: Groups[Chunks], n_axes: int, *, within: bool) -> SharedAxes:
    """Principal axes of the rows about the means of their groups, or of their chunks (`within`)."""
    everything = np.ones(max(group.counts.size for group in chunks), dtype=bool)
    x, y = chunks.map(lambda group: group.half(everything, within=within))
    scatter = x.moments.scatter.dense() + y.moments.scatter.dense()
    values, vectors = scipy.linalg.eigh(scatter, overwrite_a=True, driver="evd", check_finite=False)
    weight = x.moments.weight + y.moments.weight - 1  # degrees of freedom plus one
    rows = max(x.moments.weight, y.moments.weight) / 2  # counted as if found in the larger finding half
    share = rows / weight
    rank = noise_rank(values[::-1] * share, rows, x.n_features, (x.total + y.total) * share)
    most = latent_rank(rank, rank, n_axes, x.n_features, int(x.moments.weight), int(y.moments.weight))
    counts = (
        noise_rank(np.linalg.eigvalsh(own.moments.scatter.dense())[::-1], own.moments.weight, own.n_features, own.total)
        for own in (x, y)
    )
    visible = noise_is_visible(max(counts), x.n_features, int(x.moments.weight), int(y.moments.weight))
    return SharedAxes(rank, vectors[:, : -most - 1 : -1], visible)


def axes_of_split(
    chunks: Groups[Chunks], finds: Flags, n_axes: int, shared: SharedAxes, *, within: bool
) -> tuple[Array, float]:
    """Contrast axes (p, n_axes) from the chunks of the finding half, and the log noise ratio of the others.

    Axes are unit directions in the working basis; the first ones do not depend on `n_axes`. The noise is the mean
    variance outside the subspace of their model: nan if so many dimensions stand out that the rest is not noise.
    """
    halves = chunks.map(lambda group: group.half(finds, within=within))
    x, y = halves
    # Ranks of the models with 1, ..., n_axes contrast axes and room for what the groups share (F16). Rows are counted
    # even if they come in blocks: the test half judges the axes, and few blocks would leave no room (F38).
    n, m, most = int(x.moments.weight), int(y.moments.weight), x.moments.mean.size
    signals, D = shared.rank, x.n_features
    ranks = [latent_rank(signals, signals, k, D, n, m, foreground_rank=min(n - 1, most)) for k in range(1, n_axes + 1)]
    # gamma is about half the sufficient bound of F4 (with the leading directions of both groups), at most one half. The
    # exact limit would take several eigendecompositions; directions do not change between 0 and 0.9 of it (F16).
    rest = x.total / x.moments.weight - float(x.variances(shared.vectors[:, : ranks[0]]).sum())
    background = y.total / y.moments.weight
    gamma = 0.5 * min(1.0, max(rest, 0.0) / background) if background > 0 else 0.0
    C = contrast(halves.map(lambda half: half.moments), gamma)
    spectrum = top_eigenpairs(C, ranks[-1], iterate=False)
    a, b = spectrum.covariances(C)
    weights = np.zeros((ranks[-1], n_axes))
    for k, r in enumerate(ranks):
        nu_x, nu_y = x.outside(np.diagonal(a)[:r]), y.outside(np.diagonal(b)[:r])
        earlier = weights[:r, :k] if k else None
        weights[:r, k] = contrast_axes(a[:r, :r], b[:r, :r], nu_x, nu_y, 1, earlier=earlier)[1][:, 0]
    axes, U = spectrum.vectors @ weights, spectrum.vectors
    if not shared.has_noise:
        return axes, math.nan
    # On rows that did not choose the subspace: on those that did, the foreground noise looks too small.
    tests = chunks.map(lambda group: group.half(~finds, within=within))
    noise_x, noise_y = tests.map(lambda half: half.outside(half.variances(U)))
    return axes, math.log(noise_x / noise_y) if min(noise_x, noise_y) > 0 else 0.0
