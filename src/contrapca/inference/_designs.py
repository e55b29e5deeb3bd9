"""How the testing half of a split is compared in designs: several conditions, two factors, or a dose (F48)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.special

from .._util.arrays import TINY, Array
from .._util.text import plural
from ..data import Design, Groups, Indices, Tables, column_means, count_units, kinds_of_units
from ..exceptions import GroupError
from ._axes import Flags, left_by
from ._spread import MIN_UNITS, compare_spread, exchanged, unit_means, unit_values, upper_tail, without_earlier_axes

CELL_ROWS = 10  # of a dose, so that its rows are about their own mean: five in each half
NEIGHBOURS = 8  # rows of neighbouring doses that are compared with each other where doses have fewer rows
MANY_CELLS = 20  # beyond, there are too many matrices of chunks: moments come from the rows of each half
LEAST_CELL = 3  # units, for jackknife values of mean distances
MOST_SHIFT = 1.0  # of the logarithm of a mean to what it is without an interaction: a stronger one stays significant


class UnseenHalf(NamedTuple):
    """The testing half of one split."""

    coordinates: Groups[Array]  # of its rows along the axes, (n, k)
    units: Groups[Indices]
    tests: Groups[Flags]  # which of all rows these are
    seed: int
    within: bool  # whether rows are compared within blocks

    def of(self, values: Groups[Any]) -> npt.NDArray[Any]:
        """Of values of all rows those of both groups' testing rows, the foreground's first."""
        return stacked(values.map(lambda own, test: own[test], self.tests))


class Compared(NamedTuple):
    """What the testing half of one split says: P comparisons along k axes, each of shape (P, k)."""

    statistics: Array
    p_values: Array
    log_ratios: Array  # of variances


Compare = Callable[[UnseenHalf], Compared]


def compare_groups(half: UnseenHalf) -> Compared:
    """Two plain groups: foreground and background."""
    x, y = half.coordinates.map(log_variance)
    rng = np.random.default_rng(half.seed)
    statistic, p_values = compare_spread(half.coordinates, half.units, rng, within=half.within)
    return Compared(statistic[None], p_values[None], (x - y)[None])


def log_variance(x: Array, weights: Array | None = None) -> Array:
    """Of each column, about the mean."""
    variance = x.var(axis=0) if weights is None else weights @ (x - weights @ x / weights.sum()) ** 2 / weights.sum()
    found: Array = np.log(np.maximum(variance, TINY))
    return found


@dataclass(frozen=True)
class DesignTest:
    """How rows of a design are split, told apart and compared."""

    cell_of: Groups[Indices]  # units with rows in the same of these cells are split by themselves
    weights: Groups[Array]  # how often each row counts when axes are looked for
    compare: Compare
    pairs: tuple[tuple[int, int], ...] = ()  # of conditions: the cells that are compared; otherwise all rows are, once
    # Columns (n, q) that are regressed out of each half by itself. From all rows, long rows of the finding half would
    # move those of the testing half wherever few rows share a mean.
    refit: Groups[Array] | None = None

    def units_of_pairs(self, unit_of: Groups[Indices]) -> list[Groups[Indices]]:
        """The units of both sides of each comparison."""
        if not self.pairs:
            return [unit_of]
        unit, cell = stacked(unit_of), stacked(self.cell_of)
        return [Groups.of(unit[cell == a], unit[cell == b]) for a, b in self.pairs]


def design_test(design: Design) -> DesignTest | None:
    """How the rows of a design are compared; None for one that is two plain groups, such as two doses."""
    if len(design.cells) == 2 and design.strata is None:
        return None
    if design.kind == "conditions":
        background = len(design.cells) - 1
        pairs = tuple((cell, background) for cell in range(background))
        refit = _columns_of_halves(design) if background > MANY_CELLS else None
        return DesignTest(design.cell_of, design.weights, compare_pairs(design.cell_of, pairs), pairs, refit)
    if design.kind == "interaction":
        return DesignTest(design.cell_of, design.weights, compare_cells(design))
    return dose_test(design)


def cell_units(unit_of: Groups[Indices], design: Design) -> list[Indices]:
    """The unit of each row of each condition, or cell of two factors."""
    unit, cell = stacked(unit_of), stacked(design.cell_of)
    return [unit[cell == c] for c in range(len(design.cells))]


def checked_cells(unit_of: Groups[Indices], design: Design, by_blocks: bool) -> Groups[Indices]:
    """The units of the rows of each condition, or cell of two factors; too few to be split raise."""
    cells = cell_units(unit_of, design)
    for name, units in zip(design.cells, cells, strict=True):
        if (count := count_units(units)) < MIN_UNITS:
            raise GroupError(
                f"{name!r} has {plural(count, 'block' if by_blocks else 'row')}: the test needs at least {MIN_UNITS} "
                "in each condition or cell. Leave it out, or measure more."
            )
    return Groups.from_items(cells, ("foreground", *design.cells[1:]))


def stacked(values: Groups[Any]) -> npt.NDArray[Any]:
    """Values of the rows of both groups, the foreground's first."""
    return np.concatenate(list(values))


# ---------------------------------------------------------------------- (a) several conditions


def compare_pairs(cell_of: Groups[Indices], pairs: tuple[tuple[int, int], ...]) -> Compare:
    """Two cells at a time, along the same axes: whether the first of a pair varies more."""

    def compare(half: UnseenHalf) -> Compared:
        x, unit, cell, found = stacked(half.coordinates), stacked(half.units), half.of(cell_of), []
        for a, b in pairs:
            two, units = Groups.of(x[cell == a], x[cell == b]), Groups.of(unit[cell == a], unit[cell == b])
            found.append(compare_groups(half._replace(coordinates=two, units=units)))
        return Compared(*map(np.vstack, zip(*found, strict=True)))

    return compare


def only_in_condition(
    tables: Tables, unit_of: Groups[Indices], design: Design, condition: str
) -> tuple[Tables, Groups[Indices], DesignTest]:
    """One condition against an even mix of the controls and the other conditions, each of which it is compared with."""
    own, cell = design.cells.index(condition), stacked(design.cell_of)
    chosen = Groups.of(np.flatnonzero(cell == own), np.flatnonzero(cell != own))
    share = 1 / np.bincount(cell)[cell[chosen.backgrounds[0]]]
    weights = Groups.of(np.ones(chosen.foreground.size), share * share.sum() / np.sum(share**2))
    rows, unit = np.vstack(list(tables.rows)), stacked(unit_of)
    found = replace(
        tables,
        rows=chosen.map(lambda own: rows[own]),
        means=chosen.map(lambda own, w: column_means(rows[own], w), weights),
        weights=weights,
        kept=chosen.map(lambda _: None),
    )
    cell_of = chosen.map(lambda own: cell[own])
    pairs = tuple((own, other) for other in range(len(design.cells)) if other != own)
    test = DesignTest(cell_of, weights, compare_pairs(cell_of, pairs), pairs)
    return found, chosen.map(lambda own: unit[own]), test


# ---------------------------------------------------------------------- (b) two factors


def compare_cells(design: Design) -> Compare:
    """Four cells, two in each group: whether those of the foreground vary by more than main effects explain."""
    signs = np.zeros(len(design.cells))
    for sign, cells in zip((1.0, -1.0), design.cell_of, strict=True):
        signs[cells] = sign

    def compare(half: UnseenHalf) -> Compared:
        x, unit, cell = stacked(half.coordinates), stacked(half.units), half.of(design.cell_of)
        weights = design.weights.map(lambda own, test: own[test], half.tests)
        remainders = x @ without_earlier_axes(*half.coordinates.map(weighted_covariance, weights))
        rows, n_units = [cell == c for c in range(signs.size)], int(unit.max()) + 1
        values = np.array([unit_values(remainders[own], unit[own], n_units, within=half.within) for own in rows])
        logs = np.array([log_variance(x[own]) for own in rows])
        statistic, p_values = interaction_p(values, signs)
        return Compared(statistic[None], p_values[None], (signs @ logs)[None])

    return compare


def weighted_covariance(x: Array, weights: Array) -> Array:
    """About the mean, shape (k, k)."""
    centred = x - weights @ x / weights.sum()
    found: Array = centred.T @ (weights[:, None] * centred) / weights.sum()
    return found


def interaction_p(values: Array, signs: Array) -> tuple[Array, Array]:
    """Statistic and p-value of T = sum_c s_c log m_c > 0, the m_c being mean values of the units of each cell.

    Each logarithm is corrected by half the relative variance of its mean. The variance of T is that of the units'
    linear parts, by kinds of units: those with rows in the same cells. (A donor with and without the drug counts once.)
    They are relative to the means under the null hypothesis, the nearest to the m_c of which T is 0, as in a score
    test: relative to m_c itself one long row in a cell would be taken for evidence, since log m_c grows with it and its
    linear part does not.

    `values` (C, U, k) of units are nan where a unit has no rows in a cell.
    """
    present = ~np.isnan(values[:, :, 0])
    kinds = kinds_of_units(present)
    known = (kinds > 0) & (np.bincount(kinds)[kinds] > 1)
    values, present = values[:, known], present[:, known]
    k = values.shape[2]
    if values.shape[1] == 0 or present.sum(axis=1).min() < LEAST_CELL:
        return np.zeros(k), np.ones(k)
    counts = present.sum(axis=1)[:, None]
    means = np.nansum(values, axis=1) / counts
    varies = np.all(means > 0, axis=0)  # in every cell
    means = np.where(means > 0, means, 1.0)
    apart = np.where(present[:, :, None], values - means[:, None], 0.0) / (counts * means)[:, None]
    variances = np.sum(apart**2, axis=1) * counts / (counts - 1)  # of the means, relative to their squares
    T = signs @ (np.log(means) + variances / 2)
    total = variances.sum(axis=0)
    shift = signs[:, None] * variances / np.where(total > 0, total, 1.0) * T
    linear = np.einsum("c,ck,cuk->uk", signs, np.exp(np.clip(shift, -MOST_SHIFT, MOST_SHIFT)), apart)
    _, kinds, sizes = np.unique(kinds_of_units(present), return_inverse=True, return_counts=True)
    parts, in_cells = np.zeros((sizes.size, k)), set()
    for kind, n in enumerate(sizes.tolist()):
        parts[kind] = n * linear[kinds == kind].var(axis=0, ddof=1)
        in_cells.add(int(present[:, kinds == kind][:, 0].sum()))
    total = parts.sum(axis=0)
    varies &= total > 0
    total = np.where(varies, total, 1.0)
    statistic = np.where(varies, T / np.sqrt(total), 0.0)
    freedom = sizes[:, None] - 1.0
    welch = total**2 / np.maximum(np.sum(parts**2 / freedom, axis=0), TINY)
    p_values = scipy.special.stdtr(welch, -statistic)
    if len(in_cells) == 1:  # then units of all kinds vary alike if nothing interacts: one variance for all
        pooled = np.sum(freedom * sizes[:, None] * parts, axis=0) / freedom.sum() * np.sum(1 / sizes)
        pooled = np.where(varies, pooled, 1.0)
        p_values = np.maximum(p_values, scipy.special.stdtr(freedom.sum(), -T / np.sqrt(pooled)))
    return statistic, np.where(varies, p_values, 1.0)


# ---------------------------------------------------------------------- (c) doses


def dose_test(design: Design) -> DesignTest:
    """Rows of doses that have at least `CELL_ROWS` are compared with each other, others with those of doses near by."""
    assert design.scores is not None
    edge, cell = len(design.cell_of.foreground), stacked(design.cell_of)
    common = np.bincount(cell)[cell] >= CELL_ROWS
    common_of = Groups.of(common[:edge], common[edge:])
    strata = design.cell_of.map(np.zeros_like) if design.strata is None else design.strata
    columns = _columns_of_halves(design)
    if common.all():
        compare = compare_doses(design, strata, common_of, None)
        refit = columns if len(design.cells) > MANY_CELLS else None
        return DesignTest(design.cell_of, design.weights, compare, refit=refit)
    return DesignTest(strata, design.weights, compare_doses(design, strata, common_of, columns), refit=columns)


def _columns_of_halves(design: Design) -> Groups[Array]:
    """What is regressed out of each half: the design's columns and an intercept for each group, as for all rows."""
    return design.columns.like(
        np.column_stack([np.full(len(own), k == 0), np.full(len(own), k == 1), own])
        for k, own in enumerate(design.columns)
    )


def compare_doses(
    design: Design, strata: Groups[Indices], common: Groups[Flags], refit: Groups[Array] | None
) -> Compare:
    """Whether how far rows are apart grows with their dose: sum of scores times values, one exchanged for the other.

    Values are exchanged within strata; if blocks hold several doses of a stratum, within these blocks. There is one
    value for each block and dose.
    """
    assert design.scores is not None
    scores = design.scores

    def compare(half: UnseenHalf) -> Compared:
        x, unit, cell, stratum = (
            stacked(half.coordinates),
            stacked(half.units),
            half.of(design.cell_of),
            half.of(strata),
        )
        score, known = half.of(scores), half.of(common)
        left = x if refit is None else left_by(half.of(refit), x)
        edge, weights = len(half.units.foreground), design.weights.map(lambda own, test: own[test], half.tests)
        parts = Groups.of(left[:edge], left[edge:])
        effects = without_earlier_axes(*parts.map(weighted_covariance, weights))
        a, b = half.coordinates.map(log_variance, weights)
        values = dose_values(x @ effects, left @ effects, unit, cell, stratum, score, known)
        # One value for each unit and cell.
        _, first, code = np.unique(np.column_stack([unit, cell]), axis=0, return_index=True, return_inverse=True)
        means, _ = unit_means(values, code.ravel())
        unit, stratum, score = unit[first], stratum[first], score[first]
        blocks = np.unique(np.column_stack([unit, stratum]), axis=0, return_inverse=True)[1].ravel()
        crossing = np.bincount(blocks).max() > 1
        here = ~np.isnan(means[:, 0])
        groups = (blocks if crossing else stratum)[here]
        statistic, p_values = trend_p(means[here], mid_ranks(score[here], groups), groups)
        return Compared(statistic[None], p_values[None], (a - b)[None])

    return compare


def dose_values(
    x: Array, left: Array, unit: Indices, cell: Indices, stratum: Indices, score: Array, common: Flags
) -> Array:
    """How far each row is from others of its dose, (n, k); nan for rows that cannot be compared.

    Where a dose has few rows, what a curve through the doses leaves of them (`left`) is compared with that of the
    nearest doses, never with the curve: one long row tilts it, and all residuals at its end with it.
    """
    found, common = np.full(x.shape, np.nan), common.copy()
    for own in np.unique(cell[common]):
        rows = np.flatnonzero(common & (cell == own))
        code = np.unique(unit[rows], return_inverse=True)[1]
        if code.max() + 1 < LEAST_CELL:
            common[rows] = False
        else:
            found[rows] = unit_values(x[rows], code, code.max() + 1, within=False)[code]
    for own in np.unique(stratum[~common]):
        rows = np.flatnonzero(~common & (stratum == own))
        rows = rows[np.argsort(score[rows], kind="stable")]
        for part in np.array_split(rows, max(1, rows.size // NEIGHBOURS)):
            if part.size >= LEAST_CELL:
                found[part] = unit_values(left[part], np.arange(part.size), part.size, within=False)
    return found


def mid_ranks(values: Array, groups: Indices) -> Array:
    """Ranks within groups; equal values share the mean of theirs."""
    found = np.empty(values.size)
    for own in np.unique(groups):
        here = groups == own
        _, code, counts = np.unique(values[here], return_inverse=True, return_counts=True)
        found[here] = (np.cumsum(counts) - (counts - 1) / 2)[code]
    return found


def trend_p(values: Array, scores: Array, groups: Indices) -> tuple[Array, Array]:
    """Statistic and p-value of T = sum a e, scores (m,) times values (m, k), if values are exchanged within groups."""
    k = values.shape[1]
    if not len(values):
        return np.zeros(k), np.ones(k)
    # Cubes of very large or small numbers would leave the range of floating point.
    largest = np.abs(values).max(axis=0)
    T, variance, third, limit = exchanged(values / np.where(largest > 0, largest, 1.0), scores, groups)
    scale = np.sqrt(np.where(variance > 0, variance, 1.0))
    statistic = T / scale
    if limit < 2:
        return statistic, np.ones(k)
    return statistic, np.where(variance > 0, upper_tail(statistic, third / scale**3, limit), 1.0)
