"""Designs: several conditions, two factors or a dose become a foreground and a background whose rows count differently.

A contrast is a signed sum of moments, so rows with a positive weight are a foreground, and those with a negative weight
a background (F48). A design says how much each row counts, and which mean it is about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array
from .._util.text import is_missing, listed, plural
from ..exceptions import GroupError
from ._groups import Groups

Indices = npt.NDArray[np.intp]
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
        Within which doses are compared.
    name : str
        "drug", "genotype x drug", "concentration".
    values : Groups of ndarray of float, or None
        The dose of each row.
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

    @property
    def counts(self) -> list[int]:
        """Rows of each cell."""
        return [int(count) for count in np.bincount(np.concatenate(list(self.cell_of)), minlength=len(self.cells))]

    @property
    def cell_names(self) -> Groups[npt.NDArray[Any]]:
        """The name of the cell of each row."""
        names = np.array(self.cells, dtype=object)
        return self.cell_of.map(lambda own: names[own])


# ---------------------------------------------------------------------- three designs


def conditions(cell_of: Groups[Any], cells: Sequence[str], name: str = "condition") -> Design:
    """Every condition counts alike, whatever its number of rows.

    Parameters
    ----------
    cell_of : Groups of ndarray of int
        The condition of each row of the foreground; those of the background have the last number.
    cells : sequence of str
        Names of the conditions, then of the background.
    name : str
        What the conditions are of.
    """
    *names, controls = map(str, cells)
    for own in names:
        if own in ("", "foreground", "background", controls) or names.count(own) > 1:
            raise GroupError(
                f"{own!r} cannot be the name of a condition: names must differ from each other and from that of the "
                "background, and may not be empty or 'foreground'."
            )
    codes = cell_of.map(lambda own: np.asarray(own, dtype=np.intp))
    every = np.concatenate(list(codes))
    counts = np.bincount(every, minlength=len(cells))
    if few := [f"{own} has {count}" for own, count in zip(cells, counts, strict=True) if count < LEAST_ROWS]:
        raise GroupError(
            f"Each condition needs at least {LEAST_ROWS} rows, but {', '.join(few)}: leave such conditions out."
        )
    weights = codes.map(lambda own: _effective(1.0 / counts[own]))
    columns = _about_means(every, np.ones(every.size, dtype=bool), codes, weights)
    return Design("conditions", (*names, controls), codes, weights, columns, None, None, name)


def interaction(
    first: Any, second: Any, case: tuple[Any, Any], names: tuple[str, str] = ("first", "second")
) -> tuple[Groups[Indices], Design]:
    """Rows with both factors at their case, or neither, against those with one of them: each cell counts alike.

    Parameters
    ----------
    first, second : array-like of shape (N,)
        The factors, of two levels each.
    case : tuple
        The level of each that is of interest, such as ("mut", "treated").
    names : tuple of str

    Returns
    -------
    rows : Groups of ndarray of int
        Rows of the foreground and of the background.
    design : Design
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
    counts = np.bincount(code, minlength=4)
    if few := [f"{cell!r} has {count}" for cell, count in zip(cells, counts, strict=True) if count < LEAST_ROWS]:
        raise GroupError(
            f"Each of the four cells of {' x '.join(names)} needs at least {LEAST_ROWS} rows, but {', '.join(few)}. "
            "Without it, nothing says what both factors would do together; compare two groups instead."
        )
    rows = Groups.of(np.flatnonzero((code == 0) | (code == 3)), np.flatnonzero((code == 1) | (code == 2)))
    cell_of = rows.map(lambda own: code[own])
    weights = cell_of.map(lambda own: _effective(1.0 / counts[own]))
    stacked = np.concatenate(list(cell_of))
    columns = _about_means(stacked, np.ones(stacked.size, dtype=bool), cell_of, weights)
    return rows, Design("interaction", cells, cell_of, weights, columns, None, None, " x ".join(names))


def doses(z: Any, strata: Any = None, name: str = "dose") -> tuple[Groups[Indices], Design]:
    """High doses against low ones: rows count by how far the rank of their dose is from the mean rank of their stratum.

    Rows whose rank is the mean are in neither group.

    Parameters
    ----------
    z : array-like of shape (N,)
        The dose, time or severity of each row.
    strata : array-like of shape (N,), optional
        Within which doses are compared, such as the compound.
    name : str

    Returns
    -------
    rows : Groups of ndarray of int
        Rows of the foreground and of the background.
    design : Design
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
        scores[here] = _mid_ranks(values[here])
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
        (f"{stratum_names[int(s)]}, " if strata is not None else "") + f"{value:g}" for s, value in cell_values
    )
    sizes = rows.map(len)
    edge = sizes.foreground
    cell_of = rows.like([cell[:edge], cell[edge:]])
    weights = rows.map(lambda at: _effective(np.abs(scores[at])))
    own_mean = np.bincount(cell)[cell] >= OWN_MEAN
    if strata is None and len(cells) == 2:  # exactly the contrast of two groups
        own_mean[:] = True
    columns = _about_means(cell, own_mean, cell_of, weights, stratum[chosen], values[chosen])
    of_rows: Groups[Array] = rows.map(lambda at: values[at])
    within = None if strata is None else rows.map(lambda at: stratum[at])
    return rows, Design(
        "dose", cells, cell_of, weights, columns, rows.map(lambda at: scores[at]), within, name, of_rows
    )


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


# ---------------------------------------------------------------------- weights and means


def _effective(weights: Array) -> Array:
    """Weights of one group times a factor, so that they add up to as many equal rows as are as telling."""
    if np.all(weights == weights[0]):
        return np.ones(weights.size)
    found: Array = weights * (weights.sum() / np.sum(weights**2))
    return found


def _mid_ranks(values: Array) -> Array:
    """Ranks about their mean; equal values share the mean of theirs."""
    _, code, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[code]
    found: Array = ranks - (values.size + 1) / 2
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
