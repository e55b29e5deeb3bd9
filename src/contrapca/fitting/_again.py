"""The tables of a fit, passed again: checked, and brought into the units of the fit."""

from __future__ import annotations

from typing import Any

from .._util.text import listed
from ..covariates import Regression, without_covariates
from ..exceptions import GroupError
from ..groups import Groups, Tables, check_names
from ..moments import Complete, Incomplete
from ..rows import DaskRows
from ..study import Study
from ..units import Units, check_same_tables
from ._fit import Fit


def tables_again(fit: Fit, study: Study, *, name: str, allow_missing: bool) -> Tables:
    """The checked tables, of the groups of the fit and without the effect of covariates; `name` is the estimator's."""
    known, found = fit.units, fit.covariates
    if not known.backgrounds and len(study.rows) > 1:
        raise ValueError("This model was fitted without a background: do not pass one.")
    first = study.rows.foreground
    if isinstance(first, DaskRows):
        check_names(first, known.foreground.labels)
    elif study.has_moments and study.tables.n_features != known.foreground.mean.size:
        raise ValueError(f"X has {study.tables.n_features} features, but the fit had {known.foreground.mean.size}.")
    tables = study.for_fit(name, needs_background=bool(known.backgrounds), allow_missing=allow_missing)
    if tables.rows.names != known.names:
        raise ValueError(f"The groups are {listed(tables.rows.names)}, but the fit had {listed(known.names)}.")
    design = study.design()
    if design is None or found is None:
        check_covariates(found, study.covariates)
        return tables
    if design.columns != found.columns:
        raise GroupError(f"covariates are {listed(design.names)}, but those of the fit were {listed(found.names)}.")
    return without_covariates(tables, design, found)[0]


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


def check_same_data(data: Complete | Incomplete, fitted: Groups[Units], *, gls: bool = False) -> None:
    """Raise if the data are not those of a fit."""
    means, weights = data.units.map(lambda units: units.mean), data.units.map(lambda units: units.weight)
    check_same_tables(means, fitted, weights=weights, gls=gls)
