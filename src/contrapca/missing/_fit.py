"""Incomplete groups: gradient fits, and the search for a gamma that works when the exact limit is unknown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._util.arrays import Array
from .._util.checks import generator
from .._util.progress import Progress
from .._util.text import Said
from ..contrast import (
    Fit,
    LatentGaussian,
    Latents,
    Settings,
    Step,
    dimensions_above_noise,
    latent_rank,
    loadings_around,
    principal_axes,
    ratio_axes,
    settled,
    show_axes,
)
from ..data import Groups, feature_label
from ..exceptions import RankError, UnboundedError, warn
from ..moments import DenseScatter, Moments, SolverChoice, mixture, rounding_variance
from ._collect import Incomplete
from ._estimates import (
    estimated_moments,
    expected_covariance,
    expected_total_variance,
    gls_mean,
    masked_start,
    missing_edge,
    random_start,
)
from ._likelihood import GradientSolution, maximise, noise_is_determined
from ._limits import comes_near_the_bound, count_bound, masked_bound
from ._rows import MaskedGroup

# gamma="auto" starts at a fraction of the bound and multiplies gamma by this until a fit converges.
BACKTRACK, MAX_ATTEMPTS = 0.85, 25

# Rounds of fitting and estimating the means anew (mean="gls"), and the change, in sd, that ends them.
MEAN_ROUNDS, MEAN_CHANGE = 100, 1e-5

# n_init="auto" takes several starts if two features are both observed in fewer rows than this, on average, for each
# latent dimension: until the best maximum was found three times, at most eight. Maxima whose objectives differ by no
# more than this for each observed value are the same.
ENOUGH_PAIRS, TIMES_FOUND, MOST_STARTS, SAME = 20, 3, 8, 1e-6

Start = tuple[Array, float]  # W and sigma2
MASKED_SPARE = 10  # latent dimensions of a model of incomplete rows beyond those that are shown


@dataclass(frozen=True)
class Attempt:
    """A fit at one gamma, or the reason why there is none."""

    fit: Fit | None
    reason: str = ""
    unconverged: GradientSolution | None = None  # where the fit ended, if it did not converge


def fit_incomplete(data: Incomplete, latents: Latents, gamma: float | None, settings: Settings) -> Fit:
    """Fit by gradients at `gamma` (None: find one that works), or raise an error that names one that works."""
    foreground, d = data.groups.foreground, latents.n_shown
    if foreground.mean_variance <= rounding_variance(foreground):
        raise RankError(d)
    latents = settled(data.plateau, latents)
    if latents.n_latent is None:
        latents = replace(latents, n_latent=masked_rank(data.groups, d))
    if gamma is None:
        bound = upper_bound(data, latents.rank)
        found, steps = _search(data, latents, bound, settings)
        if found.fit is None:
            raise UnboundedError(
                latents.auto_fraction * bound, bound, None, latents.rank, found.reason, latents.parameter
            )
        record: list[Step] = [{"gamma": bound, "outcome": "upper bound"}, *steps]
        return replace(_warned(found, data, settings), gamma_search=record)
    attempt = attempt_fit(data, latents, gamma, settings)
    if attempt.fit is not None:
        return _warned(attempt, data, settings)
    if data.groups.background is None or gamma == 0:
        raise UnboundedError(gamma, np.nan, None, latents.rank, attempt.reason, latents.parameter)
    bound = upper_bound(data, latents.rank)
    found, _ = _search(data, latents, bound, settings)
    works = found.fit.gamma if found.fit is not None and found.unconverged is None else None
    raise UnboundedError(gamma, bound, works, latents.rank, attempt.reason, latents.parameter)


def upper_bound(data: Incomplete, d: int) -> float:
    """An upper bound on the feasible gamma'."""
    return masked_bound(data.groups, d, generator(0))


def _search(data: Incomplete, latents: Latents, bound: float, settings: Settings) -> tuple[Attempt, list[Step]]:
    """Try decreasing gammas until one converges; return that attempt and all outcomes.

    If none converges, return the first one with a fit, or else the last one.
    """
    gamma, fallback = latents.auto_fraction * bound, None
    steps: list[Step] = []
    for _ in range(MAX_ATTEMPTS):
        attempt = attempt_fit(data, latents, gamma, settings, bound)
        if attempt.fit is not None and attempt.unconverged is None:
            return attempt, [*steps, {"gamma": gamma, "outcome": "converged"}]
        if attempt.fit is not None:
            fallback = fallback or attempt
        steps.append({"gamma": gamma, "outcome": attempt.reason or "did not converge"})
        gamma *= BACKTRACK
    return fallback or attempt, steps


def attempt_fit(
    data: Incomplete,
    latents: Latents,
    gamma: float,
    settings: Settings,
    limit: float | None = None,
    start: Start | None = None,
) -> Attempt:
    """The fit at one gamma, or the reason why there is none.

    `limit` is the bound on gamma, if known; `start` replaces the first start (estimated moments).
    """
    d = latents.rank
    if data.groups.background is not None and gamma > 0:
        bound, feature = count_bound(data.groups, d)
        if gamma >= bound:
            names = data.scaling.foreground.names
            what = "the number of observed values"
            if feature is not None:
                what = f"how often {feature_label(names, feature)} was observed"
            return Attempt(None, f"{what} does not allow it")
    label = "PPCA" if data.groups.background is None else f"gamma={gamma:.4g}"
    solutions: list[GradientSolution] = []
    for k, one in enumerate(_starts(data.groups, gamma, d, settings, start)):
        solutions.append(_run(data.groups, gamma, one, settings, f"{label}, start {k + 1}"))
        if solutions[-1].status == "unbounded":
            return Attempt(None, solutions[-1].reason)
        best = max(solutions, key=lambda solution: solution.objective)
        lowest = best.objective - SAME * data.groups.foreground.cells
        if settings.n_init is None and sum(found.objective >= lowest for found in solutions) == TIMES_FOUND:
            break
    history, settled = best.history, True
    if settings.mean == "gls":
        data, best, history, settled = _with_gls_means(data, gamma, best, settings, f"{label}, means")
        if best.status == "unbounded":
            return Attempt(None, best.reason)
    contrasted = data.groups.background is not None and gamma > 0
    if limit is None and contrasted and comes_near_the_bound(data.groups, gamma, best.W):
        limit = upper_bound(data, d)
    if limit is not None and gamma >= limit:
        return Attempt(None, "the noise variance goes to 0 (the optimiser stopped at a local maximum)")
    fit = replace(_result(data, latents, gamma, best, history), limit=limit)
    return Attempt(fit, unconverged=None if best.status == "converged" and settled else best)


def _starts(
    groups: Groups[MaskedGroup], gamma: float, d: int, settings: Settings, start: Start | None
) -> Iterator[Start]:
    """Where to start: from estimated moments, or the start that is given, and from random loadings.

    If few rows have both of two features there are often several maxima, so "auto" takes several starts there; a start
    that is given is near the maximum.
    """
    yield start or masked_start(groups, gamma, d)
    count, seed = settings.n_init, settings.random_state
    if count is None:
        scarce = groups.foreground.pairs_per_entry < ENOUGH_PAIRS * d
        count, seed = MOST_STARTS if scarce and start is None else 1, 0 if seed is None else seed
    random = generator(seed)
    for _ in range(count - 1):
        yield random_start(groups, d, random)


def _warned(attempt: Attempt, data: Incomplete, settings: Settings) -> Fit:
    """The fit of an attempt, with a warning if it did not converge, or if the noise variance is arbitrary."""
    assert attempt.fit is not None
    if attempt.unconverged is not None:
        solution = attempt.unconverged
        warn(
            f"The fit did not converge in {solution.n_iter} iterations ({solution.status}): the largest convergence "
            f"residual is {solution.residual:.1e} (tol={settings.tol:g}). Raise max_iter, use a smaller gamma, or "
            "scale the features (scale='pooled').",
            ConvergenceWarning,
        )
    assert attempt.fit.model is not None
    if not noise_is_determined(data.groups.foreground, attempt.fit.model.W):
        most = attempt.fit.n_latent
        warn(
            (
                Said("noise_variance_ is arbitrary: no foreground row", "The model's noise is arbitrary: no case"),
                f" has more than {most} observed values, and as many latent dimensions fit them whatever the noise is. "
                "Densities and imputed values are arbitrary, too. Use fewer components, or rows with more values.",
            )
        )
    return attempt.fit


def _run(groups: Groups[MaskedGroup], gamma: float, start: Start, settings: Settings, label: str) -> GradientSolution:
    """Run one start, with an optional progress bar."""
    with Progress(label, settings.max_iter, settings.progress) as progress:
        return maximise(
            groups,
            gamma,
            *start,
            tol=settings.tol,
            max_iter=settings.max_iter,
            observer=lambda k, value, slope: progress.update(k, f"objective {value:.6g}, gradient {slope:.1e}"),
        )


def _with_gls_means(
    data: Incomplete, gamma: float, best: GradientSolution, settings: Settings, label: str
) -> tuple[Incomplete, GradientSolution, Array, bool]:
    """Alternate GLS means and fits; return data, solution, history and whether the means have converged."""
    histories, settled = [best.history], False
    for _ in range(MEAN_ROUNDS):
        means = data.groups.map(lambda group: gls_mean(group, best.W, best.sigma2))  # noqa: B023
        spread = data.groups.map(lambda group: np.sqrt(np.maximum(group.variance, best.sigma2)))  # noqa: B023
        changes = data.groups.map(lambda group, mean, sd: float(np.max(np.abs(mean - group.mean) / sd)), means, spread)
        settled = max(changes) <= MEAN_CHANGE
        data = data.about(means)
        best = _run(data.groups, gamma, (best.W, best.sigma2), settings, label)
        histories.append(best.history[1:])
        if settled or best.status == "unbounded":
            break
    return data, best, np.concatenate(histories), settled


def _result(data: Incomplete, latents: Latents, gamma: float, solution: GradientSolution, history: Array) -> Fit:
    """The fit at a solution. W is determined only up to rotation, so its axes start from the singular vectors of W."""
    W, sigma2, groups = solution.W, solution.sigma2, data.groups
    U, lengths = principal_axes(W)
    known = None
    if latents.axes == "ratio" and groups.backgrounds:
        # Of expected moments, by the model of the foreground in both groups.
        expected = groups.map(lambda group: group.weight * expected_covariance(group, np.eye(len(W)), W, sigma2))
        moments = groups.map(lambda own, S: Moments(own.weight, own.mean, DenseScatter(S)), expected)
        known = ratio_axes(moments, latents.n_shown)
    if known is not None:  # the model's subspace must hold them (F41)
        ratios, V = known
        U, lengths = loadings_around(W, sigma2, V)
        known = ratios, U.T @ V
    covariances = groups.map(lambda group: expected_covariance(group, U, W, sigma2))
    totals = groups.map(lambda group: expected_total_variance(group, W, sigma2))
    shown = show_axes(latents, lengths, sigma2, covariances, totals, mixture(groups), U.shape[0], known)
    components, loadings = shown.lift(U, lengths)
    complete = all(np.all(group.feature_counts == group.weight) for group in groups)
    fit = Fit(
        scaling=data.scaling,
        components=components,
        variances=shown.variances,
        totals=totals,
        gamma=gamma,
        objective=solution.objective,
        n_iter=history.size - 1,
        solver=SolverChoice("lbfgs", "requested" if complete else "values are missing: no closed form"),
        model=LatentGaussian(groups.foreground.mean, loadings, sigma2),
        inside=covariances.map(lambda c: float(np.trace(c))),
        axis_ratios=shown.ratios,
        limit_is_bound=True,
        history=history,
        axes="variance" if shown.ratios is None else latents.axes,
        plateau=data.plateau,
    )
    return fit if shown.ratios is not None else replace(fit, eigenvalues=fit.contrasted)


def incomplete_background_model(data: Incomplete, fit: Fit, settings: Settings) -> LatentGaussian | None:
    """PPCA of the background alone, in its scaled units; None if it varies in too few directions, or if there is not
    exactly one."""
    if len(data.groups.backgrounds) != 1:
        return None
    background = data.about(fit.scaling.map(lambda scaling: scaling.origin)).groups.background
    assert background is not None
    if background.typical_variance <= 0:  # constant: there is no PPCA of it
        return None
    groups = Groups.of(background)
    start = masked_start(groups, 0.0, fit.n_latent)
    solution = maximise(groups, 0.0, *start, tol=settings.tol, max_iter=settings.max_iter)
    if solution.status == "unbounded":
        return None
    return LatentGaussian(background.mean, solution.W, solution.sigma2)


def masked_rank(groups: Groups[MaskedGroup], k: int) -> int:
    """The number of latent dimensions for incomplete rows, of a model that shows k of them, from estimated moments
    (F24), and at most k + 10: every fit is iterative.

    Rows count as often as they have both of two features, and a row can hold only fewer dimensions than values.
    """
    q = max(dimensions_above_noise(estimated_moments(group), missing_edge(group)) for group in groups)
    values = min(int(group.cells / group.weight) for group in groups)
    rows = [int(group.pairs_per_entry) for group in groups]
    rank = latent_rank(q, q, k, values, rows[0], min(rows))
    return min(rank, k + MASKED_SPARE)


def count_above_wider_noise(groups: Groups[MaskedGroup]) -> int:
    """The larger count of incomplete groups whose noise is as wide as that of the rows in which two features are seen.

    Unlike the count of F24 it does not allow for what missing values make of the signal, which would hide all but the
    largest of many dimensions.
    """
    moments = groups.map(lambda group: replace(estimated_moments(group), weight=float(group.pairs_per_entry)))
    return max(map(dimensions_above_noise, moments))
