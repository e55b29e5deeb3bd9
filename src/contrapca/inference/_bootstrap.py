"""Refits to resampled rows: uncertainty where the Gibbs posterior is improper, or too expensive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from itertools import islice, pairwise
from numbers import Integral
from typing import Any

import numpy as np

from .._util.arrays import Array
from .._util.checks import check_count, generator
from .._util.progress import Progress
from .._util.threads import calm_threads, single_thread, worker_count
from ..contrast import Fit, Settings, align, refuse_design
from ..data import Groups, Study, Tables, foreground_of, refuse_moments, resampled_weights, study_of, units_of
from ..data.rows import storage
from ..estimators import Choice, ContrastSolver, SparseCPCA
from ..missing import BACKTRACK, Incomplete, attempt_fit, observe
from ..moments import Complete, DenseScatter, Moments, choose_solver, reduce_rows, row_moments
from ._draws import ContrastPosterior

# Refits, and part of those asked for, that must succeed: the others are not a random sample of all.
MIN_SUCCEEDED, MIN_SHARE = 20, 0.8

# Gammas that an incomplete resample is tried at, where the fit's own was searched for.
ATTEMPTS = 25

# Of refits by gradients, which start at the fit: loadings are right to 2 % of the standard deviation between refits.
REFIT_TOLERANCE = 1e-4
PASSES = 100  # over the rows that such a refit takes, roughly

# Resamples that are reduced to moments at a time, and how large half of a group's matrices may then be.
MOST_TOGETHER, TOGETHER_BYTES = 8, 2**27
Weights = Groups[Array]  # how often each row of each group counts in a resample
Found = tuple[Array, float] | None  # W (D, r), those shown first, and noise variance; None where there is no solution


def bootstrap(
    model: Any,
    X: Any,
    *,
    background: Any = None,
    n_resamples: int = 200,
    random_state: Any = 0,
    progress: bool = True,
) -> ContrastPosterior:
    """Refit to rows, or whole blocks, resampled with replacement within each group.

    It needs no condition on N and no extra library, and it takes missing values (ContraPCA, PCPCA, PPCA). Scales
    and the number of latent dimensions are those of the fit; with gamma="auto" every refit uses the same fraction
    of its own limit. With missing values no exact limit is known: a refit without a solution is tried again at 0.85 of
    its gamma, up to 25 times, if gamma is "auto", and counts as failed if it was given.

    Parameters
    ----------
    model : fitted estimator
    X : Study, or array-like, data frame or sparse matrix of shape (n, D)
        The `Study` of the fit, or its foreground. Blocks are resampled as a whole. A row is drawn with its weight, and
        adjusted for its covariates as in the fit.
    background : array-like, data frame or sparse matrix of shape (m, D), or a dict of them, optional
        If `X` is not a Study.
    n_resamples : int, default 200
    random_state : None, int, Generator or RandomState, default 0
    progress : bool, default True
        Show a progress bar on a terminal or in a notebook if it takes longer than two seconds.

    Returns
    -------
    ContrastPosterior
        One chain; `failures` counts the refits for which gamma was infeasible.

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import PCPCA, bootstrap
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(200, 5)) * [3, 1, 1, 1, 1], rng.normal(size=(150, 5))
    >>> model = PCPCA(1, gamma=0.5).fit(X, background=Y)
    >>> refits = bootstrap(model, X, background=Y, n_resamples=100)
    >>> refits
    Bootstrap(PCPCA: 100 refits, D = 5, d = 1)
    >>> refits.summary()["excludes_zero"].tolist()
    [True, False, False, False, False]
    """
    # Aligned refits of a SparseCPCA would have all features: `stability_selection` is the answer there.
    if not isinstance(model, ContrastSolver) or isinstance(model, SparseCPCA):
        raise TypeError(f"bootstrap needs an estimator of contrapca with components, not a {type(model).__name__}.")
    fit, study = model.fit_, study_of_fit(model, X, background, "bootstrap")
    refuse_moments(study, "bootstrap")
    tables = model._tables_again(study)
    if tables.incomplete and fit.model is None:
        raise ValueError(
            "bootstrap of a model without a likelihood needs complete rows, and values are missing here: use "
            "bootstrap of ContraPCA or PCPCA, or drop rows or features."
        )
    weights = None if tables.incomplete else tables.totals
    model._check_same(tables.means, weights)
    unit_of = units_of(study, tables, least=2, what="the bootstrap")
    check_count(n_resamples, "n_resamples", least=2)
    random = generator(random_state)

    def draw() -> Weights:
        """How often each row counts in a resample: as often as it is drawn, times its weight."""
        drawn = resampled_weights(unit_of, random)
        return drawn.map(lambda times, own: times if own is None else times * own, tables.weights)

    draws, model = (draw() for _ in range(n_resamples)), model._as_fitted()
    refits = _incomplete_refits(tables, fit, draws) if tables.incomplete else _complete_refits(tables, model, draws)
    found: list[Found] = []
    with Progress("bootstrap", n_resamples, progress) as bar:
        for result in refits:
            found.append(result)
            bar.update(len(found), "refits")
    succeeded = [result for result in found if result is not None]
    if len(succeeded) < max(min(MIN_SUCCEEDED, n_resamples), MIN_SHARE * n_resamples):
        raise ValueError(
            f"Only {len(succeeded)} of {n_resamples} refits were feasible, too few for intervals: "
            f"gamma={fit.gamma:.4g} is too close to its limit, or there are too few rows. Use gamma='auto', a smaller "
            "gamma or fewer components."
        )
    W, sigma2 = (np.array(part) for part in zip(*succeeded, strict=True))
    # The axes that are shown, and the others, are each turned towards the estimate's.
    parts = slice(None, fit.n_shown), slice(fit.n_shown, None)
    W = np.concatenate([align(W[..., own], fit.W[:, own]) for own in parts], axis=-1)
    return ContrastPosterior(
        W=W[None],
        noise_variance=sigma2[None] if fit.model is not None else None,
        W_estimate=fit.W,
        n_shown=fit.n_shown,
        scaling=fit.scaling.foreground,
        kind="bootstrap",
        method=type(model).__name__,
        failures=n_resamples - len(succeeded),
        noise_variance_estimate=None if fit.model is None or _own_limit(fit) else fit.model.sigma2,
        by_blocks=study.blocks is not None,
        seed=repeatable_seed(random_state),
    )


def _own_limit(fit: Fit) -> float | None:
    """The limit of gamma, if refits take the same part of theirs; None if they take the gamma of the fit."""
    return fit.limit if fit.at_limit and not fit.limit_is_bound else None


def _complete_refits(tables: Tables, model: ContrastSolver, draws: Iterator[Weights]) -> Iterator[Found]:
    """A resample is a vector of weights, and its scatter a weighted product: no row is copied."""
    fit = model.fit_
    rows, divisors, basis = tables.rows, fit.scaling.map(lambda known: known.scale), None
    latents, choice = fit.latents, choose_solver(tables)
    if choice.name == "dual" and model._rotates:  # all happens in the span of the rows
        moments = tables.rows.map(row_moments, tables.means)
        moments = moments.map(lambda group, known: group.scaled(known.scale), fit.scaling)
        _, basis = reduce_rows(moments, 0)
        rows = moments.like(basis.R[a:b] for a, b in pairwise(basis.edges))
        divisors = rows.map(lambda table: np.ones(table.shape[1]))

    def resampled(moments: tuple[Array, Array], weights: Array, divisor: Array) -> Moments:
        mean, scatter = moments
        found = Moments(float(weights.sum()), mean, DenseScatter(scatter))
        found = found if np.all(divisor == 1) else found.scaled(divisor)
        # The model's D counts the directions outside the span, too.
        return found if basis is None else Moments(found.weight, np.zeros(tables.n_features), found.scatter)

    def refit(moments_of: list[Callable[[int], tuple[Array, Array]]], drawn: list[Weights], k: int) -> Found:
        groups = rows.like(own(k) for own in moments_of).map(resampled, drawn[k], divisors)
        gamma = fit.gamma
        if limit := _own_limit(fit):
            gamma *= model._limit(groups, latents.rank, limit)[0] / limit
        # Not `fit`, which would also model the background, and explain each failure by its limit.
        again = model._attempt(Complete(groups, fit.scaling, choice), latents, Choice(gamma))
        if again is None:
            return None
        W, sigma2 = again.W, 0.0 if again.model is None else again.model.sigma2
        return (W if basis is None else basis.vectors(W)), sigma2

    # Resamples side by side use the cores better than the BLAS does, where there is enough to do.
    workers = worker_count(sum(int(table.size) for table in rows))
    largest = max(table.shape[0] * table.shape[1] ** 2 for table in rows)
    together = int(np.clip(TOGETHER_BYTES / (4 * rows.foreground.shape[1] ** 2), workers, MOST_TOGETHER))
    with single_thread() if workers > 1 else calm_threads(largest), ThreadPoolExecutor(workers) as pool:
        while drawn := list(islice(draws, together)):  # the weights of all could be larger than the table
            stacked = [np.column_stack(own) for own in zip(*drawn, strict=True)]
            moments_of = list(pool.map(lambda table, w: storage(table).weighted(table, w), rows, stacked))
            yield from pool.map(partial(refit, moments_of, drawn), range(len(drawn)))


def _incomplete_refits(tables: Tables, fit: Fit, draws: Iterator[Weights]) -> Iterator[Found]:
    """Incomplete rows are drawn and fitted by gradients, from the estimate.

    A resample in which some feature is never observed counts as failed.
    """
    assert fit.model is not None
    start = fit.model.W, fit.model.sigma2
    latents, settings = fit.latents, Settings(tol=REFIT_TOLERANCE)
    attempts = ATTEMPTS if fit.gamma_search else 1

    def refit(weights: Weights) -> Found:
        groups = tables.rows.map(lambda table, w, known: observe(table, w)[0].scaled(known.scale), weights, fit.scaling)
        if not all(np.all(group.feature_counts > 0) for group in groups):
            return None
        data, gamma = Incomplete(groups, fit.scaling), fit.gamma
        for _ in range(attempts):
            # A bound above gamma is taken for granted, as the fit itself is below it.
            again = attempt_fit(data, latents, gamma, settings, limit=np.inf, start=start)
            if again.fit is not None and again.unconverged is None and again.fit.model is not None:
                return again.fit.model.W, again.fit.model.sigma2
            gamma *= BACKTRACK
        return None

    # Resamples side by side, as above.
    workers = worker_count(PASSES * sum(int(table.size) for table in tables.rows))
    with single_thread() if workers > 1 else nullcontext(), ThreadPoolExecutor(workers) as pool:
        while drawn := list(islice(draws, MOST_TOGETHER * workers)):
            yield from pool.map(refit, drawn)


def study_of_fit(model: Any, X: Any, background: Any, name: str) -> Study:
    """The study of a fit, passed again; its foreground for a model that was fitted without a background."""
    refuse_design(model.fit_, name)
    study = study_of(X, background, name, needs_background=False)
    return foreground_of(study) if isinstance(X, Study) and not model.fit_.scaling.backgrounds else study


def repeatable_seed(random_state: Any) -> int | None:
    """A seed that Python code can repeat."""
    return int(random_state) if isinstance(random_state, Integral) else None
