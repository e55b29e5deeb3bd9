"""The one door for new rows: whatever a fitted model is to map, score or impute passes here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils.validation import check_array, validate_data

from .._util.arrays import Array, Rows, canonical, is_sparse, on_device, place_of
from ..data import (
    Study,
    check_dense,
    check_device_table,
    check_features,
    column_means,
    column_names,
    distinct,
    genes_of,
    is_anndata,
    refuse_moments,
    refuse_others,
    without_mask,
)
from ..data.rows import DaskRows, as_rows, is_kept, map_rows
from ..exceptions import GroupError, NonFiniteError
from ._method import Method
from ._rows import adjusted


def new_rows(model: Method, X: Any, covariates: Any = None, group: str = "foreground") -> tuple[Rows, bool]:
    """Rows for a fitted model, checked and without the effect of their covariates; and whether values are missing.

    Of a `Study`, those of one group.
    """
    X, covariates, named = of_group(model, X, covariates, group)
    rows, missing = checked(model, X, named)
    return adjusted(model.fit_, X, rows, covariates), missing


def map_new_rows(
    model: Method,
    X: Any,
    covariates: Any,
    group: str,
    function: Callable[[Rows, bool], Array],
    n_columns: int | None,
) -> Any:
    """A function of `new_rows`; of a dask array, a dask array, whose blocks are checked once they are computed."""
    fit = model.fit_
    X, covariates, named = of_group(model, X, covariates, group)

    def of_rows(block: Any) -> Array:
        rows, missing = checked(model, block, named)
        return function(adjusted(fit, block, rows, covariates), missing)

    lazy = as_rows(X)
    if not isinstance(lazy, DaskRows):
        return of_rows(X)
    if lazy.shape[1] != fit.scaling.foreground.mean.size:
        raise ValueError(f"X has {lazy.shape[1]} features, but {fit.scaling.foreground.mean.size} were fitted.")
    if fit.covariates is not None:
        check_dense(lazy, "table")  # blocks do not know which rows they are
    return map_rows(X, of_rows, n_columns)


def of_group(model: Method, X: Any, covariates: Any, group: str) -> tuple[Any, Any, bool]:
    """Rows of one group of a study, their covariates, and whether the study knows the features of an array; of an
    AnnData the genes of the fit; other tables and their covariates as they are."""
    if is_anndata(X):
        known = model.fit_.covariates
        if covariates is None and known is not None:
            covariates = X.obs[[column.name for column in known.columns]]
        rows = genes_of(X, model.fit_.scaling.foreground.labels, model._layer)
        return rows.toarray() if known is not None and is_sparse(rows) else rows, covariates, True
    if not isinstance(X, Study):
        return X, covariates, False
    if covariates is not None:
        raise GroupError("A Study has its covariates: leave covariates= out.")
    refuse_moments(X, f"This method of {type(model).__name__}")
    rows, fit = X.rows[group], model.fit_
    named = X.features is not None and column_names(rows) is None
    if named:
        check_features(list(X.features or ()), fit.scaling.foreground.labels)
    return rows, X.covariates[group] if fit.covariates is not None and X.covariates is not None else None, named


def checked(model: Method, X: Any, named: bool = False) -> tuple[Rows, bool]:
    """Rows with the features of the fit, and whether values are missing.

    `named` rows have no names of their own, but a study has told that they have the fitted features.
    """
    fit, name = model.fit_, type(model).__name__
    check_place(model, X)
    if on_device(X):
        rows = check_device_table(X, name, least_rows=1)
        validate_data(model, rows, reset=False, skip_check_array=True)
    else:
        refuse_others(X, f"This method of {name}", "X")
        X = as_rows(X)
        if isinstance(X, DaskRows):
            return fit.scaling.foreground.check(X, allow_missing=fit.maps_missing)
        checks: dict[str, Any] = {"skip_check_array": True}
        if not is_kept(X):
            checks = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": False}
        if not named:
            X = validate_data(model, without_mask(distinct(X)), reset=False, **checks)
        elif not is_kept(X):
            X = check_array(without_mask(X), estimator=name, **checks)
        rows = canonical(X)
    missing = np.isnan(column_means(rows, allow_missing=fit.maps_missing or model._takes_missing))
    if missing.any() and not fit.maps_missing:
        raise NonFiniteError(
            f"Input contains NaN, but this {name} was fitted to complete rows and has no model of "
            "what is missing: fit it to tables with missing values, too, or use ContraPCA, PCPCA or PPCA.",
            int(np.argmax(missing)),
        )
    return rows, bool(missing.any())


def check_place(model: Method, X: Any) -> None:
    """Refuse rows that are elsewhere than those of the fit, where scikit-learn's own estimators do.

    Otherwise a model serves rows anywhere, and the result follows them.
    """
    if get_config()["array_api_dispatch"] and (found := place_of(X)) != (fitted := place_of(model._place)):
        raise ValueError(
            f"Rows passed to {type(model).__name__}.transform() and other methods must use the same namespace and "
            f"device as those passed to fit(): these are {found}, and those of the fit were {fitted}. Move them, "
            "or set array_api_dispatch=False: contrapca does not need it."
        )
