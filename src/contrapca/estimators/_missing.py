"""Fits to tables with holes: from checked rows to everything an estimator reports."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._array import Array
from .._progress import Progress
from .._validation import Groups, generator, warn_distant_means
from ..exceptions import GroupError, NonFiniteError, RankError, UnboundedError, warn
from ..gaussian import LatentGaussian
from ..moments import MaskedGroup, MaskedPair, RowScatter, observe, pooled_observed_deviation
from ..solvers import (
    Algorithm,
    GammaLimits,
    GradientSolution,
    SolverChoice,
    canonical_signs,
    comes_near_the_bound,
    count_bound,
    expected_total_variance,
    expected_variances,
    gls_mean,
    maximise,
    observed_bound,
    observed_start,
    random_start,
)
from ._fit import AUTO_FRACTION, GROUPS, Fit, Method, Source, divisors, in_group, two

# gamma="auto" starts from a fraction of the bound and takes this part of gamma until a fit converges.
BACKTRACK, MAX_ATTEMPTS = 0.85, 25
# Rounds of fitting and estimating the means anew (mean="gls"), and the change, in sd, that ends them.
MEAN_ROUNDS, MEAN_CHANGE = 100, 1e-5


Step = dict[str, float | str]  # of the search: a gamma and its outcome


@dataclass(frozen=True)
class Settings:
    """How a gradient solver is to run."""

    algorithm: Algorithm = "lbfgs"
    mean: str = "observed"  # or "gls"
    n_init: int = 1
    max_iter: int = 1000
    tol: float = 1e-6
    random_state: Any = None
    verbose: int = 0


@dataclass(frozen=True)
class Observed(Source):
    """Both groups with their holes, in model units."""

    pair: MaskedPair
    settings: Settings
    totals: tuple[float, ...] = ()  # of the variance of each group, expected under the fitted model

    @property
    def ratio(self) -> float:
        return self.pair.ratio

    @property
    def model_mean(self) -> Array:
        return self.pair.foreground.mean

    def total_variance(self, group: int) -> float:
        return self.totals[group]

    def watched_rows(self) -> list[RowScatter]:
        return []

    def limit(self, method: Method, d: int) -> float:
        return observed_bound(self.pair, d, generator(0))

    def feature_contrast(self, gamma: float) -> tuple[float, Array]:
        raise ValueError(
            "posterior() needs complete rows, and this model was fitted to rows with missing values. Use "
            "bootstrap(X, background=Y), which takes them."
        )

    def background_model(self, d: int) -> LatentGaussian:
        assert self.pair.background is not None
        pair = MaskedPair(self.pair.background, None)
        solution = maximise(
            pair, 0.0, *observed_start(pair, 0.0, d), tol=self.settings.tol, max_iter=self.settings.max_iter
        )
        if solution.status == "unbounded":
            raise RankError(d, "background")
        return LatentGaussian(self.pair.background.mean, solution.W, solution.sigma2)


def observe_groups(groups: Groups, scale: bool | str, settings: Settings) -> Observed:
    """Read the rows once: their observed values about the observed means, scaled."""
    masked = [_observe(k, groups) for k in range(len(groups.tables))]
    own = [group.deviations() for group in masked]
    pooled = pooled_observed_deviation(masked)
    if len(masked) == 2:
        warn_distant_means(np.abs(masked[0].mean - masked[1].mean) / pooled, groups)
    scales = divisors(scale, own, pooled)
    means, variances = [group.mean for group in masked], [group.variances for group in masked]
    if scale:
        masked = [group.scaled(divisor) for group, divisor in zip(masked, scales, strict=True)]
    pair = MaskedPair(masked[0], masked[1] if len(masked) == 2 else None)
    return Observed(two(means), two(variances), two(scales), pair, settings)


def observed_limits(groups: Groups, d: int, scale: bool | str) -> GammaLimits:
    """The upper bound of PCPCA's limit; nothing else is known of groups with holes."""
    pair = observe_groups(groups, scale, Settings()).pair
    bound, nan = observed_bound(pair, d, generator(0)), np.nan
    return GammaLimits(bound, nan, nan, nan, nan, nan, n_components=d, ratio=pair.ratio, is_bound=True)


def _observe(k: int, groups: Groups) -> MaskedGroup:
    """One group; errors say which, and name the feature."""
    rows = groups.tables[k]
    try:
        group, empty = observe(rows)
    except NonFiniteError as error:
        raise in_group(error, k, groups) from error
    if empty >= rows.shape[0] - 1:
        raise GroupError(
            f"{empty} of the {rows.shape[0]} {GROUPS[k]} rows have no observed value: 2 or more are needed."
        )
    if empty:
        warn(f"{empty} of the {rows.shape[0]} {GROUPS[k]} rows have no observed value; they are ignored.")
    never = np.flatnonzero(group.observed == 0)
    if never.size:
        raise GroupError(
            f"{never.size} of {group.mean.size} features have no observed value in the {GROUPS[k]} (the first: "
            f"{', '.join(map(groups.name, never[:3]))}). Drop them from both groups."
        )
    return group


@dataclass(frozen=True)
class Attempt:
    """A fit at one gamma, or the reason why there is none; `solution` where the fit did not converge."""

    fit: Fit | None
    reason: str = ""
    unconverged: GradientSolution | None = None


def fit_observed(groups: Groups, d: int, gamma: float | None, scale: bool | str, settings: Settings) -> Fit:
    """Fit by gradients at `gamma` (None: find one that works), or raise and name one that does."""
    data = observe_groups(groups, scale, settings)
    if data.pair.foreground.mean_variance <= data.pair.foreground.rounding_variance():
        raise RankError(d)
    if gamma is None:
        bound = data.limit("pcpca", d)
        found, steps = _search(data, groups, d, bound)
        if found.fit is None:
            raise UnboundedError(AUTO_FRACTION * bound, bound, None, d, found.reason)
        record: list[Step] = [{"gamma": bound, "outcome": "upper bound"}, *steps]
        return replace(_warned(found, settings), gamma_search=record)
    attempt = attempt_fit(data, groups, d, gamma)
    if attempt.fit is not None:
        return _warned(attempt, settings)
    if data.pair.background is None or gamma == 0:
        raise UnboundedError(gamma, np.nan, None, d, attempt.reason)
    bound = data.limit("pcpca", d)
    found, _ = _search(data, groups, d, bound)
    works = found.fit.gamma if found.fit is not None and found.unconverged is None else None
    raise UnboundedError(gamma, bound, works, d, attempt.reason)


def _search(data: Observed, groups: Groups, d: int, bound: float) -> tuple[Attempt, list[Step]]:
    """The attempt at the largest gamma tried that converges, from a fraction of the bound downwards, and all outcomes.

    Where none converges, the first that did not, but has a fit; else the last.
    """
    gamma, fallback = AUTO_FRACTION * bound, None
    steps: list[Step] = []
    for _ in range(MAX_ATTEMPTS):
        attempt = attempt_fit(data, groups, d, gamma, bound)
        if attempt.fit is not None and attempt.unconverged is None:
            return attempt, [*steps, {"gamma": gamma, "outcome": "converged"}]
        if attempt.fit is not None:
            fallback = fallback or attempt
        steps.append({"gamma": gamma, "outcome": attempt.reason or "did not converge"})
        gamma *= BACKTRACK
    return fallback or attempt, steps


def attempt_fit(
    data: Observed,
    groups: Groups,
    d: int,
    gamma: float,
    limit: float | None = None,
    start: tuple[Array, float] | None = None,
) -> Attempt:
    """The fit at one gamma, or the reason why there is none.

    `limit` is the bound of gamma, if it is known; `start` replaces the first start, estimated moments.
    """
    pair, settings = data.pair, data.settings
    if pair.background is not None and gamma > 0:
        bound, feature = count_bound(pair, d)
        if gamma >= bound:
            what = (
                "the number of observed values" if feature is None else f"how often {groups.name(feature)} was observed"
            )
            return Attempt(None, f"{what} allows gamma below {bound:.4g} only")
    random = generator(settings.random_state)
    starts = [start or observed_start(pair, gamma, d)]
    starts += [random_start(pair, d, random) for _ in range(settings.n_init - 1)]
    label = "PPCA" if pair.background is None else f"gamma={gamma:.4g}"
    solutions = [_run(pair, gamma, start, settings, f"{label}, start {k + 1}") for k, start in enumerate(starts)]
    for solution in solutions:
        if solution.status == "unbounded":
            return Attempt(None, solution.reason)
    best = max(solutions, key=lambda solution: solution.objective)
    histories, settled = [best.history], True
    if settings.mean == "gls":
        for _ in range(MEAN_ROUNDS):
            pair, change = _with_gls_means(pair, best)
            best = _run(pair, gamma, (best.W, best.sigma2), settings, f"{label}, means")
            if best.status == "unbounded":
                return Attempt(None, best.reason)
            histories.append(best.history[1:])
            settled = change <= MEAN_CHANGE
            if settled:
                break
        means = [group.mean * scale for group, scale in zip(pair.groups, data.scales, strict=False)]  # type: ignore[operator]
        data = replace(data, pair=pair, means=two(means))
    if limit is None and len(pair.terms(gamma)) == 2 and comes_near_the_bound(pair, gamma, best.W):
        limit = data.limit("pcpca", d)
    if limit is not None and gamma >= limit:
        return Attempt(None, "the noise variance goes to 0 (the fit itself ended at a mere local maximum)")
    objectives = np.array([solution.objective for solution in solutions])
    fit = replace(_result(data, gamma, best, np.concatenate(histories), objectives), limit=limit)
    return Attempt(fit, unconverged=None if best.status == "converged" and settled else best)


def _warned(attempt: Attempt, settings: Settings) -> Fit:
    """The fit of an attempt, with a warning where it did not converge."""
    assert attempt.fit is not None
    if attempt.unconverged is not None:
        _warn_not_converged(attempt.unconverged, settings)
    return attempt.fit


def _run(
    pair: MaskedPair, gamma: float, start: tuple[Array, float], settings: Settings, label: str
) -> GradientSolution:
    """One start, with a progress bar if wanted."""
    with Progress(label, settings.max_iter, settings.verbose > 0) as progress:
        return maximise(
            pair,
            gamma,
            *start,
            algorithm=settings.algorithm,
            tol=settings.tol,
            max_iter=settings.max_iter,
            report=lambda k, value, slope: progress.update(k, f"objective {value:.6g}, gradient {slope:.1e}"),
        )


def _with_gls_means(pair: MaskedPair, solution: GradientSolution) -> tuple[MaskedPair, float]:
    """The groups about their GLS means given the solution, and how far those are from the old ones, in sd."""
    groups, changes = [], []
    for group in pair.groups:
        mean = gls_mean(group, solution.W, solution.sigma2)
        deviation = np.sqrt(np.maximum(group.variances, solution.sigma2))
        changes.append(float(np.max(np.abs(mean - group.mean) / deviation)))
        groups.append(group.about(mean))
    return MaskedPair(groups[0], groups[1] if len(groups) == 2 else None), max(changes)


def _warn_not_converged(solution: GradientSolution, settings: Settings) -> None:
    warn(
        f"The fit did not converge in {solution.n_iter} iterations ({solution.status}): relative gradient, change of "
        f"the objective and its identity at the maximum are within {solution.residual:.1e}, where tol={settings.tol:g} "
        "is asked for. Raise max_iter, use a smaller gamma, or scale the features (scale='pooled')."
        + (" Adam with its fixed step size rarely gets there; solver='auto' does." * (settings.algorithm == "adam")),
        ConvergenceWarning,
    )


def _result(data: Observed, gamma: float, solution: GradientSolution, history: Array, objectives: Array) -> Fit:
    """Components from a solution, which is free to rotate: the singular vectors of W."""
    U, lengths, _ = np.linalg.svd(solution.W, full_matrices=False)
    U = canonical_signs(U)
    pair = data.pair
    along = [expected_variances(group, U, solution.W, solution.sigma2) for group in pair.groups]
    totals = tuple(expected_total_variance(group, solution.W, solution.sigma2) for group in pair.groups)
    data = replace(data, totals=totals)
    outside = [data.total_variance(k) - float(variance.sum()) for k, variance in enumerate(along)]
    complete = all(np.all(group.observed == group.weight) for group in pair.groups)
    name = data.settings.algorithm
    return Fit(
        source=data,
        gamma=gamma,
        components=U,
        lengths=lengths,
        sigma2=solution.sigma2,
        eigenvalues=along[0] - (gamma * along[1] if len(along) == 2 else 0.0),
        objective=solution.objective,
        reconstruction_loss=outside[0] - (gamma * outside[1] if len(along) == 2 else 0.0),
        variances=two(along),
        n_effective=pair.foreground.weight * (1 - gamma if len(along) == 2 else 1),
        n_iter=history.size - 1,
        solver=SolverChoice(name, "asked for" if complete else "values are missing: no closed form"),
        history=history,
        init_objectives=objectives,
    )
