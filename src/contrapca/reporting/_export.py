"""What readers take away from a report, without the page: tables, a figure and text."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._util.arrays import Array
from .._util.optional import require
from .._util.table import Table
from .._util.text import component_names
from ..groups import Groups
from ..plots import latents
from ..sanity import Finding
from ..selection import ContrastTest
from ._subject import Subject, examine
from ._summary import summary_of

TITLE_WIDTH = 48  # characters above a figure of one panel


@dataclass(frozen=True)
class Export:
    """The results of a contrast, ready to be written to files.

    Attributes
    ----------
    summary : dict
        As `summarize` gives it.
    coordinates : Table
        Name, group, label (or cluster) and coordinates of every row; controls are centred by their own mean.
    loadings : Table
        The loadings of every feature.
    text : str
        A methods paragraph and what to cite.
    subject : Subject
    """

    summary: dict[str, Any]
    coordinates: Table
    loadings: Table
    text: str
    subject: Subject

    def figure(self) -> Any:
        """The first two components, or the only one, as a matplotlib figure with title and legend."""
        subject, summary = self.subject, self.summary
        shown = [name for name in self.coordinates if name.startswith("component_")][:2]
        Z = np.column_stack([self.coordinates[name] for name in shown])
        cases = self.coordinates["group"] == "case"
        head = "\n".join(textwrap.wrap(summary["title"], TITLE_WIDTH))
        title = f"{head}\n{summary['model']['estimator']}, gamma = {summary['model']['gamma']:.4g}"
        shares = [(entry["foreground_share"], entry["background_share"]) for entry in summary["components"]]
        names = [
            f"{name.replace('_', ' ')} (cases {a:.1%}, controls {b:.1%})"
            for name, (a, b) in zip(shown, shares, strict=False)
        ]
        labels = subject.classes if subject.values is None else subject.values
        figure = require("matplotlib.figure", extra="plot").Figure(figsize=(6.4, 4.6))
        described = {"title": title, "axis_labels": names, "label_name": subject.label_name}
        latents(Z[cases], background=Z[~cases], labels=labels, **described, ax=figure.subplots())
        return figure


def export(
    model_or_path: Any,
    X: Any,
    *,
    background: Any,
    labels: Any = None,
    background_labels: Any = None,
    label_name: str | None = None,
    row_names: Sequence[str] | None = None,
    background_row_names: Sequence[str] | None = None,
    test: ContrastTest | bool | None = None,
    blocks: Any = None,
    background_blocks: Any = None,
    depth: str = "warn",
    title: str | None = None,
    code: str | None = None,
    findings: Sequence[Finding] | None = None,
    progress: bool = True,
) -> Export:
    """What a report offers to save, at the model's gamma; parameters as for `report`."""
    names = (row_names, background_row_names)
    subject = examine(model_or_path, X, background, labels, label_name, *names, None, 2, progress, background_labels)
    given: dict[str, Any] = {"test": test, "blocks": (blocks, background_blocks), "findings": findings}
    given["depth"] = depth
    summary = summary_of(subject, **given, title=title, code=code, progress=progress, shown=False)
    sources = "\n".join(f"{source['text']} https://doi.org/{source['doi']}" for source in summary["citations"])
    entries = "\n\n".join(source["bibtex"] for source in summary["citations"])
    text = f"{summary['methods']}\n\n{sources}\n\n{entries}\n"
    return Export(summary, _coordinates(subject), _loadings(subject), text, subject)


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
