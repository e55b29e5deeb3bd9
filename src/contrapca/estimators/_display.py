"""What a fitted model says of itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._util.text import format_gamma, listed, plural


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
    line = f"{type(model).__name__} with {plural(model._n_features_out, 'component')}"
    if model._linear:
        line += f" of {model.n_features_in_} features"
    else:
        kernel = model._state.kernel
        width = f" of bandwidth {kernel.bandwidth:.4g}" if kernel.name in ("rbf", "poly") else ""
        line += f", kernel {kernel.name!r}{width}, {plural(model.n_landmarks_, 'landmark')}"
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
