"""What fitted models hold, as values for programs."""

from __future__ import annotations

from typing import Any

from .._util.table import Table
from ..fitting import component_table, top_features


def model_summary(model: Any) -> dict[str, Any]:
    """What `summary()` of a fitted PPCA, CPCA or PCPCA says, as values."""
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
    summary["components"] = records(component_table(model._state))
    summary["top_features"] = records(top_features(model._state))
    return summary


def records(table: Table) -> list[dict[str, Any]]:
    """The rows of a table, names with underscores."""
    names = [name.replace(" ", "_") for name in table]
    rows = zip(*(column.tolist() for column in table.values()), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]
