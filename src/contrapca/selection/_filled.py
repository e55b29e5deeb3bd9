"""Tables with missing values for the tests: thinned to equal rates, then filled from one model of both groups (F45)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from .._util.arrays import Array
from ..exceptions import GroupError, warn
from ..fitting import Common, fit_common
from ..groups import Groups, Tables, refuse_devices
from ..moments import Fold
from ..rows import Blocked
from ._splits import Flags

DRAWS = 7  # of thinned masks: more power where rates differ, hardly any from more than 7
MOST_FEATURES = 3000  # of expected moments, which are dense: 72 MB for each group of each fold
LEAST_APART = 0.02  # mean difference of rates that is mentioned
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

    They differ if the features' rates do by .02 on average, and by one and a half times as much as by chance.
    """
    n, m = rows.map(len)
    x, y = rows.map(lambda X: np.isnan(X).mean(axis=0))
    rate = (n * x + m * y) / (n + m)
    by_chance = np.mean(np.sqrt(2 / np.pi * rate * (1 - rate) * (1 / n + 1 / m)))
    apart = float(np.abs(x - y).mean())
    return Missing(float(x.mean()), float(y.mean()), bool(apart >= max(LEAST_APART, 1.5 * by_chance)))


def usable(tables: Tables, name: str) -> Tables:
    """Groups without the rows that have no value and the features that a group lacks, with a warning."""
    if not tables.incomplete:
        return tables
    refuse_devices(tables, name)
    if tables.n_features > MOST_FEATURES:
        raise GroupError(
            f"{name} takes at most {MOST_FEATURES} features where values are missing, not {tables.n_features}: choose "
            "those of largest variance, for example, or drop rows or features until the tables are complete."
        )
    if any(isinstance(rows, Blocked) for rows in tables.rows):
        raise GroupError(
            f"{name} needs rows with missing values in memory: pass arrays, or tables that pandas has read."
        )
    lacking = np.any([np.isnan(X).all(axis=0) for X in tables.rows], axis=0)
    if np.sum(~lacking) < 2:
        raise GroupError(f"{name} needs at least 2 features that have values in every group.")
    if lacking.any():
        which = np.flatnonzero(lacking)
        warn(
            f"{which.size} of {lacking.size} features have no value in one of the groups and are left out: "
            f"{', '.join(map(tables.feature, which[:FEW_FEATURES]))}{', ...' * (which.size > FEW_FEATURES)}."
        )
        names = (
            None if tables.names is None else tuple(n for n, out in zip(tables.names, lacking, strict=True) if not out)
        )
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


def _kept(before: Flags | None, now: Flags) -> Flags:
    """Which rows as given are left, where some had been left out before."""
    if before is None:
        return now
    after = before.copy()
    after[before] = now
    return after


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


def filled_draws(tables: Tables, n_draws: int, rng: np.random.Generator) -> Iterator[Tables]:
    """Complete tables, thinned and filled anew for each draw; complete tables themselves, as often.

    Neither the thinning nor the model knows the groups but for their means, so under the null hypothesis filled rows
    are as exchangeable as complete ones.

    Parameters
    ----------
    tables : Tables
        As `usable` leaves them.
    n_draws : int
    rng : Generator

    Yields
    ------
    Tables
    """
    if not tables.incomplete:
        yield from [tables] * n_draws
        return
    model: Common | None = None
    for _ in range(n_draws):
        rows = thinned(tables.rows, rng)
        model = fit_common(rows, model, whole=tables.rows)
        yield completed(tables, model.filled(rows))


def filled(tables: Tables) -> Tables:
    """Incomplete tables, completed by one model of all groups."""
    return completed(tables, fit_common(tables.rows).filled(tables.rows))


def completed(tables: Tables, rows: Groups[Array]) -> Tables:
    """The tables with other, complete rows."""
    return replace(tables, rows=rows, means=rows.map(lambda X: X.mean(axis=0)))


def filled_fold(tables: Tables, held: Groups[Flags]) -> Fold:
    """A fold of incomplete tables: expected moments, all under the common model of the rows that are left (F45).

    Without a contrast E[z^2 | x_o] of unseen rows has then the expectation of z^2, whatever is missing; a model of each
    group would find contrast in noise. A contrast is understated, the more so the more is missing.
    """
    left, out = (tables.rows.map(lambda X, own: X[own], part) for part in (held.map(np.logical_not), held))
    model = fit_common(left, whole=tables.rows)
    names = tables.names if tables.text_names else None
    training = model.moments(left, names)
    return Fold(Tables.of_moments(training, tables.names, tables.text_names), training, model.moments(out, names))


def expected_tables(tables: Tables) -> Tables:
    """Incomplete tables as expected moments, under one model of all groups."""
    names = tables.names if tables.text_names else None
    moments = fit_common(tables.rows).moments(tables.rows, names)
    return Tables.of_moments(moments, tables.names, tables.text_names)
