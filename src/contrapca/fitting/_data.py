"""Fits to data of either kind, complete or not, and to what folds leave of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .._util.arrays import Array
from .._util.text import listed
from ..exceptions import InfeasibleGammaError, warn
from ..gaussian import LatentGaussian
from ..groups import Groups
from ..methods import PCPCA_METHOD, Method
from ..moments import Complete, Incomplete
from ._axes import automatic_rank, masked_rank, settled
from ._complete import complete_background_model, fit_complete
from ._fit import Fit, Latents, Settings, shared_components
from ._held_out import Training, auto_directions, in_original_units, path_directions, within_rows
from ._incomplete import fit_incomplete, incomplete_background_model


def fit_data(
    data: Complete | Incomplete, method: Method, latents: Latents, gamma: float | None, settings: Settings
) -> Fit:
    """Fit at `gamma` (None: choose it), in closed form, or by gradients if values are missing."""
    if isinstance(data, Complete):
        return fit_complete(data, method, latents, gamma)
    return fit_incomplete(data, latents, gamma, settings)


def fit_pcpca(data: Complete | Incomplete, latents: Latents, gamma: float | None, settings: Settings) -> Fit:
    """`fit_data` of PCPCA, with a model of the background; a warning if what both groups share is still shown."""
    fit = fit_data(data, PCPCA_METHOD, latents, gamma, settings)
    if not data.groups.backgrounds:
        return fit
    if gamma is None and not latents.contrast_axes and (shared := shared_components(fit)):
        warn(
            f"PCPCA still shows what both groups share: along component{'s' * (len(shared) > 1)} "
            f"{listed([k + 1 for k in shared])} the foreground varies barely more than the background, although "
            "the automatic gamma is near its limit. "
            "ContraPCA models what is shared without showing it; CPCA allows larger gammas."
        )
    return replace(fit, background_model=background_model(data, fit, settings))


def background_model(data: Complete | Incomplete, fit: Fit, settings: Settings) -> LatentGaussian | None:
    """PPCA of the background alone, centred as in a fit; None if it varies in too few directions."""
    if isinstance(data, Complete):
        return complete_background_model(data, fit.n_latent)
    return incomplete_background_model(data, fit, settings)


def resolved(data: Complete | Incomplete, latents: Latents) -> Latents:
    """`latents` with the kind of axes and the number of latent dimensions filled in."""
    latents = settled(data.plateau, latents)
    if latents.n_latent is not None:
        return latents
    if isinstance(data, Complete):
        return replace(latents, n_latent=automatic_rank(data, latents.n_shown))
    return replace(latents, n_latent=masked_rank(data.groups, latents.n_shown))


def fold_directions(
    data: Complete,
    method: Method,
    latents: Latents,
    gamma: float | None,
    settings: Settings,
    trained: Callable[[Training], Complete],
) -> Callable[[Training], Groups[Array]]:
    """From training rows to axes (D, k) in each group's units; the rank is that of all rows, `data`.

    `trained` reads training rows; gamma is None if every fold finds its own.
    """
    known = resolved(data, latents)
    if gamma is not None:
        fit_data(data, method, latents, gamma, settings)  # raises where there is no solution with all rows
        if not known.contrast_axes:  # principal axes exist also where fewer rows have no solution
            at = np.array([gamma])
            return lambda tables: path_directions(trained(tables), method, known, at).map(lambda own: own[0])

    def of_contrast(tables: Training) -> Groups[Array]:
        training = trained(tables)
        free = gamma is None or known.axes == "ratio"  # ratio axes do not depend on gamma
        if free and (axes := auto_directions(training, method, known)) is not None:
            return axes
        try:
            fit = fit_data(training, method, within_rows(known, training), gamma, settings)
        except InfeasibleGammaError:  # the rank gives way
            fit = fit_data(training, method, replace(latents, n_latent=None), gamma, settings)
        return in_original_units(fit.components, training)

    return of_contrast
