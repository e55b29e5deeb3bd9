"""`contrapca path`: the contrast of cases and controls at many strengths."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from ..inference import contrast_path
from ._inputs import METHODS, cautions_of, described, input_facts, inputs_of, scale_of
from ._outputs import check_outputs, staged, write_columns
from ._results import path_facts, path_lines

FILES = ("path.npz", "path.csv")


def path(options: Namespace) -> tuple[list[Any], dict[str, Any]]:
    """Compute the path, write it, and name the gammas that differ most."""
    files = [options.output / name for name in FILES]
    check_outputs(files, force=options.force)
    inputs, kind = inputs_of(options), METHODS[options.method]
    model = kind(options.components, scale=scale_of(options, kind))
    found = contrast_path(model, inputs.study, gammas=options.gammas, progress=options.progress)
    with staged(files, force=options.force) as places:
        found.save(places["path.npz"])
        write_columns(places["path.csv"], found.table())
    lines = [*described(inputs), *path_lines(found), "", f"Path:  {files[0]}", f"Table: {files[1]}"]
    facts = {"inputs": input_facts(inputs), "cautions": cautions_of(inputs), "path": path_facts(found)}
    return lines, facts | {"written": {"path": str(files[0]), "table": str(files[1])}}
