"""Contrast axes from one half of the rows (F16, F18)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from .._util.arrays import Array
from ..groups import Groups
from ..moments import contrast
from ..solvers import contrast_axes, has_plateau, latent_rank, noise_rank, top_eigenpairs
from ._split_moments import ChunkMoments, Half
from ._splits import Splits


@dataclass(frozen=True)
class SharedAxes:
    """What all rows of both groups together show: the same for all splits, and blind to the group of a row.

    Attributes
    ----------
    rank : int
        Dimensions above the noise.
    vectors : ndarray of shape (p, r)
        The leading principal directions, as many as any model of a split has.
    has_noise : bool
        Whether enough dimensions of each group are left to know the noise by.
    """

    rank: int
    vectors: Array
    has_noise: bool


def shared_axes(chunks: Groups[ChunkMoments], n_axes: int, *, within: bool) -> SharedAxes:
    """Principal axes of the rows about the means of their groups, or of their chunks (`within`)."""
    everything = np.ones(max(group.counts.size for group in chunks), dtype=bool)
    x, y = chunks.map(lambda group: (ChunkMoments.within if within else ChunkMoments.merged)(group, everything))
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
    plateau = has_plateau(max(counts), x.n_features, int(x.moments.weight), int(y.moments.weight))
    return SharedAxes(rank, vectors[:, : -most - 1 : -1], plateau)


def axes_of_split(
    chunks: Groups[ChunkMoments], splits: Splits, split: int, n_axes: int, shared: SharedAxes
) -> tuple[Array, float]:
    """Contrast axes from the finding half, and the noise ratio of the testing half outside their model.

    Returns
    -------
    axes : ndarray of shape (p, n_axes)
        Unit directions in the working basis. The first axes do not depend on `n_axes`.
    noise : float
        Log ratio of foreground to background mean variance outside the subspace of the axes' model; nan if so many
        dimensions stand out that what is outside is no noise.
    """
    finds, within = splits.finds[split], splits.within[split]
    merge = ChunkMoments.within if within else ChunkMoments.merged
    halves = chunks.map(lambda group: merge(group, finds))
    ranks = _model_ranks(halves, shared.rank, n_axes)
    C = contrast(halves.map(lambda half: half.moments), _strength(halves, shared.vectors[:, : ranks[0]]))
    spectrum = top_eigenpairs(C, ranks[-1], iterate=False)
    a, b = spectrum.covariances(C)
    weights = np.zeros((ranks[-1], n_axes))
    for k, r in enumerate(ranks):
        inside = Groups.of(np.diagonal(a)[:r], np.diagonal(b)[:r])
        nu_x, nu_y = halves.map(Half.outside, inside)
        earlier = weights[:r, :k] if k else None
        weights[:r, k] = contrast_axes(a[:r, :r], b[:r, :r], nu_x, nu_y, 1, earlier=earlier)[1][:, 0]
    tests = chunks.map(lambda group: merge(group, ~finds))
    return spectrum.vectors @ weights, _log_noise_ratio(tests, spectrum.vectors) if shared.has_noise else math.nan


def _model_ranks(halves: Groups[Half], signals: int, n_axes: int) -> list[int]:
    """Ranks of the models with 1, ..., n_axes contrast axes and room for what the groups share (F16).

    Rows are counted even if they come in blocks: the test half judges the axes, and few blocks would leave no room for
    what is shared (F38).
    """
    half, (n, m) = halves.foreground, halves.map(lambda half: int(half.moments.weight))
    rank = min(n - 1, half.moments.mean.size)
    return [latent_rank(signals, signals, k, half.n_features, n, m, foreground_rank=rank) for k in range(1, n_axes + 1)]


def _strength(halves: Groups[Half], shared: Array) -> float:
    """gamma, about half the sufficient bound of F4 (with the leading directions of both groups), at most one half.

    The exact limit would take several eigendecompositions; directions do not change between 0 and 0.9 of it (F16).
    """
    foreground, background = halves.map(lambda half: half.total / half.moments.weight)
    rest = foreground - float(_variances(halves.foreground, shared).sum())
    return 0.5 * min(1.0, max(rest, 0.0) / background) if background > 0 else 0.0


def _variances(half: Half, U: Array) -> Array:
    """Variances along orthonormal directions."""
    found: Array = np.einsum("ij,ij->j", U, half.moments.scatter.matmul(U)) / half.moments.weight
    return found


def _log_noise_ratio(tests: Groups[Half], U: Array) -> float:
    """Computed on rows that did not choose the subspace: on those that did, the foreground noise looks too small."""
    x, y = tests.map(lambda half: half.outside(_variances(half, U)))
    return math.log(x / y) if min(x, y) > 0 else 0.0
