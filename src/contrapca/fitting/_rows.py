"""What a fit says of rows that were checked: latents, densities, and what is missing in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .._util.arrays import Array, Rows
from .._util.devices import cast, chosen, float_type, namespace, put
from ..backgrounds import label_groups
from ..covariates import check_dense
from ..exceptions import GroupError, RankError
from ..gaussian import LatentGaussian
from ..rows import Blocked, map_rows, opened
from ..units import Units, group_of
from ._again import check_covariates
from ._fit import Fit
from ._kernel import KernelFit, check_in_memory, refuse_covariates


def by_block(fit: Fit | KernelFit, X: Any, function: Callable[[Any], Array], n_columns: int | None) -> Any:
    """A function of rows; of a dask array, a dask array whose blocks are not computed yet."""
    if isinstance(fit, KernelFit):
        check_in_memory(X)
    rows, D = opened(X), fit.units.foreground.mean.size
    if not isinstance(rows, Blocked) or not rows.remote:
        return function(X)
    if rows.shape[1] != D:
        raise ValueError(f"X has {rows.shape[1]} features, but {D} were fitted.")
    if fit.covariates is not None:
        check_dense(rows, "table")  # blocks do not know which rows they are
    return map_rows(X, function, n_columns)


def adjusted(fit: Fit | KernelFit, X: Any, rows: Rows, covariates: Any) -> Rows:
    """Checked rows of the table X without the effect of their covariates, if the fit had some."""
    if isinstance(fit, KernelFit):
        refuse_covariates(covariates)
    check_covariates(fit.covariates, covariates)
    known = fit.covariates
    return rows if known is None else known.adjusted(rows, known.design(covariates, X, rows.shape[0]))


def latent_means(fit: Fit | KernelFit, rows: Rows, missing: bool, center: str = "foreground") -> Array:
    """Latents of rows of the group named by `center`, shape (n, k); `missing` says whether values are."""
    if isinstance(fit, KernelFit):
        return cast(fit.latents(rows, center), rows)
    units = group_of(fit.units, center)
    if not missing:
        return units.project(rows, fit.projection)
    assert fit.model is not None
    model = replace(fit.model, mean=units.origin)
    return units.apply(lambda block: model.condition(block).latent_mean[:, : fit.n_shown], rows)


def shared_means(fit: Fit, rows: Rows, missing: bool, center: str) -> Array:
    """Shared latents of CLVM's rows of the group named by `center`, with the model of that group, shape (n, k)."""
    units, model, shared = group_of(fit.units, center), fit.model, slice(fit.n_shown, None)
    if center != "foreground":
        assert fit.background_model is not None
        model, shared = replace(fit.background_model, mean=units.origin), slice(None)
    assert model is not None

    def latents(block: Rows) -> Array:
        return (model.condition(block).latent_mean if missing else model.latent_mean(block))[:, shared]

    return units.apply(latents, rows)


def decoded(fit: Fit, latents: Array) -> Array:
    """Rows in original units from their latents (n, k), shape (n, D), in the float type of the latents."""
    units, decoder, kind = fit.units.foreground, fit.decoder, float_type(latents)
    if latents.shape[1] != fit.n_shown:
        raise ValueError(f"Z has {latents.shape[1]} columns, but the model has {fit.n_shown} components.")
    decoder, mean = (decoder * units.scale[:, None]).astype(kind), units.mean.astype(kind)
    return latents @ put(decoder, latents, kind).T + put(mean, latents, kind)


def latent_covariances(model: LatentGaussian, k: int, rows: Rows, missing: bool, units: Units, like: Array) -> Array:
    """Covariance of the first k latents of each row, shape (n, k, k); the same for all complete rows.

    `model` is in the given units, and the result in the float type of `like`, the latents.
    """
    if missing:
        return units.apply(lambda block: model.condition(block).latent_covariance()[:, :k, :k], rows)
    covariance = cast(put(model.latent_covariance()[:k, :k], like), like)
    return namespace(like).broadcast_to(covariance, (like.shape[0], k, k))


def log_density(model: LatentGaussian, rows: Rows, missing: bool, units: Units) -> Array:
    """log p of the observed values of each row in original units; `model` is in the given units."""
    log_prob = (lambda block: model.condition(block).log_prob()) if missing else model.log_prob
    density = units.apply(log_prob, rows)
    return cast(density - units.log_jacobian(rows, missing=missing), density)


def compared(fit: Fit) -> tuple[LatentGaussian, Units]:
    """The model of the background that densities are compared with, and its units; raises if there is not one."""
    others = fit.units.backgrounds
    if not others:
        raise GroupError("This model was fitted without a background: there is nothing to compare with.")
    if len(others) > 1:
        raise GroupError(
            f"contrast_score compares with one background, but this model has {len(others)}: fit one against each of "
            "them."
        )
    if fit.background_model is None:
        raise RankError(fit.n_shown, "background")
    return fit.background_model, others[0]


def of_foreground(values: Array, y: Any, background_label: Any) -> Array:
    """The values of stacked rows that are not of the background."""
    found = chosen(values, label_groups(y, background_label, values.shape[0])[0] == 0)
    if found.shape[0] == 0:
        raise ValueError(
            f"All rows have the background label {background_label!r}: nothing to score. "
            "In cross-validation, use a splitter that mixes the groups, such as StratifiedKFold."
        )
    return found


def filled(
    model: LatentGaussian,
    rows: Rows,
    given: Rows,
    units: Units,
    values: Callable[[Any], Array],
    effect: Array | float = 0.0,
) -> Rows:
    """Rows with missing entries replaced by `values` of the distribution given other rows, plus an effect."""
    scaled, xp = units.apply(lambda block: values(model.condition(block)), given), namespace(rows)
    return xp.where(xp.isnan(rows), cast(units.undo(scaled) + effect, rows), rows)
