"""New rows for a fitted model: checked against the features of its fit, and without the effect of covariates.

These functions are methods of all estimators.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils.validation import check_is_fitted, validate_data

from .._util.arrays import Array, Rows
from .._util.devices import host, on_device, place_of
from .._util.text import listed
from ..covariates import Regression
from ..exceptions import GroupError
from ..groups import canonical, check_device_table, column_means, distinct, refuse_moments, without_mask
from ..rows import Blocked, is_kept, opened


def rows(self: Any, X: Any, covariates: Any = None) -> tuple[Rows, bool]:
    """Check new rows, adjust them for their covariates; return them and whether values are missing."""
    found, missing = self._checked_rows(X)
    return self._adjusted(X, found, covariates), missing


def adjusted(self: Any, X: Any, rows: Rows, covariates: Any) -> Rows:
    """Checked rows of X without the effect of their covariates, if the fit had some."""
    known = self._check_covariates(covariates)
    return rows if known is None else known.adjusted(rows, known.design(covariates, X, rows.shape[0]))


def check_covariates(self: Any, covariates: Any) -> Regression | None:
    """What the fit regressed out, if anything; raise unless covariates are given exactly then."""
    known = self._state.covariates
    if known is None and covariates is not None:
        raise GroupError(
            "covariates= is given, but this model was fitted without any: leave it out, or pass covariates to fit, too."
        )
    if known is not None and covariates is None:
        raise GroupError(
            f"This model was fitted with covariates ({listed([column.name for column in known.columns])}): pass "
            "covariates=, the same columns for these rows, so that their effect is taken out of them, too. For "
            "what takes no covariates, adjust the tables with regress_out, and fit a model to the result."
        )
    return known


def checked_rows(self: Any, X: Any) -> tuple[Rows, bool]:
    """Check new rows against the fitted features; return them and whether values are missing."""
    check_is_fitted(self)
    self._check_place(X)
    if on_device(X):
        rows = check_device_table(X, type(self).__name__, least_rows=1)
        validate_data(self, rows, reset=False, skip_check_array=True)
        return rows, self._has_missing(rows)
    refuse_moments(X, f"This method of {type(self).__name__}", "X")
    X = opened(X)
    if isinstance(X, Blocked):
        return self._state.units.foreground.check(X, allow_missing=self._state.model is not None)
    checks: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": False}
    if is_kept(X):
        checks = {"skip_check_array": True}
    rows = canonical(validate_data(self, without_mask(distinct(X)), reset=False, **checks))
    return rows, self._has_missing(rows)


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


def has_missing(self: Any, rows: Rows) -> bool:
    """Whether values are missing; an error where the model takes none."""
    return bool(np.isnan(column_means(rows, allow_missing=self._state.model is not None)).any())


def along_components(self: Any, rows: Rows) -> Array:
    """Complete rows along the components, unit vectors in model units, as are the variances along them."""
    return host(self._state.units.foreground.project(rows, self._state.components))
