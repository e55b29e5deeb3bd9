"""What each split of the tables finds and tests, and what all splits say together (F18)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields

import numpy as np

from .._util.arrays import TINY, Array
from .._util.threads import single_thread, worker_count
from ..groups import Groups, Tables
from ..moments import collect
from ._split_axes import axes_of_split, shared_axes
from ._split_moments import BLOCK_NUMBERS, ChunkMoments, GroupRows, chunk_moments, working_basis
from ._splits import Splits
from ._spread import cauchy_combination, compare_spread


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
        divisors = collect(tables, 0, scale, "lanczos").units.map(lambda units: units.scale)
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
