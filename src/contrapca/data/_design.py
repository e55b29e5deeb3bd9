"""Designs: several conditions, two factors or a dose become a foreground and a background whose rows count differently.

A contrast is a signed sum of moments, so rows with a positive weight are a foreground, and those with a negative weight
a background (F48). A design says how much each row counts, and which mean it is about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.stats

from .._util.arrays import Array, is_sparse
from .._util.text import as_list, is_missing, listed, plural
from ..exceptions import GroupError
from ._groups import Groups, group_rows
from ._names import check_same_columns, column_names
from ._samples import Indices, check_column, n_rows_of, stacked, take
from ._tables import is_moments

LEAST_ROWS = 3  # of a condition or a cell: fewer have no variance to speak of
OWN_MEAN = 10  # rows of a dose that are about its own mean, five in each half of the rows; fewer are about a curve
ROWS_A_TERM = 10  # of a curve through doses of few rows
MOST_TERMS = 3  # 1, z, z^2


@dataclass(frozen=True)
class Design:
    """What makes two weighted groups of the rows of several conditions, of two factors, or of a dose.

    Attributes
    ----------
    kind : {"conditions", "interaction", "dose"}
    cells : tuple of str
        Names of the cells. Conditions: these, and the background last. Interaction: both factors at their case, the
        first alone, the second alone, neither (the first and last are foreground). Dose: "3.0", or "taxol, 3.0".
    cell_of : Groups of ndarray of int
        The cell of each row, numbered over both groups; every cell lies in one group.
    weights : Groups of ndarray of float
        How often each row counts, (sum w)^2 / sum w^2 together.
    columns : Groups of ndarray of shape (n_k, q)
        To regress out of the rows beside covariates, so that each is about the mean of its cell, or of a curve through
        the doses of its stratum. The mean of each column is 0 in both groups.
    scores : Groups of ndarray of float, or None
        Mid-ranks of the dose about their mean, within strata; below 0 in the background.
    strata : Groups of ndarray of int, or None
        Within which doses are compared: places in `stratum_names`.
    name : str
        "drug", "genotype x drug", "concentration".
    values : Groups of ndarray of float, or None
        The dose of each row.
    stratum_names : tuple of str
        Empty without strata.
    """

    kind: str
    cells: tuple[str, ...]
    cell_of: Groups[Indices]
    weights: Groups[Array]
    columns: Groups[Array]
    scores: Groups[Array] | None
    strata: Groups[Indices] | None
    name: str
    values: Groups[Array] | None = None
    stratum_names: tuple[str, ...] = ()

    def __str__(self) -> str:
        counts = self.counts
        sizes = [f"{cell} {count}" for cell, count in zip(self.cells, counts, strict=True)]
        if self.kind == "conditions":
            return f"{plural(len(sizes) - 1, 'condition')} ({', '.join(sizes[:-1])}) + {counts[-1]} background samples"
        if self.kind == "interaction":
            return f"{self.name} ({'; '.join(sizes)}) samples"
        assert self.values is not None
        every = np.concatenate(list(self.values))
        inside = "" if self.strata is None else f" within {len(np.unique(np.concatenate(list(self.strata))))} strata"
        return f"{sum(counts)} samples at {np.unique(every).size} values of {self.name!r}{inside}"

    @property
    def subject(self) -> str:
        """What it is a study of, in words."""
        if self.kind == "conditions":
            return f"several conditions ({listed(self.cells[:-1], 3)})"
        return f"an interaction ({self.name})" if self.kind == "interaction" else f"a dose ({self.name})"

    @property
    def counts(self) -> list[int]:
        """Rows of each cell."""
        return [int(count) for count in np.bincount(np.concatenate(list(self.cell_of)), minlength=len(self.cells))]

    @property
    def sections(self) -> Groups[Indices]:
        """Which rows are about one mean: those of a cell, or the others of a stratum, in each group."""
        if self.kind != "dose" or (self.strata is None and len(self.cells) == 2):
            return self.cell_of
        counts = np.array(self.counts)
        strata = self.cell_of.map(np.zeros_like) if self.strata is None else self.strata
        groups = self.cell_of.like([0, 1])

        def of_group(cell: Indices, stratum: Indices, group: int) -> Indices:
            rest = len(self.cells) + 2 * stratum + group
            few = np.bincount(rest[counts[cell] < OWN_MEAN], minlength=rest.max() + 1)[rest] < LEAST_ROWS + 1
            beside = len(self.cells) + 2 * int(max(own.max() for own in strata) + 1) + group
            return np.where(counts[cell] >= OWN_MEAN, cell, np.where(few, beside, rest))

        return self.cell_of.map(of_group, strata, groups)

    @property
    def cell_names(self) -> Groups[npt.NDArray[Any]]:
        """The name of the cell of each row."""
        names = np.array(self.cells, dtype=object)
        return self.cell_of.map(lambda own: names[own])


# ---------------------------------------------------------------------- three designs


def conditions(cell_of: Groups[Any], cells: Sequence[str], name: str = "condition") -> Design:
    """Every condition counts alike, whatever its number of rows; the last of the cells is the background."""
    *names, controls = map(str, cells)
    for own in names:
        if own in ("", "foreground", "background", controls) or names.count(own) > 1:
            raise GroupError(
                f"{own!r} cannot be the name of a condition: names must differ from each other and from that of the "
                "background, and may not be empty or 'foreground'."
            )
    codes = cell_of.map(lambda own: np.asarray(own, dtype=np.intp))
    if few := _small_cells(codes, (*names, controls)):
        raise GroupError(
            f"Each condition and the background need at least {LEAST_ROWS} rows, but {few}: leave such conditions out."
        )
    return _of_cells("conditions", (*names, controls), codes, name)


def interaction(
    first: Any, second: Any, case: tuple[Any, Any], names: tuple[str, str] = ("first", "second")
) -> tuple[Groups[Indices], Design]:
    """Rows with both factors (N,) at their case, or neither, against those with one of them: each cell counts alike.

    `case` has the level of each that is of interest, such as ("mut", "treated"). Returns the rows of both groups, too.
    """
    if not isinstance(case, tuple | list) or len(case) != 2:
        raise GroupError(f'case={case!r} must name a level of each of the two factors, such as ("mut", "treated").')
    flags, levels = [], []
    for values, level, name in zip((first, second), case, names, strict=True):
        own = list(np.asarray(values, dtype=object))
        _refuse_missing(own, name)
        found = sorted(set(own), key=str)
        if level not in found:
            raise GroupError(f"case={level!r} does not occur in {name!r}, which has {listed(found)}.")
        if len(found) != 2:
            raise GroupError(
                f"An interaction is of two factors of two levels each, but {name!r} has {plural(len(found), 'level')} "
                f"({listed(found)}): keep two of them, for example frame[frame[{name!r}].isin({found[:2]!r})]."
            )
        flags.append(np.array([value == level for value in own]))
        levels.append((str(level), str(next(value for value in found if value != level))))
    a, b = flags
    code = 2 * ~a + 1 * ~b  # 0: both at their case, 1: the first, 2: the second, 3: neither
    cells = tuple(f"{one}, {other}" for one in levels[0] for other in levels[1])
    rows = Groups.of(np.flatnonzero((code == 0) | (code == 3)), np.flatnonzero((code == 1) | (code == 2)))
    return rows, _of_four_cells(rows.map(lambda own: code[own]), cells, " x ".join(names))


def _of_four_cells(cell_of: Groups[Indices], cells: tuple[str, ...], name: str) -> Design:
    if few := _small_cells(cell_of, cells):
        raise GroupError(
            f"Each of the four cells of {name} needs at least {LEAST_ROWS} rows, but {few}. Without it, nothing says "
            "what both factors would do together; compare two groups instead."
        )
    return _of_cells("interaction", cells, cell_of, name)


def _small_cells(cell_of: Groups[Indices], cells: Sequence[str]) -> str:
    """Which cells have too few rows, for messages."""
    counts = np.bincount(np.concatenate(list(cell_of)), minlength=len(cells)).tolist()
    return ", ".join(
        f"{cell!r} has {count or 'none'}" for cell, count in zip(cells, counts, strict=True) if count < LEAST_ROWS
    )


def _of_cells(kind: str, cells: tuple[str, ...], cell_of: Groups[Indices], name: str) -> Design:
    """Every cell of a group counts alike, whatever its number of rows, and has a mean of its own."""
    stacked = np.concatenate(list(cell_of))
    counts = np.bincount(stacked, minlength=len(cells))
    weights = cell_of.map(lambda own: _effective(1.0 / counts[own]))
    columns = _about_means(stacked, np.ones(stacked.size, dtype=bool), cell_of, weights)
    return Design(kind, cells, cell_of, weights, columns, None, None, name)


def doses(z: Any, strata: Any = None, name: str = "dose") -> tuple[Groups[Indices], Design]:
    """High doses against low ones: rows count by how far the rank of their dose is from the mean rank of their stratum.

    Doses `z` (N,) are compared within strata (N,), such as compounds. Returns the rows of both groups, too; those whose
    rank is the mean are in neither.
    """
    own = list(np.asarray(z, dtype=object))
    _refuse_missing(own, name)
    try:
        values = np.array(own, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise GroupError(f"dose={name!r} has {own[0]!r}: doses are numbers. Categories are conditions.") from error
    if not np.isfinite(values).all():
        raise GroupError(f"dose={name!r} is infinite in row {np.argmin(np.isfinite(values))}, counting from 0.")
    inside = [""] * values.size if strata is None else list(np.asarray(strata, dtype=object))
    _refuse_missing(inside if strata is not None else [], "strata")
    stratum_names, stratum = np.unique([str(value) for value in inside], return_inverse=True)
    scores = np.zeros(values.size)
    for s in range(stratum_names.size):
        here = stratum == s
        scores[here] = scipy.stats.rankdata(values[here]) - (np.count_nonzero(here) + 1) / 2
    if not np.any(scores):
        where = "" if strata is None else " within each stratum"
        raise GroupError(f"All rows{where} have the same dose in {name!r}: there is nothing to compare.")
    rows = Groups.of(np.flatnonzero(scores > 0), np.flatnonzero(scores < 0))
    for own_rows in rows:
        if own_rows.size < LEAST_ROWS:
            raise GroupError(
                f"{plural(int(rows.foreground.size), 'row')} of {name!r} have a high and "
                f"{len(rows['background'])} a low dose: at least {LEAST_ROWS} of each are needed."
            )
    chosen = np.concatenate(list(rows))
    code = np.unique(np.column_stack([stratum[chosen], values[chosen]]), axis=0, return_inverse=True)
    cell_values, cell = code[0], code[1].ravel()
    cells = tuple(
        (f"{stratum_names[int(s)]}, " if strata is not None else "") + f"{value:.15g}" for s, value in cell_values
    )
    edge = rows.foreground.size
    cell_of = rows.like([cell[:edge], cell[edge:]])
    weights = rows.map(lambda at: _effective(np.abs(scores[at])))
    own_mean = np.bincount(cell)[cell] >= OWN_MEAN
    if strata is None and len(cells) == 2:  # exactly the contrast of two groups
        own_mean[:] = True
    columns = _about_means(cell, own_mean, cell_of, weights, stratum[chosen], values[chosen])
    of_rows: Groups[Array] = rows.map(lambda at: values[at])
    within = None if strata is None else rows.map(lambda at: stratum[at])
    score: Groups[Array] = rows.map(lambda at: scores[at])
    called = () if strata is None else tuple(map(str, stratum_names))
    return rows, Design("dose", cells, cell_of, weights, columns, score, within, name, of_rows, called)


def check_doses_in_blocks(design: Design, blocks: Groups[list[Any]] | None) -> None:
    """Raise if each block has one dose and each dose one block: differences of doses are then those of blocks."""
    if design.values is None or blocks is None:
        return
    pairs = {
        (cell, str(block))
        for cells, own in zip(design.cell_of, blocks, strict=True)
        for cell, block in zip(cells.tolist(), own, strict=True)
    }
    if len(pairs) == len({cell for cell, _ in pairs}) == len({block for _, block in pairs}):
        raise GroupError(
            f"Each block has one dose of {design.name!r}, and each dose one block: whether rows differ by dose or by "
            "block cannot be told. At least two blocks of each dose are needed."
        )


# ---------------------------------------------------------------------- from the tables of conditions, or from columns


def conditions_of(X: Any, groups: Mapping[str, Any], background: Any) -> Groups[Any]:
    """The tables of several conditions, and last of the background that they share."""
    if X is not None:
        raise GroupError("Pass the foreground as X, or several conditions as groups=, not both.")
    if not isinstance(groups, Mapping) or not groups:
        raise GroupError('groups= is a dict of the tables of several conditions by name, {"A": XA, "B": XB}.')
    if background is None or (isinstance(background, Mapping) and not is_sparse(background)):
        raise GroupError("Several conditions share one background: pass one table as background=.")
    if any(is_moments(table) for table in (*groups.values(), background)):
        raise GroupError("Moments have no rows, so they cannot be stacked into conditions: pass the tables.")
    return Groups.from_items([*groups.values(), background], (*map(str, groups), "background"))


def stacked_conditions(
    rows: Groups[Any], known: dict[str, Groups[Any]]
) -> tuple[Groups[Any], dict[str, Groups[Any]], Design]:
    """Tables of several conditions as one foreground, what is known of their samples, and their design."""
    first = rows.foreground
    for name, table in zip(rows.names[1:], rows.backgrounds, strict=True):
        widths = [np.shape(own)[1] if len(np.shape(own)) == 2 else 0 for own in (first, table)]
        check_same_columns(widths[0], widths[1], column_names(first), column_names(table), name)
    found = {}
    for argument, own in {"tables": rows, **known}.items():
        if any(one is not None for one in own) and any(one is None for one in list(own)[:-1]):
            missing = [name for name, one in zip(own.names, own, strict=True) if one is None]
            raise GroupError(f"{argument} is given, but not for {listed(missing)}: pass it for each condition.")
        *cases, controls = own
        foreground = None if cases[0] is None else stacked(cases)
        found[argument] = Groups(foreground, (controls,), ("foreground", "background"))
    *sizes, n_controls = map(n_rows_of, rows)
    cells = Groups.of(np.repeat(np.arange(len(sizes)), sizes), np.full(n_controls, len(sizes)))
    return found.pop("tables"), found, conditions(cells, rows.names)


def groups_in(
    frame: Any,
    groupby: str | None,
    background: Any,
    foreground: Any,
    several: bool,
    factors: Any,
    case: Any,
    dose: str | None,
    strata: str | None,
    *,
    where: str,
) -> tuple[Groups[Indices], Design | None, dict[str, str]]:
    """Two groups, several conditions, two factors or a dose, by columns of a frame: the arguments of `from_frame`.

    Returns the rows of both groups, the design, if there are more than two groups, and the columns that were named,
    each with its argument. `where` is "the frame" or "adata.obs".
    """
    given = {"groupby": groupby, "interaction": factors, "dose": dose}
    if len(asked := [name for name, own in given.items() if own is not None]) != 1:
        raise GroupError(
            "Pass one of groupby= (two groups, or several conditions and a background), interaction= (two factors) "
            f"and dose= (a number); got {listed(asked) if asked else 'none of them'}."
        )
    beside = {
        "groupby": {"background": background, "foreground": foreground, "conditions": several or None},
        "interaction": {"case": case},
        "dose": {"strata": strata},
    }
    for design, arguments in beside.items():
        if design not in asked and (extra := [name for name, own in arguments.items() if own is not None]):
            raise GroupError(f"{extra[0]}= goes with {design}=, but {asked[0]}= was given: leave one of them out.")
    if factors is not None and not (
        isinstance(factors, tuple | list)
        and len(factors) == 2
        and all(isinstance(name, str) for name in factors)
        and factors[0] != factors[1]
    ):
        raise GroupError(f'interaction={factors!r} must name two different columns, such as ("genotype", "drug").')
    named = [(groupby, "groupby"), *((one, "interaction") for one in factors or ()), (dose, "dose"), (strata, "strata")]
    columns = {column: argument for column, argument in named if column is not None}
    for column, argument in columns.items():
        check_column(frame, column, argument, where)
    values = {column: np.asarray(frame[column]) for column in columns}
    if factors is not None:
        first, second = factors
        return *interaction(values[first], values[second], case, (first, second)), columns
    if dose is not None:
        return *doses(values[dose], None if strata is None else values[strata], dose), columns
    assert groupby is not None
    called = f"column {groupby!r}" if where == "the frame" else f"{where}[{groupby!r}]"
    return *_groups_by_value(values[groupby], background, foreground, several, groupby, called), columns


def _groups_by_value(
    values: npt.NDArray[Any], background: Any, foreground: Any, several: bool, name: str, called: str
) -> tuple[Groups[Indices], Design | None]:
    """The rows of two groups; and the design, if there are several conditions or a dict names them."""
    named = {str(key): as_list(own) for key, own in foreground.items()} if isinstance(foreground, Mapping) else None
    rows = group_rows(values, background, foreground, called)
    if named is None and not several:
        return rows, None
    if len(rows) > 2:
        raise GroupError(
            "Several conditions share one background, but there are several: pass a list of values as background=."
        )
    own = values[rows.foreground].tolist()
    if named is None:
        named = {str(value): [value] for value in (dict.fromkeys(own) if foreground is None else as_list(foreground))}
    condition = {value: k for k, of_name in enumerate(named.values()) for value in of_name}
    cell_of = rows.like([[condition[value] for value in own], np.full(len(rows["background"]), len(named))])
    return rows, conditions(cell_of, [*named, "background"], name)


def some_of(design: Design, chosen: Groups[Indices]) -> tuple[Groups[Indices], Design]:
    """The design of some rows: which of these, stacked, are in either group, and how they count.

    Ranks of doses are others among fewer rows, so rows may change groups. A condition without rows is left out.
    """
    sizes = chosen.map(len)
    same = chosen.like([np.arange(sizes.foreground), np.arange(sum(sizes))[sizes.foreground :]])
    cell_of = design.cell_of.map(lambda own, rows: own[rows], chosen)
    if design.kind == "conditions":
        left = [c for c in range(len(design.cells) - 1) if np.any(cell_of.foreground == c)] + [len(design.cells) - 1]
        again = cell_of.map(lambda own: np.searchsorted(left, own))
        return same, conditions(again, [design.cells[c] for c in left], design.name)
    if design.kind == "interaction":
        return same, _of_four_cells(cell_of, design.cells, design.name)
    assert design.values is not None
    z = np.concatenate([own[rows] for own, rows in zip(design.values, chosen, strict=True)])
    if design.strata is None:
        return doses(z, None, design.name)
    strata = [design.stratum_names[s] for own, rows in zip(design.strata, chosen, strict=True) for s in own[rows]]
    return doses(z, strata, design.name)


def regrouped(own: Groups[Any], places: Groups[Indices], edge: int) -> Groups[Any]:
    """What belongs to each group by the places of its samples among all, of which the first `edge` were foreground."""
    if np.all(places.foreground < edge) and np.all(places["background"] >= edge):  # as always but for doses
        return own.like([take(own.foreground, places.foreground), take(own["background"], places["background"] - edge)])
    every = None if own.foreground is None else stacked(list(own))
    return places.map(lambda some: take(every, some))


# ---------------------------------------------------------------------- weights and means


def _effective(weights: Array) -> Array:
    """Weights of one group times a factor, so that they add up to the effective number of rows (Kish)."""
    if np.all(weights == weights[0]):
        return np.ones(weights.size)
    found: Array = weights * (weights.sum() / np.sum(weights**2))
    return found


def _about_means(
    cell: Indices,
    own_mean: npt.NDArray[np.bool_],
    cell_of: Groups[Indices],
    weights: Groups[Array],
    stratum: Indices | None = None,
    values: Array | None = None,
) -> Groups[Array]:
    """Columns to regress out: one for each cell with a mean of its own, and a curve through the others of a stratum.

    The first cell of a group needs none if all have a mean of their own: each group has an intercept.
    """
    edge = len(cell_of.foreground)
    columns = []
    for k, own in enumerate(cell_of):
        present = [c for c in np.unique(own) if own_mean[cell == c].all()]
        in_group = np.arange(cell.size) < edge if k == 0 else np.arange(cell.size) >= edge
        spare = bool(own_mean[in_group].all())
        columns += [(cell == c).astype(float) for c in present[spare:]]
    if stratum is not None and values is not None and not own_mean.all():
        for s in np.unique(stratum[~own_mean]):
            here = (stratum == s) & ~own_mean
            z = values[here]
            terms = min(MOST_TERMS, np.unique(z).size, max(1, z.size // ROWS_A_TERM))
            scaled = (z - z.mean()) / (np.ptp(z) or 1.0)
            for power in range(terms):
                column = np.zeros(cell.size)
                column[here] = scaled**power
                columns.append(column)
    table = np.column_stack(columns) if columns else np.zeros((cell.size, 0))
    parts = cell_of.like([table[:edge], table[edge:]])
    return parts.map(lambda own, w: own - np.average(own, axis=0, weights=w), weights)


def _refuse_missing(values: list[Any], name: str) -> None:
    if gone := [k for k, value in enumerate(values) if is_missing(value) or value == ""]:
        raise GroupError(
            f"{name!r} is missing in {plural(len(gone), 'row')} (the first is row {gone[0]}, counting from 0): fill it "
            "in, or leave these rows out."
        )
