"""Of many splits: the axes that one half of the rows finds, and what the other half says of them (F18)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields

import numpy as np
import scipy.linalg

from .._util.arrays import TINY, Array
from .._util.threads import single_thread, worker_count
from ..contrast import contrast_axes, has_plateau, latent_rank, noise_rank, top_eigenpairs
from ..data import Groups, Tables
from ..missing import collect
from ..moments import contrast
from ._chunks import BLOCK_NUMBERS, ChunkMoments, GroupRows, Half, chunk_moments, working_basis
from ._splits import Splits
from ._spread import cauchy_combination, compare_spread


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
        dimensions stand out that the rest is not noise.
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


@dataclass(frozen=True)
class SplitOutcomes:
    """The tests of L splits along k axes each.

    Attributes
    ----------
    statistics, p_values : ndarray of shape (L, k)
        Of each axis by itself: `combine` takes the running maximum.
    log_ratios : ndarray of shape (L, k)
        Log ratios of foreground to background variance of the testing rows.
    log_noise : ndarray of shape (L,)
        Log ratios of the mean variance outside the subspace of the axes' model.
    """

    statistics: Array
    p_values: Array
    log_ratios: Array
    log_noise: Array

    @classmethod
    def joined(cls, parts: Sequence[SplitOutcomes]) -> SplitOutcomes:
        """The outcomes of several shares of the splits as one."""
        return cls(*(np.concatenate([getattr(part, own.name) for part in parts]) for own in fields(cls)))


def split_outcomes(
    tables: Tables, splits: Splits, scale: str | None, n_axes: int, rng: np.random.Generator, tick: Callable[[], None]
) -> SplitOutcomes:
    """Find axes with one half of complete tables and test them with the other, for every split.

    Parameters
    ----------
    tables : Tables
    splits : Splits
        All splits, or a share of them (`Splits.shares`) if each share has tables of its own, such as draws.
    scale : {None, "group", "pooled"}
    n_axes : int
    rng : Generator
        For the working basis of wide tables.
    tick : callable
        Called after each split.
    """
    divisors = tables.means.map(np.ones_like)
    if scale:
        divisors = collect(tables, 0, scale, "lanczos").scaling.map(lambda scaling: scaling.scale)
    groups = tables.rows.map(GroupRows, tables.means, divisors)
    basis = working_basis(groups, rng)
    chunks = groups.map(lambda group, own: chunk_moments(group, own, basis), splits.chunks)
    found, log_noise = _axes_of_splits(chunks, splits, n_axes, tick)
    directions = found if basis is None else [basis @ axes for axes in found]
    n_splits = len(directions)
    statistics, p_values, log_ratios = np.empty((3, n_splits, n_axes))
    # Coordinates of all rows along the axes of as many splits at a time as fit into memory.
    together = max(1, BLOCK_NUMBERS // (max(map(len, splits.unit_of)) * n_axes))
    for start in range(0, n_splits, together):
        batch = range(start, min(start + together, n_splits))
        stacked = np.hstack(directions[start : batch.stop])
        coordinates = groups.map(lambda group, V=stacked: group.coordinates(V))  # type: ignore[misc]
        for k, split in enumerate(batch):
            finds, own = splits.finds[split], slice(k * n_axes, (k + 1) * n_axes)
            tests = splits.chunks.map(lambda chunks, finds=finds: ~finds[chunks])  # type: ignore[misc]
            tested = coordinates.map(lambda Z, test, own=own: Z[test, own], tests)  # type: ignore[misc]
            x, y = tested.map(lambda Z: np.log(np.maximum(Z.var(axis=0), TINY)))
            log_ratios[split] = x - y
            units = splits.unit_of.map(lambda unit, test: unit[test], tests)
            rng = np.random.default_rng(splits.seeds[split])
            statistics[split], p_values[split] = compare_spread(tested, units, rng, within=splits.within[split])
    return SplitOutcomes(statistics, p_values, log_ratios, log_noise)


def _axes_of_splits(
    chunks: Groups[ChunkMoments], splits: Splits, n_axes: int, tick: Callable[[], None]
) -> tuple[list[Array], Array]:
    """Axes of each split, and their log noise ratios."""
    n_splits = len(splits.finds)
    # Matrices of order 500 or less gain little from the threads of the BLAS; so each of ours takes splits of its own.
    workers = worker_count(n_splits * chunks.foreground.coordinates.shape[1] ** 3 // 100)
    shared = [shared_axes(chunks, n_axes, within=kind) for kind in (False, True)[: 1 + any(splits.within)]]

    def find(split: int) -> tuple[Array, float]:
        return axes_of_split(chunks, splits, split, n_axes, shared[int(splits.within[split])])

    found = []
    with single_thread(), ThreadPoolExecutor(workers) as pool:
        for axes in pool.map(find, range(n_splits)):
            found.append(axes)
            tick()
    return [axes for axes, _ in found], np.array([noise for _, noise in found])


def combine(outcomes: SplitOutcomes, least_p: float) -> tuple[Array, Array, float]:
    """What all splits say together: p-values (k,) that never decrease, ratios of variances (k,), the noise ratio.

    The p-values are at least `least_p` (`least_p_value`).
    """
    p_values = np.maximum(cauchy_combination(np.maximum.accumulate(outcomes.p_values, axis=1)), least_p)
    with np.errstate(over="ignore"):  # infinite where the background does not vary at all
        return p_values, np.exp(outcomes.log_ratios.mean(axis=0)), float(np.exp(outcomes.log_noise.mean()))
