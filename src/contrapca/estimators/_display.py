"""What a fitted model says of itself."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator


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
