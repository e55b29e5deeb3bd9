"""`contrapca info`, `transform` and `sample`: what a saved file holds, its latents of new rows, rows drawn from it."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from .._files import load
from .._util.text import component_names, default_names, listed, plural
from ..inference import ContrastPath, ContrastPosterior
from ..moments import Moments
from ._console import Console, model_summary, records
from ._fit import path_lines, path_summary
from ._outputs import check_outputs, check_text_output, staged, write_columns
from .reading import BY_PLACE, align_to, covariates_of_model, read_table, reading_of


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


def transform(options: Namespace, console: Console) -> None:
    """Write the latents of the rows of a table."""
    check_text_output(options.output)
    check_outputs([options.output], force=options.force)
    model = load_model(options.model)
    table = read_table(options.table, sheet=options.sheet, mask="none", **reading_of(options))
    names = feature_names(model)
    rows = align_to(names, model.n_features_in_, table)
    latents = model.transform(rows, center=options.center, **covariates_of_model(model, table))
    columns: dict[str, Any] = {"row": table.row_names or [str(i + 1) for i in range(len(table))]}
    columns |= dict(zip(component_names(latents.shape[1]), latents.T, strict=True))
    with staged([options.output], force=options.force) as places:
        write_columns(places[options.output.name], columns)
    notes = [*table.notes, *([BY_PLACE] if table.named != (names is not None) else [])]
    what = f"{table.path}: {len(table)} rows, {latents.shape[1]} latents each, written to {options.output}"
    console.say("; ".join([what, *notes]))
    console.summarise({"source": table.path, "n_rows": len(table), "written": str(options.output)})


def sample(options: Namespace, console: Console) -> None:
    """Write rows drawn from a model."""
    check_text_output(options.output)
    check_outputs([options.output], force=options.force)
    model = load_model(options.model)
    if not hasattr(model, "sample"):
        raise ValueError(f"{type(model).__name__} has no probability model to draw from: fit with --method contrapca.")
    rows = model.sample(options.n, random_state=options.seed)
    names = feature_names(model) or default_names(model.n_features_in_)
    with staged([options.output], force=options.force) as places:
        write_columns(places[options.output.name], dict(zip(names, rows.T, strict=True)))
    console.say(f"{options.n} rows of {len(names)} features drawn from {options.model}, written to {options.output}")
    summary = {"n_rows": options.n, "n_features": len(names), "seed": options.seed, "written": str(options.output)}
    console.summarise(summary)


def load_model(path: Path) -> Any:
    """A saved estimator; a path or draws are refused."""
    found = load(path)
    if not hasattr(found, "transform"):
        raise ValueError(f"{str(path)!r} holds a {type(found).__name__}, and not a model as contrapca fit writes it.")
    return found


def feature_names(model: Any) -> list[str] | None:
    """Names of the features of a model, if it has them."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]
