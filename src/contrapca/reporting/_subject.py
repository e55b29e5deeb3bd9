"""The subject of a report: checked tables, the path, labels and names."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from .._util.arrays import Array, Rows
from .._util.checks import check_count
from ..data import (
    Groups,
    Study,
    Tables,
    adjusted_tables,
    check_same_tables,
    refuse,
    refuse_designs,
    refuse_devices,
    refuse_moments,
    tables_of,
)
from ..estimators import ContraPCA, ContrastSolver
from ..exceptions import GroupError
from ..inference import ContrastPath, ContrastPosterior, path_through
from ..missing import observe
from ..plots import as_classes, on_a_scale
from ._clusters import cut, named_clusters
from ._design import labels_of

TOP_FEATURES = 12  # bars for each component
NOT_SHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\ufffe\uffff]")  # control characters: no SVG file may have them
LONGEST = 1000  # characters of a name on the page; browsers take minutes to draw much longer ones
DRAWN = 1e-7  # tolerance of the path: coordinates on the page are not more exact (`_points.PACKING_ERROR`)
CLUSTERS = "cluster"  # what the labels are called if they were found here


@dataclass(frozen=True)
class Column:
    """Something known of each row."""

    name: str
    texts: Groups[list[str]]  # "" where it is not known
    values: Groups[Array] | None = None  # of a scale; NaN where it is not known
    heading: str = ""  # in tables that readers take away; without one it is not there
    whole: bool = False  # whether both groups have its colours, since their own tells readers nothing
    is_dose: bool = False  # of which the ranks count
    plain: bool = False  # whether its legend need not say that these are cases


@dataclass(frozen=True)
class Subject:
    """The subject of a report."""

    study: Study
    # Its rows without the effect of covariates, about the means of a design's cells, and how often each counts.
    tables: Tables
    path: ContrastPath
    start: int  # index of the report's gamma: the model's, or the one that "auto" would take
    model: Any  # the fitted model; None if the report is about a path
    points: int | None  # the requested number of gammas
    # The rows in the basis of the path, from which all that is shown of them follows, shape (n, k) and (m, k); None if
    # values are missing.
    inside: Groups[Array] | None
    # The label of each foreground row, "" if it has none, shape (n,); without labels, the clusters that were found.
    classes: npt.NDArray[np.str_] | None
    clustered: bool  # whether the classes are clusters that were found
    values: Array | None  # labels on a scale, shape (n,), NaN if a row has none; `classes` is then None
    label_name: str  # what the labels mean
    uncertainty: ContrastPosterior | None
    scale: str | None  # how the model was asked to scale the features; None also where it chose that by itself

    @property
    def kind(self) -> Any:
        """The class of the model that the report is about."""
        return type(self.path.estimator if self.model is None else self.model)

    @property
    def rows(self) -> Groups[Rows]:
        """The rows of the tables."""
        return self.tables.rows

    @cached_property
    def row_names(self) -> Groups[list[str] | None]:
        """The names of the rows as they are shown; None for row numbers."""
        return self.study.sample_names.map(lambda own: None if own is None else list(map(shown_name, own)))

    @cached_property
    def columns(self) -> list[Column]:
        """What is known of the rows: cells of a design, labels or clusters, blocks, covariates."""
        study, found = self.study, []
        if (design := study.design) is not None:
            name = shown_name(design.name)
            cells = design.cell_names.map(label_texts)
            if design.values is None:
                found.append(Column(name, cells, heading=name, whole=design.kind == "interaction", plain=True))
            else:
                found.append(Column(name, design.values.map(label_texts), design.values, name, is_dose=True))
            if design.strata is not None:
                names = np.array(list(map(shown_name, design.stratum_names)), dtype=object)
                strata = design.strata.map(lambda own: list(names[own]))
                found.append(Column("stratum", strata, heading="stratum", whole=True, plain=True))
        labels, n_others = labels_of(study), study.counts.backgrounds[0]
        if self.clustered and self.classes is not None:
            texts = self.rows.like([self.classes.tolist(), [""] * n_others])
            found.append(Column(self.label_name, texts, heading=CLUSTERS, plain=True))
        elif labels.foreground is not None:
            own = labels.map(lambda own: np.full(n_others, None) if own is None else own)
            found.append(column_of(self.label_name, own, "label"))
        if study.blocks is not None:
            found.append(column_of("block", study.blocks, "block"))
        if (covariates := study.covariates) is not None:
            for name in covariates.foreground:
                found.append(column_of(name, covariates.map(lambda own, name=name: own[name])))  # type: ignore[misc]
        return found

    @property
    def taken(self) -> dict[str, Groups[list[str]]]:
        """The columns, as text, of tables that readers take away."""
        return {column.heading: column.texts for column in self.columns if column.heading}

    @cached_property
    def means(self) -> Groups[Array]:
        """Means of the features in each group, of the values that are there."""
        return observed_means(adjusted_tables(self.study))

    @cached_property
    def features(self) -> list[str]:
        """The names of the features as they are shown."""
        return list(map(shown_name, self.path.feature_names))

    @cached_property
    def loadings(self) -> Array:
        """Loadings of all features at every gamma, rotated like the points of the picture, shape (G, D, d)."""
        path = self.path
        return np.stack([path.loadings(gamma) for gamma in path.gammas]) @ path.turns(self.start)

    @cached_property
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
    study: Study,
    model: Any = None,
    *,
    uncertainty: ContrastPosterior | None = None,
    gammas: int | None = None,
    progress: bool = True,
    shown: bool = True,
) -> Subject:
    """Check all arguments of a report, and compute the path of a model; clusters are found only if they are `shown`."""
    model = ContraPCA(min(2, study.tables.n_features - 1), random_state=0) if model is None else model
    about_path = isinstance(model, ContrastPath)
    if not about_path and not isinstance(model, ContrastSolver):
        name = type(model).__name__
        raise TypeError(
            f"A report needs a ContraPCA, PPCA, PCPCA, CPCA, SparseCPCA, RatioPCA or ContrastPath, not {name}: call "
            "report(study, model), or report(cases, model, background=controls)."
        )
    if gammas is not None:
        check_count(gammas, "gammas")
    asked = model.estimator if about_path else model
    refuse_moments(study, "A report")
    if about_path or uncertainty is not None:
        refuse_designs(study, "A path" if about_path else "uncertainty=")
    if study.design is not None and not asked._contrasts:
        raise GroupError(
            f"{type(asked).__name__} has no background, but a study of {study.design.subject} is a contrast: pass "
            "another model, such as ContraPCA."
        )
    refuse(study, "report", weights="the page shows every row once, so leave them out or repeat rows")
    fitted = about_path or model.__sklearn_is_fitted__()
    # Without a likelihood, rows with missing values can be shown if the fit was to such rows.
    maps = not fitted or (model if about_path else model.fit_).maps_missing
    tables_of(study, allow_missing=asked._takes_missing and maps)
    study.tables.with_one_background("report")
    refuse_devices(study.tables, "report")
    if hasattr(model, "fit_") and model.fit_.covariates is not None:
        raise GroupError(
            "The model was fitted with covariates, but a report shows rows without their effect: pass a model that is "
            "not fitted yet with a Study that has the covariates."
        )
    if study.design is not None and not fitted:
        model = clone(model).fit(study)
    tables = asked._prepared(adjusted_tables(study))
    if about_path:
        path = model
        start = len(path) // 2 if np.isnan(path.auto_gamma) else int(np.argmin(np.abs(path.gammas - path.auto_gamma)))
        check_same_tables(observed_means(tables), path.scaling, estimated=path.filling is not None)
        model = None
    else:
        # There is no path of a design: its page has no slider.
        points: Any = gammas if study.design is None else [model.fit_.gamma]
        model, path = path_through(model, tables, study, points=points, tolerance=DRAWN, progress=progress)
        start = int(np.argmin(np.abs(path.gammas - model.fit_.gamma)))
    if uncertainty is not None and uncertainty.estimate.shape != (tables.n_features, path.n_components):
        raise ValueError(
            f"uncertainty has (features, components) = {uncertainty.estimate.shape}, but the model has "
            f"{(tables.n_features, path.n_components)}."
        )
    inside = None
    if not tables.incomplete:
        inside = tables.rows.map_named(lambda name, rows: path.inside(rows, center=name))
    labels = labels_of(study).foreground
    classes, values = (None, None) if labels is None else classes_or_values(labels)
    subject = Subject(
        study=study,
        tables=tables,
        path=path,
        start=start,
        model=model,
        points=gammas,
        inside=inside,
        classes=classes,
        clustered=False,
        values=values,
        label_name=shown_name(str(study.label_name or "label")),
        uncertainty=uncertainty,
        scale=asked._scaling,
    )
    if labels is None and study.design is None and shown:
        found = named_clusters(subject.latents, subject.rows.foreground, subject.features)
        if found is not None:
            return replace(subject, classes=found, clustered=True, label_name=CLUSTERS)
    return subject


def observed_means(tables: Tables) -> Groups[Array]:
    """Means of the features in each group, of the values that are there."""
    return tables.means.map(lambda mean, rows: mean if np.isfinite(mean).all() else observe(rows)[0].mean, tables.rows)


def shown_name(name: str) -> str:
    """A name without control characters, and without its end if it is very long."""
    return NOT_SHOWN.sub(" ", cut(name, LONGEST))


def label_texts(labels: Any) -> list[str]:
    """The label of each row as tables have it, "" if it has none."""
    classes, values = classes_or_values(np.asarray(labels))
    if classes is not None:
        return list(classes.tolist())
    assert values is not None
    return ["" if value != value else repr(value).removesuffix(".0") for value in values.tolist()]


def column_of(name: str, own: Groups[Any], heading: str = "") -> Column:
    """A column of labels, numbers or text; on a scale if those of the cases are."""
    own, values = own.map(np.asarray), None
    if on_a_scale(own.foreground) is not None:
        values = own.map(_numbers)
    return Column(shown_name(str(name)), own.map(label_texts), values, heading)


def _numbers(labels: npt.NDArray[Any]) -> Array:
    """Labels as numbers; NaN where there are none."""
    try:
        found = np.asarray(labels, dtype=float)
    except (TypeError, ValueError):  # the other group has words
        return np.full(len(labels), np.nan)
    return np.where(np.isfinite(found), found, np.nan)


def classes_or_values(labels: npt.NDArray[Any]) -> tuple[npt.NDArray[np.str_] | None, Array | None]:
    """Labels as classes, or as numbers on a scale."""
    values = on_a_scale(labels)
    if values is not None:
        return None, values
    return np.array(list(map(shown_name, as_classes(labels).tolist())), dtype=np.str_), None
