"""What readers take away from a report, without the page: tables, a figure and text."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .._files import atomic_write
from .._util.arrays import Array
from .._util.table import Table
from .._util.text import component_names
from ..groups import Groups
from ..plots import save_figure, side_by_side
from ._subject import Subject

TITLE_WIDTH = 48  # characters above a figure of one panel


RESULTS = ("coordinates.csv", "loadings.csv", "figure.png", "figure.svg", "methods.txt")


def write_results(folder: str | os.PathLike[str], subject: Subject, summary: Mapping[str, Any]) -> None:
    """Write what the page saves into a folder, at the gamma that the page begins with.

    Tables of the coordinates of all rows and the loadings of all features, a figure, and a methods paragraph with what
    to cite; the names are `RESULTS`.
    """
    coordinates, figures = _coordinates(subject), {".png", ".svg"}
    figure = _figure(subject, summary, coordinates)
    sources = "\n".join(f"{source['text']} https://doi.org/{source['doi']}" for source in summary["citations"])
    entries = "\n\n".join(source["bibtex"] for source in summary["citations"])
    texts = {
        "coordinates.csv": coordinates.to_csv(),
        "loadings.csv": _loadings(subject).to_csv(),
        "methods.txt": f"{summary['methods']}\n\n{sources}\n\n{entries}\n",
    }
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    for name in RESULTS:
        if Path(name).suffix in figures:
            save_figure(figure, place / name)
        else:
            with atomic_write(place / name) as file:
                file.write(texts[name].encode(errors="backslashreplace"))


def _figure(subject: Subject, summary: Mapping[str, Any], coordinates: Table) -> Any:
    """The first two components, or the only one, as a matplotlib figure with title and legend."""
    shown = [name for name in coordinates if name.startswith("component_")][:2]
    Z = np.column_stack([coordinates[name] for name in shown])
    cases = coordinates["group"] == "case"
    head = "\n".join(textwrap.wrap(summary["title"], TITLE_WIDTH))
    title = f"{head}\n{summary['model']['estimator']}, gamma = {summary['model']['gamma']:.4g}"
    shares = [(entry["foreground_share"], entry["background_share"]) for entry in summary["components"]]
    names = [
        f"{name.replace('_', ' ')} (cases {a:.1%}, controls {b:.1%})"
        for name, (a, b) in zip(shown, shares, strict=False)
    ]
    labels = subject.classes if subject.values is None else subject.values
    panel = {"foreground": Z[cases], "background": Z[~cases], "labels": labels, "title": title}
    return side_by_side([panel | {"axis_labels": names, "label_name": subject.label_name}])


def coordinate_table(
    names: Groups[list[str]], labels: Mapping[str, Groups[list[str]]], latents: Groups[Array]
) -> Table:
    """Name, group, label and coordinates of every row, cases first; the page saves the same (takeaway.js).

    Parameters
    ----------
    names : Groups of list of str
    labels : mapping from "label" or "cluster" to Groups of list of str
        Empty if there are none.
    latents : Groups of ndarray of shape (n_k, d)
    """
    groups = ("case", "control")[: len(latents)]
    columns: dict[str, Any] = {
        "row": np.array([name for own in names for name in own], dtype=object),
        "group": np.repeat(groups, [len(own) for own in latents]),
    }
    columns |= {what: np.array([text for own in of for text in own], dtype=object) for what, of in labels.items()}
    Z = np.concatenate(list(latents))
    return Table(columns | dict(zip(component_names(Z.shape[1]), Z.T, strict=True)))


def _coordinates(subject: Subject) -> Table:
    counts = subject.rows.map(lambda rows: rows.shape[0])
    numbers = counts.map(lambda n: [str(i + 1) for i in range(n)])
    names = subject.row_names.map(lambda given, own: own if given is None else given, numbers)
    shown = subject.drawn(counts.map(np.arange)).map(lambda of_group: of_group[subject.start])
    return coordinate_table(names, subject.labels, shown)


def _loadings(subject: Subject) -> Table:
    path = subject.path
    W = path.loadings(path.gammas[subject.start])
    columns: dict[str, Any] = {"feature": np.array(path.feature_names, dtype=object)}
    return Table(columns | dict(zip(component_names(W.shape[1]), W.T, strict=True)))
