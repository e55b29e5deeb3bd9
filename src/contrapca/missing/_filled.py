"""Rows and moments with missing values, completed by one factor model of all groups (F45).

The model has a mean for each group, and knows nothing else of the groups: under the null hypothesis, filled rows are as
exchangeable as complete ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._util.arrays import Array, float_type
from .._util.text import Said, said_group
from ..contrast import Conditional, centred_condition, dimensions_above_noise, filled
from ..data import Groups, Tables, refuse_devices
from ..data.rows import DaskRows
from ..exceptions import GroupError, warn
from ..moments import Complete, DenseScatter, Filling, Flags, Fold, Indices, Moments, SolverChoice, make_folds
from ._collect import collect
from ._estimates import estimated_moments, masked_start, missing_edge
from ._rows import observe

MOST_FEATURES = 3000  # expected moments are dense: 72 MB for each group of each fold
FEW_FEATURES = 3  # that are named in a message
LEAST_NOISE = 0.1  # of a feature's variance: with few values, factors would explain all of it
MOST_FACTORS = 10
STEPS, LATER_STEPS = 20, 5  # of EM: from scratch, and from the model of almost the same rows


# ---------------------------------------------------------------------- complete rows, draws, folds and moments


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

    Values are kept with the probability that makes up for the difference, whatever they are.
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
    """Tables as `usable` leaves them, thinned and filled anew for each draw; complete tables themselves, as often."""
    if not tables.incomplete:
        yield from [tables] * n_draws
        return
    model: Common | None = None
    for _ in range(n_draws):
        rows = thinned(tables.rows, rng)
        model = fit_common(rows, model, whole=tables.rows)
        rows = model.filled(rows)
        yield replace(tables, rows=rows, means=rows.map(lambda X: X.mean(axis=0)))


def any_folds(tables: Tables, fold_of: Groups[Indices]) -> list[Fold]:
    """`make_folds`; where values are missing, of moments expected by the common model of the rows left (F45).

    Without a contrast E[z^2 | x_o] of unseen rows has then the expectation of z^2, whatever is missing; a model of each
    group would find contrast in noise. A contrast is understated, the more so the more is missing.
    """
    if not tables.incomplete:
        return make_folds(tables, fold_of)
    present = tables.rows.map(lambda X: ~np.isnan(X).all(axis=1))
    names, folds = tables.names if tables.text_names else None, []
    for k in range(1 + max(int(own.max()) for own in fold_of)):
        left = tables.rows.map(lambda X, own, some: X[(own != k) & some], fold_of, present)  # noqa: B023
        held = tables.rows.map(lambda X, own, some: X[(own == k) & some], fold_of, present)  # noqa: B023
        model = fit_common(left, whole=tables.rows)
        training = model.moments(left, names)
        tables_left = Tables.of_moments(training, tables.names, tables.text_names)
        folds.append(Fold(tables_left, training, model.moments(held, names)))
    return folds


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
            rows_of = Said(f"{group} rows", f"rows of the {said_group(group).command}")
            warn((f"{np.sum(~own)} of the {own.size} ", rows_of, " have no observed value; they are ignored."))
    rows, weights = tables.rows.map(lambda X, own: X[own], present), tables.weights
    weights = weights.map(lambda w, own: None if w is None else w[own], present)

    def still_kept(before: Flags | None, now: Flags) -> Any:
        if before is None:
            return now
        after = before.copy()  # of the rows as given, from which some had been left out before
        after[before] = now
        return after

    return replace(tables, rows=rows, weights=weights, kept=tables.kept.map(still_kept, present))


# ---------------------------------------------------------------------- the common model


@dataclass(frozen=True)
class Factors:
    """x = means_g + W z + noise, z ~ N(0, I), noise ~ N(0, diag(noise)): the groups differ in their means only."""

    means: Array  # (groups, D)
    W: Array  # (D, r)
    noise: Array  # (D,)

    def condition(self, X: Array, group_of: Indices) -> Conditional:
        """All features given the observed ones (F11), in units in which the noise of every feature is 1."""
        return centred_condition(X - self.means[group_of], self.W, self.noise)

    def expected(self, X: Array, group: int) -> tuple[Array, Array]:
        """Expected mean (D,) and scatter (D, D) of the rows X (n, D) of one group, given their observed values.

        A missing value adds to its product with another of its row the covariance of the two given the observed ones.
        """
        group_of = np.full(len(X), group)
        given, absent = self.condition(X, group_of), np.isnan(X)
        whole = np.where(absent, self.means[group] + given.latent_mean @ self.W.T, X)
        mean = whole.mean(axis=0)
        apart = whole - mean
        scatter = apart.T @ apart
        some = absent.any(axis=1)
        roots = np.linalg.cholesky(given.latent_covariance()[some])  # (p, r, r)
        for k in range(self.W.shape[1]):
            spread = absent[some] * (roots[:, :, k] @ self.W.T)
            scatter += spread.T @ spread
        scatter.flat[:: len(mean) + 1] += self.noise * absent.sum(axis=0)
        return mean, scatter

    def stepped(self, X: Array, group_of: Indices, least_noise: Array) -> Factors:
        """One step of EM with expanded parameters (Liu, Rubin & Wu 1998), whose likelihood is at least as large.

        Every feature is regressed on the latents and the groups, over the rows that have it. One row more, of latent
        variance 1 and value 0, holds the loadings of features with hardly any values. What the latents' own means and
        covariance are by then goes into the means and loadings, without which the means would take hundreds of steps.
        """
        given, (n, D), r = self.condition(X, group_of), X.shape, self.W.shape[1]
        Z, covariance = given.latent_mean, given.latent_covariance()
        there = ~np.isnan(X)
        values, masks = np.where(there, X, 0.0), there.astype(np.float64)
        member = (group_of[:, None] == np.arange(len(self.means))).astype(np.float64)
        design = np.hstack([Z, member])
        products = design[:, :, None] * design[:, None, :]
        products[:, :r, :r] += covariance
        normal = (masks.T @ products.reshape(n, -1)).reshape(D, *products.shape[1:])
        # A group that lacks a feature has no mean of it: that of the centre, 0.
        normal += np.diag(np.append(np.ones(r), np.full(len(self.means), 1e-9)))
        right = values.T @ design
        found = np.linalg.solve(normal, right[:, :, None])[:, :, 0]
        squares = np.einsum("ij,ij->j", values, values) - np.einsum("jk,jk->j", found, right)
        noise = np.maximum(squares / np.maximum(masks.sum(axis=0), 1.0), least_noise)
        W, means = found[:, :r], found[:, r:].T
        latent_means = (member.T @ Z) / np.maximum(member.sum(axis=0), 1.0)[:, None]
        apart = Z - latent_means[group_of]
        spread = (apart.T @ apart + covariance.sum(axis=0)) / n
        return Factors(means + latent_means @ W.T, W @ np.linalg.cholesky(spread), noise)


def fit_factors(X: Array, group_of: Indices, start: Factors, steps: int) -> Factors:
    """The factor model of all rows X (n, D), nan where missing, after some steps from another; each row's group gives
    it a mean of its own, and all else is in common."""
    with np.errstate(invalid="ignore"):
        variance = np.nanmean((X - start.means[group_of]) ** 2, axis=0)
    least = LEAST_NOISE * np.where(variance > 0, variance, 1.0)
    for _ in range(steps):
        start = start.stepped(X, group_of, least)
    return start


@dataclass(frozen=True)
class Common:
    """A factor model of rows about their groups' means, in units of the pooled standard deviations."""

    factors: Factors
    centre: Groups[Array]  # (D,): subtracted from the rows of each group; the model has means of its own about it
    divisor: Array  # (D,)

    def stacked(self, rows: Groups[Array]) -> tuple[Array, Indices]:
        """All rows in the model's units, and the group of each."""
        scaled = rows.map(lambda X, centre: (X - centre) / self.divisor, self.centre)
        return np.vstack(list(scaled)), np.repeat(np.arange(len(rows)), [len(X) for X in rows])

    def filled(self, rows: Groups[Array]) -> Groups[Array]:
        """The rows with E[x_m | x_o] for missing values; what was observed stays as it is, to the last digit."""
        Z, group_of = self.stacked(rows)
        whole = filled(Z, self.factors.means[group_of], self.factors.W, self.factors.noise)
        parts = rows.like(np.split(whole, np.cumsum([len(X) for X in rows])[:-1]))
        return parts.map(lambda Z, X, centre: np.where(np.isnan(X), Z * self.divisor + centre, X), rows, self.centre)

    def moments(self, rows: Groups[Array], names: tuple[str, ...] | None = None) -> Groups[Moments]:
        """Expected moments of the complete rows: sums of filled products and of conditional covariances.

        They are positive semidefinite, as those of pairwise complete values are not.
        """
        Z, group_of = self.stacked(rows)

        def of_group(g: int, centre: Array) -> Moments:
            mean, scatter = self.factors.expected(Z[group_of == g], g)
            scatter = scatter * self.divisor * self.divisor[:, None]
            return Moments(float(np.sum(group_of == g)), mean * self.divisor + centre, DenseScatter(scatter), names)

        return rows.like([of_group(g, centre) for g, centre in enumerate(self.centre)])


def fit_common(rows: Groups[Array], before: Common | None = None, *, whole: Groups[Array] | None = None) -> Common:
    """The common model of some rows (n_g, D), nan where missing.

    `before` is that of almost the same rows, from which few steps are enough; `whole` are the rows before some values
    were taken away: every feature has a value in every group.
    """
    if before is not None:
        return replace(before, factors=fit_factors(*before.stacked(rows), before.factors, LATER_STEPS))
    whole = rows if whole is None else whole
    centre = whole.map(lambda X: np.nanmean(X, axis=0))
    divisor = np.sqrt(np.nanmean(np.vstack(list(whole.map(lambda X, mean: (X - mean) ** 2, centre))), axis=0))
    divisor[~(divisor > 0)] = 1.0
    # EM begins at the closed form (F2) on estimated moments, with one dimension more than F24 counts.
    D, (group, _) = divisor.size, observe(np.vstack(list(rows.map(lambda X, mean: (X - mean) / divisor, centre))))
    rank = dimensions_above_noise(estimated_moments(group), missing_edge(group)) + 1
    W, sigma2 = masked_start(Groups.of(group), 0.0, min(rank, MOST_FACTORS, D - 1))
    common = Common(Factors(np.zeros((len(rows), D)), W, np.full(D, sigma2)), centre, divisor)
    return replace(common, factors=fit_factors(*common.stacked(rows), common.factors, STEPS))
