"""The summary: everything that a report says, as plain values that JSON can hold."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from .._array import Array, Rows, is_sparse
from .._version import __version__
from ..plots import loading_intervals_data, path_curves_data
from ..posterior import ContrastPosterior
from ._cautions import cautions
from ._points import NO_LABEL
from ._subject import TOP_FEATURES, Subject

TITLE = "What varies in the cases and not in the controls"
LIBRARIES = ("numpy", "scipy", "scikit-learn", "plotly")
PROBABILITY = 0.9  # of the intervals


def summary_of(subject: Subject, title: str | None, sources: Sequence[str], code: str | None) -> dict[str, Any]:
    """The summary of a report."""
    summary = {
        "title": TITLE if title is None else str(title),
        "data": _data(subject, sources),
        "model": _model(subject),
        "components": _components(subject),
        "path": _path(subject),
        "loadings": _loadings(subject),
        "uncertainty": None if subject.uncertainty is None else _uncertainty(subject.uncertainty),
        "code": {"python": _python(subject, title), "command": code},
        "versions": _versions(),
    }
    return summary | {"cautions": cautions(subject, summary)}


def _data(subject: Subject, sources: Sequence[str]) -> dict[str, Any]:
    foreground, background = subject.tables
    labels = None
    if subject.classes is not None:
        names, counts = np.unique(subject.classes, return_counts=True)
        labels = {str(name) or NO_LABEL: int(count) for name, count in zip(names, counts, strict=True)}
    return {
        "sources": list(map(str, sources)),
        "foreground": _group(foreground),
        "background": _group(background),
        "features": foreground.shape[1],
        "label_name": subject.label_name,
        "labels": labels,
    }


def _group(rows: Rows) -> dict[str, int]:
    missing = np.zeros(1) if is_sparse(rows) else np.isnan(rows).sum(axis=1)
    return {"rows": rows.shape[0], "missing_values": int(missing.sum()), "incomplete_rows": int(np.sum(missing > 0))}


def _model(subject: Subject) -> dict[str, Any]:
    path, g = subject.path, subject.start
    return {
        "estimator": subject.estimator,
        "n_components": path.n_components,
        "gamma": float(path.gammas[g]),
        "limit": _finite(path.limit),
        "limit_is_bound": path.limit_is_bound,
        "scale": path.scaling,
        "noise_variance": _finite(path.sigma2[g]),
        "objective": float(path.objective[g]),
    }


def _finite(value: float) -> float | None:
    """None in place of infinity and nan, which JSON does not have."""
    return float(value) if np.isfinite(value) else None


def _components(subject: Subject) -> list[dict[str, Any]]:
    """One entry for each component at the report's gamma."""
    path, g = subject.path, subject.start
    W, shares = path.loadings(g), path.shares()
    return [
        {
            "component": k,
            "eigenvalue": float(path.eigenvalues[g, k]),
            "foreground_variance": float(path.explained_variance[g, k]),
            "background_variance": float(path.background_variance[g, k]),
            "foreground_share": float(shares[0][g, k]),
            "background_share": float(shares[1][g, k]),
            "features": [
                {"feature": path.feature_names[j], "loading": float(W[j, k])} for j in _largest(W[:, k], TOP_FEATURES)
            ],
        }
        for k in range(path.n_components)
    ]


def _largest(loading: Array, count: int) -> list[int]:
    """Indices of the largest magnitudes, the largest first."""
    return np.argsort(-np.abs(loading), kind="stable")[:count].tolist()


def _path(subject: Subject) -> dict[str, Any]:
    path, curves = subject.path, path_curves_data(subject.path)
    return {
        "gammas": path.gammas.tolist(),
        "start": subject.start,
        "foreground_share": curves["foreground"].tolist(),
        "background_share": curves["background"].tolist(),
        "noise_variance": [_finite(value) for value in path.sigma2],
        "representatives": path.representatives(4).tolist(),
        "logarithmic": path.method == "cpca",
    }


def _loadings(subject: Subject) -> dict[str, Any]:
    """The largest loadings on each axis of the scatter at every gamma, turned as the points are."""
    path, turns = subject.path, subject.path.turns(subject.start)
    used: dict[int, int] = {}  # feature to its place in the list of names
    steps = []
    for g in range(len(path)):
        W = path.loadings(g) @ turns[g]
        axes = [(_largest(W[:, k], TOP_FEATURES), W[:, k]) for k in range(path.n_components)]
        steps.append(
            [
                {"feature": [used.setdefault(j, len(used)) for j in top], "loading": [_short(W_k[j]) for j in top]}
                for top, W_k in axes
            ]
        )
    return {"features": [path.feature_names[j] for j in used], "steps": steps}


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def _uncertainty(posterior: ContrastPosterior) -> dict[str, Any]:
    chains, draws, _, d = posterior.loadings.shape
    angles = np.degrees(posterior.angles()[..., 0]).ravel()
    components = []
    for k in range(d):
        found = loading_intervals_data(posterior, k, TOP_FEATURES, PROBABILITY)
        lists = {name: found[name] if name == "feature" else found[name].tolist() for name in found}
        components.append({"component": k, **lists})
    table = posterior.diagnostics() if posterior.kind == "gibbs" else None
    return {
        "kind": posterior.kind,
        "learning_rate": posterior.learning_rate,
        "draws": chains * draws,
        "probability": PROBABILITY,
        "failures": posterior.failures,
        "divergences": posterior.divergences,
        "largest_r_hat": None if table is None else _finite(float(np.max(table["largest R-hat"]))),
        "least_ess": None if table is None else _finite(float(np.min(table["least ESS"]))),
        "angle_median": float(np.median(angles)),
        "angle_upper": float(np.quantile(angles, PROBABILITY)),
        "components": components,
    }


def _python(subject: Subject, title: str | None) -> str:
    """Python code that makes this report from two tables."""
    what = "path" if "contrast_path" in subject.code else "model"
    labels = "" if subject.classes is None and subject.values is None else ", labels"
    options = f", label_name={subject.label_name!r}" * bool(labels and subject.label_name != "label")
    options += "" if title is None else f", title={title!r}"
    options += "" if subject.points is None else f", gammas={subject.points}"
    draws = ""
    if subject.uncertainty is not None:
        given = "cases, background=controls" if subject.uncertainty.kind == "bootstrap" else ""
        draws = f"draws = model.{'bootstrap' if given else 'posterior'}({given})  # random\n"
        options += ", uncertainty=draws"
    return f'{subject.code}{draws}report({what}, cases, controls{labels}, path="report.html"{options})\n'


def _versions() -> dict[str, str]:
    found = {"contrapca": __version__, "Python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # the summary needs no plotly
            continue
    return found
