"""Tables with missing values for the tests: thinned to equal rates, then filled from one model of both groups (F45)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from .._util.arrays import Array
from .._util.text import listed
from ..exceptions import GroupError, warn
from ..fitting import dimensions_above_noise
from ..groups import Groups, Tables
from ..moments import observe
from ..rows import Blocked
from ..solvers import Factors, estimated_moments, fit_factors, masked_start, missing_edge

DRAWS = 7  # of thinned masks: more power where rates differ, hardly any from more than 7
MOST_FACTORS = 10
STEPS, LATER_STEPS = 20, 5  # of EM: the model of one draw is where the next begins
FEW_FEATURES = 3  # that are named in a message


@dataclass(frozen=True)
class Missing:
    """How much is missing in the foreground and the background, as shares of all values.

    Attributes
    ----------
    foreground, background : float
    differ : bool
        Whether some features are missing more often in one of the groups than chance makes likely.
    """

    foreground: float
    background: float
    differ: bool

    def __str__(self) -> str:
        words = f"{self.foreground:.1%} of the cases' and {self.background:.1%} of the controls' values are missing."
        if not self.differ:
            return words
        return (
            f"{words} The groups differ in what is missing, so the result holds only if whether a value is missing "
            "does not depend on the value itself, as it does below a limit of detection."
        )


def missing_of(rows: Groups[Array]) -> Missing:
    """How much is missing in two groups, and whether they differ in it.

    The features' rates differ if the sum of their squared standardised differences is more than three standard
    deviations above its mean of no difference, or the rates of all values differ by .02.
    """
    n, m = rows.map(len)
    x, y = rows.map(lambda X: np.isnan(X).mean(axis=0))
    pooled = (n * x + m * y) / (n + m)
    some = (pooled > 0) & (pooled < 1)
    squares = ((x - y)[some] ** 2 / (pooled * (1 - pooled))[some]) * (n * m / (n + m))
    beyond = float(squares.sum()) > squares.size + 3 * np.sqrt(2 * squares.size)
    return Missing(float(x.mean()), float(y.mean()), bool(beyond or abs(x.mean() - y.mean()) >= 0.02))


def usable(tables: Tables, name: str) -> Tables:
    """Two incomplete groups without the rows that have no value and the features that a group lacks, with a warning."""
    if any(isinstance(rows, Blocked) for rows in tables.rows):
        raise GroupError(f"{name} needs rows with missing values in memory: pass arrays, or tables that pandas has read.")
    lacking = np.any([np.isnan(X).all(axis=0) for X in tables.rows], axis=0)
    if lacking.any():
        which = np.flatnonzero(lacking)
        warn(
            f"{which.size} of {lacking.size} features have no value in one of the groups and are left out: "
            f"{listed([tables.feature(j) for j in which[:FEW_FEATURES]])}{', ...' * (which.size > FEW_FEATURES)}."
        )
        names = None if tables.names is None else tuple(n for n, out in zip(tables.names, lacking, strict=True) if not out)
        means = tables.means.map(lambda mean: mean[~lacking])
        tables = replace(tables, rows=tables.rows.map(lambda X: X[:, ~lacking]), means=means, names=names)
    present = tables.rows.map(lambda X: ~np.isnan(X).all(axis=1))
    for group, own in zip(present.names, present, strict=True):
        if not own.all():
            warn(f"{np.sum(~own)} of the {own.size} {group} rows have no observed value; they are ignored.")
    if all(own.all() for own in present):
        return tables
    weights = tables.weights.map(lambda w, own: None if w is None else w[own], present)
    return replace(
        tables,
        rows=tables.rows.map(lambda X, own: X[own], present),
        weights=weights,
        kept=tables.kept.map(_kept, present),
    )


def _kept(before: Array | None, now: Array) -> Array:
    """Which rows as given are left, where some had been left out before."""
    if before is None:
        return now
    after = before.copy()
    after[before] = now
    return after


def complete_tables_of(tables: Tables, n_draws: int, rng: np.random.Generator) -> Iterator[Tables]:
    """`filled_draws` as tables; of complete ones the tables themselves, as often."""
    if not tables.incomplete:
        yield from [tables] * n_draws
        return
    for rows in filled_draws(tables.rows, n_draws, rng):
        yield replace(tables, rows=rows, means=rows.map(lambda X: X.mean(axis=0)))


def observed_fractions(rows: Groups[Array]) -> Groups[Array]:
    """The fraction of each feature's values that a group has, each of shape (D,)."""
    return rows.map(lambda X: 1 - np.isnan(X).mean(axis=0))


def thinned(rows: Groups[Array], rng: np.random.Generator) -> Groups[Array]:
    """The groups with the same expected rate of missing values in every feature: the larger of their rates.

    A value is kept with the probability that makes up for the difference, whatever it is, so values of both groups
    are missing alike, if values that are missing are so at random.
    """
    fractions = observed_fractions(rows)
    least = np.min(list(fractions), axis=0)
    keep = fractions.map(lambda own: np.where(own > 0, least / np.where(own > 0, own, 1.0), 0.0))

    def thin(X: Array, chance: Array) -> Array:
        some = np.flatnonzero(chance < 1)
        X = X.copy()
        X[:, some] = np.where(rng.random((len(X), some.size)) < chance[some], X[:, some], np.nan)
        return X

    return rows.map(thin, keep)


def filled_draws(rows: Groups[Array], n_draws: int, rng: np.random.Generator) -> Iterator[Groups[Array]]:
    """Complete groups, thinned and filled anew for each draw (F45).

    Neither the thinning nor the model knows the groups but for their means, so under the null hypothesis filled rows
    are as exchangeable as complete ones.

    Parameters
    ----------
    rows : Groups of ndarray of shape (n_g, D)
        nan where missing; every row has a value, and every group has every feature.
    n_draws : int
    rng : Generator

    Yields
    ------
    Groups of ndarray of shape (n_g, D)
    """
    centred, means, divisor = standardised(rows)
    sizes = [len(X) for X in rows]
    group_of, edges = np.repeat(np.arange(len(sizes)), sizes), np.cumsum(sizes)[:-1]
    model: Factors | None = None
    for _ in range(n_draws):
        X = np.vstack(list(thinned(centred, rng)))
        steps = LATER_STEPS if model is not None else STEPS
        model = fit_factors(X, group_of, model or start_of(X, len(sizes)), steps)
        kept = rows.like(np.split(~np.isnan(X), edges))
        found = rows.like(np.split(model.filled(X, group_of), edges))
        # Values that are kept are those that were given, to the last digit.
        yield found.map(lambda Z, mean, kept, own: np.where(kept, own, Z * divisor + mean), means, kept, rows)


def standardised(rows: Groups[Array]) -> tuple[Groups[Array], Groups[Array], Array]:
    """Rows about their groups' observed means, over the pooled standard deviation; these means, and this divisor."""
    means = rows.map(lambda X: np.nanmean(X, axis=0))
    apart = rows.map(lambda X, mean: X - mean, means)
    squares = np.sum([np.nansum(X**2, axis=0) for X in apart], axis=0)
    counts = np.sum([np.isfinite(X).sum(axis=0) for X in apart], axis=0)
    divisor = np.sqrt(squares / counts)
    divisor[~(divisor > 0)] = 1.0
    return apart.map(lambda X: X / divisor), means, divisor


def start_of(X: Array, n_groups: int) -> Factors:
    """Where EM begins: the closed form (F2) on estimated moments, with one dimension more than F24 counts."""
    D = X.shape[1]
    group, _ = observe(X)
    rank = dimensions_above_noise(estimated_moments(group), missing_edge(group)) + 1
    W, sigma2 = masked_start(Groups.of(group), 0.0, min(rank, MOST_FACTORS, D - 1))
    return Factors(np.zeros((n_groups, D)), W, np.full(D, sigma2))

