"""What a report is about: checked tables, the path, labels and names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._array import Rows
from .._validation import Groups, check_count, is_missing, split_groups
from ..estimators import (
    AUTO_FRACTION,
    CPCA,
    PCPCA,
    PPCA,
    ContrastPath,
    check_same_tables,
    model_code,
    path_code,
    path_through,
)
from ..posterior import ContrastPosterior

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
    groups : Groups
    code : str
        Python that fits it again.
    points : int or None
        How many gammas were asked for.
    classes : ndarray of str, shape (n,), or None
        The label of each foreground row, "" where it has none.
    values : ndarray of shape (n,), or None
        Labels that are numbers on a scale, NaN where there is none; then `classes` is None.
    label_name : str
        What the labels are.
    row_names : (foreground, background)
        A sequence of str each, or None for row numbers.
    uncertainty : ContrastPosterior or None
    """

    path: ContrastPath
    start: int
    estimator: str
    code: str
    points: int | None
    groups: Groups
    classes: npt.NDArray[np.str_] | None
    values: npt.NDArray[np.float64] | None
    label_name: str
    row_names: tuple[list[str] | None, list[str] | None]
    uncertainty: ContrastPosterior | None

    @property
    def ends_early(self) -> bool:
        """Whether the contrasts end well before the bound of gamma, for want of solutions."""
        return self.path.limit_is_bound and self.path.gammas[-1] < 0.99 * AUTO_FRACTION * self.path.limit

    @property
    def tables(self) -> tuple[Rows, Rows]:
        """Foreground and background."""
        assert self.groups.background is not None
        return self.groups.foreground, self.groups.background


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
            f"A report is about a fitted PPCA, PCPCA or CPCA, or a ContrastPath, not {type(model_or_path).__name__}."
        )
    if gammas is not None:
        check_count(gammas, "gammas")
    groups = split_groups(X, None, background, None, name="report", needs_background=True)
    assert groups.background is not None
    n, m = groups.foreground.shape[0], groups.background.shape[0]
    names = (
        _row_names(row_names, X, n, "row_names"),
        _row_names(background_row_names, background, m, "background_row_names"),
    )
    classes, values = _labels(labels, n)
    if isinstance(model_or_path, ContrastPath):
        path = model_or_path
        check_same_tables(groups, path.mean, path.background_mean)
        start, estimator, code = default_start(path), path.method.upper(), path_code(path)
    else:
        path, start = path_through(model_or_path, groups, points=gammas, progress=progress)
        estimator, code = type(model_or_path).__name__, model_code(model_or_path)
    if uncertainty is not None and uncertainty.estimate.shape != (path.mean.size, path.n_components):
        raise ValueError(
            f"uncertainty is of (features, components) = {uncertainty.estimate.shape}, and the model of "
            f"{(path.mean.size, path.n_components)}."
        )
    shown = "label" if label_name is None else str(label_name)
    return Subject(path, start, estimator, code, gammas, groups, classes, values, shown, names, uncertainty)


def default_start(path: ContrastPath) -> int:
    """The gamma that "auto" would take, or the nearest of the path; the middle one of a loaded path of CPCA."""
    if path.method == "pcpca":
        limit = path.limit
    elif path.source is not None:
        limit = path.source.limit("pcpca", path.n_components)
    else:
        return len(path) // 2
    return int(np.argmin(np.abs(path.gammas - AUTO_FRACTION * limit)))


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
