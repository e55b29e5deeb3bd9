"""`contrapca fit`: a model of cases and controls."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from .._util.tables import Table
from .._util.text import default_names
from ..data import Study
from ..reporting import Origin, coordinate_table, label_texts, named_clusters, summarize
from ._console import caution
from ._inputs import METHODS, cautions_of, described, input_facts, inputs_of, make_model
from ._outputs import check_outputs, staged, write_columns
from ._results import model_facts, model_lines, unseen_lines, verdict_lines

FILES = ("model.npz", "latents.csv", "loadings.csv")


def fit(options: Namespace) -> tuple[list[Any], dict[str, Any]]:
    """Fit, write the results, and say what was found."""
    files = [options.output / name for name in FILES]
    check_outputs(files, force=options.force)
    alone = not METHODS[options.method]._contrasts
    if alone and (options.background is not None or options.gamma != "auto"):
        raise ValueError(
            "--method ppca is for cases alone: leave out --background, --group and --gamma, or use --method contrapca."
        )
    inputs = inputs_of(options, needs_background=not alone and options.gamma != 0)
    model = make_model(options).fit(inputs.study)
    about: dict[str, Any] = {}  # what a report of this model would begin with
    if len(inputs.study.rows) > 1:
        about = summarize(
            inputs.study,
            model,
            test=not options.no_test,
            origin=Origin(options.shell, inputs.findings),
            gammas=2,  # the ends of the path are enough for caveats
            shown=False,  # so that no clusters need be found
            progress=options.progress,
        )
    cautions = about.get("cautions", cautions_of(inputs))
    # The model that is saved takes covariates out of new rows, too.
    saved = model if inputs.as_read is inputs.study else make_model(options).fit(inputs.as_read)
    with staged(files, force=options.force) as places:
        saved.save(places["model.npz"])
        write_columns(places["latents.csv"], latent_columns(model, inputs.study))
        write_columns(places["loadings.csv"], model.feature_table())
    caution(*cautions[len(inputs.findings) :])
    files_of = [f"{what:<9} {file}" for what, file in zip(("Model:", "Latents:", "Loadings:"), files, strict=True)]
    lines = [*verdict_lines(about), *described(inputs), *model_lines(model), *unseen_lines(about), *files_of]
    facts = {"verdict": about.get("verdict"), "test": about.get("test"), "inputs": input_facts(inputs)}
    facts |= {"model": model_facts(model), "cautions": cautions, "components": about.get("components")}
    return lines, facts | {"written": {file.stem: str(file) for file in files}}


def latent_columns(model: Any, study: Study) -> Table:
    """Name, group, label (or cluster) and latents of each row; controls are taken about their own mean."""
    rows = study.rows
    latents = rows.map_named(lambda name, own: model.transform(own, center=name))
    what, labels = "label", study.labels
    if labels.foreground is None:
        features = list(study.features or default_names(study.tables.n_features))
        found = named_clusters(latents.foreground, rows.foreground, features)
        what, labels = "cluster", rows.like([found, *[None] * (len(rows) - 1)])
    texts = labels.map(lambda own, count: [""] * count if own is None else label_texts(own), study.counts)
    names = study.sample_names.map(
        lambda own, count: [str(i + 1) for i in range(count)] if own is None else own, study.counts
    )
    return coordinate_table(names, {} if labels.foreground is None else {what: texts}, latents)
