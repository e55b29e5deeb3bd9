"""Moments of subsets of the rows: folds, halves and any union of parts (F17)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array, Rows
from .._util.devices import chosen, host, outer, put
from ..data import Groups, Tables, Units
from ..data.rows import DaskRows, labelled_moments, storage
from ..exceptions import GroupError
from ._complete import Complete
from ._moments import Moments, dense_moments, row_moments
from ._scatter import DenseScatter
from ._solver import MAX_DENSE, SolverChoice, choose_solver
from ._span import reduce_rows

LOST = 1e-6  # of a feature's scatter left after a subtraction: below it, less than ten digits would be right


Labels = npt.NDArray[np.intp]


Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Fold:
    """Some rows that are held out, and those that are left to fit to.

    Attributes
    ----------
    training : Tables or Complete
        What is left, to be collected as the data of a fit: moments, or rows where there are too many features; or the
        data themselves, see `make_folds`.
    left, held : Groups of Moments
        Of the rows that are left and of those held out, in original units.
    """

    training: Tables | Complete
    left: Groups[Moments]
    held: Groups[Moments]

    def squares(self, V: Groups[Array]) -> Array:
        """What the fold adds to the scatter along each column of a group's V (D, k), shape (groups, k).

        v'(S - S_left) v = v'S_held v + (w_held w_left / w) (v'(mean_held - mean_left))^2, by Chan's rule. Its
        expectation is w_held v'cov v for folds of any size, which neither holds about the fold's own mean nor about the
        training rows'. In units of the variance along v in the training rows, summed over the groups: no fold
        counts for more because its axes happen to lie along features of larger variance. nan where v is 0, which
        stands for an axis that does not exist.
        """
        unit = np.sum([along(left, own) / left.weight for left, own in zip(self.left, V, strict=True)], axis=0)
        with np.errstate(invalid="ignore"):
            return np.array(list(self.held.map(_added, self.left, V))) / unit

    @property
    def weights(self) -> Array:
        """Rows held out of every group, shape (groups,)."""
        return np.array([held.weight for held in self.held])


def along(group: Moments, V: Array) -> Array:
    """v'Sv for each column v of V (D, k); rounding may not make it negative."""
    return np.maximum(np.sum(V * group.scatter.matmul(V), axis=0), 0.0)


def _added(held: Moments, left: Moments, V: Array) -> Array:
    between = held.weight * left.weight / (held.weight + left.weight)
    return along(held, V) + between * ((held.mean - left.mean) @ V) ** 2


def make_folds(tables: Tables, fold_of: Groups[Labels], *, unscaled: int | None = None) -> list[Fold]:
    """The folds of complete rows, read once.

    Parameters
    ----------
    tables : Tables
    fold_of : Groups of ndarray of int of shape (n_k,)
        The fold of each row, numbered from 0.
    unscaled : int, optional
        Given where features are not scaled: the number of components. What is left is then ready to be fitted, where
        tables are wide in the coordinates of all rows' span (F7), in which axes are found, too.
    """
    count = 1 + max(int(folds.max()) for folds in fold_of)
    # In wide tables rows are smaller than their moments.
    if choose_solver(tables).name == "dual":
        if unscaled is not None:
            return list(_folds_in_span(tables, fold_of, count, unscaled))
        return list(_folds_of_rows(tables, fold_of, count))
    if tables.n_features > MAX_DENSE:
        return list(_folds_of_rows(tables, fold_of, count))
    folds = _folds_of_moments(tables, fold_of, count)
    return [replace(fold, training=ready(fold.left)) for fold in folds] if unscaled is not None else list(folds)


def ready(groups: Groups[Moments], n_features: int | None = None) -> Complete:
    """Groups as they are as the data of a fit; `n_features` where their coordinates are not the features."""
    units = groups.map(
        lambda group: Units(group.weight, group.mean, group.variance, np.ones(group.mean.size), group.names, "float64")
    )
    if n_features is not None:  # all that a fit takes from the mean is its size
        groups = groups.map(lambda group: replace(group, mean=np.zeros(n_features)))
    return Complete(groups, units, SolverChoice("eigh", "moments were given"))


def _moments_of_parts(tables: Tables, fold_of: Groups[Labels], count: int) -> Groups[list[Moments]]:
    """Moments of each part of each group's rows."""
    names = tables.names if tables.text_names else None

    def of_folds(rows: Rows, folds: Labels, w: Array | None) -> list[Moments]:
        if isinstance(rows, DaskRows):  # all in one pass
            found = labelled_moments(rows, folds, count, w)
            return [Moments(weight, mean, DenseScatter(scatter), names) for weight, mean, scatter in found]
        return [_moments(chosen(rows, folds == k), _some(w, folds == k), names) for k in range(count)]

    return tables.rows.map(of_folds, fold_of, tables.weights)


def _folds_of_moments(tables: Tables, fold_of: Groups[Labels], count: int) -> Iterator[Fold]:
    parts = _moments_of_parts(tables, fold_of, count)
    totals = parts.map(lambda every: reduce(add, every))
    for k in range(count):
        left = parts.map(lambda every, total, k=k: _rest(total, every, k), totals)  # type: ignore[misc]
        training = Tables.of_moments(left, tables.names, tables.text_names)
        yield Fold(training, left, parts.map(lambda every, k=k: every[k]))  # type: ignore[misc]


def _folds_of_rows(tables: Tables, fold_of: Groups[Labels], count: int) -> Iterator[Fold]:
    for k in range(count):
        inside = fold_of.map(lambda folds, k=k: folds == k)  # type: ignore[misc]
        weights = tables.weights
        training, left = _left_rows(tables, inside.map(np.logical_not))
        held = tables.rows.map(lambda rows, w, out: _implicit(chosen(rows, out), _some(w, out)), weights, inside)
        yield Fold(training, left, held)


def _left_rows(tables: Tables, inside: Groups[Flags]) -> tuple[Tables, Groups[Moments]]:
    """Some rows as tables and as moments."""
    left = tables.rows.map(lambda rows, w, own: _implicit(chosen(rows, own), _some(w, own)), tables.weights, inside)
    training = Tables(
        left.map(lambda group: group.scatter.rows),
        left.map(lambda group: group.mean),
        tables.names,
        tables.text_names,
        left.map(lambda group: group.scatter.weights),
        tables.kept,
        tables.shortened,  # if it is known which rows are long, their weights say so
    )
    return training, left


def _span_coordinates(tables: Tables, n_null: int) -> Groups[Rows]:
    """Coordinates of all rows in their span, from one Gram matrix; they give every fold's moments."""
    _, basis = reduce_rows(tables.rows.map(row_moments, tables.means, tables.weights), n_null)
    rows = tables.rows.like(basis.R[a:b] for a, b in pairwise(basis.edges))
    return rows.map(lambda table, w: table if w is None else table / put(np.sqrt(w), table)[:, None], tables.weights)


def _folds_in_span(tables: Tables, fold_of: Groups[Labels], count: int, n_null: int) -> Iterator[Fold]:
    rows, weights = _span_coordinates(tables, n_null), tables.weights
    for k in range(count):
        inside = fold_of.map(lambda folds, k=k: folds == k)  # type: ignore[misc]
        left = rows.map(lambda table, w, out: _moments(chosen(table, ~out), _some(w, ~out)), weights, inside)
        held = rows.map(lambda table, w, out: _moments(chosen(table, out), _some(w, out)), weights, inside)
        yield Fold(ready(left, tables.n_features), left, held)


# ---------------------------------------------------------------------- any union of parts


@dataclass(frozen=True)
class Parts:
    """Complete rows in parts, of any union of which there are moments; rows are read once for all of them.

    Attributes
    ----------
    rows, means, weights : Groups
        The rows, their means and how often each counts, in the coordinates in which axes are found.
    part_of : Groups of ndarray of int of shape (n_k,)
        The part of each row, numbered from 0.
    union : callable
        From flags of parts (count,) to what a fit is given of their rows, and to their moments.
    """

    rows: Groups[Rows]
    means: Groups[Array]
    weights: Groups[Array | None]
    part_of: Groups[Labels]
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


def spread_out(count: int, most: int | None) -> Labels:
    """Numbers of at most so many rows, evenly spread."""
    return np.unique(np.linspace(0, count - 1, count if most is None else min(count, most)).astype(np.intp))


def make_parts(tables: Tables, part_of: Groups[Labels], *, unscaled: int | None = None) -> Parts:
    """Parts of complete rows; arguments as for `make_folds`."""
    given = (tables.rows, tables.means, tables.weights, part_of)
    if choose_solver(tables).name == "dual" and unscaled is not None:
        return _parts_in_span(tables, part_of, unscaled)
    if choose_solver(tables).name == "dual" or tables.n_features > MAX_DENSE:
        return Parts(*given, lambda chosen_parts: _left_rows(tables, part_of.map(lambda own: chosen_parts[own])))
    parts = _moments_of_parts(tables, part_of, 1 + max(int(own.max()) for own in part_of))

    def union(chosen_parts: Flags) -> tuple[Tables | Complete, Groups[Moments]]:
        left = parts.map(lambda every: reduce(add, [every[k] for k in np.flatnonzero(chosen_parts)]))
        return (Tables.of_moments(left, tables.names, tables.text_names) if unscaled is None else ready(left)), left

    return Parts(*given, union)


def _parts_in_span(tables: Tables, part_of: Groups[Labels], n_null: int) -> Parts:
    rows = _span_coordinates(tables, n_null)

    def union(chosen_parts: Flags) -> tuple[Tables | Complete, Groups[Moments]]:
        inside = part_of.map(lambda own: chosen_parts[own])
        left = rows.map(lambda table, w, own: _moments(chosen(table, own), _some(w, own)), tables.weights, inside)
        return ready(left, tables.n_features), left

    return Parts(rows, rows.map(_mean, tables.weights), tables.weights, part_of, union)


def _some(weights: Array | None, chosen: Flags) -> Array | None:
    return None if weights is None else weights[chosen]


def _moments(rows: Rows, weights: Array | None, names: tuple[str, ...] | None = None) -> Moments:
    return replace(dense_moments(rows, _mean(rows, weights), weights), names=names)


def _implicit(rows: Rows, weights: Array | None) -> Moments:
    return row_moments(rows, _mean(rows, weights), weights)


def _mean(rows: Rows, weights: Array | None) -> Array:
    return storage(rows).column_sums(rows, weights) / (rows.shape[0] if weights is None else weights.sum())


def without(total: Moments, part: Moments) -> Moments:
    """Moments of the rows of `total` that are not in `part`: Chan's rule (F8) in reverse.

    Exact up to rounding, of which the scatter has that of the total's: the more is left, the more exact.
    """
    weight = total.weight - part.weight
    apart = part.mean - total.mean
    # The distance of the two parts' means is apart * total.weight / weight; Chan's term follows.
    row = np.sqrt(part.weight * total.weight / weight) * apart
    matrix = total.scatter.dense() - part.scatter.dense()
    matrix = matrix - outer(row, matrix)
    return Moments(weight, total.mean - part.weight / weight * apart, DenseScatter(matrix), total.names)


def _rest(total: Moments, parts: Sequence[Moments], fold: int) -> Moments:
    """Moments of all parts but one: by subtraction, or, where that cancels, by merging the others."""
    rest = without(total, parts[fold])
    # The error of an entry is that of the total's, which by Cauchy and Schwarz its two diagonal entries bound.
    if np.all(rest.scatter.diagonal() >= LOST * total.scatter.diagonal()):
        return rest
    return reduce(add, [part for other, part in enumerate(parts) if other != fold])


# ---------------------------------------------------------------------- which row is in which fold


def assign_folds(unit_of: Groups[Labels], n_folds: int, random: np.random.Generator) -> Groups[Labels]:
    """Fold of each row of each group; units stay together.

    Rows of one unit (donor, animal, plate) are not independent, so they share a fold; a unit that has rows in several
    groups (paired designs) has one fold in all of them. Within that, every group is spread over the folds as evenly as
    a greedy assignment of the larger units first can.

    Parameters
    ----------
    unit_of : Groups of ndarray of int of shape (n_k,)
        The independent unit of each row, numbered from 0 over all groups: rows themselves, or their blocks.
    n_folds : int
        Folds wanted, at least 2. There are fewer where a group has fewer units, or where units that lie in several
        groups leave a fold without rows of some group.
    random : Generator

    Returns
    -------
    Groups of ndarray of int of shape (n_k,)
        Numbered from 0; each fold has rows of every group.
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


def row_units(tables: Tables) -> Groups[Labels]:
    """Every row as a unit of its own."""
    edges = np.cumsum([0, *(rows.shape[0] for rows in tables.rows)])
    return tables.rows.like(np.arange(a, b) for a, b in pairwise(edges))


def _spread(shares: Array, folds: int, random: np.random.Generator) -> Labels:
    """Fold of each unit, given its share of each group (units, groups): larger ones first, to where they fit best."""
    order = random.permutation(len(shares))
    order = order[np.argsort(-shares[order].sum(axis=1), kind="stable")]
    if np.all(np.ptp(shares, axis=0) == 0) or _rows_alone(shares):
        return _dealt(shares, order, folds)
    load = np.zeros((folds, shares.shape[1]))
    chosen = np.empty(len(shares), dtype=np.intp)
    for unit in order:
        share = shares[unit]
        missing = ((load == 0) & (share > 0)).sum(axis=1)
        # Of the folds that lack most of the unit's groups, that whose squared loads grow least.
        fold = np.lexsort((load @ share, -missing))[0]
        chosen[unit] = fold
        load[fold] += share
    return chosen


def _rows_alone(shares: Array) -> bool:
    """Whether every unit is in one group, and all of a group are of one size."""
    alone = np.all((shares > 0).sum(axis=1) == 1)
    return bool(alone) and all(np.ptp(column[column > 0]) == 0 for column in shares.T)


def _dealt(shares: Array, order: Labels, folds: int) -> Labels:
    """Units of one size are dealt out in turn, group by group: what the greedy assignment does, at once."""
    chosen = np.empty(len(shares), dtype=np.intp)
    group = shares.argmax(axis=1)[order]
    for k in range(shares.shape[1]):
        members = order[group == k]
        chosen[members] = np.arange(len(members)) % folds
    return chosen
