"""From the data to a fit, of complete groups or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .._util.arrays import Array
from .._util.text import listed
from ..contrast import (
    PCPCA_METHOD,
    Fit,
    Latents,
    Method,
    Settings,
    Training,
    auto_directions,
    automatic_rank,
    complete_background_model,
    feasible_rank,
    in_original_units,
    path_directions,
    pcpca_limit,
    rank_exceeds,
    settled,
    shared_components,
    solve_and_show,
    variance_inside,
    within_rows,
)
from ..data import Groups, LatentGaussian
from ..exceptions import InfeasibleGammaError, RankError, warn
from ..missing import Incomplete, fit_incomplete, incomplete_background_model, masked_rank
from ..moments import Complete, Moments, Subspace, contrast

# Below this limit, with more variance in the background, the groups were probably swapped.
TINY_LIMIT = 0.1


def fit_complete(data: Complete, method: Method, latents: Latents, gamma: float | None) -> Fit:
    """Solve the contrast at `gamma` (None: choose it), or raise with the exact limit."""
    groups, k, latents = data.groups, latents.n_shown, settled(data.plateau, latents)
    if not method.has_likelihood and not rank_exceeds(groups.foreground, k):  # PCPCA's feasibility includes it
        raise RankError(k)
    if latents.n_latent is None:
        latents = replace(latents, n_latent=automatic_rank(data, k))
        wanted = latents.rank
        if gamma is not None and (r := feasible_rank(contrast(groups, gamma), wanted)) < wanted:
            if r >= k:
                warn(
                    f"gamma={gamma:.6g} is above the limit for the {wanted} latent dimensions that these tables "
                    f"suggest, so the model has only {r}. For all {wanted}, use gamma='auto' or a smaller gamma."
                )
            latents = replace(latents, n_latent=max(r, k))
    start, limit = None, None
    if gamma is None:
        limit, start = pcpca_limit(groups, latents.rank)
        if limit == 0:
            raise RankError(latents.rank, parameter=latents.parameter)
        gamma = latents.auto_fraction * limit
    fit = solve_complete(data, method, latents, gamma, start)
    if fit is None:
        raise infeasible(groups, method, latents, gamma)
    if limit is None:
        return fit
    return replace(fit, limit=limit, at_limit=True, limit_is_bound=isinstance(data.basis, Subspace))


def solve_complete(
    data: Complete, method: Method, latents: Latents, gamma: float, start: Array | None = None
) -> Fit | None:
    """The solution at gamma, or None if there is none; `start` holds vectors near it."""
    groups, found = data.groups, solve_and_show(data.groups, gamma, method, latents, start)
    if found is None:
        return None
    C, solution, covariances, shown = found
    spectrum, V = solution.spectrum, solution.spectrum.vectors
    U = data.lift(C, V, spectrum.values) if solution.eigenvectors else data.vectors(V)
    components, W = shown.lift(U, solution.lengths)
    objective, choice = method.value(C, solution), data.choice
    values = spectrum.values[: latents.n_shown] / groups.foreground.weight
    return Fit(
        units=data.units,
        components=components,
        variances=shown.variances,
        totals=groups.map(Moments.total_variance),
        gamma=gamma,
        objective=objective,
        n_iter=spectrum.n_iter,
        solver=replace(choice, reason=f"{choice.reason}; {spectrum.note}") if spectrum.note else choice,
        model=LatentGaussian(groups.foreground.mean, W, solution.sigma2) if method.has_likelihood else None,
        inside=covariances.map(lambda c: variance_inside(solution, c)),
        axis_ratios=shown.ratios,
        eigenvalues=values if shown.ratios is None else None,
        history=np.array([objective]),
        axes="variance" if shown.ratios is None else latents.axes,
        plateau=data.plateau,
    )


def infeasible(groups: Groups[Moments], method: Method, latents: Latents, gamma: float) -> ValueError:
    """Why there is no solution at `gamma`: the foreground's rank, or the exact limit."""
    limit = 0.0 if groups.background is None else method.limit(groups, latents.rank)[0]
    if limit == 0:
        return RankError(latents.rank, parameter=latents.parameter)
    if gamma < limit * (1 - 1e-9):  # feasible in exact arithmetic, but not in floating point, or not with few features
        return ValueError(
            f"gamma={gamma:.6g} is below its limit ({limit:.6g}), but so large that rounding errors hide the "
            "foreground, or that so few features show nothing of it. Use a smaller gamma, or allow more features."
        )
    hint = ""
    if looks_swapped(limit, groups.map(Moments.total_variance)):
        hint = " In total the background varies more than the foreground: were the two groups swapped?"
    return method.refusal(gamma, limit, latents.rank, latents.parameter, hint)


def looks_swapped(limit: float, totals: Groups[float]) -> bool:
    """Whether foreground and background were probably swapped."""
    return limit < TINY_LIMIT and any(total > totals.foreground for total in totals.backgrounds)


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
