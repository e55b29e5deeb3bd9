"""Of many splits: the axes that one half of the rows finds, and what the other half says of them (F18)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import scipy.linalg

from .._util.arrays import Array
from .._util.threads import single_thread, worker_count
from ..contrast import contrast_axes, has_plateau, latent_rank, noise_rank, top_eigenpairs
from ..data import Groups, Tables
from ..missing import collect
from ..moments import contrast
from ._chunks import BLOCK_NUMBERS, ChunkMoments, GroupRows, chunk_moments, working_basis
from ._designs import DesignTest, RefitRows, compare_groups, refit_rows
from ._splits import Splits
from ._spread import cauchy_combination

Parts = ChunkMoments | RefitRows  # rows of a group, of which a half has moments


@dataclass(frozen=True)
class SharedAxes:
    """What all rows of both groups together show: the same for all splits, and blind to the group of a row."""

    rank: int  # dimensions above the noise
    vectors: Array  # the leading principal directions (p, r), as many as any model of a split has
    has_noise: bool  # whether enough dimensions of each group are left to know the noise by


def shared_axes(chunks: Groups[Parts], n_axes: int, *, within: bool) -> SharedAxes:
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
    plateau = has_plateau(max(counts), x.n_features, int(x.moments.weight), int(y.moments.weight))
    return SharedAxes(rank, vectors[:, : -most - 1 : -1], plateau)


def axes_of_split(
    chunks: Groups[Parts], splits: Splits, split: int, n_axes: int, shared: SharedAxes
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
    finds, within = splits.finds[split], bool(splits.within[split])
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


@dataclass(frozen=True)
class SplitOutcomes:
    """The tests of L splits along k axes each: P comparisons, of which plain groups have one."""

    statistics: Array  # (L, P, k) of each axis by itself: `combine` takes the running maximum
    p_values: Array
    log_ratios: Array  # (L, P, k) of foreground to background variance of the testing rows
    log_noise: Array  # (L,) of the mean variance outside the subspace of the axes' model

    @classmethod
    def joined(cls, parts: Sequence[SplitOutcomes]) -> SplitOutcomes:
        """The outcomes of several shares of the splits as one."""
        return cls(*(np.concatenate([getattr(part, own.name) for part in parts]) for own in fields(cls)))


def split_outcomes(
    tables: Tables,
    splits: Splits,
    scale: str | None,
    n_axes: int,
    rng: np.random.Generator,
    tick: Callable[[], None],
    design: DesignTest | None = None,
) -> SplitOutcomes:
    """Find axes with one half of complete tables and test them with the other, for every split.

    `rng` is for the working basis of wide tables; `tick` is called after each split. A `design` says how rows count and
    are compared; plain groups are compared as a whole.
    """
    divisors = tables.means.map(np.ones_like)
    if scale:
        divisors = collect(tables, 0, scale, "lanczos").scaling.map(lambda scaling: scaling.scale)
    weights: Groups[Any] = tables.rows.map(lambda _: None) if design is None else design.weights
    groups = tables.rows.map(GroupRows, tables.means, divisors, weights)
    basis = working_basis(groups, rng)
    if design is None or design.refit is None:
        chunks: Groups[Any] = groups.map(lambda group, own: chunk_moments(group, own, basis), splits.chunks)
    else:
        chunks = refit_rows(groups, splits.chunks, basis, design)
    compare, count = (compare_groups, 1) if design is None else (design.compare, max(len(design.pairs), 1))
    found, log_noise = _axes_of_splits(chunks, splits, n_axes, tick)
    directions = found if basis is None else [basis @ axes for axes in found]
    n_splits = len(directions)
    statistics, p_values, log_ratios = np.empty((3, n_splits, count, n_axes))
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
            units = splits.unit_of.map(lambda unit, test: unit[test], tests)
            statistics[split], p_values[split], log_ratios[split] = compare(
                tested, units, tests, int(splits.seeds[split]), bool(splits.within[split])
            )
    return SplitOutcomes(statistics, p_values, log_ratios, log_noise)


def _axes_of_splits(
    chunks: Groups[Parts], splits: Splits, n_axes: int, tick: Callable[[], None]
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


def combine(outcomes: SplitOutcomes, least_p: Array) -> tuple[Array, Array, float]:
    """What all splits say together: p-values (P, k) that never decrease, ratios of variances (P, k), the noise ratio.

    The p-values of each comparison are at least `least_p` (P,) (`least_p_value`).
    """
    n_splits, *shape = outcomes.p_values.shape
    running = np.maximum.accumulate(outcomes.p_values, axis=2).reshape(n_splits, -1)
    p_values = np.maximum(cauchy_combination(running).reshape(shape), least_p[:, None])
    with np.errstate(over="ignore"):  # infinite where the background does not vary at all
        return p_values, np.exp(outcomes.log_ratios.mean(axis=0)), float(np.exp(outcomes.log_noise.mean()))
