"""Conversion between original and model units."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from .._files import check_values
from .._util.arrays import Array, Rows, cast, is_sparse, stacked
from .._util.checks import check_option
from .._util.text import default_names
from ._groups import Groups
from ._names import check_names, feature_label
from ._tables import check_table, column_means
from .rows import DaskRows, blocks, storage

T = TypeVar("T")


# How far column means may be from those of a fit: in standard deviations (more where a fit's are not those of the
# observed values), and relative (for float32).
SAME_MEAN, SAME_OTHER_MEAN, ROUNDING = 1e-3, 1.0, 1e-5


@dataclass(frozen=True)
class Scaling:
    """Mean, variance and divisor of every feature of one group, in original units.

    Attributes
    ----------
    weight : float
        Number of rows, or the sum of their weights.
    mean : ndarray of shape (D,)
    variance : ndarray of shape (D,)
        With ddof 0.
    scale : ndarray of shape (D,)
        Divisor of each feature; 1 without scaling.
    names : tuple of str, or None
        Feature names, if the table had them as strings.
    dtype : str
        The float type of the fit.
    """

    weight: float
    mean: Array
    variance: Array
    scale: Array
    names: tuple[str, ...] | None
    dtype: str

    @property
    def origin(self) -> Array:
        """The mean in the model's units, shape (D,)."""
        return self.mean / self.scale

    @property
    def labels(self) -> list[str]:
        """Feature names, or x0, x1, ... if there are none."""
        return default_names(self.mean.size) if self.names is None else list(self.names)

    def apply(self, function: Callable[[Rows], Array], rows: Rows) -> Array:
        """Apply a function to blocks of rows in model units and stack the results in the rows' float type."""
        found = [function(storage(block).scaled(block, self.scale)) for block in blocks(rows)]
        return stacked([cast(part, rows) for part in found])

    def project(self, rows: Rows, P: Array) -> Array:
        """(x - mean) P of each row x in model units, for P of shape (D, k), in the rows' float type, shape (n, k)."""
        if is_sparse(rows):  # the product of a block costs less than a scaled copy
            inner, P = self.mean, P / self.scale[:, None]
            return stacked([cast(storage(block).centred_product(block, inner, P), rows) for block in blocks(rows)])
        origin = self.origin
        return self.apply(lambda block: storage(block).centred_product(block, origin, P), rows)

    def undo(self, rows: Array) -> Array:
        """Convert rows from model to original units, in the float type of the fit."""
        return (rows * self.scale).astype(self.dtype)

    def log_jacobian(self, rows: Rows, *, missing: bool) -> Array | float:
        """Log-determinant of the scaling for the observed values of each row, shape (n,), or one number for all."""
        logs = np.log(self.scale)
        if not missing or not np.any(logs):
            return float(logs.sum())
        if isinstance(rows, DaskRows):
            return np.concatenate([~np.isnan(block) @ logs for block in blocks(rows)])
        found: Array = ~np.isnan(rows) @ logs
        return found

    def check(self, X: Any, *, allow_missing: bool = False) -> tuple[Rows, bool]:
        """Check new rows against the fitted features; return them and whether values are missing.

        For results that are no estimators, such as paths and draws; `estimators._new_rows` is the door of those.
        """
        check_names(X, self.labels)
        rows = check_table(X, "X", least=1)
        if rows.shape[1] != self.mean.size:
            raise ValueError(f"X has {rows.shape[1]} features, but {self.mean.size} were fitted.")
        if isinstance(rows, DaskRows):  # their sums come with a scatter matrix, which is not needed here
            missing, infinite = storage(rows).non_finite(rows)
            if not infinite.any() and (allow_missing or not missing.any()):
                return rows, bool(missing.any())
        return rows, bool(np.isnan(column_means(rows, allow_missing=allow_missing)).any())

    def _check_values(self) -> None:
        """Raise if no fit has these."""
        shapes = {"mean": "D", "variance": "D", "scale": "D"}
        sizes = check_values(self, shapes, positive=("weight", "scale"), not_negative=("variance",))
        if self.names is not None and len(self.names) != sizes["D"]:
            raise ValueError(f"there are {len(self.names)} names of {sizes['D']} features")
        if self.dtype not in ("float32", "float64"):
            raise ValueError(f"its float type {self.dtype!r} is impossible")


def check_same_tables(
    means: Groups[Array], fitted: Groups[Scaling], *, weights: Groups[float] | None = None, estimated: bool = False
) -> None:
    """Raise if tables are not those of a fit, judging by numbers of rows and column means, nan where unknown.

    A background that the fit did not have is not compared. The means of a fit may be `estimated`, expected given the
    model, and then differ from those of the observed values.
    """
    names = ("X", *fitted.names[1:])
    for mean, known, name in zip(means, fitted, names, strict=False):
        if mean.size != known.mean.size:
            raise ValueError(f"{name} has {mean.size} columns, but the fit had {known.mean.size}.")
        reach = SAME_OTHER_MEAN if estimated else SAME_MEAN
        allowed = reach * np.sqrt(known.variance) + ROUNDING * np.abs(known.mean)
        far = np.flatnonzero(np.abs(mean - known.mean) > allowed)
        if far.size:
            _refuse(name, f"the means of {far.size} columns differ, the first is {feature_label(known.names, far[0])}")
    for weight, known, name in zip(weights or (), fitted, names, strict=False):
        if not math.isclose(weight, known.weight, rel_tol=1e-9):  # sums of weights, in any order
            _refuse(name, f"it has {weight:g} rows, but the fit had {known.weight:g}")


def group_of(groups: Groups[T], center: str) -> T:
    """The value of the group named by `center`; "background" is also the name of a single background."""
    if center == "background" and center not in groups.names:
        if not groups.backgrounds:
            raise ValueError("center='background' needs a model that was fitted with a background.")
        if len(groups.backgrounds) == 1:
            return groups.backgrounds[0]
    check_option(center, "center", groups.names if groups.backgrounds else ("foreground", "background"))
    return groups[center]


def _refuse(name: str, how: str) -> None:
    raise ValueError(
        f"{name} is not the table of the fit: {how}. Pass the fitted tables, preprocessed in the same way, "
        "with the same weights, if any."
    )
