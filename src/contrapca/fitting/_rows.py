"""What a fit says of rows that were checked: latents, densities, and what is missing in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .._util.arrays import Array, Rows
from .._util.devices import cast, namespace, put
from ..gaussian import LatentGaussian
from ..units import Units, group_of
from ._fit import Fit


def latent_means(fit: Fit, rows: Rows, missing: bool, center: str = "foreground") -> Array:
    """Latents of rows of the group named by `center`, shape (n, k); `missing` says whether values are."""
    units = group_of(fit.units, center)
    if not missing:
        return units.project(rows, fit.projection)
    assert fit.model is not None
    model = replace(fit.model, mean=units.origin)
    return units.apply(lambda block: model.condition(block).latent_mean[:, : fit.n_shown], rows)


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
