"""`contrapca info`: what a saved file holds."""

from __future__ import annotations

from argparse import Namespace

from .._files import load
from .._util.text import default_names, listed, plural
from ..estimators import BackgroundWhitener
from ..inference import ContrastPath, ContrastPosterior
from ..moments import Moments
from ._console import Console
from ._path import path_lines, path_summary
from ._summary import model_summary, records


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
    elif isinstance(found, BackgroundWhitener):
        summary = {"n_features": found.n_features_in_, "ridge": found.ridge_, "shrinkage": found.shrinkage_}
        lines = [
            f"BackgroundWhitener of {plural(found.n_features_in_, 'feature')}, with a ridge of {found.ridge_:.3g} "
            f"(shrinkage {found.shrinkage_:.3g})"
        ]
    elif isinstance(found, Moments):
        names = list(found.names or default_names(found.mean.size))
        summary = {"weight": found.weight, "n_features": len(names), "features": names}
        lines = [
            f"Moments (mean and scatter matrix) of {found.weight:.15g} rows, or rows of that total weight, and "
            f"{plural(len(names), 'feature')}{': ' + listed(names, 8) if found.names else ''}"
        ]
    else:
        summary = model_summary(found)
        lines = [str(found.summary())]
        if "top_features" in summary:
            summary["features"] = found.fit_.scaling.foreground.labels
    console.say(*lines)
    console.summarise({"file": str(options.model), "holds": type(found).__name__} | summary)
