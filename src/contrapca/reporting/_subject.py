"""What a report is about: checked tables, the path, labels and names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._checks import check_count
from .._util.arrays import Array, Rows
from .._util.text import is_missing
from ..estimators import CPCA, PCPCA, PPCA
from ..fitting import AUTO_FRACTION
from ..groups import Groups, Tables, split_groups
from ..methods import CPCA_METHOD
from ..moments import observe
from ..paths import ESTIMATORS, ContrastPath
from ..uncertainty import ContrastPosterior
from ..units import check_same_tables
from ._code import model_code, path_code
from ._model_path import path_through

MAX_CLASSES = 20  # more numbers than this are shown on a scale, more words as "other"
TOP_FEATURES = 12  # bars for each component


@dataclass(frozen=True)
class Subject:
    """What a report is about.

    Attributes
    ----------
    path : ContrastPath
    start : int
        Index of the gamma that the report is about: the model's, or what "auto" would take.
    estimator : str
        The class of the model.
    code : str
        Python that fits it again.
    about : {"model", "path"}
        What that code calls the result.
    points : int or None
        How many gammas were asked for.
    tables : Tables
    classes : ndarray of str, shape (n,), or None
        The label of each foreground row, "" where it has none.
    values : ndarray of shape (n,), or None
        Labels that are numbers on a scale, NaN where there is none; then `classes` is None.
    label_name : str
        What the labels are.
    row_names : Groups of list of str, or of None for row numbers
    uncertainty : ContrastPosterior or None
    """

    path: ContrastPath
    start: int
    estimator: str
    code: str
    about: str
    points: int | None
    tables: Tables
    classes: npt.NDArray[np.str_] | None
    values: npt.NDArray[np.float64] | None
    label_name: str
    row_names: Groups[list[str] | None]
    uncertainty: ContrastPosterior | None

    @property
    def ends_early(self) -> bool:
        """Whether the contrasts end well before the bound of gamma, for want of solutions."""
        return self.path.limit_is_bound and self.path.gammas[-1] < 0.99 * AUTO_FRACTION * self.path.limit

    @property
    def rows(self) -> Groups[Rows]:
        """The tables' rows."""
        return self.tables.rows


def examine(
    model_or_path: Any,
    X: Any,
    background: Any,
    labels: Any,
    label_name: str | None,
    row_names: Sequence[str] | None,
    background_row_names: Sequence[str] | None,
    uncertainty: ContrastPosterior | None,
    gammas: int | None,
    progress: bool,
) -> Subject:
    """Check everything that a report is given, and compute the path of a model."""
    if not isinstance(model_or_path, ContrastPath | PPCA | PCPCA | CPCA):
        raise TypeError(
            f"A report is about a PPCA, PCPCA or CPCA, or a ContrastPath, not {type(model_or_path).__name__}."
        )
    if gammas is not None:
        check_count(gammas, "gammas")
    allow_missing = not isinstance(model_or_path, CPCA) and model_or_path._method is not CPCA_METHOD
    tables = split_groups(X, None, background, None, name="report", needs_background=True, allow_missing=allow_missing)
    given = Groups.of((row_names, X, "row_names"), (background_row_names, background, "background_row_names"))
    names = tables.rows.map(lambda rows, names: _row_names(names[0], names[1], rows.shape[0], names[2]), given)
    classes, values = _labels(labels, tables.rows.foreground.shape[0])
    if isinstance(model_or_path, ContrastPath):
        path, about = model_or_path, "path"
        check_same_tables(tables.rows.map(_observed_mean, tables.means), path.units)
        start, code = default_start(path), path_code(path)
        estimator = ESTIMATORS[path.method].__name__
    else:
        model, path, start = path_through(model_or_path, tables, points=gammas, progress=progress)
        estimator, code, about = type(model).__name__, model_code(model), "model"
    if uncertainty is not None and uncertainty.estimate.shape != (tables.n_features, path.n_components):
        raise ValueError(
            f"uncertainty is of (features, components) = {uncertainty.estimate.shape}, and the model of "
            f"{(tables.n_features, path.n_components)}."
        )
    shown = "label" if label_name is None else str(label_name)
    return Subject(path, start, estimator, code, about, gammas, tables, classes, values, shown, names, uncertainty)


def _observed_mean(rows: Rows, mean: Array) -> Array:
    """The column means of the values that are there."""
    return mean if np.isfinite(mean).all() else observe(rows)[0].mean


def default_start(path: ContrastPath) -> int:
    """The gamma that "auto" would take, or the nearest of the path; the middle one where that is not known."""
    if np.isnan(path.auto_gamma):
        return len(path) // 2
    return int(np.argmin(np.abs(path.gammas - path.auto_gamma)))


def _row_names(given: Sequence[str] | None, table: Any, n: int, what: str) -> list[str] | None:
    if given is None:
        index = getattr(table, "index", None)  # of pandas; a plain count says no more than row numbers
        if index is None or callable(index) or type(index).__name__ == "RangeIndex":
            return None
        given = list(index)
    if len(given) != n:
        raise ValueError(f"{what} has {len(given)} names for {n} rows: one for each.")
    return list(map(str, given))


def _labels(labels: Any, n: int) -> tuple[npt.NDArray[np.str_] | None, npt.NDArray[np.float64] | None]:
    """Labels as classes, or as numbers on a scale if there are many different ones."""
    if labels is None:
        return None, None
    given = np.asarray(labels)
    if given.shape != (n,):
        raise ValueError(f"labels has shape {given.shape} for {n} foreground rows: one label for each.")
    absent = np.array([is_missing(label) for label in given.tolist()], dtype=bool)
    present = given[~absent].tolist()
    if all(isinstance(label, int | float) and not isinstance(label, bool) for label in present):
        if len(set(present)) > MAX_CLASSES:
            values = np.full(n, np.nan)
            values[~absent] = present
            return None, values
        if all(float(label).is_integer() for label in present):
            present = [int(label) for label in present]  # classes read as 1.0, 2.0
    classes = np.full(n, "", dtype=object)
    classes[~absent] = [str(label) for label in present]
    return classes.astype(np.str_), None
