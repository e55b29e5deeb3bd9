"""`contrapca transform`, `sample` and `info`: what can be done with a saved file."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from .._files import load
from .._util.text import component_names, default_names, listed, plural
from ..estimators import BackgroundWhitener
from ..inference import ContrastPath, ContrastPosterior
from ..moments import Moments
from ..reading import BY_PLACE, align_to, covariate_columns, read_table
from ._outputs import check_outputs, check_text_output, staged, write_columns
from ._results import model_facts, model_lines, path_facts, path_lines, records


def transform(options: Namespace) -> tuple[list[Any], dict[str, Any]]:
    """Write the latents of the rows of a table; of a whitener, the whitened rows."""
    check_text_output(options.output)
    check_outputs([options.output], force=options.force)
    model, names = _model(options.model)
    table = read_table(
        options.table,
        sheet=options.sheet,
        mask="none",
        header=options.header,
        transpose=options.transpose,
        encoding=options.encoding,
        missing=options.missing,
        percent=options.percent,
        thousands=options.thousands,
    )
    rows = align_to(names, model.n_features_in_, table)
    covariates = [column.name for column in model.fit_.covariates.columns] if hasattr(model, "covariate_names_") else []
    if unknown := [name for name in covariates if name not in table.columns]:
        raise ValueError(
            f"The model was fitted with the covariates {listed(covariates)}, but {table.path!r} has no column "
            f"{listed(unknown)}: add it."
        )
    given = {"covariates": covariate_columns(table, covariates)} if covariates else {}
    if isinstance(model, BackgroundWhitener):
        found, written, what = model.transform(rows), list(model.get_feature_names_out()), "whitened features"
    else:
        found, what = model.transform(rows, center=options.center, **given), "latents"
        written = component_names(found.shape[1])
    columns: dict[str, Any] = {"row": table.row_names or [str(i + 1) for i in range(len(table))]}
    columns |= dict(zip(written, found.T, strict=True))
    with staged([options.output], force=options.force) as places:
        write_columns(places[options.output.name], columns)
    notes = [*table.notes, *([BY_PLACE] if table.named != (names is not None) else [])]
    done = f"{table.path}: {len(table)} rows, {found.shape[1]} {what} each, written to {options.output}"
    facts = {"source": table.path, "n_rows": len(table), "written": str(options.output)}
    return ["; ".join([done, *notes])], facts


def sample(options: Namespace) -> tuple[list[Any], dict[str, Any]]:
    """Write rows drawn from a model."""
    check_text_output(options.output)
    check_outputs([options.output], force=options.force)
    model, names = _model(options.model)
    if not hasattr(model, "sample"):
        raise ValueError(f"{type(model).__name__} has no probability model to draw from: fit with --method contrapca.")
    rows = model.sample(options.n, random_state=options.seed)
    names = names or default_names(model.n_features_in_)
    with staged([options.output], force=options.force) as places:
        write_columns(places[options.output.name], dict(zip(names, rows.T, strict=True)))
    done = f"{options.n} rows of {len(names)} features drawn from {options.model}, written to {options.output}"
    facts = {"n_rows": options.n, "n_features": len(names), "seed": options.seed, "written": str(options.output)}
    return [done], facts


def _model(path: Path) -> tuple[Any, list[str] | None]:
    """A saved estimator, and the names of its features if it has them; a path or draws are refused."""
    found = load(path)
    if not hasattr(found, "transform"):
        raise ValueError(f"{str(path)!r} holds a {type(found).__name__}, and not a model as contrapca fit writes it.")
    names = getattr(found, "feature_names_in_", None)
    return found, None if names is None else [str(name) for name in names]


def info(options: Namespace) -> tuple[list[Any], dict[str, Any]]:
    """Describe a model, a path, draws or moments."""
    found = load(options.model)
    facts: dict[str, Any]
    if isinstance(found, ContrastPath):
        lines, facts = path_lines(found), path_facts(found)
    elif isinstance(found, ContrastPosterior):
        diagnostics = found.diagnostics()
        chains, draws, D, d = found.loadings.shape
        lines = [str(found), "", str(diagnostics)]
        facts = {"kind": found.kind, "method": found.method, "chains": chains, "draws": draws, "n_features": D}
        facts |= {"n_components": d, "diagnostics": records(diagnostics)}
    elif isinstance(found, BackgroundWhitener):
        facts = {"n_features": found.n_features_in_, "ridge": found.ridge_, "shrinkage": found.shrinkage_}
        lines = [
            f"BackgroundWhitener of {plural(found.n_features_in_, 'feature')}, with a ridge of {found.ridge_:.3g} "
            f"(shrinkage {found.shrinkage_:.3g})"
        ]
    elif isinstance(found, Moments):
        names = list(found.names or default_names(found.mean.size))
        facts = {"weight": found.weight, "n_features": len(names), "features": names}
        lines = [
            f"Moments (mean and scatter matrix) of {found.weight:.15g} rows, or rows of that total weight, and "
            f"{plural(len(names), 'feature')}{': ' + listed(names, 8) if found.names else ''}"
        ]
    else:
        lines, facts = model_lines(found), model_facts(found)
        if "top_features" in facts:
            facts["features"] = found.fit_.scaling.foreground.labels
    return lines, {"file": str(options.model), "holds": type(found).__name__} | facts
