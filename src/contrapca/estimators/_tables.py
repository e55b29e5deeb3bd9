"""Rows for a fitted model: new ones, and those of the fit again.

All functions but `check_place` are methods of the estimators.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils.validation import validate_data

from .._util.arrays import Rows
from .._util.devices import on_device, place_of
from ..exceptions import NonFiniteError
from ..fitting import adjusted, check_same_data, maps_missing, tables_again
from ..groups import Tables, canonical, check_device_table, column_means, distinct, refuse_others, without_mask
from ..moments import Complete, Incomplete, collect
from ..rows import DaskRows, as_rows, is_kept
from ..study import Study


def rows(self: Any, X: Any, covariates: Any = None) -> tuple[Rows, bool]:
    """Check new rows, adjust them for their covariates; return them and whether values are missing."""
    found, missing = self._checked_rows(X)
    return adjusted(self._state, X, found, covariates), missing


def checked_rows(self: Any, X: Any) -> tuple[Rows, bool]:
    """Check new rows against the fitted features; return them and whether values are missing."""
    fit = self._state
    maps = maps_missing(fit)
    check_place(self, X)
    if on_device(X):
        rows = check_device_table(X, type(self).__name__, least_rows=1)
        validate_data(self, rows, reset=False, skip_check_array=True)
    else:
        refuse_others(X, f"This method of {type(self).__name__}", "X")
        X = as_rows(X)
        if isinstance(X, DaskRows):
            return fit.units.foreground.check(X, allow_missing=maps)  # type: ignore[no-any-return]
        checks: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": False}
        checks = {"skip_check_array": True} if is_kept(X) else checks
        rows = canonical(validate_data(self, without_mask(distinct(X)), reset=False, **checks))
    missing = np.isnan(column_means(rows, allow_missing=maps or self._takes_missing))
    if missing.any() and not maps:
        raise NonFiniteError(
            f"Input contains NaN, but this {type(self).__name__} was fitted to complete rows and has no model of what "
            "is missing: fit it to tables with missing values, too, or use ContraPCA, PCPCA or PPCA.",
            int(np.argmax(missing)),
        )
    return rows, bool(missing.any())


def check_place(self: Any, X: Any) -> None:
    """Refuse rows that are elsewhere than those of the fit, where scikit-learn's own estimators do.

    Otherwise a model serves rows anywhere, and the result follows them.
    """
    if get_config()["array_api_dispatch"] and (found := place_of(X)) != (fitted := place_of(self._place)):
        raise ValueError(
            f"Rows passed to {type(self).__name__}.transform() and other methods must use the same namespace and "
            f"device as those passed to fit(): these are {found}, and those of the fit were {fitted}. Move them, "
            "or set array_api_dispatch=False: contrapca does not need it."
        )


def fitted_groups(self: Any, study: Study) -> Tables:
    """Check the tables of the fit when they are passed again."""
    fit, name = self._state, type(self).__name__
    X = study.rows.foreground
    if not study.has_moments and not isinstance(X, DaskRows):  # whose features are checked below
        validate_data(self, distinct(X), reset=False, skip_check_array=True)  # names and number of features
    allow_missing = self._takes_missing and maps_missing(fit)
    return self._as_fitted()._prepared(tables_again(fit, study, name=name, allow_missing=allow_missing))  # type: ignore[no-any-return]


def fitted_data(self: Any, study: Study) -> Complete | Incomplete:
    """The data of the fit in model units, from its tables passed again; other tables raise."""
    tables, units = self._fitted_groups(study), self._state.units
    data = collect(tables, self._state.n_latent, units.map(lambda known: known.scale), reduced=self._reduced)
    check_same_data(data, units, gls=self._parameters.get("mean") == "gls")
    return data
