"""Complete groups: one pass over the rows, then a closed form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._util.arrays import Array
from ..exceptions import RankError, warn
from ..gaussian import LatentGaussian
from ..groups import Groups
from ..limits import pcpca_limit, rank_exceeds
from ..methods import PCPCA_METHOD, Method
from ..moments import Complete, Moments, Subspace, alone, contrast
from ._axes import automatic_rank, feasible_rank, settled, solve_and_show, variance_inside
from ._fit import Fit, Latents

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


def complete_background_model(data: Complete, d: int) -> LatentGaussian | None:
    """PPCA of the background alone, in its scaled units; None if it varies in at most d directions, or if there are
    several backgrounds."""
    if len(data.groups.backgrounds) > 1:
        return None
    own = data.background_alone()
    C = alone(own.groups.foreground)
    solution = PCPCA_METHOD.solve(C, d)
    if not solution.feasible:
        return None
    U = own.lift(C, solution.spectrum.vectors, solution.spectrum.values)
    return LatentGaussian(own.groups.foreground.mean, U * solution.lengths, solution.sigma2)
