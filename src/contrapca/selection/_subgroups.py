"""Ratios of variances of subgroups: which part of the cases varies along a component?"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._util.table import Table
from ..estimators import answers
from ..exceptions import GroupError
from ..moments import mixed
from ._silhouette import checked_classes


def subgroup_ratios(model: Any, X: Any, labels: Any, *, covariates: Any = None) -> Table:
    """Variance of each subgroup of rows along a fitted model's components, relative to the background's.

    A component with a large ratio may vary within one subgroup only, or may tell subgroups apart without varying within
    any: the first shows in `ratio`, the second in `shift`.

    Parameters
    ----------
    model : fitted ContraPCA, PCPCA, CPCA, SparseCPCA, RatioPCA or CLVM
        With a background.
    X : array-like or sparse matrix of shape (n, D)
        Rows of the foreground, or others.
    labels : array-like of shape (n,)
        The subgroup of each row.
    covariates : array-like or data frame of shape (n, q), optional
        Those of these rows, if the model was fitted with covariates.

    Returns
    -------
    Table
        One row for each subgroup, in the order of their names: `subgroup`, `rows`, and for each component k `ratio_k`,
        the variance (ddof 0) of the subgroup about its own mean along the component over that of the background, and
        `shift_k`, the distance of its mean from that of the foreground in standard deviations of the background.

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import RatioPCA, subgroup_ratios
    >>> rng = np.random.default_rng(0)
    >>> controls, cases = rng.normal(size=(2, 200, 4))
    >>> cases[:100, 1] *= 4
    >>> model = RatioPCA(1).fit(cases, background=controls)
    >>> subgroup_ratios(model, cases, np.repeat(["ill", "well"], 100))["ratio_1"].round(0)
    array([15.,  1.])
    """
    if not answers(model, "_along_components"):
        raise TypeError(f"subgroup_ratios takes a fitted estimator of contrapca, not a {type(model).__name__}.")
    check_is_fitted(model)
    fit = model._state
    if not fit.variances.backgrounds:
        raise GroupError("This model was fitted without a background: there is no variance to compare with.")
    rows, missing = model._rows(X, covariates)
    if missing:
        raise ValueError("subgroup_ratios needs complete rows: fill missing values first, with impute().")
    Z = model._along_components(rows)
    classes = checked_classes(labels, Z.shape[0])
    background = mixed(fit.units, fit.variances)
    names, counts = np.unique(classes, return_counts=True)
    parts = [np.asarray(Z[classes == name], dtype=np.float64) for name in names]
    columns: dict[str, Any] = {"subgroup": names.astype(object), "rows": counts}
    with np.errstate(divide="ignore", invalid="ignore"):
        for k, variance in enumerate(background):
            columns[f"ratio_{k + 1}"] = np.array([part[:, k].var() for part in parts]) / variance
            columns[f"shift_{k + 1}"] = np.array([part[:, k].mean() for part in parts]) / np.sqrt(variance)
    return Table(columns)
