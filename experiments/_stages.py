"""What an experiment is, and its stages: config -> run -> results.json -> figure.png.

An experiment is a module of this folder with the names that `Experiment` lists. Each stage reads only the file that the
stage before it wrote, so that a figure can be drawn again without computing anything.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

Json = dict[str, Any]
Tick = Callable[[str], None]  # an experiment calls it now and then with a few words, for the progress display


@dataclass(frozen=True)
class Row:
    """One figure or number of the paper beside ours.

    Attributes
    ----------
    item : str
        Which figure or number.
    paper, ours : str
        As they are printed in the table.
    same : bool
        Whether ours says the same as the paper's.
    note : str
        Where they differ, why; which of text and code was followed; what is particular about the data.
    """

    item: str
    paper: str
    ours: str
    same: bool
    note: str = ""


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
    results = module.run(settings, tick)
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"experiment": name, "quick": quick, "config": settings, "results": results}, indent=1)
    _write(folder / "results.json", text.encode())
    return results


def read_results(folder: Path) -> Json:
    """What `run_stage` wrote."""
    return json.loads((folder / "results.json").read_text())["results"]


def figure_stage(name: str, folder: Path) -> Path:
    """Draw `folder/figure.png` from `folder/results.json`."""
    figure = experiment(name).figure(read_results(folder))
    path = folder / "figure.png"
    figure.savefig(path, dpi=110, bbox_inches="tight")
    return path


def _write(path: Path, content: bytes) -> None:
    """Replace a file as a whole."""
    temporary = path.with_suffix(path.suffix + ".part")
    temporary.write_bytes(content)
    temporary.replace(path)
