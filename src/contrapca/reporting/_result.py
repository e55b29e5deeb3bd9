"""What a report says: the summary as plain data, and the page, the tables, the figure and the text made from it."""

from __future__ import annotations

import html
import os
import textwrap
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .._files import atomic_write
from .._util.arrays import Array
from .._util.optional import require
from .._util.tables import Table
from .._util.text import component_names, percent
from ..data import Groups
from ..plots import latents as draw_latents
from ..plots import tidy
from ._html import render
from ._points import choose_points
from ._subject import CLUSTERS, Subject

HEIGHT = 820  # pixels

# The page runs its own script and may save files; it can reach neither the notebook nor a network.
ALLOWED = "allow-scripts allow-downloads"
TITLE_WIDTH = 48  # characters above a figure of one panel
RESULTS = ("coordinates.csv", "loadings.csv", "figure.png", "figure.svg", "methods.txt")  # files that `save` writes


class Report(dict[str, Any]):
    """The summary of a report, as JSON-compatible values; a notebook shows the page."""

    def __init__(self, summary: Mapping[str, Any], subject: Subject):
        super().__init__(summary)
        self.subject = subject

    @cached_property
    def page(self) -> str:
        """The HTML of the page."""
        return render(self, choose_points(self.subject))

    def write(self, output: str | os.PathLike[str]) -> None:
        """Write the page to a file, atomically; an existing file is overwritten."""
        page = self.page.encode(errors="backslashreplace")  # names may contain lone surrogates
        with atomic_write(output) as file:
            file.write(page)

    def coordinates(self) -> Table:
        """Name, group, label (or cluster) and coordinates of every row; controls are centred by their own mean."""
        subject = self.subject
        counts = subject.rows.map(lambda rows: rows.shape[0])
        numbers = counts.map(lambda n: [str(i + 1) for i in range(n)])
        names = subject.row_names.map(lambda given, own: own if given is None else given, numbers)
        shown = subject.drawn(counts.map(np.arange)).map(lambda of_group: of_group[subject.start])
        return coordinate_table(names, subject.taken, shown, (self["words"]["case"], self["words"]["control"]))

    def loadings(self) -> Table:
        """The loadings of every feature."""
        path = self.subject.path
        W = path.loadings(path.gammas[self.subject.start])
        columns: dict[str, Any] = {"feature": np.array(path.feature_names, dtype=object)}
        return Table(columns | dict(zip(component_names(W.shape[1]), W.T, strict=True)))

    def text(self) -> str:
        """A methods paragraph and what to cite."""
        sources = "\n".join(f"{source['text']} https://doi.org/{source['doi']}" for source in self["citations"])
        entries = "\n\n".join(source["bibtex"] for source in self["citations"])
        return f"{self['methods']}\n\n{sources}\n\n{entries}\n"

    def figure(self) -> Any:
        """The first two components, or the only one, as a matplotlib figure with title and legend."""
        subject, table, words = self.subject, self.coordinates(), self["words"]
        shown = [name for name in table if name.startswith("component_")][:2]
        Z = np.column_stack([table[name] for name in shown])
        cases = table["group"] == words["case"]
        head = "\n".join(textwrap.wrap(self["title"], TITLE_WIDTH))
        title = f"{head}\n{self['model']['estimator']}, gamma = {self['model']['gamma']:.4g}"
        shares = [(entry["foreground_share"], entry["background_share"]) for entry in self["components"]]
        names = [
            f"{name.replace('_', ' ')} ({words['cases']} {percent(a)}, {words['controls']} {percent(b)})"
            for name, (a, b) in zip(shown, shares, strict=False)
        ]
        # What the page is coloured by at first.
        column = next(iter(subject.columns), None)
        both = column is not None and (column.whole or column.is_dose)  # without a background of one colour
        labels: Any = None
        if column is not None and (subject.study.design is not None or column.heading in ("label", CLUSTERS)):
            values = column.texts if column.values is None else column.values
            labels = np.concatenate(list(values)) if both else np.asarray(values.foreground)
        figure = require("matplotlib.figure", extra="plot").Figure(figsize=(6.4, 4.6))
        ax = draw_latents(
            Z if both else Z[cases],
            background=None if both else Z[~cases],
            labels=labels,
            label_name=subject.label_name if column is None else column.name,
            axis_labels=names,
            title=title,
            ax=figure.subplots(),
        )
        if len(shown) > 1:  # strips have names of their own
            legend = tidy(ax).get_legend()
            if legend is not None and column is not None and not (column.plain or both):  # as on the page
                for entry in legend.get_texts()[1:]:  # after that of the controls
                    entry.set_text(f"cases: {entry.get_text()}")
        return figure

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write `coordinates`, `loadings`, `figure` and `text` into a folder, under the names of `RESULTS`."""
        place, figure = Path(folder), self.figure()
        place.mkdir(parents=True, exist_ok=True)
        texts = {
            "coordinates.csv": self.coordinates().to_csv(),
            "loadings.csv": self.loadings().to_csv(),
            "methods.txt": self.text(),
        }
        for name in RESULTS:
            with atomic_write(place / name) as file:
                if name in texts:
                    file.write(texts[name].encode(errors="backslashreplace"))
                    continue
                # The same bytes each time.
                with require("matplotlib", extra="plot").rc_context({"svg.hashsalt": "contrapca"}):
                    kind = name.rpartition(".")[2]
                    figure.savefig(file, format=kind, dpi=300, metadata={"Date": None} if kind == "svg" else None)

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.page)}" sandbox="{ALLOWED}" title="Report of a contrast" '
            f'style="width: 100%; height: {HEIGHT}px; border: 0"></iframe>'
        )


def coordinate_table(
    names: Groups[list[str]],
    labels: Mapping[str, Groups[list[str]]],
    latents: Groups[Array],
    groups: tuple[str, str] = ("case", "control"),
) -> Table:
    """Name, group, labels and coordinates of every row, cases first; takeaway.js saves the same."""
    columns: dict[str, Any] = {
        "row": np.array([name for own in names for name in own], dtype=object),
        "group": np.repeat(groups[: len(latents)], [len(own) for own in latents]),
    }
    columns |= {what: np.array([text for own in of for text in own], dtype=object) for what, of in labels.items()}
    Z = np.concatenate(list(latents))
    return Table(columns | dict(zip(component_names(Z.shape[1]), Z.T, strict=True)))
