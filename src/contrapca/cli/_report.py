"""`contrapca report`: one page about cases and controls."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from .. import report as write_report
from ..reporting import check_libraries
from ._apply import feature_names, load_model
from ._console import Console
from ._fit import fitted_model
from ._inputs import Inputs, read_inputs
from ._outputs import OutputError, check_outputs, staged


def report(options: Namespace, console: Console) -> None:
    """Fit, or load a model of these tables, and write the page."""
    if options.output.suffix.lower() not in (".html", ".htm"):
        raise OutputError(f"--output {str(options.output)!r} must end in .html.")
    check_outputs([options.output], force=options.force)
    check_libraries()
    _check_model_options(options)
    model = None if options.model is None else load_model(options.model)
    features = None if model is None else (feature_names(model), model.n_features_in_)
    inputs = read_inputs(options, features=features)
    if model is None:
        model = fitted_model(options, inputs, console)
    draws = _uncertainty(model, inputs, options, console)
    with staged([options.output], force=options.force) as places:
        assert inputs.controls is not None
        summary = write_report(
            model,
            inputs.X,
            inputs.Y,
            inputs.cases.labels,
            places[options.output.name],
            row_names=inputs.cases.row_names,
            background_row_names=inputs.controls.row_names,
            sources=inputs.sources,
            uncertainty=draws,
            gammas=options.gammas,
            title=options.title,
            code=options.shell,
            progress=console.progress,
        )
    cautions = [f"Caution: {caution}" for caution in summary["cautions"]]
    console.say(*inputs.describe(), *cautions, f"Report: {options.output}")
    console.summarise(summary | {"written": str(options.output)})


def _check_model_options(options: Namespace) -> None:
    """A saved model has its own settings."""
    given = {"method": "pcpca", "components": 2, "gamma": "auto", "scale": "none"}
    changed = [f"--{name}" for name, default in given.items() if getattr(options, name) != default]
    if options.model is not None and changed:
        raise ValueError(f"{' and '.join(changed)} cannot be used with --model: the saved model has its own.")


def _uncertainty(model: Any, inputs: Inputs, options: Namespace, console: Console) -> Any:
    """Draws around the model, if they are asked for."""
    settings = {"random_state": options.seed, "progress": console.progress}
    if options.uncertainty == "posterior":
        return model.posterior(**settings)
    if options.uncertainty == "bootstrap":
        return model.bootstrap(inputs.X, background=inputs.Y, **settings)
    return None
