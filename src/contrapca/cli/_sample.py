"""`contrapca sample`: rows drawn from a saved model."""

from __future__ import annotations

from argparse import Namespace

from .._util.text import default_names
from ._console import Console
from ._models import feature_names, load_model
from ._outputs import check_outputs, check_text_output, staged, write_columns


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
