"""`report`: a summary as plain data first, then the page, the tables, the figure and the text made from it."""

from __future__ import annotations

import html
import os
import textwrap
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._files import atomic_write
from .._util.arrays import Array
from .._util.optional import require
from .._util.tables import Table
from .._util.text import component_names, percent
from ..data import Groups, Study, study_of
from ..inference import ContrastPath, ContrastPosterior, ContrastTest
from ..plots import latents as draw_latents
from ..plots import tidy
from ._html import check_libraries, render
from ._points import choose_points
from ._subject import Subject, examine
from ._summary import Origin, summary_of

HEIGHT = 820  # pixels

# The page runs its own script and may save files; it can reach neither the notebook nor a network.
ALLOWED = "allow-scripts allow-downloads"
TITLE_WIDTH = 48  # characters above a figure of one panel
RESULTS = ("coordinates.csv", "loadings.csv", "figure.png", "figure.svg", "methods.txt")  # files that `save` writes


def report(
    X: Any,
    model: Any = None,
    output: str | os.PathLike[str] = "report.html",
    *,
    background: Any = None,
    uncertainty: ContrastPosterior | None = None,
    test: ContrastTest | bool | None = None,
    depth: str = "warn",
    gammas: int | None = None,
    title: str | None = None,
    progress: bool = True,
) -> Report:
    """Write a self-contained HTML file about a contrast, which opens offline on any computer.

    Its first screen answers: whether the components vary more in the cases than chance allows, which features they
    consist of, who carries them and whether they can be trusted, beside a picture of the rows of both groups. Then it
    shows cautions, the contrast at every gamma (with a slider), all features, uncertainty if given, what was analysed,
    and text for a paper. Pictures and tables can be saved.

    Parameters
    ----------
    X : Study, or array-like, data frame or sparse matrix of shape (n, D)
        A `Study`, or the foreground. Labels of a study colour the rows: by class, or on a scale for more than 20
        different numbers; rows without a label are shown as such. Without labels, clusters along the components are
        found and named, if there are any. Names of samples are shown under the pointer. Blocks and pairs count in the
        test. The effect of covariates is taken out of all rows first. There may be no weights. Of several conditions,
        two factors or a dose, the page shows how much each condition, cell or dose varies on unseen rows, and colours
        the rows by it; it has no slider, and there may be no `uncertainty`.
    model : ContraPCA, PPCA, PCPCA, CPCA, SparseCPCA or RatioPCA, or ContrastPath, optional
        By default ContraPCA with two components. For a model, contrasts at other values of gamma are computed as well.
        It need not be fitted, except PPCA: if it is fitted here, the rows are read only once.
    output : str or path-like, default "report.html"
        Written atomically; an existing file is overwritten.
    background : array-like, data frame or sparse matrix of shape (m, D), optional
        If `X` is not a Study.
    uncertainty : ContrastPosterior, optional
        The result of `posterior` or `bootstrap` for the model.
    test : ContrastTest or bool, optional
        The result of `contrast_test` for these tables; by default it is computed here, with random seed 0. False means
        no verdict.
    depth : {"warn", "match", "ignore"}, default "warn"
        What to do if counts add up to less in one group: a caution, or a test at equal depth, as for `contrast_test`.
    gammas : int, optional
        Number of slider steps for a model: by default 40, or 20 with missing values. A path has its own.
    title : str, optional
    progress : bool, default True
        Show a progress bar (only with missing values).

    Returns
    -------
    Report
        The summary that the page was made from, a dict. A notebook shows it as the page.

    Examples
    --------
    >>> import tempfile
    >>> from contrapca import PCPCA, report
    >>> from contrapca.datasets import make_hidden_clusters
    >>> data = make_hidden_clusters(random_state=0)
    >>> model = PCPCA(n_components=2).fit(data.foreground, background=data.background)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     summary = report(data.foreground, model, f"{folder}/report.html", background=data.background)
    >>> summary["data"]["foreground"]["rows"], len(summary["path"]["gammas"])
    (400, 41)
    """
    if isinstance(model, str | os.PathLike):
        raise TypeError(f"The second argument of report is the model: pass the file as output={os.fspath(model)!r}.")
    if isinstance(X, ContrastPath | BaseEstimator):
        raise TypeError("The first argument of report is the Study, or the cases; the model is the second.")
    check_libraries()  # before anything is computed
    found = summarize(
        study_of(X, background, "report", designs=True),
        model,
        uncertainty=uncertainty,
        gammas=gammas,
        progress=progress,
        test=test,
        depth=depth,
        title=title,
    )
    found.write(output)
    return found


def summarize(
    study: Study,
    model: Any = None,
    *,
    uncertainty: ContrastPosterior | None = None,
    gammas: int | None = None,
    progress: bool = True,
    test: ContrastTest | bool | None = None,
    depth: str = "warn",
    title: str | None = None,
    origin: Origin | None = None,
    shown: bool = True,
) -> Report:
    """All that a report says, without a page; parameters as for `report`, and those of `summary_of`."""
    subject = examine(study, model, uncertainty=uncertainty, gammas=gammas, progress=progress, shown=shown)
    summary = summary_of(subject, test=test, depth=depth, progress=progress, title=title, origin=origin, shown=shown)
    return Report(summary, subject)


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
        model = self["model"]
        title = f"{head}\n{', '.join(filter(None, (model['estimator'], model['strength'])))}"
        shares = [(entry["foreground_share"], entry["background_share"]) for entry in self["components"]]
        names = [
            f"{name.replace('_', ' ')} ({words['cases']} {percent(a)}, {words['controls']} {percent(b)})"
            for name, (a, b) in zip(shown, shares, strict=False)
        ]
        # Coloured as the page is at first; without a background of one colour where both groups have those of a design.
        column = next((own for own in subject.columns if own.heading != "block" and own.heading), None)
        both = column is not None and (column.whole or column.is_dose)
        labels: Any = None
        if column is not None:
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
            # As on the page.
            if legend is not None and column is not None and column.values is None and not column.plain:
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
