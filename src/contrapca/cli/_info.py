"""`contrapca info`: what a saved file holds."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from .. import Moments, load
from .._util.text import default_names, format_gamma, listed, plural
from ..paths import ContrastPath
from ..uncertainty import ContrastPosterior
from ._console import Console
from ._describe import model_summary, records


def info(options: Namespace, console: Console) -> None:
    """Describe a model, a path, draws or moments."""
    found = load(options.model)
    if isinstance(found, ContrastPath):
        lines, summary = path_lines(found), path_summary(found)
    elif isinstance(found, ContrastPosterior):
        diagnostics = found.diagnostics()
        chains, draws, D, d = found.loadings.shape
        lines = [str(found), "", str(diagnostics)]
        summary = {"kind": found.kind, "method": found.method, "chains": chains, "draws": draws, "n_features": D}
        summary |= {"n_components": d, "diagnostics": records(diagnostics)}
    elif isinstance(found, Moments):
        lines, summary = _moments_lines(found), _moments(found)
    else:
        summary = model_summary(found)
        lines = [str(found.summary())]
        if "top_features" in summary:
            summary["features"] = found._state.units.foreground.labels
    console.say(*lines)
    console.summarise({"file": str(options.model), "holds": type(found).__name__} | summary)


def path_lines(path: ContrastPath) -> list[str]:
    """A path in lines."""
    chosen = ", ".join(map(format_gamma, path.representatives()))
    d, limit = path.n_components, f"limit{' at most' if path.gamma_max_is_bound else ''} {format_gamma(path.gamma_max)}"
    first, last = format_gamma(path.gammas[0]), format_gamma(path.gammas[-1])
    name = type(path.model(path.gammas[0])).__name__
    return [
        f"{name} with {d} component{'s' * (d > 1)} of {len(path.feature_names)} features "
        f"at {len(path)} gammas from {first} to {last} ({limit})",
        f"Gammas whose components differ most: {chosen}",
    ]


def path_summary(path: ContrastPath) -> dict[str, Any]:
    """The same as values."""
    return {
        "method": type(path.estimator).__name__.lower(),
        "n_features": len(path.feature_names),
        "n_components": path.n_components,
        "gamma_max": path.gamma_max,
        "gamma_max_is_bound": path.gamma_max_is_bound,
        "gammas": path.gammas,
        "representatives": path.representatives(),
    }


def _moments_lines(moments: Moments) -> list[str]:
    names = "" if moments.names is None else f": {listed(moments.names, 8)}"
    return [
        f"Moments (mean and scatter matrix) of {moments.weight:.15g} rows, or rows of that total weight, and "
        f"{plural(moments.mean.size, 'feature')}{names}"
    ]


def _moments(moments: Moments) -> dict[str, Any]:
    names = list(moments.names or default_names(moments.mean.size))
    return {"weight": moments.weight, "n_features": len(names), "features": names}
