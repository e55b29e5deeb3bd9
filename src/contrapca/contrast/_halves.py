"""Fits to a part of the rows, and the same axes in both halves of them, many times (F43)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.special
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from .._util.arrays import TINY, Array
from .._util.threads import calm_threads
from ..data import Groups, Tables
from ..exceptions import ContrastWarning, GroupError
from ..moments import (
    Complete,
    Flags,
    Indices,
    Moments,
    Parts,
    along,
    assign_folds,
    make_parts,
    mixture,
    pooled_deviation,
    spread_out,
)

FOUND_AGAIN = 0.3  # agreement of the latents from two halves below which a component is not found again
SPLITS, SEED = 5, 0  # of the halves by which gamma="auto" is chosen
PARTS = 10  # of the rows; five of them are a half
RANKED = 5000  # cases, at most, whose latents are compared
Training = Tables | Complete  # what a fit to a part of the rows is given


@contextmanager
def unwarned() -> Iterator[None]:
    """Without our warnings, which are about all rows and not about a part of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContrastWarning)
        yield


def many_problems(order: int) -> AbstractContextManager[None]:
    """Without threads of the BLAS up to order 1000: many problems one after the other wake them too often.

    On a busy machine of 2 cores a comparison of methods on 500 features took 264 s with two threads and 23 s with one.
    """
    return calm_threads(10.0 * order**2)


def in_original_units(components: Array, data: Complete) -> Groups[Array]:
    """Directions (..., D, k) that rows of each group are projected on, from those in the units of the model.

    With scale="group" each group is measured in its own units, as the model does.
    """
    return data.scaling.map(lambda own: components / own.scale[:, None])


def of_all_groups(axes: Groups[Array], groups: Groups[Any]) -> Groups[Array]:
    """A model of the foreground alone has only its units, for the backgrounds too."""
    return groups.like(axes if len(axes) == len(groups) else [axes.foreground] * len(groups))


# ---------------------------------------------------------------------- halves


@dataclass(frozen=True)
class Halves:
    """Rows in parts, and splits of the parts into halves."""

    # From flags of parts to the parts that a fit to them is given: the same for all, unless covariates are regressed
    # out of each half
    parts: Callable[[Flags], Parts]
    splits: Flags  # (n_splits, n_parts): which parts are in the first half of each split

    def __iter__(self) -> Iterator[Flags]:
        """The parts that are fitted to: both halves of every split."""
        for first in self.splits:
            yield first
            yield ~first

    @property
    def whole(self) -> tuple[Training, Groups[Moments]]:
        """All rows, as a fit is given them, and their moments."""
        every = np.ones(self.splits.shape[1], dtype=bool)
        return self.parts(every).union(every)


def halves_of(
    tables: Tables,
    unit_of: Groups[Indices],
    n_splits: int,
    rng: np.random.Generator,
    parts: Callable[[Groups[Indices]], Callable[[Flags], Parts]] | None = None,
    unscaled: int | None = None,
    sections: Groups[Indices] | None = None,
) -> Halves:
    """Random halves of some tables, given the independent unit of each row.

    `parts` makes those of each half from the part of each row, where they differ; `unscaled` as for `make_parts`.
    Rows of a section, of those that are numbered over all groups, are spread over the parts evenly, too.
    """
    part_of = assign_folds(unit_of, PARTS, rng) if sections is None else _parts_of_sections(unit_of, sections, rng)
    n_parts = 1 + max(int(own.max()) for own in part_of)
    # Of an odd number the first half has one part less.
    splits = np.argsort(rng.random((n_splits, n_parts)), axis=1) < n_parts // 2
    if parts is not None:
        return Halves(parts(part_of), splits)
    same = make_parts(tables, part_of, unscaled=unscaled)
    return Halves(lambda inside: same, splits)


def by_cell(values: Groups[Any], cell_of: Groups[Indices]) -> Groups[Any]:
    """The values of rows, grouped by the cells of a design in place of the foreground and background."""
    every, cells = np.concatenate(list(values)), np.concatenate(list(cell_of))
    names = ("foreground", *(f"cell {c}" for c in range(1, int(cells.max()) + 1)))
    return Groups.from_items((every[cells == c] for c in range(len(names))), names)


def _parts_of_sections(
    unit_of: Groups[Indices], sections: Groups[Indices], rng: np.random.Generator
) -> Groups[Indices]:
    """The part of each row, so that all have rows of every section."""
    stacked = np.concatenate(list(sections))
    _, codes = np.unique(stacked, return_inverse=True)
    edge = len(sections.foreground)
    found = np.empty(stacked.size, dtype=np.intp)
    units = by_cell(unit_of, sections.like([codes[:edge], codes[edge:]]))
    if any(np.all(own == own[0]) for own in units):
        raise GroupError(
            "All rows of a condition, a cell or a dose are in one block, so that their mean is not known where this "
            "block is held out: leave blocks= (or strata=) out, or that part of the rows, or measure more blocks."
        )
    for c, own in enumerate(assign_folds(units, PARTS, rng)):
        found[codes == c] = own
    return sections.like([found[:edge], found[edge:]])


@dataclass(frozen=True)
class HalfLatents:
    """Latents along the axes of one half."""

    # (n, ...): of all rows of each group, about the mean of the half, in units of the standard deviation in the half,
    # both groups' variances added
    every: Groups[Array]
    unseen: Groups[Flags]  # (n,): the rows of the other half
    # (...): what a direction of the same length has of variance in the mean over all: that of the half's backgrounds,
    # if features are measured in their standard deviations within groups
    floor: Array

    def reshaped(self, *shape: int) -> HalfLatents:
        """These latents in other shapes (n, ...)."""
        every = self.every.map(lambda Z: Z.reshape(len(Z), *shape))
        return HalfLatents(every, self.unseen, self.floor.reshape(shape))


def half_latents(
    halves: Halves, directions: Callable[[Training], Groups[Array]], most: int | None = None
) -> list[HalfLatents]:
    """Latents along the axes that `directions` finds in each half, and last in all rows.

    `directions` takes training rows to each group's axes in original units, shape (D, k), or (G, D, k) for G settings;
    `most` limits the rows of each group that are used.
    """
    every = np.ones(halves.splits.shape[1], dtype=bool)
    axes = [_HalfAxes.of(halves.parts(inside), inside, directions) for inside in (*halves, every)]
    if all(own.parts is axes[0].parts for own in axes):  # one product reads the rows once
        stacked = Groups.from_items(map(np.hstack, zip(*(own.V for own in axes), strict=True)), axes[0].V.names)
        products = axes[0].parts.project(stacked, most)
        edges = np.cumsum([0, *(own.V.foreground.shape[1] for own in axes)])
        latents = [products.map(lambda Z, a=a, b=b: Z[:, a:b]) for a, b in pairwise(edges)]  # type: ignore[misc]
    else:
        latents = [own.parts.project(own.V, most) for own in axes]
    return [own.latents(Z, most) for own, Z in zip(axes, latents, strict=True)]


@dataclass(frozen=True)
class _HalfAxes:
    """Axes (D, columns) of each group, in units of what varies along them in the half, and its means along them."""

    parts: Parts
    inside: Flags
    V: Groups[Array]
    means: Groups[Array]
    shape: tuple[int, ...]
    floor: Array

    @classmethod
    def of(cls, parts: Parts, inside: Flags, directions: Callable[[Training], Groups[Array]]) -> _HalfAxes:
        training, left = parts.union(inside)
        with unwarned(), many_problems(left.foreground.mean.size):
            axes = of_all_groups(directions(training), left)
        V = axes.map(lambda own: own if own.ndim == 2 else np.hstack(list(own)))
        unit = np.sqrt(np.sum([along(one, own) / one.weight for one, own in zip(left, V, strict=True)], axis=0))
        V = V.map(lambda own: own / np.where(unit > 0, unit, np.nan))  # no variance, or no axis
        means = left.map(lambda one, mean, own: (one.mean - mean) @ own, parts.means, V)
        deviation = pooled_deviation(left)
        mean_variance = float(mixture(left) @ [np.mean(one.variance / deviation**2) for one in left.backgrounds])
        floor = mean_variance * np.sum((V.foreground * deviation[:, None]) ** 2, axis=0)
        return cls(parts, inside, V, means, axes.foreground.shape, floor)

    def latents(self, products: Groups[Array], most: int | None) -> HalfLatents:
        """From the products of all rows, or some, about the means of all."""
        every = products.map(lambda Z, mean: Z - mean, self.means)
        if len(self.shape) == 3:
            every = every.map(lambda Z: Z.reshape(len(Z), self.shape[0], self.shape[2]))
        part_of = self.parts.part_of.map(lambda own: own[spread_out(own.size, most)])
        floor = self.floor.reshape(every.foreground.shape[1:])
        return HalfLatents(every, part_of.map(lambda own: ~self.inside[own]), floor)


# ---------------------------------------------------------------------- the same axis in all halves


def best_pairs(r: Array) -> Array:
    """For each row of correlations (k, k) its column, so that all together are the largest in size, shape (k,)."""
    costs = 2 - np.abs(np.nan_to_num(r))  # above 0: the solver takes 0 for no pair
    return np.asarray(min_weight_full_bipartite_matching(scipy.sparse.csr_array(costs))[1])


def rank_correlations(Z: Array, other: Array) -> Array:
    """Spearman's correlations (k, k) of the columns of Z (n, k) with those of another array (n, k)."""
    k, some = Z.shape[1], spread_out(len(Z), RANKED)
    columns = np.hstack([Z[some], other[some]])
    order, ranks = np.argsort(columns, axis=0), np.empty(columns.shape)
    np.put_along_axis(ranks, order, np.arange(1.0, len(columns) + 1)[:, None], axis=0)
    ordered = np.take_along_axis(columns, order, axis=0)
    for j in np.flatnonzero((ordered[1:] == ordered[:-1]).any(axis=0)):  # equal values have the mean of their ranks
        _, place, counts = np.unique(columns[:, j], return_inverse=True, return_counts=True)
        ranks[:, j] = (np.cumsum(counts) - (counts - 1) / 2)[place]
    ranks -= ranks.mean(axis=0)
    lengths = np.sqrt(np.sum(ranks**2, axis=0))
    ranks /= np.where(lengths > 0, lengths, 1.0)
    return np.asarray(ranks[:, :k].T @ ranks[:, k:])


def matched(halves: Sequence[HalfLatents], whole: Array) -> tuple[list[HalfLatents], Array]:
    """The halves' latents in the order and with the signs of the cases' own (n, k), and their agreement (k,).

    Agreement is the mean over splits of the rank correlation of the cases' latents along the axes of both halves.
    """
    found = []
    for half in halves:
        r = rank_correlations(whole, half.every.foreground)
        order = best_pairs(r)
        signs = np.where(r[np.arange(len(r)), order] < 0, -1.0, 1.0)
        every = half.every.map(lambda Z, order=order, signs=signs: Z[:, order] * signs)  # type: ignore[misc]
        found.append(HalfLatents(every, half.unseen, half.floor[order]))
    both = [
        np.diagonal(rank_correlations(a.every.foreground, b.every.foreground))
        for a, b in zip(found[::2], found[1::2], strict=True)
    ]
    return found, np.mean(both, axis=0)


# ---------------------------------------------------------------------- reproducible contrast


@dataclass(frozen=True)
class Reproducible:
    """How reproducible the contrast of each of G settings is (F43)."""

    # (n_splits, G, k): magnitude of the rank correlation of the cases' latents along the axes of both halves, matched
    agreement: Array
    contrast: Array  # (n_splits, G, k): that of `robust_contrast`, mean of both halves

    @property
    def scores(self) -> Array:
        """Mean over the axes of agreement times contrast, shape (n_splits, G)."""
        return np.asarray((self.agreement * self.contrast).mean(axis=-1))


def reproducible_contrast(latents: Sequence[HalfLatents]) -> Reproducible:
    """From latents (n, G, k), or (n, k) of one setting, along the axes of both halves of each split in turn."""
    shape = latents[0].floor.shape
    settings, k = (1, *shape) if len(shape) == 1 else shape
    halves = [half.reshaped(settings, k) for half in latents[: len(latents) // 2 * 2]]
    agreement, contrast = np.empty((2, len(halves) // 2, settings, k))
    for split, (a, b) in enumerate(zip(halves[::2], halves[1::2], strict=True)):
        of_a, of_b = robust_contrast(a), robust_contrast(b)
        for g in range(settings):
            r = np.abs(rank_correlations(a.every.foreground[:, g], b.every.foreground[:, g]))
            columns = best_pairs(r)
            agreement[split, g] = r[np.arange(k), columns]
            contrast[split, g] = (of_a[g] + of_b[g][columns]) / 2
    return Reproducible(agreement, contrast)


def robust_contrast(half: HalfLatents) -> Array:
    """(x - y) / (x + y + t) of each axis (G, k) on unseen rows, from -1 to 1.

    x and y are squares of the mean distances of unseen cases and controls from their medians, and t is what noise of
    the same length has (`floor`), so that directions in which nothing varies count for nothing.
    """
    x, *others = (
        np.mean(np.abs(Z[unseen] - np.median(Z[unseen], axis=0)), axis=0) ** 2
        for Z, unseen in zip(half.every, half.unseen, strict=True)
    )
    y = np.mean(others, axis=0)
    return np.asarray((x - y) / np.maximum(x + y + half.floor * 2 / np.pi, TINY))


def most_reproducible(halves: Halves, directions: Callable[[Training], Groups[Array]]) -> int:
    """Which of G settings, whose axes (G, D, k) `directions` finds in each half, has the most reproducible contrast.

    The first that is, on average, within a standard error of the best.
    """
    scores = reproducible_contrast(half_latents(halves, directions, RANKED)).scores
    means = np.where(np.isnan(scores).any(axis=0), -np.inf, scores.mean(axis=0))
    best = int(np.argmax(means))
    behind = scores[:, [best]] - scores
    error = behind.std(axis=0, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else np.zeros(len(means))
    with np.errstate(invalid="ignore"):
        return int(np.argmax(means >= means[best] - np.nan_to_num(error)))
