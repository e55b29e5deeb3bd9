"""`report`: a summary as plain data first, then the page made from it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from .._files import atomic_write
from ..inference import ContrastPosterior, ContrastTest
from ._html import check_libraries
from ._result import Report
from ._subject import examine
from ._summary import Origin, summary_of


def report(
    model_or_path: Any,
    X: Any,
    *,
    background: Any,
    labels: Any = None,
    background_labels: Any = None,
    output: str | os.PathLike[str] = "report.html",
    save: str | os.PathLike[str] | None = None,
    label_name: str | None = None,
    row_names: Sequence[str] | None = None,
    background_row_names: Sequence[str] | None = None,
    uncertainty: ContrastPosterior | None = None,
    test: ContrastTest | bool | None = None,
    blocks: Any = None,
    background_blocks: Any = None,
    depth: str = "warn",
    gammas: int | None = None,
    title: str | None = None,
    progress: bool = True,
) -> Report:
    """Write a self-contained HTML file about a contrast, which opens offline on any computer.

    It begins with a verdict: whether the components vary more in the cases than chance allows. Then it shows caveats,
    the rows of both groups at every gamma (with a slider), the features of the components, how much of each group's
    variance they hold, uncertainty if given, what was analysed, and text for a paper. Pictures and tables can be saved.

    Parameters
    ----------
    model_or_path : PPCA, PCPCA, CPCA or RatioPCA, or ContrastPath
        For a model, contrasts at other values of gamma are computed as well. PCPCA and CPCA need not be fitted: if they
        are fitted here, the rows are read only once.
    X : array-like, data frame or sparse matrix of shape (n, D)
        The foreground of the fit.
    background : array-like, data frame or sparse matrix of shape (m, D)
    labels : array-like of shape (n,), optional
        Labels that colour the foreground rows: by class, or on a scale for more than 20 different numbers. Rows without
        a label are shown as such. Without labels, clusters along the components are found and named, if there are any.
    output : str or path-like, default "report.html"
        Written atomically; an existing file is overwritten.
    save : str or path-like, optional
        A folder for what the page saves, as files: coordinates.csv, loadings.csv, figure.png, figure.svg, methods.txt.
    background_labels : array-like of shape (m,), optional
        Labels of the background rows, for the tables that the page saves; with `labels` only.
    label_name : str, optional
        What the labels mean, for example "age" or "batch".
    row_names, background_row_names : sequence of str, optional
        Shown under the pointer; by default the index of a pandas table, or row numbers.
    uncertainty : ContrastPosterior, optional
        The result of the model's `posterior()` or `bootstrap()`.
    test : ContrastTest, optional
        The result of `contrast_test` for these tables; by default it is computed here, with random seed 0. False means
        no verdict.
    blocks, background_blocks : array-like of shape (n,), (m,), optional
        The donor, animal or plate of each row, for the test.
    depth : {"warn", "match", "ignore"}, default "warn"
        What to do if counts add up to less in one group: a caveat, or a test at equal depth, as for `contrast_test`.
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
    ...     summary = report(
    ...         model, data.foreground, background=data.background, output=f"{folder}/report.html"
    ...     )
    >>> summary["data"]["foreground"]["rows"], len(summary["path"]["gammas"])
    (400, 41)
    """
    given = {"labels": labels, "background_labels": background_labels, "label_name": label_name}
    given |= {"row_names": row_names, "background_row_names": background_row_names, "uncertainty": uncertainty}
    given |= {"test": test, "blocks": blocks, "background_blocks": background_blocks, "depth": depth}
    return write_report(
        model_or_path, X, background=background, output=output, **given, gammas=gammas, title=title, progress=progress
    )


def write_report(model_or_path: Any, X: Any, *, output: str | os.PathLike[str], **given: Any) -> Report:
    """Summarise and write the page; arguments as for `summarize`."""
    check_libraries()
    found = summarize(model_or_path, X, **given)
    page = found.page.encode(errors="backslashreplace")  # names may hold halves of characters
    with atomic_write(output) as file:
        file.write(page)
    return found


def summarize(
    model_or_path: Any,
    X: Any,
    *,
    background: Any,
    labels: Any = None,
    background_labels: Any = None,
    label_name: str | None = None,
    row_names: Sequence[str] | None = None,
    background_row_names: Sequence[str] | None = None,
    uncertainty: ContrastPosterior | None = None,
    gammas: int | None = None,
    progress: bool = True,
    blocks: Any = None,
    background_blocks: Any = None,
    test: ContrastTest | bool | None = None,
    depth: str = "warn",
    title: str | None = None,
    origin: Origin | None = None,
    shown: bool = True,
) -> Report:
    """All that a report says, without a page; parameters as for `report`, and those of `summary_of`."""
    names = (row_names, background_row_names)
    subject = examine(
        model_or_path, X, background, labels, label_name, *names, uncertainty, gammas, progress, background_labels
    )
    given: dict[str, Any] = {"test": test, "depth": depth, "title": title, "progress": progress}
    summary = summary_of(subject, blocks=(blocks, background_blocks), **given, origin=origin, shown=shown)
    return Report(summary, subject)
