"""The path that a model lies on: the same tables and settings, its gamma among the gammas."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .._checks import SCALES, check_gamma, check_option
from ..estimators import CPCA, PCPCA, PPCA, ContraPCA, check_same_data
from ..groups import Tables
from ..moments import Complete, Incomplete, collect
from ..paths import ContrastPath, masked_path_around, path_of_data
from ..units import check_same_tables


def path_through(
    model: PPCA | PCPCA | CPCA, tables: Tables, *, points: int | None = None, progress: bool = False
) -> tuple[Any, ContrastPath, int]:
    """A fitted model, the path of its tables and settings, and the index of its gamma in it.

    The rows are read once, for all of it: a model that is not fitted yet is fitted here. With missing values the path
    starts from the model's own solution and may end early, where solutions do.

    Parameters
    ----------
    model : PPCA, PCPCA or CPCA
        PPCA is PCPCA at gamma = 0, and must be fitted.
    tables : Tables
        Those that the model was, or shall be, fitted to, and a background.
    points : int, optional
        Gammas besides the model's; by default 40, and 20 where values are missing.
    progress : bool, default False
    """
    if isinstance(model, PPCA) or model.__sklearn_is_fitted__():
        check_is_fitted(model)
        model = model._as_fitted()
        data = _data_again(model, tables)
    else:
        check_option(model.scale, "scale", SCALES)
        model = clone(model)
        data = model._collected(tables)
        model._with_fit(model._fitted(tables, data, check_gamma(model.gamma)))
        if isinstance(data, Incomplete) and not tables.incomplete:  # as a gradient solver asks for it
            data = _data_again(model, tables)
    fit = model._state
    # A limit that was computed for the model need not be computed again.
    if isinstance(data, Incomplete):
        path = masked_path_around(data, fit, model, points, limit=fit.limit, progress=progress)
    else:
        limit = None if fit.limit_is_bound else fit.limit
        alike: Any = PCPCA(fit.n_shown, scale=model.scale) if isinstance(model, PPCA) else clone(model)
        if isinstance(model, ContraPCA):
            alike.set_params(n_latent=fit.n_latent)  # chosen once, for all gammas
        path = path_of_data(data, alike, points, gamma=fit.gamma, limit=limit, progress=progress)
    return model, path, int(np.argmin(np.abs(path.gammas - fit.gamma)))


def _data_again(model: PPCA | PCPCA | CPCA, tables: Tables) -> Complete | Incomplete:
    """The tables of a fitted model in its units; others are refused."""
    fit, gls = model._state, getattr(model, "mean", "") == "gls"
    check_same_tables(tables.means, fit.units, gls=gls)  # before columns are divided by the scales of the fit
    scale: Any = model.scale
    if len(fit.units) == len(tables.rows):
        scale = fit.units.map(lambda known: known.scale)
    data = collect(tables, fit.n_shown, scale)
    check_same_data(data, fit.units, gls=gls)
    return data
