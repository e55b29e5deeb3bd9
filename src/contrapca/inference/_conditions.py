"""How conditions, cells and doses differ: how much each varies along a fit's axes, on unseen rows (F48), and how alike
the axes of conditions are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .._util.arrays import Array
from .._util.tables import Result, Table
from ..contrast import HalfLatents, UnitSquares, affinity, by_cell, combined_logs, ratio_intervals
from ..data import Design, Groups, Indices, Study
from ..estimators import Decomposition, unfitted
from ..exceptions import GroupError

LEAST = 5  # rows of a dose that have a variance of their own to show
THIRDS = ("low", "middle", "high")  # where doses have fewer


@dataclass(frozen=True)
class CellRatios:
    """Variances of cells relative to one of them, along each of k axes, on unseen rows.

    Attributes
    ----------
    kind : {"conditions", "interaction", "dose"}
    cells : tuple of str
        Those that are compared with `reference`, and last, but for conditions, what they say together: the double ratio
        of an interaction, or the growth from the lowest to the highest dose.
    reference : str
    log_ratios : ndarray of shape (cells, k)
    intervals : ndarray of shape (cells, k, 2)
        95 % intervals of the ratios.
    """

    kind: str
    cells: tuple[str, ...]
    reference: str
    log_ratios: Array
    intervals: Array

    def table(self) -> Table:
        """One row for each cell and component."""
        k = self.log_ratios.shape[1]
        low, high = np.moveaxis(self.intervals, -1, 0)
        column = {"conditions": "condition", "interaction": "cell", "dose": "dose"}[self.kind]
        return Table(
            {
                column: np.repeat(np.array(self.cells, dtype=object), k),
                "component": np.tile(np.arange(1, k + 1), len(self.cells)),
                "ratio": np.exp(self.log_ratios).ravel(),
                "from": low.ravel(),
                "to": high.ravel(),
            }
        )


def cell_ratios(
    design: Design,
    latents: Sequence[HalfLatents],
    unit_of: Groups[Indices],
    weights: Groups[Array | None],
    rng: np.random.Generator,
) -> CellRatios:
    """From latents (n, k) along the same axes in halves of the rows."""
    squares = partial(squares_by_cell, design, latents, unit_of, weights)
    if design.kind == "dose":
        return _dose_ratios(design, squares, rng)
    units = squares(design.cell_of)
    last = len(design.cells) - 1  # the background, or neither factor at its case
    found = [_ratio(units, c, last, rng) for c in range(last)]
    names = design.cells[:last]
    if design.kind == "interaction":
        found.append(combined_logs(units, np.array([1.0, -1.0, -1.0, 1.0])))
        names = (*names, "interaction")
    return _of_logs(design.kind, names, design.cells[last], found)


def _dose_ratios(
    design: Design, squares: Callable[[Groups[Indices]], UnitSquares], rng: np.random.Generator
) -> CellRatios:
    """Doses relative to the lowest, and by how much the variance grows over the range of ranks within strata.

    Thirds of the ranks take the place of doses within strata, and of doses that have few rows.
    """
    assert design.scores is not None
    assert design.values is not None
    every = np.concatenate(list(design.values))
    rank = np.concatenate(list(design.scores))
    stratum = np.zeros(every.size, dtype=int) if design.strata is None else np.concatenate(list(design.strata))
    for s in np.unique(stratum):  # from 0 at the lowest dose of the stratum to 1 at the highest
        here = stratum == s
        rank[here] = (rank[here] - rank[here].min()) / np.ptp(rank[here])
    values, code, counts = np.unique(every, return_inverse=True, return_counts=True)
    if design.strata is None and counts.min() >= LEAST:
        shown, names = code, [f"{value:.15g}" for value in values]
    else:
        present, shown = np.unique(np.minimum((3 * rank).astype(int), 2), return_inverse=True)
        names = [THIRDS[third] for third in present]
    units = squares(_like(design, shown))
    found = [_ratio(units, c, 0, rng) for c in range(1, len(names))]
    # Growth: least squares of the log variance of cells on rank, with an intercept for each stratum.
    cell = np.concatenate(list(design.cell_of))
    sizes = np.bincount(cell)
    cell_stratum = np.zeros(sizes.size, dtype=int)
    cell_stratum[cell] = stratum
    enough = sizes >= LEAST
    comparable = enough & (np.bincount(cell_stratum[enough], minlength=cell_stratum.max() + 1)[cell_stratum] > 1)
    if not comparable.any():
        cell, cell_stratum = shown, np.zeros(len(names), dtype=int)
        sizes, comparable = np.bincount(cell), np.ones(len(names), dtype=bool)
    x = np.bincount(cell, rank) / sizes
    factors = np.where(comparable, sizes, 0).astype(float)
    for s in np.unique(cell_stratum):
        here = comparable & (cell_stratum == s)
        if here.any():
            factors[here] *= x[here] - np.average(x[here], weights=sizes[here])
    factors /= factors @ x
    found.append(combined_logs(squares(_like(design, cell)), factors))
    return _of_logs("dose", (*names[1:], "growth"), names[0], found)


def squares_by_cell(
    design: Design,
    latents: Sequence[HalfLatents],
    unit_of: Groups[Indices],
    weights: Groups[Array | None],
    cell_of: Groups[Indices],
) -> UnitSquares:
    """What each unit adds to the variance of each cell; rows of one are about the mean of their section."""
    often = weights.map(lambda w, own: np.ones(len(own)) if w is None else w, unit_of)
    halves = [
        replace(half, every=by_cell(half.every, cell_of), unseen=by_cell(half.unseen, cell_of)) for half in latents
    ]
    regrouped = (by_cell(own, cell_of) for own in (unit_of, often, design.sections))
    return UnitSquares.of(halves, *regrouped)


def _ratio(units: UnitSquares, cell: int, reference: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Log ratios (k,) of one cell to another, and their intervals (k, 2)."""
    two = UnitSquares(units.squares[[cell, reference]], units.weights[[cell, reference]])
    ratios, _, intervals, _ = ratio_intervals(two, np.ones(1), rng)
    return ratios, intervals


def _of_logs(kind: str, names: Sequence[str], reference: str, found: list[tuple[Array, Array]]) -> CellRatios:
    ratios, intervals = map(np.array, zip(*found, strict=True))
    with np.errstate(over="ignore"):
        return CellRatios(kind, tuple(names), reference, ratios, np.exp(intervals))


def _like(design: Design, stacked: Indices) -> Groups[Indices]:
    """Values of all rows as those of both groups."""
    edge = len(design.cell_of.foreground)
    return design.cell_of.like([stacked[:edge], stacked[edge:]])


# ---------------------------------------------------------------------- similarity of conditions


@dataclass(frozen=True)
class ConditionSimilarity(Result):
    """The outcome of `condition_similarity`.

    Attributes
    ----------
    conditions : tuple of str
    similarity : ndarray of shape (G, G)
        Mean squared cosine of the angles between the axes of two conditions: 1 if they are the same, 0 if they are
        orthogonal. Axes without any relation have about k / D.
    by_chance : float
        That k / D.
    """

    conditions: tuple[str, ...]
    similarity: Array
    by_chance: float

    @property
    def angles(self) -> Array:
        """Similarities as mean angles in degrees, shape (G, G)."""
        return np.degrees(np.arccos(np.sqrt(np.clip(self.similarity, 0.0, 1.0))))

    def table(self) -> Table:
        """One row and one column for each condition."""
        columns = {"condition": np.array(self.conditions, dtype=object)}
        return Table(columns | dict(zip(self.conditions, self.similarity.T, strict=True)))

    def _parts(self) -> list[str | Table]:
        about = f"similarity of the conditions' own axes: 1 is the same, {self.by_chance:.2g} is chance"
        return [about, self.table()]


def condition_similarity(estimator: Any, study: Study) -> ConditionSimilarity:
    """How alike the axes are that an estimator finds in each condition alone, against the same background.

    Axes of few rows differ by chance: look at `held_out_contrast` of each condition first.

    Parameters
    ----------
    estimator : PCPCA, ContraPCA, CPCA, SparseCPCA or RatioPCA
        Fitted or not: it is cloned.
    study : Study
        Of several conditions: `Study(groups={"A": XA, "B": XB}, background=Y)`.

    Returns
    -------
    ConditionSimilarity

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import ContraPCA, Study, condition_similarity
    >>> rng = np.random.default_rng(0)
    >>> scales = {"A": [3, 1, 1, 1, 1], "B": [3, 1, 1, 1, 1], "C": [1, 1, 1, 1, 3]}
    >>> tables = {name: rng.normal(size=(100, 5)) * scale for name, scale in scales.items()}
    >>> study = Study(groups=tables, background=rng.normal(size=(100, 5)))
    >>> condition_similarity(ContraPCA(1), study).similarity.round(1)
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """
    if not (isinstance(estimator, Decomposition) and estimator._contrasts):
        raise TypeError(f"condition_similarity takes an estimator that has a background, not {estimator!r}.")
    if not isinstance(study, Study) or study.design is None or study.design.kind != "conditions":
        raise GroupError(
            'condition_similarity needs a study of several conditions: Study(groups={"A": XA, "B": XB}, background=Y).'
        )
    cells = np.concatenate(list(study.design.cell_of))
    *names, _ = study.design.cells
    background = cells == len(names)
    axes = []
    for g in range(len(names)):
        model = unfitted(estimator).fit(study[(cells == g) | background])
        axes.append(np.linalg.qr(model.fit_.components)[0])
    every = np.array(axes)
    D, k = every.shape[1:]
    return ConditionSimilarity(tuple(names), affinity(every[:, None], every[None]), k / D)
