"""What readers take away from a report, without the page: tables, a figure and text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._util.table import Table
from ..plots import side_by_side
from ..selection import ContrastTest
from ._report import judge, on_unseen_rows
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
        Name, group, label and coordinates of every row; controls are centred by their own mean.
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
        """The first two components as a matplotlib figure, with title and legend."""
        subject, summary = self.subject, self.summary
        shown = [name for name in self.coordinates if name.startswith("component_")][:2]
        Z = np.column_stack([self.coordinates[name] for name in shown])
        if len(shown) == 1:  # the height has no meaning
            Z = np.column_stack([Z, np.random.default_rng(0).uniform(size=len(Z))])
        cases = self.coordinates["group"] == "case"
        head = "\n".join(textwrap.wrap(summary["title"], TITLE_WIDTH))
        title = f"{head}\n{summary['model']['estimator']}, gamma = {summary['model']['gamma']:.4g}"
        shares = [(entry["foreground_share"], entry["background_share"]) for entry in summary["components"]]
        names = [
            f"{name.replace('_', ' ')} (cases {a:.1%}, controls {b:.1%})"
            for name, (a, b) in zip(shown, shares, strict=False)
        ]
        labels = subject.classes if subject.values is None else subject.values
        panel = {"foreground": Z[cases], "background": Z[~cases], "labels": labels, "title": title}
        return side_by_side([panel | {"axis_labels": [*names, ""][:2]}])


def export(
    model_or_path: Any,
    X: Any,
    *,
    background: Any,
    labels: Any = None,
    label_name: str | None = None,
    row_names: Sequence[str] | None = None,
    background_row_names: Sequence[str] | None = None,
    test: ContrastTest | bool | None = None,
    blocks: Any = None,
    background_blocks: Any = None,
    title: str | None = None,
    progress: bool = True,
) -> Export:
    """What a report offers to save, at the model's gamma; parameters as for `report`."""
    subject = examine(
        model_or_path, X, background, labels, label_name, row_names, background_row_names, None, 2, progress
    )
    verdict = judge(subject, test, blocks, background_blocks, progress)
    held_out = on_unseen_rows(subject, blocks, background_blocks)
    summary = summary_of(subject, title, (), None, verdict, held_out, by_blocks=blocks is not None)
    sources = "\n".join(f"{source['text']} https://doi.org/{source['doi']}" for source in summary["citations"])
    entries = "\n\n".join(source["bibtex"] for source in summary["citations"])
    text = f"{summary['methods']}\n\n{sources}\n\n{entries}\n"
    return Export(summary, _coordinates(subject), _loadings(subject), text, subject)


def _coordinates(subject: Subject) -> Table:
    path, counts = subject.path, subject.rows.map(lambda rows: rows.shape[0])
    numbers = counts.map(lambda n: [str(i + 1) for i in range(n)])
    names = subject.row_names.map(lambda given, own: own if given is None else given, numbers)
    given = subject.classes if subject.values is None else subject.values
    columns: dict[str, Any] = {
        "row": np.array([*names.foreground, *names["background"]], dtype=object),
        "group": np.repeat(["case", "control"], list(counts)),
    }
    if given is not None:
        own = ["" if label != label else label for label in given.tolist()]
        columns["label"] = np.array([*own, *[""] * counts["background"]], dtype=object)
    every = counts.map(np.arange)
    shown = np.concatenate([of_group[subject.start] for of_group in subject.drawn(every)])
    return Table(columns | {f"component_{k + 1}": shown[:, k] for k in range(path.n_components)})


def _loadings(subject: Subject) -> Table:
    path = subject.path
    W = path.loadings(path.gammas[subject.start])
    columns: dict[str, Any] = {"feature": np.array(path.feature_names, dtype=object)}
    return Table(columns | {f"component_{k + 1}": W[:, k] for k in range(path.n_components)})
