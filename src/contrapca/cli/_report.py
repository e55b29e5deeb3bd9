"""`contrapca report`: one page about cases and controls."""

from __future__ import annotations

import contextlib
from argparse import Namespace
from typing import Any

from .._files import load
from ..data import Groups, Scaling
from ..estimators import CPCA, PCPCA, PPCA, ContrastSolver, SparseCPCA
from ..inference import ContrastPath, bootstrap, posterior
from ..reading import Inputs
from ..reporting import RESULTS, Origin, check_libraries, summarize
from ._console import caution, printable
from ._inputs import described, inputs_of, make_model, request_of
from ._outputs import OutputError, check_outputs, staged
from ._parser import SETTINGS
from ._results import unseen_lines, verdict_lines


def report(options: Namespace) -> tuple[list[Any], dict[str, Any]]:
    """Fit, or load a model of these tables, and write the page, and with --save what it saves."""
    output = options.output or options.cases.with_name("report.html")
    if output.suffix.lower() not in (".html", ".htm"):
        raise OutputError(f"--output {str(output)!r} must end in .html.")
    saved = [] if options.save is None else [options.save / name for name in RESULTS]
    check_outputs([output, *saved], force=options.force)
    check_libraries(figures=bool(saved))
    options, model, inputs = _read(options)
    model = make_model(options) if model is None else model  # fitted with the report, in one pass over rows
    draws = None
    if options.uncertainty != "none":  # the name of a method
        model = model.fit(inputs.study) if options.model is None else model
        draw = bootstrap if options.uncertainty == "bootstrap" else posterior
        draws = draw(model, inputs.study, random_state=options.seed, progress=options.progress)
    # Python code that reads the files alike; of a saved model's features, perhaps not all that the files have.
    study = "" if options.model is not None else request_of(options).code()
    with contextlib.ExitStack() as written:
        page = written.enter_context(staged([output], force=options.force))[output.name]
        places = written.enter_context(staged(saved, force=options.force)) if saved else {}
        summary = summarize(
            inputs.as_read,  # which has the covariates: the page takes their effect out, and colours points by them
            model,
            test=not options.no_test,
            depth=options.depth,
            title=options.title and printable(options.title),
            origin=Origin(printable(options.shell), inputs.findings, [*map(printable, inputs.sources)], study),
            progress=options.progress,
            uncertainty=draws,
            gammas=options.gammas,
        )
        summary.write(page)
        if saved:
            summary.save(places[RESULTS[0]].parent)
    caution(*summary["cautions"][len(inputs.findings) :])
    lines = [*verdict_lines(summary), *described(inputs), *unseen_lines(summary), f"Report: {output}"]
    facts = summary | {"written": str(output), "saved": [str(file) for file in saved]}
    return [*lines, *(f"Saved:  {file}" for file in saved)], facts


def _read(options: Namespace) -> tuple[Namespace, Any, Inputs]:
    """The options with all settings, the saved model or path if they name one, and the tables."""
    given = {name: getattr(options, name) for name in SETTINGS if getattr(options, name) is not None}
    if options.model is None:
        options = Namespace(**vars(options) | SETTINGS | given)
        return options, None, inputs_of(options)
    if given:
        names = " and ".join(f"--{name}" for name in given)
        raise ValueError(f"{names} cannot be used with --model: the saved model has its own.")
    model = _saved_model(options)
    scaling = _scaling_of(model).foreground
    features = None if scaling.names is None else list(scaling.names)
    return options, model, inputs_of(options, features=(features, scaling.mean.size))


def _saved_model(options: Namespace) -> Any:
    """The model or path that --model names, if a report can be about it."""
    model, file = load(options.model), str(options.model)
    kind, uncertainty = type(model).__name__, vars(options).get("uncertainty", "none")
    if not isinstance(model, ContrastPath) and not isinstance(model, ContrastSolver):
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
    takes = {  # those of `bootstrap` and `posterior`
        "none": True,
        "bootstrap": isinstance(model, ContrastSolver) and not isinstance(model, SparseCPCA),
        "posterior": isinstance(model, PPCA | PCPCA | CPCA),
    }
    if not takes[uncertainty]:
        raise ValueError(
            f"--uncertainty {uncertainty} cannot be used with --model {file!r}: there is no {uncertainty} of a {kind}. "
            "Leave it out."
        )
    if uncertainty != "none" and _scaling_of(model).background is None:
        raise ValueError(
            f"--uncertainty {uncertainty} cannot be used with --model {file!r}: it was fitted without controls. Fit "
            "one with --background, or leave --uncertainty out."
        )
    return model


def _scaling_of(model: Any) -> Groups[Scaling]:
    return (model if isinstance(model, ContrastPath) else model.fit_).scaling  # type: ignore[no-any-return]
