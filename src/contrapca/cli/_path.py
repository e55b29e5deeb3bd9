"""`contrapca path`: the contrast at many strengths."""

from __future__ import annotations

from argparse import Namespace

from .. import contrast_path
from ._console import Console
from ._fit import METHODS
from ._info import path_lines, path_summary
from ._inputs import read_inputs
from ._outputs import check_outputs, staged, write_columns
from ._verdict import scale_of

FILES = ("path.npz", "path.csv")


def path(options: Namespace, console: Console) -> None:
    """Compute the path, write it, and name the gammas that differ most."""
    files = [options.output / name for name in FILES]
    check_outputs(files, force=options.force)
    inputs, kind = read_inputs(options), METHODS[options.method]
    found = contrast_path(
        kind(options.components, scale=scale_of(options, kind)),
        inputs.X,
        background=inputs.Y,
        gammas=options.gammas,
        progress=console.progress,
    )
    with staged(files, force=options.force) as places:
        found.save(places["path.npz"])
        write_columns(places["path.csv"], found.table())
    console.say(*inputs.describe(), *path_lines(found), "", f"Path:  {files[0]}", f"Table: {files[1]}")
    written = {"path": str(files[0]), "table": str(files[1])}
    console.summarise(
        {"inputs": inputs.summary(), "cautions": inputs.cautions, "path": path_summary(found), "written": written}
    )
