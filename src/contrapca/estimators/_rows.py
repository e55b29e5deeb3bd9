"""Rows for a fitted model: new ones, and those of the fit again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from .._util.arrays import Array, Rows, cast, chosen, float_type, is_sparse, namespace, put
from .._util.checks import check_count, generator
from .._util.text import listed
from ..contrast import Fit, LatentGaussian, project
from ..data import (
    Regression,
    Scaling,
    Study,
    Tables,
    check_names,
    encoded_of,
    group_of,
    label_groups,
    like_table,
    refuse_device,
    tables_of,
    without_covariates,
)
from ..data.checks import IMPUTED
from ..data.rows import DaskRows
from ..exceptions import GroupError, RankError


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


def shared_means(fit: Fit, rows: Rows, missing: bool, center: str) -> Array:
    """Shared latents of CLVM's rows of the group named by `center`, with the model of that group, shape (n, k)."""
    scaling, model, shared = group_of(fit.scaling, center), fit.model, slice(fit.n_shown, None)
    if center != "foreground":
        assert fit.background_model is not None
        model, shared = replace(fit.background_model, mean=scaling.origin), slice(None)
    assert model is not None

    def latents(block: Rows) -> Array:
        return (model.condition(block).latent_mean if missing else model.latent_mean(block))[:, shared]

    return scaling.apply(latents, rows)


def decoded(fit: Fit, latents: Array) -> Array:
    """Rows in original units from their latents (n, k), shape (n, D), in the float type of the latents."""
    scaling, decoder, kind = fit.scaling.foreground, fit.decoder, float_type(latents)
    if latents.shape[1] != fit.n_shown:
        raise ValueError(f"Z has {latents.shape[1]} columns, but the model has {fit.n_shown} components.")
    decoder, mean = (decoder * scaling.scale[:, None]).astype(kind), scaling.mean.astype(kind)
    return latents @ put(decoder, latents, kind).T + put(mean, latents, kind)


def latent_posterior(fit: Fit, rows: Rows, missing: bool) -> tuple[Array, Array]:
    """Means (n, k) and covariances (n, k, k) of the latents given each row; the latter equal if all are complete."""
    assert fit.model is not None
    mean, model, k = latent_means(fit, rows, missing), fit.model, fit.n_shown
    if missing:
        wider = fit.scaling.foreground.apply(lambda block: model.condition(block).latent_covariance()[:, :k, :k], rows)
        return mean, wider
    covariance = cast(put(model.latent_covariance()[:k, :k], mean), mean)
    return mean, namespace(mean).broadcast_to(covariance, (mean.shape[0], k, k))


def log_density(fit: Fit, rows: Rows, missing: bool) -> Array:
    """log p of the observed values of each row in original units, under the foreground's model, shape (n,)."""
    assert fit.model is not None
    return _log_density(fit.model, fit.scaling.foreground, rows, missing)


def log_ratio(fit: Fit, rows: Rows, missing: bool) -> Array:
    """The same minus that under the background's model; raises if there is not one background with a model."""
    others = fit.scaling.backgrounds
    if not others:
        raise GroupError("This model was fitted without a background: there is nothing to compare with.")
    if len(others) > 1:
        raise GroupError(
            f"contrast_score compares with one background, but this model has {len(others)}: fit one against each of "
            "them."
        )
    if fit.background_model is None:
        raise RankError(fit.n_latent, "background", fit.latents.parameter)
    return log_density(fit, rows, missing) - _log_density(fit.background_model, others[0], rows, missing)


def _log_density(model: LatentGaussian, scaling: Scaling, rows: Rows, missing: bool) -> Array:
    """log p of the observed values of each row under a model in the given units, shape (n,)."""
    log_prob = (lambda block: model.condition(block).log_prob()) if missing else model.log_prob
    density = scaling.apply(log_prob, rows)
    return cast(density - scaling.log_jacobian(rows, missing=missing), density)


def of_foreground(values: Array, y: Any, background_label: Any) -> Array:
    """The values of stacked rows that are not of the background."""
    return chosen(values, label_groups(y, background_label, values.shape[0])[0] == 0)


def imputed(
    fit: Fit, X: Any, rows: Rows, covariates: Any, *, return_std: bool, n_draws: int | None, random_state: Any
) -> Any:
    """Checked rows of the table X, and in its form, with missing entries imputed; arguments are those of `impute`."""
    assert fit.model is not None
    refuse_device(rows, "impute")
    rows = rows[:] if isinstance(rows, DaskRows) else rows
    if is_sparse(rows):
        raise TypeError("Unstored entries of sparse tables are zeros, not missing values: nothing to impute.")
    known, scaling, model = fit.covariates, fit.scaling.foreground, fit.model
    given = adjusted(fit, X, rows, covariates)
    effect = 0.0 if known is None else known.effect(known.encoded(covariates, X, rows.shape[0]))

    def filled(rows: Rows, values: Callable[[Any], Array], effect: Array | float) -> Rows:
        """Rows with missing entries replaced by `values` of the distribution given other rows, plus an effect."""
        scaled = scaling.apply(lambda block: values(model.condition(block)), given)
        return np.where(np.isnan(rows), cast(scaling.undo(scaled) + effect, rows), rows)

    if n_draws is not None:
        check_count(n_draws, "n_draws")
        if return_std:
            raise ValueError("return_std cannot be combined with n_draws: the draws themselves show the spread.")
        random = generator(random_state)
        draws = [filled(rows, lambda row: row.draw(random), effect) for _ in range(n_draws)]
        frames = [_marked(like_table(draw, X), rows) for draw in draws]
        return np.stack(draws) if frames[0] is draws[0] else frames
    means = _marked(like_table(filled(rows, lambda row: row.mean(), effect), X), rows)
    if not return_std:
        return means
    observed = np.where(np.isnan(rows), rows, np.zeros_like(rows))
    return means, like_table(filled(observed, lambda row: row.deviation(), 0.0), X)


def _marked(table: Any, rows: Rows) -> Any:
    """A data frame that says how many of its values were imputed; other tables cannot."""
    if hasattr(table, "attrs") and (count := int(np.isnan(rows).sum())):
        table.attrs[IMPUTED] = count
    return table


def tables_again(fit: Fit, study: Study, *, allow_missing: bool) -> Tables:
    """The checked tables, of the groups of the fit and without the effect of covariates;"""
    known, found = fit.scaling, fit.covariates
    if not known.backgrounds and len(study.rows) > 1:
        raise ValueError("This model was fitted without a background: do not pass one.")
    first = study.rows.foreground
    if isinstance(first, DaskRows):
        check_names(first, known.foreground.labels)
    elif study.tables.are_moments and study.tables.n_features != known.foreground.mean.size:
        raise ValueError(f"X has {study.tables.n_features} features, but the fit had {known.foreground.mean.size}.")
    tables = tables_of(study, allow_missing=allow_missing)
    if tables.rows.names != known.names:
        raise ValueError(f"The groups are {listed(tables.rows.names)}, but the fit had {listed(known.names)}.")
    encoded = encoded_of(study)
    if encoded is None or study.covariates is None or found is None:
        check_covariates(found, study.covariates)
        return tables if encoded is None else without_covariates(tables, encoded)[0]
    if encoded.columns != found.columns:
        raise GroupError(f"covariates are {listed(encoded.names)}, but those of the fit were {listed(found.names)}.")
    return without_covariates(tables, encoded, found if study.design is None else None)[0]


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
