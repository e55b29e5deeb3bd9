"""Tables with missing values for the tests: thinned to equal rates, then filled from one model of both groups (F45)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from .._util.arrays import Array
from ..fitting import Common, fit_common
from ..groups import Groups, Tables

DRAWS = 7  # of thinned masks: where both groups lack 30 %, the power is .44, and .34 with three
LEAST_APART = 0.02  # mean difference of rates that is mentioned


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


def thinned(rows: Groups[Array], rng: np.random.Generator) -> Groups[Array]:
    """The groups with the same expected rate of missing values in every feature: the larger of their rates.

    A value is kept with the probability that makes up for the difference, whatever it is, so values of both groups
    are missing alike, if values that are missing are so at random.
    """
    fractions = rows.map(lambda X: 1 - np.isnan(X).mean(axis=0))
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
