"""`contrapca fit`, a model of cases and controls, and `contrapca path`, their contrast at many strengths."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from .._util.tables import Table
from .._util.text import default_names, format_gamma
from ..data import Study
from ..estimators import CPCA, PCPCA, PPCA, ContraPCA
from ..inference import ContrastPath, contrast_path
from ..reporting import Origin, coordinate_table, label_texts, named_clusters, summarize
from ._console import Console, caution, model_summary
from ._inputs import cautions_of, described, input_facts, read_inputs
from ._outputs import check_outputs, staged, write_columns
from ._verdict import scale_of, unseen_lines, verdict_lines

METHODS: dict[str, Any] = {"contrapca": ContraPCA, "pcpca": PCPCA, "cpca": CPCA, "ppca": PPCA}
FILES = ("model.npz", "latents.csv", "loadings.csv")
PATH_FILES = ("path.npz", "path.csv")


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
    model = make_model(options, console).fit(inputs.study)
    about: dict[str, Any] = {}  # what a report of this model would begin with
    if len(inputs.study.rows) > 1:
        about = summarize(
            inputs.study,
            model,
            test=not options.no_test,
            origin=Origin(options.shell, inputs.findings),
            gammas=2,  # the ends of the path are enough for caveats
            shown=False,  # so that no clusters need be found
            progress=console.progress,
        )
    cautions = about.get("cautions", cautions_of(inputs))
    # The model that is saved takes covariates out of new rows, too.
    saved = model if inputs.as_read is inputs.study else make_model(options, console).fit(inputs.as_read)
    with staged(files, force=options.force) as places:
        saved.save(places["model.npz"])
        write_columns(places["latents.csv"], latent_columns(model, inputs.study))
        write_columns(places["loadings.csv"], model.feature_table())
    caution(*cautions[len(inputs.findings) :])
    console.say(*verdict_lines(about), *described(inputs), model.summary(), "", *unseen_lines(about))
    console.say(*(f"{what:<9} {file}" for what, file in zip(("Model:", "Latents:", "Loadings:"), files, strict=True)))
    written = {file.stem: str(file) for file in files}
    found = {"inputs": input_facts(inputs), "model": model_summary(model), "cautions": cautions, "written": written}
    found["components"] = about.get("components")
    console.summarise({"verdict": about.get("verdict"), "test": about.get("test")} | found)


def make_model(options: Namespace, console: Console) -> Any:
    """The estimator that the options ask for."""
    kind = METHODS[options.method]
    given = {"gamma": options.gamma, "random_state": options.seed, "progress": console.progress}
    given["scale"] = scale_of(options, kind)
    return kind(options.components, **{name: value for name, value in given.items() if name in kind._get_param_names()})


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


def path(options: Namespace, console: Console) -> None:
    """Compute the path, write it, and name the gammas that differ most."""
    files = [options.output / name for name in PATH_FILES]
    check_outputs(files, force=options.force)
    inputs, kind = read_inputs(options), METHODS[options.method]
    found = contrast_path(
        kind(options.components, scale=scale_of(options, kind)),
        inputs.study,
        gammas=options.gammas,
        progress=console.progress,
    )
    with staged(files, force=options.force) as places:
        found.save(places["path.npz"])
        write_columns(places["path.csv"], found.table())
    console.say(*described(inputs), *path_lines(found), "", f"Path:  {files[0]}", f"Table: {files[1]}")
    written = {"path": str(files[0]), "table": str(files[1])}
    console.summarise(
        {
            "inputs": input_facts(inputs),
            "cautions": cautions_of(inputs),
            "path": path_summary(found),
            "written": written,
        }
    )


def path_lines(path: ContrastPath) -> list[str]:
    """A path in lines."""
    chosen = ", ".join(map(format_gamma, path.representatives()))
    d, limit = path.n_components, f"limit{' at most' if path.gamma_max_is_bound else ''} {format_gamma(path.gamma_max)}"
    first, last = format_gamma(path.gammas[0]), format_gamma(path.gammas[-1])
    name = type(path.model(path.gammas[0])).__name__
    return [
        f"{name} with {d} component{'s' * (d > 1)} of {len(path.feature_names)} features "
        f"at {len(path)} gammas from {first} to {last} ({limit})",
        f"Gammas whose components differ most: {chosen}",
    ]


def path_summary(path: ContrastPath) -> dict[str, Any]:
    """The same as values."""
    return {
        "method": type(path.estimator).__name__.lower(),
        "n_features": len(path.feature_names),
        "n_components": path.n_components,
        "gamma_max": path.gamma_max,
        "gamma_max_is_bound": path.gamma_max_is_bound,
        "gammas": path.gammas,
        "representatives": path.representatives(),
    }
