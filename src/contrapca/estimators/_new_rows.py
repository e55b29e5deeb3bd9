"""The one door for new rows: whatever a fitted model is to map, score or impute passes here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils.validation import check_array, validate_data

from .._util.arrays import Array, Rows, canonical, chosen, is_sparse, on_device, place_of
from .._util.text import listed
from ..contrast import Fit, project
from ..data import (
    Regression,
    Study,
    check_dense,
    check_device_table,
    check_features,
    column_means,
    column_names,
    distinct,
    genes_of,
    group_of,
    is_anndata,
    label_groups,
    refuse_moments,
    refuse_others,
    without_mask,
)
from ..data.rows import DaskRows, as_rows, is_kept, map_rows
from ..exceptions import GroupError, NonFiniteError


def new_rows(model: Any, X: Any, covariates: Any = None, group: str = "foreground") -> tuple[Rows, bool]:
    """Rows for a fitted model, checked and without the effect of their covariates; and whether values are missing.

    Of a `Study`, those of one group.
    """
    X, covariates, named = of_group(model, X, covariates, group)
    rows, missing = checked(model, X, named)
    return adjusted(model.fit_, X, rows, covariates), missing


def map_new_rows(
    model: Any,
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


def of_group(model: Any, X: Any, covariates: Any, group: str) -> tuple[Any, Any, bool]:
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


def checked(model: Any, X: Any, named: bool = False) -> tuple[Rows, bool]:
    """Rows with the features of the fit, and whether values are missing.

    `named` rows have no names of their own, but a study has told that they have the fitted features.
    """
    fit = model.fit_
    check_place(model, X)
    rows = rows_as_fitted(model, X, named)
    if isinstance(rows, DaskRows):
        return fit.scaling.foreground.check(rows, allow_missing=fit.maps_missing)
    missing = np.isnan(column_means(rows, allow_missing=fit.maps_missing or model._takes_missing))
    if missing.any() and not fit.maps_missing:
        raise NonFiniteError(
            f"Input contains NaN, but this {type(model).__name__} was fitted to complete rows and has no model of "
            "what is missing: fit it to tables with missing values, too, or use ContraPCA, PCPCA or PPCA.",
            int(np.argmax(missing)),
        )
    return rows, bool(missing.any())


def rows_as_fitted(estimator: Any, X: Any, named: bool = False) -> Rows:
    """Rows of a table with the features that an estimator has seen, wherever they are; values are not looked at."""
    name = type(estimator).__name__
    if on_device(X):
        rows = check_device_table(X, name, least_rows=1)
        validate_data(estimator, rows, reset=False, skip_check_array=True)
        return rows
    refuse_others(X, f"This method of {name}", "X")
    X = as_rows(X)
    if isinstance(X, DaskRows):
        return X
    checks: dict[str, Any] = {"skip_check_array": True}
    if not is_kept(X):
        checks = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": False}
    if not named:
        try:
            X = validate_data(estimator, without_mask(distinct(X)), reset=False, **checks)
        except ValueError as error:
            if "same order" not in str(error):
                raise
            raise ValueError(f"{str(error).strip()}\nUse X[model.feature_names_in_].") from error
    elif not is_kept(X):
        X = check_array(without_mask(X), estimator=name, **checks)
    return canonical(X)


def check_place(model: Any, X: Any) -> None:
    """Refuse rows that are elsewhere than those of the fit, where scikit-learn's own estimators do.

    Otherwise a model serves rows anywhere, and the result follows them.
    """
    if get_config()["array_api_dispatch"] and (found := place_of(X)) != (fitted := place_of(model._place)):
        raise ValueError(
            f"Rows passed to {type(model).__name__}.transform() and other methods must use the same namespace and "
            f"device as those passed to fit(): these are {found}, and those of the fit were {fitted}. Move them, "
            "or set array_api_dispatch=False: contrapca does not need it."
        )


def adjusted(fit: Fit, X: Any, rows: Rows, covariates: Any) -> Rows:
    """Checked rows of the table X without the effect of their covariates, if the fit had some."""
    check_covariates(fit.covariates, covariates)
    known = fit.covariates
    return rows if known is None else known.adjusted(rows, known.encoded(covariates, X, rows.shape[0]))


def latent_means(fit: Fit, rows: Rows, missing: bool, center: str = "foreground") -> Array:
    """Latents of rows of the group named by `center`, shape (n, k); `missing` says whether values are."""
    scaling = group_of(fit.scaling, center)
    if fit.model is None or not missing:
        return project(rows, fit.projection, scaling, fit.filling)
    model = replace(fit.model, mean=scaling.origin)
    return scaling.apply(lambda block: model.condition(block).latent_mean[:, : fit.n_shown], rows)


def of_foreground(values: Array, y: Any, background_label: Any) -> Array:
    """The values of stacked rows that are not of the background."""
    return chosen(values, label_groups(y, background_label, values.shape[0])[0] == 0)


def check_covariates(known: Regression | None, covariates: Any) -> None:
    """Raise unless covariates are given exactly if a fit regressed some out."""
    if known is None and covariates is not None:
        raise GroupError(
            "Covariates are given, but this model was fitted without any: leave them out, or fit it to a Study "
            "that has them."
        )
    if known is not None and covariates is None:
        raise GroupError(
            f"This model was fitted with covariates ({listed([column.name for column in known.columns])}): pass "
            "covariates=, the same columns for these rows, so that their effect is taken out of them, too. For "
            "what takes no covariates, adjust the tables with regress_out, and fit a model to the result."
        )
