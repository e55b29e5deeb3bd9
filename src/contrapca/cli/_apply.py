"""`contrapca transform` and `contrapca sample`: what a saved model says of new rows, and new rows from it."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from .. import load
from .._util.text import component_names, default_names
from ..tables import align_to, read_table, with_names
from ._console import Console
from ._covariates import covariates_of_model
from ._inputs import BY_PLACE, reading_of
from ._outputs import check_outputs, check_text_output, staged, write_columns


def transform(options: Namespace, console: Console) -> None:
    """Write the latents of the rows of a table."""
    check_text_output(options.output)
    check_outputs([options.output], force=options.force)
    model = load_model(options.model)
    table = read_table(options.table, sheet=options.sheet, mask="none", **reading_of(options))
    names = feature_names(model)
    rows = with_names(align_to(names, model.n_features_in_, table), names)
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
