"""`contrapca info`: what a saved file holds."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from .. import CLVM, KernelCPCA, Moments, load
from .._util.text import default_names, format_gamma, listed, plural
from ..fitting import component_table
from ..results import ContrastPath, ContrastPosterior
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
    elif isinstance(found, KernelCPCA):
        lines, summary = [str(found.summary()), *_kept_rows(found)], _kernel(found)
    elif isinstance(found, CLVM):
        lines, summary = [str(found.summary())], _clvm(found)
    else:
        lines, summary = [str(found.summary())], model_summary(found)
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


def _kept_rows(model: KernelCPCA) -> list[str]:
    if model._state.kernel.name == "precomputed":  # its landmarks are numbers of rows
        return []
    return ["", f"The file has {plural(model.n_landmarks_, 'row')} of the tables of the fit, the landmarks."]


def _kernel(model: KernelCPCA) -> dict[str, Any]:
    kernel = model._state.kernel
    facts = {"method": "kernelcpca", "n_features": model.n_features_in_, "n_components": model.eigenvalues_.size}
    facts |= {"kernel": kernel.name, "bandwidth": kernel.bandwidth, "n_landmarks": model.n_landmarks_}
    return facts | {"gamma": model.gamma_, "components": records(component_table(model._state))}


def _clvm(model: CLVM) -> dict[str, Any]:
    D, d = model.loadings_.shape
    facts = {"method": "clvm", "n_features": D, "n_shared": model.shared_loadings_.shape[1], "n_components": d}
    return facts | {"noise_variance": model.noise_variance_}
