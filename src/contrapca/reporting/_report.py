"""`report`: a summary as plain data first, then the page made from it."""

from __future__ import annotations

import os
from typing import Any

from sklearn.base import BaseEstimator

from ..data import Study, study_of
from ..inference import ContrastPath, ContrastPosterior, ContrastTest
from ._html import check_libraries
from ._result import Report
from ._subject import examine
from ._summary import Origin, summary_of


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
