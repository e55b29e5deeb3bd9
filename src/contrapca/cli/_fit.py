"""`contrapca fit`: a model of cases and controls, the latents of their rows, the loadings of their features."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from .. import CPCA, PCPCA, PPCA, ContraPCA, Study
from .._util.table import Table
from .._util.text import default_names
from ..groups import Groups
from ..reporting import coordinate_table, findings_of, label_texts, named_clusters
from ._console import Console, caution
from ._describe import model_summary
from ._inputs import Group, Inputs, read_inputs
from ._outputs import check_outputs, staged, write_columns
from ._verdict import scale_of, unseen_lines, verdict_lines

METHODS: dict[str, Any] = {"contrapca": ContraPCA, "pcpca": PCPCA, "cpca": CPCA, "ppca": PPCA}
FILES = ("model.npz", "latents.csv", "loadings.csv")


def fit(options: Namespace, console: Console) -> None:
    """Fit, write the results, and say what was found."""
    files = [options.output / name for name in FILES]
    check_outputs(files, force=options.force)
    alone = not METHODS[options.method]._contrasts
    if alone and (options.background is not None or options.gamma != "auto"):
        raise ValueError(
            "--method ppca is for cases alone: leave out --background, --group and --gamma, or use --method contrapca."
        )
    inputs = read_inputs(options, needs_background=not alone and options.gamma != 0)
    model = fitted_model(options, inputs, console)
    about = _findings(model, inputs, options, console)
    cautions = about.get("cautions", inputs.cautions)
    with staged(files, force=options.force) as places:
        _with_covariates(model, options, inputs, console).save(places["model.npz"])
        write_columns(places["latents.csv"], latent_columns(model, inputs.cases, inputs.controls))
        write_columns(places["loadings.csv"], model.feature_table())
    caution(*cautions[len(inputs.findings) :])
    console.say(*verdict_lines(about), *inputs.describe(), model.summary(), "", *unseen_lines(about))
    console.say(*(f"{what:<9} {file}" for what, file in zip(("Model:", "Latents:", "Loadings:"), files, strict=True)))
    written = {file.stem: str(file) for file in files}
    found = {"inputs": inputs.summary(), "model": model_summary(model), "cautions": cautions, "written": written}
    found["components"] = about.get("components")
    console.summarise({"verdict": about.get("verdict"), "test": about.get("test")} | found)


def _findings(model: Any, inputs: Inputs, options: Namespace, console: Console) -> dict[str, Any]:
    """What a report of this model would begin with; empty without controls."""
    if inputs.controls is None:
        return {}
    blocks, background_blocks = inputs.blocks or (None, None)
    return findings_of(
        model,
        inputs.X,
        background=inputs.Y,
        row_names=inputs.cases.row_names,
        test=not options.no_test,
        blocks=blocks,
        background_blocks=background_blocks,
        findings=inputs.findings,
        code=options.shell,
        progress=console.progress,
    )


def make_model(options: Namespace, console: Console) -> Any:
    """The estimator that the options ask for."""
    kind = METHODS[options.method]
    scale = scale_of(options, kind)
    given = {"gamma": options.gamma, "random_state": options.seed, "progress": console.progress}
    given["scale"] = scale if kind._contrasts else scale is not None  # one group is scaled or not
    return kind(options.components, **{name: value for name, value in given.items() if name in kind._get_param_names()})


def fitted_model(options: Namespace, inputs: Inputs, console: Console) -> Any:
    """The same, fitted."""
    model = make_model(options, console)
    return model.fit(inputs.X, background=inputs.Y) if model._contrasts else model.fit(inputs.X)


def _with_covariates(model: Any, options: Namespace, inputs: Inputs, console: Console) -> Any:
    """The model of the tables as they were read, which takes the covariates out of new rows, too."""
    cases, controls = inputs.cases, inputs.controls
    if cases.covariates is None:
        return model
    again = make_model(options, console)
    if controls is None:
        return again.fit(Study(cases.as_read, covariates=cases.covariates))
    beside = (cases.covariates, controls.covariates)
    return again.fit(Study(cases.as_read, background=controls.as_read, covariates=beside))


def latent_columns(model: Any, cases: Group, controls: Group | None) -> Table:
    """Name, group, label (or cluster) and latents of each row; controls are taken about their own mean."""
    groups = Groups.of(cases, controls)
    latents = groups.map_named(lambda name, group: model.transform(group.values, center=name))
    what, own = "label", cases.labels
    if own is None:
        features = getattr(cases.values, "columns", None) or default_names(cases.values.shape[1])
        what, own = "cluster", named_clusters(latents.foreground, cases.values, features)
    labels = groups.like([own, *(group.labels for group in groups.backgrounds)])
    texts = groups.map(lambda group, own: label_texts([""] * len(group) if own is None else own, len(group)), labels)
    return coordinate_table(groups.map(lambda group: group.row_names), {} if own is None else {what: texts}, latents)
