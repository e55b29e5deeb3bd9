"""The tables of a fit, passed again: checked, and brought into the units of the fit."""

from __future__ import annotations

from typing import Any

from .._util.text import listed
from ..covariates import Regression, design_of, without_covariates
from ..exceptions import GroupError
from ..groups import Groups, Tables, check_names
from ..moments import Complete, Incomplete, Moments, read
from ..rows import DaskRows
from ..units import Units, check_same_tables
from ._fit import Fit


def tables_again(
    fit: Fit,
    X: Any,
    y: Any,
    background: Any,
    background_label: Any,
    sample_weight: Any = None,
    background_weight: Any = None,
    covariates: Any = None,
    background_covariates: Any = None,
    *,
    name: str,
    allow_missing: bool,
) -> Tables:
    """The checked tables, of the groups of the fit and without the effect of covariates.

    Other arguments are those of the estimator's `fit`; `name` is the estimator's, for messages.
    """
    known, found = fit.units, fit.covariates
    label = background_label if known.backgrounds else None
    if not known.backgrounds and background is not None:
        raise ValueError("This model was fitted without a background: do not pass one.")
    if isinstance(X, DaskRows):
        check_names(X, known.foreground.labels)
    elif isinstance(X, Moments) and X.mean.size != known.foreground.mean.size:
        raise ValueError(f"X has {X.mean.size} features, but the fit had {known.foreground.mean.size}.")
    tables = read(
        X,
        y,
        background,
        label,
        name=name,
        needs_background=bool(known.backgrounds),
        allow_missing=allow_missing,
        sample_weight=sample_weight,
        background_weight=background_weight,
    )
    if tables.rows.names != known.names:
        raise ValueError(f"The groups are {listed(tables.rows.names)}, but the fit had {listed(known.names)}.")
    design = design_of(tables, X, background, covariates, background_covariates, y, label)
    if design is None or found is None:
        check_covariates(found, covariates)
        return tables
    if design.columns != found.columns:
        raise GroupError(f"covariates are {listed(design.names)}, but those of the fit were {listed(found.names)}.")
    return without_covariates(tables, design, found)[0]


def check_covariates(known: Regression | None, covariates: Any) -> None:
    """Raise unless covariates are given exactly if a fit regressed some out."""
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


def check_same_data(data: Complete | Incomplete, fitted: Groups[Units], *, gls: bool = False) -> None:
    """Raise if the data are not those of a fit."""
    means, weights = data.units.map(lambda units: units.mean), data.units.map(lambda units: units.weight)
    check_same_tables(means, fitted, weights=weights, gls=gls)
