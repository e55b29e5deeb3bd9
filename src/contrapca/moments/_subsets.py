"""Moments of subsets of the rows: read once, for any union of some parts: folds, halves (F17)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array, Rows, chosen, host, put, spread_out
from ..data import Groups, Scaling, Tables
from ..data.rows import DaskRows, labelled_moments, storage
from ..exceptions import GroupError
from ._complete import Complete
from ._moments import Moments, dense_moments, row_moments
from ._scatter import DenseScatter, Indices
from ._solver import MAX_DENSE, SolverChoice, choose_solver
from ._span import reduce_rows

LOST = 1e-6  # of a feature's scatter left after a subtraction: below it, less than ten digits would be right
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Fold:
    """Some rows that are held out, and those that are left to fit to."""

    # The rest of the rows, to be collected as the data of a fit: moments, or rows where there are too many features
    training: Tables | Complete
    left: Groups[Moments]  # of the rows that are left, in original units
    held: Groups[Moments]  # of those held out

    def squares(self, V: Groups[Array]) -> Array:
        """What the fold adds to the scatter along each column of a group's V (D, k), shape (groups, k).

        v'(S - S_left) v = v'S_held v + (w_held w_left / w) (v'(mean_held - mean_left))^2, by Chan's rule. Its
        expectation is w_held v'cov v for folds of any size, which neither holds about the fold's own mean nor about the
        training rows'. In units of the variance along v in the training rows, summed over the groups: no fold
        counts for more because its axes happen to lie along features of larger variance. nan where v is 0, which
        stands for an axis that does not exist.
        """
        unit = np.sum([along(left, own) / left.weight for left, own in zip(self.left, V, strict=True)], axis=0)

        def added(held: Moments, left: Moments, own: Array) -> Array:
            between = held.weight * left.weight / (held.weight + left.weight)
            return along(held, own) + between * ((held.mean - left.mean) @ own) ** 2

        with np.errstate(invalid="ignore"):
            return np.array(list(self.held.map(added, self.left, V))) / unit

    @property
    def weights(self) -> Array:
        """Rows held out of every group, shape (groups,)."""
        return np.array([held.weight for held in self.held])


def along(group: Moments, V: Array) -> Array:
    """v'Sv for each column v of V (D, k); rounding may not make it negative."""
    return np.maximum(np.sum(V * group.scatter.matmul(V), axis=0), 0.0)


def make_folds(tables: Tables, fold_of: Groups[Indices]) -> list[Fold]:
    """Each part of complete rows held out in turn; arguments as for `make_parts`."""
    parts, folds = make_parts(tables, fold_of), []
    for held in np.eye(parts.count, dtype=bool):
        folds.append(Fold(*parts.union(~held), parts.union(held)[1]))
    return folds


@dataclass(frozen=True)
class Parts:
    """Complete rows in parts, read once for the moments of any union of them."""

    rows: Groups[Rows]  # in the coordinates in which axes are found
    means: Groups[Array]
    weights: Groups[Array | None]
    part_of: Groups[Indices]  # (n_k,): the part of each row, numbered from 0
    # From flags of parts (count,) to what a fit is given of their rows, and to their moments
    union: Callable[[Flags], tuple[Tables | Complete, Groups[Moments]]]

    @property
    def count(self) -> int:
        """The number of parts."""
        return 1 + max(int(own.max()) for own in self.part_of)

    def project(self, V: Groups[Array], most: int | None = None) -> Groups[Array]:
        """Rows about their means along each group's V (D, columns): all, or some of them (see `spread_out`)."""

        def of(rows: Rows, mean: Array, own: Array) -> Array:
            if most is not None and most < rows.shape[0]:
                rows = chosen(rows, np.isin(np.arange(rows.shape[0]), spread_out(rows.shape[0], most)))
            return np.asarray(host(storage(rows).centred_product(rows, mean, own)))

        return self.rows.map(of, self.means, V)


def make_parts(tables: Tables, part_of: Groups[Indices], *, unscaled: int | None = None) -> Parts:
    """Parts of complete rows, given the part of each row (n_k,), numbered from 0.

    The smallest of these is kept of the rows: the moments of each part; coordinates in the span of all rows (F7), if
    these are fewer than their features; or the rows themselves. `unscaled` is the number of components where features
    are not scaled: unions are then ready to be fitted, in the coordinates of the span, too, in which features cannot be
    scaled.
    """
    rows, means, weights = tables.rows, tables.means, tables.weights
    wide = choose_solver(tables).name == "dual"
    if wide and unscaled is not None:
        # Coordinates of all rows in their span, from one Gram matrix; they give the moments of any subset.
        _, basis = reduce_rows(rows.map(row_moments, means, weights), unscaled)
        placed = rows.like(basis.R[a:b] for a, b in pairwise(basis.edges))
        rows = placed.map(lambda own, w: own if w is None else own / put(np.sqrt(w), own)[:, None], weights)
        means = rows.map(_mean, weights)

    def of_rows(parts: Flags, moments: Callable[..., Moments]) -> Groups[Moments]:
        def of_group(rows: Rows, own: Indices, w: Array | None) -> Moments:
            inside = parts[own]
            some, counts = chosen(rows, inside), None if w is None else w[inside]
            return moments(some, _mean(some, counts), counts)

        return rows.map(of_group, part_of, weights)

    def in_span(parts: Flags) -> tuple[Complete, Groups[Moments]]:
        found = of_rows(parts, dense_moments)
        return ready(found, tables.n_features), found

    def as_rows(parts: Flags) -> tuple[Tables, Groups[Moments]]:
        found = of_rows(parts, row_moments)
        scatters: Groups[Any] = found.map(lambda group: group.scatter)
        some = scatters.map(lambda own: own.rows), found.map(lambda group: group.mean)
        counts = scatters.map(lambda own: own.weights)
        # If it is known which rows are long, their weights say so.
        return replace(tables, rows=some[0], means=some[1], weights=counts), found

    if wide or tables.n_features > MAX_DENSE:
        return Parts(rows, means, weights, part_of, in_span if wide and unscaled is not None else as_rows)
    moments_of, names = _moments_of_parts(tables, part_of), tables.names if tables.text_names else None
    totals = moments_of.map(lambda every: reduce(add, every))

    def of_moments(parts: Flags) -> tuple[Tables | Complete, Groups[Moments]]:
        found = moments_of.map(lambda every, total: _union(every, total, parts), totals)
        found = found.map(lambda group: replace(group, names=names))
        return (Tables.of_moments(found, tables.names, tables.text_names) if unscaled is None else ready(found)), found

    return Parts(rows, means, weights, part_of, of_moments)


def ready(groups: Groups[Moments], n_features: int | None = None) -> Complete:
    """Groups as they are as the data of a fit; `n_features` where their coordinates are not the features."""
    scaling = groups.map(
        lambda own: Scaling(own.weight, own.mean, own.variance, np.ones(own.mean.size), own.names, "float64")
    )
    if n_features is not None:  # all that a fit takes from the mean is its size
        groups = groups.map(lambda group: replace(group, mean=np.zeros(n_features)))
    return Complete(groups, scaling, SolverChoice("eigh", "moments were given"))


def _moments_of_parts(tables: Tables, part_of: Groups[Indices]) -> Groups[list[Moments]]:
    """Moments of each part of each group's rows."""
    count = 1 + max(int(own.max()) for own in part_of)

    def of_group(rows: Rows, own: Indices, w: Array | None) -> list[Moments]:
        if isinstance(rows, DaskRows):  # all in one pass
            found = labelled_moments(rows, own, count, w)
            return [Moments(weight, mean, DenseScatter(scatter)) for weight, mean, scatter in found]
        parts = [(chosen(rows, own == k), None if w is None else w[own == k]) for k in range(count)]
        return [dense_moments(some, _mean(some, counts), counts) for some, counts in parts]

    return tables.rows.map(of_group, part_of, tables.weights)


def _union(every: Sequence[Moments], total: Moments, parts: Flags) -> Moments:
    """Moments of some parts: the total without the others, if these are few, unless digits are lost; else a sum."""
    others = np.flatnonzero(~parts).tolist()
    if not others:
        return total
    if 2 * len(others) < len(every) - len(others):
        left_out = reduce(add, [every[k] for k in others])
        if left_out.weight < total.weight:
            rest = total - left_out
            # The error of an entry is that of the total's, which by Cauchy and Schwarz its two diagonal entries bound.
            if np.all(rest.scatter.diagonal() >= LOST * total.scatter.diagonal()):
                return rest
    return reduce(add, [every[k] for k in np.flatnonzero(parts).tolist()])


def _mean(rows: Rows, weights: Array | None) -> Array:
    return storage(rows).column_sums(rows, weights) / (rows.shape[0] if weights is None else weights.sum())


# ---------------------------------------------------------------------- which row is in which fold


def assign_folds(unit_of: Groups[Indices], n_folds: int, random: np.random.Generator) -> Groups[Indices]:
    """Fold of each row of each group; units stay together.

    Rows of one unit (donor, animal, plate) are not independent, so they share a fold; a unit that has rows in several
    groups (paired designs) has one fold in all of them. Within that, every group is spread over the folds as evenly as
    a greedy assignment of the larger units first can. Each fold has rows of every group: there are fewer than wanted
    where a group has fewer units, or where units that lie in several groups leave a fold without rows of some group.

    `unit_of` has the independent unit of each row, numbered from 0 over all groups: rows themselves, or their blocks.
    """
    count = 1 + max(int(own.max()) for own in unit_of)
    # Rows of each unit in each group, as shares of the group.
    shares = np.stack([np.bincount(own, minlength=count) / len(own) for own in unit_of], axis=1)
    fewest = int((shares > 0).sum(axis=0).min())
    for folds in range(min(n_folds, fewest), 1, -1):
        of_unit = _spread(shares, folds, random)
        found = unit_of.map(lambda own, of_unit=of_unit: of_unit[own])  # type: ignore[misc]
        if all(np.unique(own).size == folds for own in found):
            return found
    raise GroupError("The rows cannot be put into two parts that both have rows, or blocks, of every group.")


def row_units(tables: Tables) -> Groups[Indices]:
    """Every row as a unit of its own."""
    edges = np.cumsum([0, *(rows.shape[0] for rows in tables.rows)])
    return tables.rows.like(np.arange(a, b) for a, b in pairwise(edges))


def _spread(shares: Array, folds: int, random: np.random.Generator) -> Indices:
    """Fold of each unit, given its share of each group (units, groups): larger ones first, to where they fit best."""
    order = random.permutation(len(shares))
    order = order[np.argsort(-shares[order].sum(axis=1), kind="stable")]
    chosen = np.empty(len(shares), dtype=np.intp)
    alone = np.all((shares > 0).sum(axis=1) == 1) and all(np.ptp(own[own > 0]) == 0 for own in shares.T)
    if alone or np.all(np.ptp(shares, axis=0) == 0):
        # Units of one size are dealt out in turn, group by group: what the assignment below would do, at once.
        group = shares.argmax(axis=1)[order]
        for k in range(shares.shape[1]):
            members = order[group == k]
            chosen[members] = np.arange(len(members)) % folds
        return chosen
    load = np.zeros((folds, shares.shape[1]))
    for unit in order:
        share = shares[unit]
        missing = ((load == 0) & (share > 0)).sum(axis=1)
        # Of the folds that lack most of the unit's groups, that whose squared loads grow least.
        fold = np.lexsort((load @ share, -missing))[0]
        chosen[unit] = fold
        load[fold] += share
    return chosen
