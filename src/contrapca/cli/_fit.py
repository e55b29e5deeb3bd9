"""`contrapca fit`: a model of cases and controls, the latents of their rows, the loadings of their features."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np

from .. import CPCA, PCPCA, PPCA
from ._console import Console
from ._describe import model_lines, model_summary
from ._inputs import Group, Inputs, read_inputs
from ._outputs import check_outputs, staged, write_columns

FILES = ("model.npz", "latents.csv", "loadings.csv")


def fit(options: Namespace, console: Console) -> None:
    """Fit, write the results, and say what was found."""
    files = [options.output / name for name in FILES]
    check_outputs(files, force=options.force)
    if options.method == "ppca" and (options.background is not None or options.gamma != "auto"):
        raise ValueError("--method ppca is for cases alone: leave --background, --group and --gamma out, or use pcpca.")
    inputs = read_inputs(options, needs_background=options.method != "ppca" and options.gamma != 0)
    model = fitted_model(options, inputs, console)
    with staged(files, force=options.force) as places:
        model.save(places["model.npz"])
        write_columns(places["latents.csv"], latent_columns(model, inputs.cases, inputs.controls))
        write_columns(places["loadings.csv"], model.feature_table().columns)
    console.say(*inputs.describe(), *model_lines(model), "")
    console.say(*(f"{what:<9} {file}" for what, file in zip(("Model:", "Latents:", "Loadings:"), files, strict=True)))
    written = {file.stem: str(file) for file in files}
    console.summarise({"inputs": inputs.summary(), "model": model_summary(model), "written": written})


def fitted_model(options: Namespace, inputs: Inputs, console: Console) -> Any:
    """The estimator that the options ask for, fitted, with the names of the features."""
    scale = False if options.scale == "none" else options.scale
    gradient = {"random_state": options.seed, "verbose": int(console.progress)}
    model: Any
    if options.method == "ppca":
        model = PPCA(options.components, scale=scale, **gradient).fit(inputs.X)
    elif options.method == "cpca":
        model = CPCA(options.components, gamma=options.gamma, scale=scale).fit(inputs.X, background=inputs.Y)
    else:
        model = PCPCA(options.components, gamma=options.gamma, scale=scale, **gradient)
        model.fit(inputs.X, background=inputs.Y)
    return name_features(model, inputs.names)


def name_features(model: Any, names: list[str] | None) -> Any:
    """The model with the names of its features, which scikit-learn takes from data frames only."""
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    return model


def latent_columns(model: Any, cases: Group, controls: Group | None) -> dict[str, Any]:
    """Name, group, label and latents of each row; controls are taken about their own mean."""
    groups = [("case", cases, "foreground")]
    if controls is not None:
        groups.append(("control", controls, "background"))
    columns: dict[str, Any] = {
        "row": [name for _, group, _ in groups for name in group.row_names],
        "group": [what for what, group, _ in groups for _ in group.row_names],
    }
    if cases.labels is not None:
        labels = (np.full(len(group), "") if group.labels is None else group.labels for _, group, _ in groups)
        every = [label for part in labels for label in part.tolist()]
        columns["label"] = np.array(["" if label != label else label for label in every], dtype=object)
    latents = np.vstack([model.transform(group.values, center=center) for _, group, center in groups])
    return columns | dict(zip(model.get_feature_names_out(), latents.T, strict=True))
