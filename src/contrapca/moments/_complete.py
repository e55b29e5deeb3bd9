"""Complete groups in model units: all that a fit needs of their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._files import check_values
from .._util.arrays import Array, float_type, host
from ..data import Groups, Scaling, Tables
from ..data.checks import warn_of_moments
from ._contrast import Contrast
from ._moments import Moments, dense_moments, pooled_deviation, row_moments
from ._solver import SolverChoice, choose_solver
from ._span import Basis, Subspace, centre_rows, has_few_rows, reduce_rows

Scale = str | None | Groups[Array]  # how to scale, or the divisors of each group


@dataclass(frozen=True)
class Plateau:
    """Whether the noise of two groups has a plateau, and what follows for units and axes (F41).

    Attributes
    ----------
    counts : tuple of int
        Dimensions that stand out from the noise in the units given and, if these are many, in units of the within-group
        standard deviations.
    bound : float
        The noise of scaled features has no plateau if this many dimensions, or more, stand out.
    """

    counts: tuple[int, ...]
    bound: float

    def _check_values(self) -> None:
        """Raise if no tables have these."""
        check_values(self, {}, finite=("bound",), not_negative=("counts",))
        if not 1 <= len(self.counts) <= 2:
            raise ValueError("its plateau is impossible")

    @property
    def scale(self) -> str | None:
        """The scaling that follows."""
        return None if len(self.counts) == 1 else "pooled"

    @property
    def axes(self) -> str:
        """The axes that follow."""
        return "contrast" if self.scale is None or self.counts[-1] < self.bound else "ratio"

    def __str__(self) -> str:
        found = f"{self.counts[-1]} dimension{'s' * (self.counts[-1] != 1)} stand{'s' * (self.counts[-1] == 1)} out"
        if self.axes == "ratio":
            return (
                "The noise has no plateau, as in most real tables: components maximise the ratio of variances of "
                "features divided by their within-group standard deviations, with the controls' mean variance as floor."
            )
        if self.scale is None:
            return f"The noise has a plateau ({found} from it): components are contrast axes of the features as given."
        return (
            f"The noise has a plateau once features are divided by their within-group standard deviations ({found} "
            "from it): components are contrast axes of the scaled features."
        )


@dataclass(frozen=True)
class Filling:
    """Every group as N(mean, W W' + diag(noise)), in original units and with its own mean: what missing values of rows
    are expected by, where there is no probability model (F45).

    Attributes
    ----------
    W : ndarray of shape (D, r)
    noise : ndarray of shape (D,)
    """

    W: Array
    noise: Array

    def _check_values(self) -> None:
        """Raise if no distribution has these."""
        check_values(self, {"W": "Dr", "noise": "D"}, positive=("noise",))


@dataclass(frozen=True)
class Complete:
    """The data of a fit to complete rows: the moments of each group, scaled, and stored as its solver wants them."""

    groups: Groups[Moments]
    scaling: Groups[Scaling]
    # The solver that the moments are stored for: scatter matrices for "eigh", those in the span of the rows for "dual",
    # the rows themselves for "lanczos"
    choice: SolverChoice
    basis: Basis | Subspace | None = None  # basis of the scatter matrices; None means the features themselves
    plateau: Plateau | None = None  # what decided on the units, if that was left to the data
    strongest: tuple[Any, ...] = ()  # of the first groups, if products looked for them (F49)
    filling: Filling | None = None  # what the moments expect of missing values; None if rows are complete
    # Sums of |y|^4 over the rows of each group about its mean, scaled, in units of its total variance, if a method
    # asked for them (F47)
    fourths: Groups[float] | None = None

    def feature_matrix(self, contrast: Contrast) -> Array:
        """C of a contrast of these groups in the coordinates of the features, shape (D, D)."""
        assert not isinstance(self.basis, Subspace)
        return host(contrast.dense() if self.basis is None else self.basis.matrix([c for c, _ in contrast.terms]))

    def lift(self, contrast: Contrast, U: Array, values: Array) -> Array:
        """Eigenvectors of a contrast of these groups in R^D, from those in the coordinates of the scatter matrices."""
        return U if self.basis is None else self.basis.lift(U, values, [c for c, _ in contrast.terms])

    def vectors(self, V: Array) -> Array:
        """Any directions in R^D, from those in the coordinates of the scatter matrices."""
        return V if self.basis is None else self.basis.vectors(V)

    def background_alone(self) -> Complete:
        """The background as the only group."""
        basis = None if self.basis is None else self.basis.of_group(1)
        return replace(self, groups=Groups(self.groups.backgrounds[0]), basis=basis)


def check_solver_of(given: Any, solver: str) -> None:
    """Raise if a solver that works on rows is to be used with moments."""
    if isinstance(given, Moments) and solver not in ("auto", "eigh"):
        raise ValueError(
            f"solver={solver!r} cannot be used with moments, which have no rows (batches and folds are reduced to "
            "moments, too): use solver='auto' or 'eigh'."
        )


def complete_data(tables: Tables, d: int, scale: Scale, solver: str = "auto", *, reduced: bool = True) -> Complete:
    """The data of a fit with d components to complete rows: they are read here, once, and scaled.

    Dense rows that are fewer than their features are replaced by coordinates in their span, or, unless `reduced`, by
    centred copies.
    """
    if isinstance(tables.rows.foreground, Moments):
        choice, moments, dtype = SolverChoice("eigh", "moments were given"), tables.rows, "float64"
    else:
        choice, dtype = choose_solver(tables, solver), float_type(tables.rows.foreground)
        moments = tables.rows.map(dense_moments if choice.name == "eigh" else row_moments, tables.means, tables.weights)
        if not reduced and has_few_rows(moments):
            moments = moments.map(centre_rows)
    for name, group in zip(moments.names, moments, strict=True):
        if not np.isfinite(group.scatter.trace):
            raise ValueError(f"Input contains values too large to be squared: rescale them. (In the {name}.)")
    moments, scaling = in_model_units(moments, pooled_deviation, scale, tables, dtype)
    if choice.name == "dual" and (reduced or not has_few_rows(moments)):
        moments, basis = reduce_rows(moments, d)
        return Complete(moments, scaling, choice, basis)
    return Complete(moments, scaling, choice)


def pooled(data: Complete, tables: Tables, d: int, solver: str) -> Complete:
    """Data in the units given, scaled by the within-group standard deviations.

    Scatter matrices are divided. Coordinates in a span cannot be: the span of the scaled rows is another, so their few
    rows are read again.
    """
    if data.basis is not None:
        return complete_data(tables, d, "pooled", solver)
    divisor = pooled_deviation(data.groups)
    groups = data.groups.map(lambda group: group.scaled(divisor))
    return replace(data, groups=groups, scaling=data.scaling.map(lambda own: replace(own, scale=divisor)))


def in_model_units(
    groups: Groups[Any], deviation: Callable[[Iterable[Any]], Array], scale: Scale, tables: Tables, dtype: str
) -> tuple[Groups[Any], Groups[Scaling]]:
    """Scaled groups and their units, from a function for the within-group standard deviations of some groups."""
    pooled = deviation(groups)
    for group in groups.backgrounds:
        warn_of_moments(groups.foreground, group, pooled, tables.names, shortened=tables.shortened is not None)
    if isinstance(scale, Groups):
        divisors = scale
    elif scale == "group":
        divisors = groups.map(lambda group: deviation([group]))
    else:
        divisors = groups.map(lambda _: pooled if scale == "pooled" else np.ones(pooled.size))
    names = tables.names if tables.text_names else None
    scaling = groups.map(
        lambda group, divisor: Scaling(group.weight, group.mean, group.variance, divisor, names, dtype), divisors
    )
    return groups.map(lambda group, divisor: group.scaled(divisor), divisors) if scale else groups, scaling
