"""What a fitted model found, in words and tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._util.display import Display
from .._util.table import Table
from .._util.text import format_gamma, listed, plural

TOP_FEATURES = 8
WORDS = {"foreground_variance": "case variance", "background_variance": "control variance"}


def html_inner(self: Any) -> str:
    """`_repr_html_inner` of an estimator that says what it found; its plain repr stays scikit-learn's."""
    return str(BaseEstimator._repr_html_inner(self)) + _summary_html(self)


def mimebundle(self: Any, **options: Any) -> dict[str, str]:
    """`_repr_mimebundle_` of an estimator that says what it found."""
    bundle: dict[str, str] = BaseEstimator._repr_mimebundle_(self, **options)
    if "text/html" in bundle:
        bundle["text/html"] += _summary_html(self)
    return bundle


def _summary_html(model: Any) -> str:
    return model.summary()._repr_html_() if model.__sklearn_is_fitted__() else ""


def first_line(model: Any) -> str:
    """The class of a model, its size and its gamma."""
    d = model.components_.shape[0]
    line = f"{type(model).__name__} with {plural(d, 'component')} of {model.n_features_in_} features"
    if hasattr(model, "gamma_"):
        line += f", gamma = {format_gamma(model.gamma_)}"
        if hasattr(model, "gamma_max_") and np.isfinite(model.gamma_max_):
            limit = format_gamma(model.gamma_max_)
            bound = model.gamma_max_is_bound_
            line += f" (limit at most {limit})" if bound else f" (no solution exists at or above {limit})"
    if hasattr(model, "shared_loadings_"):
        line += f", and {plural(model.shared_loadings_.shape[1], 'shared component')}"
    if hasattr(model, "covariate_names_"):
        line += f", without the effect of {listed(model.covariate_names_.tolist())}"
    return line


def component_table(model: Any) -> Table:
    """One row for each component: how much each group varies along it."""
    fit = model._state
    columns: dict[str, Any] = {
        "component": np.arange(1, fit.variances.foreground.size + 1),
        "case variance": fit.variances.foreground,
        "share of cases": fit.shares.foreground,
    }
    for name, variance, share in list(zip(fit.variances.names, fit.variances, fit.shares, strict=True))[1:]:
        who = "control" if len(fit.variances) == 2 else name
        columns |= {f"{who} variance": variance, f"share of {'controls' if who == 'control' else who}": share}
    return Table(columns)


def top_features(model: Any) -> Table:
    """The features with the largest loadings."""
    table = model.feature_table().first(TOP_FEATURES)
    return Table({WORDS.get(name, name): column for name, column in table.items() if name != "rank"})


def summary_of_model(model: Any) -> Display:
    """`summary` of a fitted model."""
    return Display(
        first_line(model), component_table(model), "Features with the largest loadings:", top_features(model)
    )


def facts_of_model(model: Any) -> dict[str, Any]:
    """The same as values and tables, for programs."""
    facts: dict[str, Any] = {
        "method": type(model).__name__.lower(),
        "n_features": model.n_features_in_,
        "n_components": model.components_.shape[0],
        "solver": str(model.solver_),
        "objective": model.objective_,
    }
    if hasattr(model, "gamma_"):
        facts |= {"gamma": model.gamma_, "gamma_raw": model.gamma_raw_}
    if hasattr(model, "gamma_max_"):
        facts |= {"gamma_max": model.gamma_max_, "gamma_max_is_bound": model.gamma_max_is_bound_}
    if hasattr(model, "noise_variance_"):
        facts["noise_variance"] = model.noise_variance_
    return facts | {"components": component_table(model), "top_features": top_features(model)}
