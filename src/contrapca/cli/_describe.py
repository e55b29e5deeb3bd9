"""What fitted models hold, as lines for people and as values for programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._util.table import Table
from .._util.text import format_gamma

TOP_FEATURES = 8


def model_lines(model: Any) -> list[str]:
    """A fitted PPCA, CPCA or PCPCA."""
    D, d = model.n_features_in_, model.components_.shape[0]
    first = f"{type(model).__name__} with {d} component{'s' * (d > 1)} of {D} features"
    if hasattr(model, "gamma_"):
        first += f", gamma = {format_gamma(model.gamma_)}"
        if hasattr(model, "gamma_max_") and np.isfinite(model.gamma_max_):
            limit = format_gamma(model.gamma_max_)
            bound = model.gamma_max_is_bound_
            first += f" (limit at most {limit})" if bound else f" (no solution exists at or above {limit})"
    return [
        first,
        "",
        str(component_table(model)),
        "",
        "Features with the largest loadings:",
        str(top_features(model)),
    ]


def model_summary(model: Any) -> dict[str, Any]:
    """The same as values."""
    summary: dict[str, Any] = {
        "method": type(model).__name__.lower(),
        "n_features": model.n_features_in_,
        "n_components": model.components_.shape[0],
        "solver": str(model.solver_),
        "objective": model.objective_,
    }
    if hasattr(model, "gamma_"):
        summary |= {"gamma": model.gamma_, "gamma_raw": model.gamma_raw_}
    if hasattr(model, "gamma_max_"):
        summary |= {"gamma_max": model.gamma_max_, "gamma_max_is_bound": model.gamma_max_is_bound_}
    if hasattr(model, "noise_variance_"):
        summary["noise_variance"] = model.noise_variance_
    summary["components"] = records(component_table(model))
    summary["top_features"] = records(top_features(model))
    return summary


def component_table(model: Any) -> Table:
    """One row for each component: how much each group varies along it."""
    columns: dict[str, Any] = {
        "component": model.get_feature_names_out(),
        "case variance": model.explained_variance_,
        "share of cases": model.explained_variance_ratio_,
    }
    if getattr(model, "background_variance_", None) is not None:
        columns["control variance"] = model.background_variance_
        columns["share of controls"] = model.background_variance_ratio_
    return Table(columns)


def top_features(model: Any) -> Table:
    """The features with the largest loadings."""
    table = model.feature_table().first(TOP_FEATURES)
    words = {"foreground_variance": "case variance", "background_variance": "control variance"}
    return Table({words.get(name, name): column for name, column in table.items() if name != "rank"})


def records(table: Table) -> list[dict[str, Any]]:
    """The rows of a table, names with underscores."""
    names = [name.replace(" ", "_") for name in table]
    rows = zip(*(column.tolist() for column in table.values()), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]
