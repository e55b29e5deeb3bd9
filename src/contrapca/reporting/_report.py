"""The public functions: `summarize`, and `report`, which makes a page from the summary."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from .._files import atomic_write
from ..sanity import Finding
from ..scverse import is_anndata, report_arguments
from ..selection import ContrastTest
from ..uncertainty import ContrastPosterior
from ._export import write_results
from ._html import check_libraries, render
from ._inline import Report
from ._points import choose_points
from ._subject import examine
from ._summary import summary_of

FEW_GAMMAS = 2  # the ends of the path, for caveats alone


def report(
    model_or_path: Any,
    X: Any = None,
    *,
    background: Any = None,
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
    sources: Sequence[str] = (),
    code: str | None = None,
    findings: Sequence[Finding] | None = None,
    progress: bool = True,
    key: str | None = None,
    groupby: str | None = None,
    foreground: Any = None,
    layer: str | None = None,
    obsm: str | None = None,
    mask_var: Any = "auto",
) -> Report:
    """Write a self-contained HTML file about a contrast, which opens offline on any computer.

    It begins with a verdict: whether the components vary more in the cases than chance allows. Then it shows caveats,
    the rows of both groups at every gamma (with a slider), the features of the components, how much of each group's
    variance they hold, uncertainty if given, what was analysed, and text for a paper. Pictures and tables can be saved.

    Parameters
    ----------
    model_or_path : PPCA, PCPCA, CPCA or RatioPCA, or ContrastPath; or AnnData
        For a model, contrasts at other values of gamma are computed as well. PCPCA and CPCA need not be fitted: if they
        are fitted here, the rows are read only once. An AnnData takes the place of the model and the tables: `labels`
        and `blocks` are then columns of `obs`, `background` is a label, and the arguments from `key` on apply.
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
    sources : sequence of str, optional
        Names of the files that were read.
    code : str, optional
        The command that makes this report; shown with the Python code.
    findings : sequence of Finding, optional
        What `check_tables` has found, for the caveats; by default the tables are checked here.
    progress : bool, default True
        Show a progress bar (only with missing values).
    key : str, optional
        For an AnnData: report on the results that a function of `contrapca.tl` stored under this key; by default
        "contrapca".
    groupby, foreground, layer, obsm, mask_var
        For an AnnData: fit a ContraPCA with two components instead; arguments as for `contrapca.tl.contrapca`.

    Returns
    -------
    Report
        The summary that the page was made from, a dict as `summarize` gives it. A notebook shows it as the page.

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
    check_libraries(figures=save is not None)
    if is_anndata(model_or_path):
        choice = {"background": background, "foreground": foreground, "layer": layer, "obsm": obsm}
        found = report_arguments(
            model_or_path,
            key=key,
            groupby=groupby,
            blocks=blocks,
            labels=labels,
            depth="match" if depth == "match" and test in (None, True) else "warn",
            **choice,
            mask_var=mask_var,
        )
        test = found.get("test", test)
        label_name = labels if label_name is None else label_name
        model_or_path, X, background, labels = (found[name] for name in ("model_or_path", "X", "background", "labels"))
        background_labels = found["background_labels"]
        row_names, background_row_names = found["row_names"], found["background_row_names"]
        blocks, background_blocks = found.get("blocks"), found.get("background_blocks")
    names = (row_names, background_row_names)
    subject = examine(
        model_or_path, X, background, labels, label_name, *names, uncertainty, gammas, progress, background_labels
    )
    summary = Report(
        summary_of(
            subject,
            test=test,
            blocks=(blocks, background_blocks),
            depth=depth,
            title=title,
            sources=sources,
            code=code,
            findings=findings,
            progress=progress,
        )
    )
    summary.page = render(summary, choose_points(subject))
    with atomic_write(output) as file:
        file.write(summary.page.encode(errors="backslashreplace"))  # names may hold halves of characters
    if save is not None:
        write_results(save, subject, summary)
    return summary


def summarize(
    model_or_path: Any,
    X: Any,
    *,
    background: Any,
    labels: Any = None,
    label_name: str | None = None,
    uncertainty: ContrastPosterior | None = None,
    test: ContrastTest | bool | None = None,
    blocks: Any = None,
    background_blocks: Any = None,
    depth: str = "warn",
    gammas: int | None = None,
    title: str | None = None,
    sources: Sequence[str] = (),
    code: str | None = None,
    findings: Sequence[Finding] | None = None,
    progress: bool = True,
) -> dict[str, Any]:
    """The content of a report as JSON-compatible values; parameters as for `report`."""
    subject = examine(model_or_path, X, background, labels, label_name, None, None, uncertainty, gammas, progress)
    return summary_of(
        subject,
        test=test,
        blocks=(blocks, background_blocks),
        depth=depth,
        title=title,
        sources=sources,
        code=code,
        findings=findings,
        progress=progress,
    )


def findings_of(
    model: Any,
    X: Any,
    *,
    background: Any,
    row_names: Sequence[str] | None = None,
    test: bool = True,
    blocks: Any = None,
    background_blocks: Any = None,
    findings: Sequence[Finding] | None = None,
    code: str | None = None,
    progress: bool = True,
) -> dict[str, Any]:
    """The summary that a report of a fitted model would begin with, without one; parameters as for `report`."""
    unlabelled = [""] * X.shape[0]  # no clusters need be found
    subject = examine(model, X, background, unlabelled, None, row_names, None, None, FEW_GAMMAS, progress)
    given: dict[str, Any] = {"blocks": (blocks, background_blocks), "code": code, "findings": findings}
    return summary_of(subject, test=test, **given, progress=progress, shown=False)
