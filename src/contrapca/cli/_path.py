"""`contrapca path`: the contrast of cases and controls at many strengths."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from .._util.text import format_gamma
from ..inference import ContrastPath, contrast_path
from ._console import Console
from ._inputs import cautions_of, described, input_facts, inputs_of
from ._models import METHODS, scale_of
from ._outputs import check_outputs, staged, write_columns

FILES = ("path.npz", "path.csv")


def path(options: Namespace, console: Console) -> None:
    """Compute the path, write it, and name the gammas that differ most."""
    files = [options.output / name for name in FILES]
    check_outputs(files, force=options.force)
    inputs, kind = inputs_of(options), METHODS[options.method]
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
