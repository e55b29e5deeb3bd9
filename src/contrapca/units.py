"""The units of a fit: how the rows of a group become those of the model, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._util.archive import check_arrays
from ._util.arrays import Array, Rows
from ._util.text import default_names
from .groups import Groups, check_names, check_table, column_means, feature_label
from .rows import blocks, storage

# How far column means may be from those of a fit, in standard deviations (GLS means of a fit to incomplete rows:
# further), and relative, for float32.
SAME_MEAN, SAME_GLS_MEAN, ROUNDING = 1e-3, 1.0, 1e-5


@dataclass(frozen=True)
class Units:
    """Mean, variance and divisor of every feature of one group, in original units.

    Attributes
    ----------
    weight : float
        Number of rows, or the sum of their weights.
    mean : ndarray of shape (D,)
    variance : ndarray of shape (D,)
        ddof 0.
    scale : ndarray of shape (D,)
        What the rows are divided by; 1 without scaling.
    names : tuple of str, or None
        Of the features, where the table had them as text.
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
        """Names of the features: their own, or x0, x1, ..."""
        return default_names(self.mean.size) if self.names is None else list(self.names)

    def apply(self, function: Callable[[Rows], Array], rows: Rows) -> Array:
        """The function of every block of rows in the model's units, the results stacked in the rows' float type."""
        scaled = storage(rows).scaled
        found = [function(scaled(block, self.scale)).astype(rows.dtype, copy=False) for block in blocks(rows)]
        return np.concatenate(found)

    def undo(self, rows: Array) -> Array:
        """Rows of the model in original units, in the float type of the fit."""
        return (rows * self.scale).astype(self.dtype)

    def log_jacobian(self, rows: Rows, *, missing: bool) -> Array:
        """log of what scaling does to the density of the observed values of each row, shape (n,) or ()."""
        logs = np.log(self.scale)
        return ~np.isnan(rows) @ logs if missing and np.any(logs) else logs.sum()

    def check(self, X: Any, *, allow_missing: bool = False) -> tuple[Rows, bool]:
        """New rows, checked against the features of the fit, and whether values are missing."""
        check_names(X, self.labels)
        rows = check_table(X, "X")
        if rows.shape[1] != self.mean.size:
            raise ValueError(f"X has {rows.shape[1]} features, but {self.mean.size} were fitted.")
        return rows, bool(np.isnan(column_means(rows, allow_missing=allow_missing)).any())

    def arrays(self, prefix: str) -> dict[str, Array]:
        """The arrays that a file keeps."""
        return {f"{prefix}.{name}": getattr(self, name) for name in ("mean", "variance", "scale")}

    def facts(self) -> dict[str, Any]:
        """The facts that a file keeps."""
        return {"weight": self.weight, "dtype": self.dtype}

    @classmethod
    def restored(
        cls, facts: Any, arrays: Mapping[str, Array], prefix: str, names: tuple[str, ...] | None, n_features: int
    ) -> Units:
        """The units that a file keeps, checked."""
        found = check_arrays(arrays, {f"{prefix}.{name}": "D" for name in ("mean", "variance", "scale")}, names)
        mean, variance, scale = found.values()
        weight, dtype = float(facts["weight"]), str(facts["dtype"])
        if mean.size != n_features:
            raise ValueError(f"{prefix}.mean has {mean.size} features, and the others {n_features}")
        if np.any(scale <= 0) or np.any(variance < 0) or not 0 < weight < np.inf or dtype not in ("float32", "float64"):
            raise ValueError("its scales, variances, number of rows or float type are impossible")
        return cls(weight, mean, variance, scale, names, dtype)


def check_same_tables(
    means: Groups[Array], fitted: Groups[Units], *, weights: Groups[float] | None = None, gls: bool = False
) -> None:
    """Refuse tables other than those of a fit, as far as numbers of rows and column means tell.

    Parameters
    ----------
    means : Groups of ndarray of shape (D,)
        Of the tables; nan where unknown.
    fitted : Groups of Units
        Of the fit; a background that the fit did not see is not compared.
    weights : Groups of float, optional
        Numbers of rows of the tables.
    gls : bool
        Whether the means of the fit are generalised-least-squares ones, which differ from plain means.
    """
    for mean, known, name in zip(means, fitted, ("X", "background"), strict=False):
        if mean.size != known.mean.size:
            raise ValueError(f"{name} has {mean.size} columns, and the fit was to {known.mean.size}.")
        allowed = (SAME_GLS_MEAN if gls else SAME_MEAN) * np.sqrt(known.variance) + ROUNDING * np.abs(known.mean)
        far = np.flatnonzero(np.abs(mean - known.mean) > allowed)
        if far.size:
            _refuse(name, f"the means of {far.size} columns differ, the first is {feature_label(known.names, far[0])}")
    for weight, known, name in zip(weights or (), fitted, ("X", "background"), strict=False):
        if weight != known.weight:
            _refuse(name, f"it has {weight:g} rows, and the fit was to {known.weight:g}")


def _refuse(name: str, how: str) -> None:
    raise ValueError(
        f"{name} is not the table of the fit: {how}. Pass the tables that it was fitted to, prepared in the same way."
    )
