"""Fitting: from the data to everything an estimator reports."""

from dataclasses import replace

from .._util.text import listed
from ..exceptions import warn
from ..gaussian import LatentGaussian
from ..methods import PCPCA_METHOD, Method
from ..moments import Complete, Incomplete
from ._again import check_covariates, check_same_data, tables_again
from ._axes import (
    automatic_rank,
    dimensions_above_noise,
    masked_rank,
    noise_variance,
    show_axes,
    variance_inside,
)
from ._budget import budgeted
from ._clvm import check_clvm, fit_clvm
from ._complete import complete_background_model, fit_complete, looks_swapped, solve_complete
from ._fit import AUTO_FRACTION, CONTRAST_FRACTION, SHARED_RATIO, Fit, Latents, Settings, share_of, shared_components
from ._held_out import (
    FOLDS,
    SEED,
    HeldOut,
    Training,
    auto_directions,
    contrast_gamma,
    fold_error,
    gamma_with_contrast,
    held_out,
    held_out_gamma,
    in_original_units,
    many_problems,
    one_error_rule,
    path_directions,
    unwarned,
    within_rows,
)
from ._incomplete import BACKTRACK, Start, attempt_fit, fit_incomplete, incomplete_background_model, upper_bound
from ._kernel import KernelFit, KernelSettings, check_in_memory, fit_kernel, kernel_tables, map_of
from ._rows import (
    by_block,
    compared,
    decoded,
    filled,
    latent_covariances,
    latent_means,
    log_density,
    of_foreground,
    shared_means,
)
from ._tables import component_table, feature_table, summary, top_features


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
            "gamma='auto' is near its limit. "
            "ContraPCA models what is shared without showing it; CPCA allows larger gammas."
        )
    return replace(fit, background_model=background_model(data, fit, settings))


def background_model(data: Complete | Incomplete, fit: Fit, settings: Settings) -> LatentGaussian | None:
    """PPCA of the background alone, centred as in a fit; None if it varies in too few directions."""
    if isinstance(data, Complete):
        return complete_background_model(data, fit.n_latent)
    return incomplete_background_model(data, fit, settings)


def resolved(data: Complete | Incomplete, latents: Latents) -> Latents:
    """`latents` with the number of latent dimensions filled in."""
    if latents.n_latent is not None:
        return latents
    if isinstance(data, Complete):
        return replace(latents, n_latent=automatic_rank(data, latents.n_shown))
    return replace(latents, n_latent=masked_rank(data.groups, latents.n_shown))
