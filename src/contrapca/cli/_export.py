"""`contrapca export`: coordinates, loadings, a figure and a methods text, as files."""

from __future__ import annotations

from argparse import Namespace

from .._util.optional import require
from ..reporting import summarize
from ._console import Console, caution
from ._fit import fitted_model
from ._outputs import check_outputs, staged, write_columns
from ._report import about, read_for_report

FILES = {
    "coordinates.csv": "Coordinates:",
    "loadings.csv": "Loadings:",
    "figure.png": "Figure:",
    "figure.svg": "Figure:",
    "methods.txt": "Methods:",
}


def export(options: Namespace, console: Console) -> None:
    """Fit, or load a model of these tables, and write what its report offers to save."""
    files = [options.output / name for name in FILES]
    check_outputs(files, force=options.force)
    options, model, inputs = read_for_report(options)
    model = fitted_model(options, inputs, console) if model is None else model
    found = summarize(model, **about(options, inputs, console), gammas=2, shown=False)
    with staged(files, force=options.force) as places:
        write_columns(places["coordinates.csv"], found.coordinates())
        write_columns(places["loadings.csv"], found.loadings())
        figure = found.figure()
        figure.savefig(places["figure.png"], dpi=300)
        with require("matplotlib", extra="plot").rc_context({"svg.hashsalt": "contrapca"}):  # the same bytes each time
            figure.savefig(places["figure.svg"], metadata={"Date": None})
        places["methods.txt"].write_text(found.text(), encoding="utf-8", newline="\n")
    caution(*found["cautions"][len(inputs.findings) :])
    verdict = [] if found["verdict"] is None else [found["verdict"], ""]
    console.say(*verdict, *inputs.describe())
    console.say(*(f"{what:<12} {file}" for what, file in zip(FILES.values(), files, strict=True)))
    console.summarise(found | {"written": {file.name: str(file) for file in files}})
