"""What an experiment is, and its stages: config -> run -> results.json -> figure.png.

An experiment is a module of this folder with the names that `Experiment` lists. Each stage reads only the file that the
stage before it wrote, so that a figure can be drawn again without computing anything. Files appear whole or not at all.
"""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from contrapca import __version__
from contrapca._files import atomic_write

Json = dict[str, Any]
Tick = Callable[[str], None]  # an experiment calls it now and then with a few words, for the progress display

# In the order of the paper.
EXPERIMENTS = (
    "toy",
    "mouse_latents",
    "mouse_silhouette",
    "single_cell",
    "noise",
    "corrupted_digits",
    "digits_likelihood",
    "posterior",
    "contraction",
    "missing_simulation",
    "mouse_missing",
)
# Of ours: what the defaults rest on. They run by name; the table of the paper leaves them out.
STUDIES = (
    "real",
    "directions",
    "contrast_test",
    "background_tests",
    "coverage",
    "calibration",
    "field",
    "pairs",
    "which_question",
)


@dataclass(frozen=True)
class Row:
    """One figure or number of the paper beside ours.

    Attributes
    ----------
    item : str
        Which figure or number.
    paper, ours : str
        As they are printed in the table.
    same : bool or None
        Whether ours says the same as the paper's; None where the paper has nothing to compare with.
    note : str
        Where they differ, why; which of text and code was followed; what is particular about the data.
    """

    item: str
    paper: str
    ours: str
    same: bool | None
    note: str = ""

    def __post_init__(self) -> None:
        if self.same is not None and not self.same and not self.note:
            raise ValueError(
                f"{self.item}: ours ({self.ours}) differs from the paper's ({self.paper}); say why in a note."
            )


class Experiment(Protocol):
    """The names a module of an experiment has."""

    TITLE: str

    def config(self, *, quick: bool) -> Json:
        """Everything that a run depends on, seeds included, as plain values."""

    def run(self, config: Json, tick: Tick) -> Json:
        """All numbers that the figure and the rows need, as plain values (lists, not arrays)."""

    def figure(self, results: Json) -> Any:
        """A matplotlib figure of the results alone."""

    def rows(self, results: Json) -> list[Row]:
        """The paper's figures and numbers beside ours."""


def experiment(name: str) -> Experiment:
    """The experiment of that name."""
    return cast(Experiment, importlib.import_module(f"{__package__}.{name}"))


def run_stage(name: str, folder: Path, *, quick: bool, tick: Tick) -> Json:
    """Run an experiment and write `folder/results.json`: its configuration beside its results."""
    module = experiment(name)
    settings = module.config(quick=quick)
    start = time.perf_counter()
    results = module.run(settings, tick)
    record = {
        "experiment": name,
        "quick": quick,
        "version": __version__,
        "seconds": round(time.perf_counter() - start, 1),
        "config": settings,
        "results": results,
    }
    text = json.dumps(record, indent=1, allow_nan=False)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "figure.png").unlink(missing_ok=True)  # it showed other results
    with atomic_write(folder / "results.json") as file:
        file.write(text.encode())
    return results


def read_record(folder: Path) -> Json:
    """What `run_stage` wrote: configuration and results."""
    path = folder / "results.json"
    if not path.exists():
        raise FileNotFoundError(f"There is no {path}: run the stage 'run' first.")
    return json.loads(path.read_text())


def read_results(folder: Path) -> Json:
    """The results alone."""
    return read_record(folder)["results"]


def figure_stage(name: str, folder: Path) -> Path:
    """Draw `folder/figure.png` from `folder/results.json`."""
    path = folder / "figure.png"
    figure = experiment(name).figure(read_results(folder))
    with atomic_write(path) as file:
        figure.savefig(file, format="png", dpi=110)
    return path
