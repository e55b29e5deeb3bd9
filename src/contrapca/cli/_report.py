"""`contrapca report`: one page about cases and controls."""

from __future__ import annotations

import shlex
from argparse import Namespace
from typing import Any

from .. import Study, bootstrap, load, posterior
from .. import report as write_report
from ..estimators import answers
from ..groups import Groups
from ..reporting import check_libraries
from ..results import ContrastPath
from ..units import Units
from ._config import parse
from ._console import Console, caution, printable
from ._fit import fitted_model, make_model
from ._inputs import Inputs, read_inputs
from ._options import SETTINGS
from ._outputs import OutputError, check_outputs, staged
from ._parser import make_parser
from ._verdict import unseen_lines, verdict_lines


def report(options: Namespace, console: Console) -> None:
    """Fit, or load a model of these tables, and write the page."""
    if options.output.suffix.lower() not in (".html", ".htm"):
        raise OutputError(f"--output {str(options.output)!r} must end in .html.")
    check_outputs([options.output], force=options.force)
    check_libraries()
    options, model, inputs = read_for_report(options)
    if model is None and options.uncertainty == "none":
        model = make_model(options, console)  # fitted with the report, in one pass over the rows
    elif model is None:
        model = fitted_model(options, inputs, console)
    draws = None
    if options.uncertainty != "none":  # the name of a method
        study = Study(inputs.X, background=inputs.Y, blocks=inputs.blocks)
        draw = bootstrap if options.uncertainty == "bootstrap" else posterior
        draws = draw(model, study, random_state=options.seed, progress=console.progress)
    with staged([options.output], force=options.force) as places:
        summary = write_report(
            model,
            **about(options, inputs, console),
            output=places[options.output.name],
            sources=[printable(source) for source in inputs.sources],
            uncertainty=draws,
            gammas=options.gammas,
        )
    caution(*summary["cautions"][len(inputs.findings) :])
    console.say(*verdict_lines(summary), *inputs.describe(), *unseen_lines(summary), f"Report: {options.output}")
    console.summarise(summary | {"written": str(options.output)})


def about(options: Namespace, inputs: Inputs, console: Console) -> dict[str, Any]:
    """The arguments that `report` and `export` share."""
    cases, controls = inputs.cases, inputs.controls
    assert controls is not None
    return {
        "X": cases.values,
        "background": controls.values,
        "labels": cases.labels,
        "background_labels": controls.labels,
        "label_name": options.labels,
        "row_names": cases.row_names,
        "background_row_names": controls.row_names,
        "blocks": cases.blocks,
        "background_blocks": controls.blocks,
        "test": not options.no_test,
        "depth": options.depth,
        "title": options.title and printable(options.title),
        "code": printable(options.shell),
        "findings": inputs.findings,
        "progress": console.progress,
    }


def read_for_report(options: Namespace) -> tuple[Namespace, Any, Inputs]:
    """The options with all settings, the saved model or path if they name one, and the tables."""
    given = {name: getattr(options, name) for name in SETTINGS if getattr(options, name) is not None}
    if options.model is None:
        options = Namespace(**vars(options) | SETTINGS | given)
        return options, None, read_inputs(options)
    if given:
        names = " and ".join(f"--{name}" for name in given)
        raise ValueError(f"{names} cannot be used with --model: the saved model has its own.")
    model = _saved_model(options)
    units = _units(model).foreground
    features = None if units.names is None else list(units.names)
    return options, model, read_inputs(options, features=(features, units.mean.size))


def inputs_of(command: str) -> Inputs:
    """The tables that a command in one line reads."""
    return read_for_report(parse(make_parser(), shlex.split(command)[1:]))[2]


def _saved_model(options: Namespace) -> Any:
    """The model or path that --model names, if a report can be about it."""
    model, file = load(options.model), str(options.model)
    kind, uncertainty = type(model).__name__, vars(options).get("uncertainty", "none")
    if not isinstance(model, ContrastPath) and not answers(model, "_path_estimator"):
        raise ValueError(
            f"--model {file!r} holds a {kind}: a report is about a PPCA, ContraPCA, PCPCA, CPCA, SparseCPCA, RatioPCA "
            "or ContrastPath."
        )
    if isinstance(model, ContrastPath) and vars(options).get("gammas") is not None:
        raise ValueError(f"--gammas cannot be used with --model {file!r}: a path has its own.")
    if hasattr(model, "covariate_names_"):
        raise ValueError(
            f"--model {file!r} was fitted with covariates: leave --model out, and give --covariates, so that a model "
            "of what is left is fitted here."
        )
    if uncertainty != "none" and not getattr(
        model, {"bootstrap": "_resampled", "posterior": "_sampled"}[uncertainty], False
    ):
        raise ValueError(
            f"--uncertainty {uncertainty} cannot be used with --model {file!r}: there is no {uncertainty} of a {kind}. "
            "Leave it out."
        )
    if uncertainty != "none" and _units(model).background is None:
        raise ValueError(
            f"--uncertainty {uncertainty} cannot be used with --model {file!r}: it was fitted without controls. Fit "
            "one with --background, or leave --uncertainty out."
        )
    return model


def _units(model: Any) -> Groups[Units]:
    return (model if isinstance(model, ContrastPath) else model._state).units  # type: ignore[no-any-return]
