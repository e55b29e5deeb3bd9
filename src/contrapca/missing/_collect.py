"""From tables to the data of a fit, whose type says whether it is one of complete rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from .._util.arrays import Array, float_type
from .._util.text import Said, said_group
from ..data import Groups, Scaling, Tables
from ..exceptions import GroupError, warn
from ..moments import Complete, Plateau, Scale, complete_data, deviation_beyond_rounding, in_model_units
from ._rows import MaskedGroup, observe


@dataclass(frozen=True)
class Incomplete:
    """Groups with missing values, in model units."""

    groups: Groups[MaskedGroup]
    scaling: Groups[Scaling]
    plateau: Plateau | None = None  # what decided on the units, if that was left to the data

    def about(self, means: Groups[Array]) -> Incomplete:
        """The same rows, centred by other means, in model units."""
        groups = self.groups.map(MaskedGroup.about, means)
        scaling = self.scaling.map(lambda known, mean: replace(known, mean=mean * known.scale), means)
        return replace(self, groups=groups, scaling=scaling)


def collect(
    tables: Tables, d: int, scale: Scale, solver: str = "auto", *, reduced: bool = True
) -> Complete | Incomplete:
    """The data of a fit with d components; other arguments as for `complete_data`.

    Whether values are missing is known from the column means (`Tables.incomplete`). Methods without a likelihood of
    what was observed do not ask here then: they take expected moments (`collect_expected`).
    """
    if tables.incomplete:
        return collect_incomplete(tables, scale)
    return complete_data(tables, d, scale, solver, reduced=reduced)


def collect_incomplete(tables: Tables, scale: Scale = None) -> Incomplete:
    """Scaled observed values, centred by their means; also for complete rows, for gradient solvers."""

    def deviation(groups: Iterable[MaskedGroup]) -> Array:
        """Within-group standard deviation of each feature's observed values, shape (D,)."""
        every = list(groups)
        counts = np.sum([group.feature_counts for group in every], axis=0)
        squares = np.sum([group.squares for group in every], axis=0)
        return deviation_beyond_rounding(squares, np.where(counts > 0, counts, 1.0), [group.mean for group in every])

    groups = tables.rows.like(
        _observed(tables, *own) for own in zip(tables.rows, tables.weights, tables.rows.names, strict=True)
    )
    return Incomplete(*in_model_units(groups, deviation, scale, tables, float_type(tables.rows.foreground)))


def _observed(tables: Tables, rows: Array, weights: Array | None, name: str) -> MaskedGroup:
    """One group; errors name the group and the feature."""
    group, empty = observe(rows, weights)
    whose = (f"{empty} of the {rows.shape[0]} ", Said(f"{name} rows", f"rows of the {said_group(name).command}"))
    if empty >= rows.shape[0] - 1:
        raise GroupError(*whose, " have no observed value: at least 2 are needed.")
    if empty:
        warn((*whose, " have no observed value; they are ignored."))
    if not np.isfinite(group.squares).all():
        worst = int(np.argmin(np.isfinite(group.squares)))
        raise ValueError(
            f"Input contains values too large to be squared: rescale them. (In the {name}, {tables.feature(worst)}.)"
        )
    never = np.flatnonzero(group.feature_counts == 0)
    if never.size:
        raise GroupError(
            f"{never.size} of {group.mean.size} features have no observed value in the ",
            said_group(name),
            f" (the first: {', '.join(map(tables.feature, never[:3]))}). Drop them from both groups.",
        )
    return group
