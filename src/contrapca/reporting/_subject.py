"""The subject of a report: checked tables, the path, labels and names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array, Rows
from .._util.checks import check_count
from ..data import Groups, Tables, check_same_tables, named_backgrounds, refuse_devices, split_groups
from ..estimators import PPCA, WithStrength, maps_missing
from ..exceptions import GroupError
from ..inference import ContrastPath, ContrastPosterior
from ..missing import observe
from ..plots import as_classes, on_a_scale
from ._clusters import named_clusters
from ._code import model_code, path_code
from ._model_path import path_through

TOP_FEATURES = 12  # bars for each component


NOT_SHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\ufffe\uffff]")  # control characters: no SVG file may have them


LONGEST = 1000  # characters of a name on the page; browsers take minutes to draw much longer ones


CLUSTERS = "cluster"  # what the labels are called if they were found here


@dataclass(frozen=True)
class Subject:
    """The subject of a report.

    Attributes
    ----------
    path : ContrastPath
    start : int
        Index of the report's gamma: the model's, or the one that "auto" would take.
    kind : type
        The class of the model that the report is about.
    code : str
        Python code that fits it again.
    about : {"model", "path"}
        The name of the result in that code.
    points : int or None
        The requested number of gammas.
    tables : Tables
    inside : Groups of ndarray of shape (n, k), (m, k), or None
        The rows in the basis of the path, from which all that is shown of them follows; None if values are missing.
    classes : ndarray of str, shape (n,), or None
        The label of each foreground row, "" if it has none; without labels, the clusters that were found.
    clustered : bool
        Whether the classes are clusters that were found.
    values : ndarray of shape (n,), or None
        Numeric labels shown on a scale, NaN if a row has none; `classes` is then None.
    background_labels : list of str, or None
        The label of each background row as text, "" if it has none.
    label_name : str
        What the labels mean.
    row_names : Groups of list of str, or of None for row numbers
    uncertainty : ContrastPosterior or None
    scale : {None, "group", "pooled"}
        How the model was asked to scale the features; None also where it chose that by itself.
    noise : str
        What the noise decided on units and axes (F41); empty where these were given.
    shortened : Groups of ndarray of int, or None
        Rows that are so long that they count less (F42).
    """

    path: ContrastPath
    start: int
    kind: Any
    code: str
    about: str
    points: int | None
    tables: Tables
    inside: Groups[Array] | None
    classes: npt.NDArray[np.str_] | None
    clustered: bool
    values: Array | None
    background_labels: list[str] | None
    label_name: str
    row_names: Groups[list[str] | None]
    uncertainty: ContrastPosterior | None
    scale: str | None
    noise: str
    shortened: Groups[npt.NDArray[np.intp]] | None

    @property
    def rows(self) -> Groups[Rows]:
        """The rows of the tables."""
        return self.tables.rows

    @property
    def labels(self) -> dict[str, Groups[list[str]]]:
        """The label of each row as text, by what it is, "label" or "cluster"; empty if there are none."""
        if self.classes is None and self.values is None:
            return {}
        own = _as_text(self.classes, self.values)
        others = self.background_labels or [""] * self.rows.backgrounds[0].shape[0]
        return {CLUSTERS if self.clustered else "label": self.rows.like([own, others])}

    @cached_property
    def features(self) -> list[str]:
        """The names of the features as they are shown."""
        return list(map(shown_name, self.path.feature_names))

    @cached_property
    def loadings(self) -> Array:
        """Loadings of all features at every gamma, rotated like the points of the picture, shape (G, D, d)."""
        path = self.path
        return np.stack([path.loadings(gamma) for gamma in path.gammas]) @ path.turns(self.start)

    def latents(self) -> Array:
        """Latents of the cases at the report's gamma, shape (n, d)."""
        if self.inside is None:
            return self.path.latents(self.rows.foreground)[self.start]
        return self.inside.foreground @ self.path.projections()[self.start]

    def drawn(self, chosen: Groups[npt.NDArray[np.intp]]) -> Groups[Array]:
        """Coordinates of some rows in the picture at every gamma, shape (G, n, d) each (see `ContrastPath.aligned`)."""
        path, start = self.path, self.start
        if self.inside is None:
            return chosen.map_named(lambda name, own: path.aligned(self.rows[name][own], center=name, start=start))
        maps = path.projections() @ path.turns(start)
        return self.inside.map(lambda inside, own: inside[own] @ maps, chosen)


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
    background_labels: Any = None,
) -> Subject:
    """Check all arguments of a report, and compute the path of a model."""
    if not isinstance(model_or_path, ContrastPath) and not isinstance(model_or_path, WithStrength | PPCA):
        name = type(model_or_path).__name__
        raise TypeError(f"A report needs a PPCA, PCPCA, CPCA, SparseCPCA, RatioPCA or ContrastPath, not {name}.")
    if gammas is not None:
        check_count(gammas, "gammas")
    asked = model_or_path.estimator if isinstance(model_or_path, ContrastPath) else model_or_path
    allow_missing = asked._takes_missing and _maps_missing(model_or_path)
    tables = split_groups(X, None, background, None, name="report", needs_background=True, allow_missing=allow_missing)
    tables.with_one_background("report")
    refuse_devices(tables, "report")
    [controls] = named_backgrounds(background).values()
    given = Groups.of((row_names, X, "row_names"), (background_row_names, controls, "background_row_names"))
    names = tables.rows.map(lambda rows, names: _row_names(names[0], names[1], rows.shape[0], names[2]), given)
    classes, values = _labels(labels, tables.rows.foreground.shape[0], "foreground")
    beside = None if background_labels is None else label_texts(background_labels, tables.rows.backgrounds[0].shape[0])
    if beside is not None and labels is None:
        raise ValueError("background_labels= is given without labels=: pass the labels of the foreground rows, too.")
    if isinstance(model_or_path, ContrastPath):
        path, about, tables = model_or_path, "path", asked._prepared(tables)
        check_same_tables(tables.rows.map(_observed_mean, tables.means), path.units)
        start, code = default_start(path), path_code(path)
        noise, long = "", tables.shortened
        kind: Any = type(path.estimator)
    else:
        if getattr(getattr(model_or_path, "_state", None), "covariates", None) is not None:
            raise GroupError(
                "The model was fitted with covariates, but a report shows rows as they are: adjust both tables with "
                "regress_out, fit a model to them, and report on that."
            )
        model, path, start = path_through(model_or_path, tables, points=gammas, progress=progress)
        kind, code, about = type(model), model_code(model), "model"
        noise, long = str(model._state.plateau or ""), model._state.shortened
    if uncertainty is not None and uncertainty.estimate.shape != (tables.n_features, path.n_components):
        raise ValueError(
            f"uncertainty has (features, components) = {uncertainty.estimate.shape}, but the model has "
            f"{(tables.n_features, path.n_components)}."
        )
    shown = "label" if label_name is None else shown_name(str(label_name))
    inside = None
    if not tables.incomplete:
        inside = tables.rows.map_named(lambda name, rows: path.inside(rows, center=name))
    about_rows = (classes, False, values, beside, shown, names)
    subject = Subject(
        path, start, kind, code, about, gammas, tables, inside, *about_rows, uncertainty, asked._scaling, noise, long
    )
    if labels is None:
        found = named_clusters(subject.latents(), subject.rows.foreground, subject.features)
        if found is not None:
            return replace(subject, classes=found, clustered=True, label_name=CLUSTERS)
    return subject


def shown_name(name: str) -> str:
    """A name without control characters, and without its end if it is very long."""
    return NOT_SHOWN.sub(" ", name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…")


def _maps_missing(model_or_path: Any) -> bool:
    """Whether rows with missing values can be shown: without a likelihood, those of a fit to such rows only."""
    if isinstance(model_or_path, ContrastPath):
        return model_or_path.estimator._has_model or model_or_path.units.foreground.fills
    return not model_or_path.__sklearn_is_fitted__() or maps_missing(model_or_path._state)


def _observed_mean(rows: Rows, mean: Array) -> Array:
    """The column means of the observed values."""
    return mean if np.isfinite(mean).all() else observe(rows)[0].mean


def default_start(path: ContrastPath) -> int:
    """Index of the gamma nearest to that of "auto"; the middle one if that is unknown."""
    if np.isnan(path.auto_gamma):
        return len(path) // 2
    return int(np.argmin(np.abs(path.gammas - path.auto_gamma)))


def _row_names(given: Sequence[str] | None, table: Any, n: int, what: str) -> list[str] | None:
    if given is None:
        index = getattr(table, "index", None)  # from pandas; a default index is no better than row numbers
        if index is None or callable(index) or type(index).__name__ == "RangeIndex":
            return None
        given = list(index)
    if len(given) != n:
        raise ValueError(f"{what} has {len(given)} names for {n} rows: pass one per row.")
    return [shown_name(str(name)) for name in given]


def label_texts(labels: Any, n: int) -> list[str]:
    """The label of each row as tables have it, "" if it has none."""
    return _as_text(*_labels(labels, n, "background"))


def _as_text(classes: npt.NDArray[np.str_] | None, values: Array | None) -> list[str]:
    if classes is not None:
        return list(classes.tolist())
    assert values is not None
    return ["" if value != value else repr(value).removesuffix(".0") for value in values.tolist()]


def _labels(labels: Any, n: int, group: str) -> tuple[npt.NDArray[np.str_] | None, Array | None]:
    """Labels as classes, or as numbers on a scale."""
    if labels is None:
        return None, None
    given = np.asarray(labels)
    if given.shape != (n,):
        name = "labels" if group == "foreground" else f"{group}_labels"
        raise ValueError(f"{name} has shape {given.shape} for {n} {group} rows: pass one label per row.")
    values = on_a_scale(given)
    if values is not None:
        return None, values
    return np.array(list(map(shown_name, as_classes(given).tolist())), dtype=np.str_), None
