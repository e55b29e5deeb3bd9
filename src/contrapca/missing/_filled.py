"""Rows and moments with missing values, completed by the common model of all groups (F45)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array, float_type
from ..data import Groups, Tables, refuse_devices
from ..data.rows import DaskRows
from ..exceptions import GroupError, warn
from ..moments import Complete, Filling, Fold, SolverChoice, make_folds
from ._collect import collect
from ._common import Common, fit_common

MOST_FEATURES = 3000  # expected moments are dense: 72 MB for each group of each fold
FEW_FEATURES = 3  # that are named in a message
Flags = npt.NDArray[np.bool_]
Labels = npt.NDArray[np.intp]


def usable(tables: Tables, name: str) -> Tables:
    """Groups without the rows that have no value and the features that a group lacks, with a warning.

    Complete tables stay what they are. `name` is what needs them, for messages.
    """
    if not tables.incomplete:
        return tables
    _check_fillable(tables, name)
    lacking = _lacking(tables)
    if np.sum(~lacking) < 2:
        raise GroupError(f"{name} needs at least 2 features that have values in every group.")
    if lacking.any():
        warn(
            f"{lacking.sum()} of {lacking.size} features have no value in one of the groups and are left out: "
            f"{_named(tables, lacking)}."
        )
        names = None if tables.names is None else tuple(np.array(tables.names, dtype=object)[~lacking].tolist())
        means = tables.means.map(lambda mean: mean[~lacking])
        tables = replace(tables, rows=tables.rows.map(lambda X: X[:, ~lacking]), means=means, names=names)
    return _without_empty_rows(tables)


def collect_expected(tables: Tables, d: int, scale: str | None, solver: str, name: str) -> Complete:
    """The data of a fit to incomplete tables: expected moments, and the model of all groups that they are due to.

    `name` is what needs them, for messages; other arguments as for `collect`.
    """
    if solver not in ("auto", "eigh"):
        raise ValueError(f"solver={solver!r} is for complete rows, but values are missing. Use solver='auto'.")
    _check_fillable(tables, name)
    if any(own is not None for own in tables.weights):
        raise ValueError(f"{name} takes no weights where values are missing: repeat rows instead.")
    if (lacking := _lacking(tables)).any():
        raise GroupError(
            f"{lacking.sum()} of {lacking.size} features have no observed value in one of the groups "
            f"({_named(tables, lacking)}). Drop them from both groups."
        )
    with np.errstate(over="ignore"):
        for group, rows in zip(tables.rows.names, tables.rows, strict=True):
            if not np.isfinite(np.nansum(np.square(rows, dtype=np.float64))):
                raise ValueError(f"Input contains values too large to be squared: rescale them. (In the {group}.)")
    tables = _without_empty_rows(tables)
    model, dtype = fit_common(tables.rows), float_type(tables.rows.foreground)
    moments = model.moments(tables.rows)
    data = collect(Tables.of_moments(moments, tables.names, tables.text_names), d, scale)
    assert isinstance(data, Complete)
    filling = Filling(model.factors.W * model.divisor[:, None], model.factors.noise * model.divisor**2)
    scaling = data.scaling.map(lambda own: replace(own, dtype=dtype))
    choice = SolverChoice("eigh", "values are missing: moments are expected ones")
    return replace(data, scaling=scaling, choice=choice, filling=filling)


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
        rows = model.filled(rows)
        yield replace(tables, rows=rows, means=rows.map(lambda X: X.mean(axis=0)))


def any_folds(tables: Tables, fold_of: Groups[Labels], *, unscaled: int | None = None) -> list[Fold]:
    """`make_folds`, of expected moments where values are missing."""
    if not tables.incomplete:
        return make_folds(tables, fold_of, unscaled=unscaled)
    count = 1 + max(int(own.max()) for own in fold_of)
    return [expected_fold(tables, fold_of.map(lambda own, k=k: own == k)) for k in range(count)]  # type: ignore[misc]


def expected_fold(tables: Tables, held: Groups[Flags]) -> Fold:
    """A fold of incomplete tables: expected moments, all under the common model of the rows that are left (F45).

    Without a contrast E[z^2 | x_o] of unseen rows has then the expectation of z^2, whatever is missing; a model of each
    group would find contrast in noise. A contrast is understated, the more so the more is missing.
    """
    present = tables.rows.map(lambda X: ~np.isnan(X).all(axis=1))
    left, out = (
        tables.rows.map(lambda X, own, some: X[own & some], part, present) for part in (held.map(np.logical_not), held)
    )
    model = fit_common(left, whole=tables.rows)
    names = tables.names if tables.text_names else None
    training = model.moments(left, names)
    return Fold(Tables.of_moments(training, tables.names, tables.text_names), training, model.moments(out, names))


def _check_fillable(tables: Tables, name: str) -> None:
    refuse_devices(tables, name)
    if tables.n_features > MOST_FEATURES:
        raise GroupError(
            f"{name} takes at most {MOST_FEATURES} features where values are missing, not {tables.n_features}: choose "
            "those of largest variance, for example, or drop rows or features until the tables are complete."
        )
    if any(isinstance(rows, DaskRows) for rows in tables.rows):
        raise GroupError(f"{name} needs rows with missing values in memory: pass arrays or data frames.")


def _lacking(tables: Tables) -> Flags:
    """Which features have no value in one of the groups, shape (D,)."""
    return np.any([np.isnan(X).all(axis=0) for X in tables.rows], axis=0)  # type: ignore[no-any-return]


def _named(tables: Tables, chosen: Flags) -> str:
    which = np.flatnonzero(chosen)
    return ", ".join([*map(tables.feature, which[:FEW_FEATURES]), *["..."] * (which.size > FEW_FEATURES)])


def _without_empty_rows(tables: Tables) -> Tables:
    """Tables without the rows that have no value, with a warning."""
    present = tables.rows.map(lambda X: ~np.isnan(X).all(axis=1))
    if all(own.all() for own in present):
        return tables
    for group, own in zip(present.names, present, strict=True):
        if not own.all():
            warn(f"{np.sum(~own)} of the {own.size} {group} rows have no observed value; they are ignored.")
    rows, weights = tables.rows.map(lambda X, own: X[own], present), tables.weights
    weights = weights.map(lambda w, own: None if w is None else w[own], present)

    def still_kept(before: Flags | None, now: Flags) -> Any:
        if before is None:
            return now
        after = before.copy()  # of the rows as given, from which some had been left out before
        after[before] = now
        return after

    return replace(tables, rows=rows, weights=weights, kept=tables.kept.map(still_kept, present))
