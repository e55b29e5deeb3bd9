"""The two public functions: the summary of a contrast, and the page made from it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ..io import atomic_write
from ..posterior import ContrastPosterior
from ._html import check_libraries, render
from ._points import choose_points
from ._subject import examine
from ._summary import summary_of


def report(
    model_or_path: Any,
    X: Any,
    background: Any,
    labels: Any = None,
    path: str | os.PathLike[str] = "report.html",
    *,
    label_name: str | None = None,
    row_names: Sequence[str] | None = None,
    background_row_names: Sequence[str] | None = None,
    uncertainty: ContrastPosterior | None = None,
    gammas: int | None = None,
    title: str | None = None,
    sources: Sequence[str] = (),
    code: str | None = None,
    progress: bool = False,
) -> dict[str, Any]:
    """Write one self-contained HTML file about a contrast: it opens from disk, offline, on any computer.

    It shows what was analysed, the rows of both groups at every gamma (a slider moves them), how much of each group's
    variance the components hold, their features, uncertainty where it is given, and what to be careful about.

    Parameters
    ----------
    model_or_path : fitted PPCA, PCPCA or CPCA, or ContrastPath
        Of a model the contrasts at other gammas are computed, too.
    X : array-like, data frame or sparse matrix of shape (n, D)
        The foreground that it was fitted to.
    background : array-like, data frame or sparse matrix of shape (m, D)
    labels : array-like of shape (n,), optional
        Colours the foreground rows: by class, or by a scale for more than 20 different numbers.
        Missing ones are shown as such.
    path : str or path-like, default "report.html"
        Written as a whole or not at all; an existing file is replaced.
    label_name : str, optional
        What the labels are: "age", "batch".
    row_names, background_row_names : sequence of str, optional
        Shown for the point under the pointer; by default the index of a pandas table, or row numbers.
    uncertainty : ContrastPosterior, optional
        What the model's `posterior()` or `bootstrap()` gave.
    gammas : int, optional
        Steps of the slider, for a model: by default 40, and 20 where values are missing. A path has its own.
    title : str, optional
    sources : sequence of str, optional
        Names of the files that were read.
    code : str, optional
        The command that makes this report; shown beside the Python code.
    progress : bool, default False
        Show how far the contrasts are, where values are missing.

    Returns
    -------
    dict
        The summary that the page was made from, as `summarize` gives it.

    Examples
    --------
    >>> import tempfile
    >>> from contrapca import PCPCA, report
    >>> from contrapca.datasets import make_hidden_clusters
    >>> data = make_hidden_clusters(random_state=0)
    >>> model = PCPCA(n_components=2).fit(data.foreground, background=data.background)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     summary = report(model, data.foreground, data.background, data.labels, f"{folder}/report.html")
    >>> summary["data"]["foreground"]["rows"], len(summary["path"]["gammas"])
    (400, 41)
    """
    check_libraries()
    subject = examine(
        model_or_path, X, background, labels, label_name, row_names, background_row_names, uncertainty, gammas, progress
    )
    summary = summary_of(subject, title, sources, code)
    page = render(summary, choose_points(subject))
    with atomic_write(path) as file:
        file.write(page.encode())
    return summary


def summarize(
    model_or_path: Any,
    X: Any,
    background: Any,
    labels: Any = None,
    *,
    label_name: str | None = None,
    uncertainty: ContrastPosterior | None = None,
    gammas: int | None = None,
    title: str | None = None,
    sources: Sequence[str] = (),
    code: str | None = None,
    progress: bool = False,
) -> dict[str, Any]:
    """What a report says, as plain values that JSON can hold; parameters as for `report`."""
    subject = examine(model_or_path, X, background, labels, label_name, None, None, uncertainty, gammas, progress)
    return summary_of(subject, title, sources, code)
