"""Refits to resampled rows: uncertainty where the Gibbs posterior is improper, or too expensive."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from .._checks import check_count, generator
from .._util.arrays import Array, Rows
from .._util.progress import Progress
from .._util.threads import calm_threads
from ..blocks import resampled_weights, unit_numbers
from ..fitting import Fit, Latents, Settings, attempt_fit, solve_complete
from ..groups import Groups, Tables
from ..methods import Method
from ..moments import (
    Basis,
    Complete,
    DenseScatter,
    Incomplete,
    Moments,
    choose_solver,
    observe,
    reduce_rows,
    row_moments,
)
from ..rows import storage
from ..subspaces import align
from ..units import Units
from ._draws import ContrastPosterior

# Refits, and part of those asked for, that must succeed: the others are not a random sample of all.
MIN_SUCCEEDED, MIN_SHARE = 20, 0.8

Draw = Callable[[], Groups[Array]]  # how often each row of each group counts in a resample
Refit = tuple[Array, float] | None  # W (D, r), those shown first, and noise variance; None where there is no solution


def bootstrap(
    tables: Tables,
    fit: Fit,
    method: Method,
    *,
    blocks: Any = None,
    background_blocks: Any = None,
    n: int = 200,
    random_state: Any = None,
    progress: bool = True,
) -> ContrastPosterior:
    """Refits, with the same rank and scales, to rows, or whole blocks of them, drawn with replacement.

    Where the fit knows its limit of gamma, every refit takes the same part of its own; else all have the same gamma.

    Parameters
    ----------
    tables : Tables
        Those of the fit.
    fit : Fit
    method : Method
    blocks, background_blocks : array-like of shape (n,) and (m,), optional
        The donor, animal or plate of each row.
    n : int, default 200
        Refits.
    random_state : None, int, Generator or RandomState
    progress : bool, default True
    """
    check_count(n, "n", least=2)
    random, counts = generator(random_state), tables.rows.map(lambda rows: int(rows.shape[0]))
    units = unit_numbers(counts, blocks, background_blocks, least=2, what="the bootstrap")

    def draw() -> Groups[Array]:
        return resampled_weights(units, random)

    refit = _incomplete_refit(tables, fit, draw) if tables.incomplete else _complete_refit(tables, fit, method, draw)
    found = []
    with Progress("bootstrap", n, progress) as bar:
        for k in range(n):
            found.append(refit())
            bar.update(k + 1, "refits")
    succeeded = [result for result in found if result is not None]
    if len(succeeded) < max(min(MIN_SUCCEEDED, n), MIN_SHARE * n):
        raise ValueError(
            f"Only {len(succeeded)} of {n} refits were feasible, too few for intervals: gamma={fit.gamma:.4g} is too "
            "close to its limit, or there are too few rows. Use gamma='auto', a smaller gamma or fewer components."
        )
    W, sigma2 = (np.array(part) for part in zip(*succeeded, strict=True))
    estimate = fit.components if fit.model is None else fit.model.W
    return ContrastPosterior(
        W=_aligned(W, estimate, fit.n_shown)[None],
        sigma2=sigma2[None] if method.has_likelihood else None,
        W_estimate=estimate,
        n_shown=fit.n_shown,
        units=fit.units.foreground,
        kind="bootstrap",
        method=method.name,
        failures=n - len(succeeded),
    )


def _aligned(W: Array, estimate: Array, k: int) -> Array:
    """Loadings of the axes that are shown, and those of the others, each turned towards the estimate's."""
    return np.concatenate([align(W[..., :k], estimate[:, :k]), align(W[..., k:], estimate[:, k:])], axis=-1)


def _complete_refit(tables: Tables, fit: Fit, method: Method, draw: Draw) -> Callable[[], Refit]:
    """A call that draws rows and refits: a resample is a vector of weights, and its scatter a weighted product."""
    rows, divisors, basis = tables.rows, fit.units.map(lambda known: known.scale), None
    latents = Latents(fit.n_shown, fit.n_latent, fit.axis_ratios is not None)
    choice = choose_solver(tables)
    if choice.name == "dual":  # all happens in the span of the rows
        rows, basis = _in_span(tables, fit.units)
        divisors = rows.map(lambda table: np.ones(table.shape[1]))
    largest = max(table.shape[0] * table.shape[1] ** 2 for table in rows)

    def refit() -> Refit:
        with calm_threads(largest):
            groups = rows.map(lambda table, w, divisor: _resampled(table, w).scaled(divisor), draw(), divisors)
            if basis is not None:  # the model's D counts the directions outside the span, too
                groups = groups.map(lambda group: _with_features(group, tables.n_features))
            gamma = fit.gamma
            if fit.limit and not fit.limit_is_bound:
                gamma *= method.limit(groups, latents.rank)[0] / fit.limit
            again = solve_complete(Complete(groups, fit.units, choice), method, latents, gamma)
            if again is None:
                return None
            W = again.components if again.model is None else again.model.W
            return W if basis is None else basis.vectors(W), 0.0 if again.model is None else again.model.sigma2

    return refit


def _in_span(tables: Tables, units: Groups[Units]) -> tuple[Groups[Rows], Basis]:
    """The centred, scaled rows in an orthonormal basis of their span."""
    moments = tables.rows.map(row_moments, tables.means).map(lambda group, known: group.scaled(known.scale), units)
    _, basis = reduce_rows(moments, 0)
    parts = [basis.R[a:b] for a, b in pairwise(basis.edges)]
    return Groups.from_items(parts, moments.names), basis


def _with_features(group: Moments, n_features: int) -> Moments:
    return Moments(group.weight, np.zeros(n_features), group.scatter)


def _resampled(rows: Rows, weights: Array) -> Moments:
    """Moments of rows that count so often."""
    total, read = float(weights.sum()), storage(rows)
    mean = read.column_sums(rows, weights) / total
    return Moments(total, mean, DenseScatter(read.scatter(rows, mean, weights)))


def _incomplete_refit(tables: Tables, fit: Fit, draw: Draw) -> Callable[[], Refit]:
    """A call that draws incomplete rows and fits them by gradients, from the estimate.

    A resample in which some feature is never observed counts as failed.
    """
    assert fit.model is not None
    start = fit.model.W, fit.model.sigma2
    latents, settings = Latents(fit.n_shown, fit.n_latent, fit.axis_ratios is not None), Settings()
    rows = tables.rows.map(lambda table, known: table / known.scale, fit.units)

    def refit() -> Refit:
        groups = rows.map(lambda table, w: observe(np.repeat(table, w.astype(int), axis=0))[0], draw())
        if not all(np.all(group.feature_counts > 0) for group in groups):
            return None
        data = Incomplete(groups, fit.units)
        # A bound above gamma is taken for granted, as the fit itself is below it.
        again = attempt_fit(data, latents, fit.gamma, settings, limit=np.inf, start=start)
        if again.fit is None or again.unconverged is not None or again.fit.model is None:
            return None
        return again.fit.model.W, again.fit.model.sigma2

    return refit
