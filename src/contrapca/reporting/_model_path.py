"""The path through a model: same tables and settings, with its gamma among the gammas."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..data import Tables, check_same_tables
from ..estimators import check_same_data
from ..inference import ContrastPath, masked_path_around, path_of_data
from ..missing import Incomplete, collect
from ..moments import Complete

DRAWN = 1e-7  # tolerance of the path: coordinates on the page are not more exact (`PACKING_ERROR`)


def path_through(
    model: Any, tables: Tables, *, points: int | None = None, progress: bool = True
) -> tuple[Any, ContrastPath, int]:
    """A fitted model, the path with its tables and settings, and the index of its gamma in the path.

    A model that is not fitted yet is fitted here, so the rows are read only once. With missing values the path starts
    from the model's own solution and ends early if there are no more solutions.

    Parameters
    ----------
    model : PPCA, PCPCA, CPCA or RatioPCA
        PPCA is PCPCA at gamma = 0, and must be fitted.
    tables : Tables
        The tables that the model is or will be fitted to, including a background.
    points : int, optional
        Number of gammas besides the model's; by default 40, or 20 with missing values.
    progress : bool, default True
    """
    if not model._contrasts or model.__sklearn_is_fitted__():
        check_is_fitted(model)
        model = model._as_fitted()
        tables = model._prepared(tables)
        data = _data_again(model, tables)
    else:
        model._check_parameters()
        model = clone(model)
        tables, data, fit = model._solved(tables, model._strength())
        model._with_fit(fit)
        if isinstance(data, Incomplete) and not tables.incomplete:  # because a gradient solver was requested
            data = _data_again(model, tables)
    fit, alike = model._state, model._path_estimator()
    # Reuse a limit that was computed for the model.
    if isinstance(data, Incomplete):
        path = masked_path_around(data, fit, alike, points, limit=fit.limit, progress=progress)
    else:
        limit = None if fit.limit_is_bound else fit.limit
        path = path_of_data(data, alike, points, gamma=fit.gamma, limit=limit, tolerance=DRAWN, progress=progress)
    return model, path, int(np.argmin(np.abs(path.gammas - fit.gamma)))


def _data_again(model: Any, tables: Tables) -> Complete | Incomplete:
    """The tables of a fitted model in its units; other tables raise."""
    fit, gls = model._state, getattr(model, "mean", "") == "gls"
    check_same_tables(tables.means, fit.scaling, gls=gls)  # before columns are divided by the scales of the fit
    scale: Any = model._scaling
    if len(fit.scaling) == len(tables.rows):
        scale = fit.scaling.map(lambda known: known.scale)
    if tables.incomplete and fit.model is None:  # the same expected moments again
        data = model._collected(tables)
    else:
        data = collect(tables, fit.n_shown, scale, reduced=model._rotates)
    check_same_data(data, fit.scaling, gls=gls)
    return data
