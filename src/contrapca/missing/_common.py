"""One factor model of all groups but for their means, which knows nothing else of the groups (F45)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array
from ..contrast import Conditional, centred_condition, dimensions_above_noise, filled
from ..data import Groups
from ..moments import DenseScatter, Moments
from ._rows import observe
from ._starts import estimated_moments, masked_start, missing_edge

GroupLabels = npt.NDArray[np.intp]
LEAST_NOISE = 0.1  # of a feature's variance: with few values, factors would explain all of it
MOST_FACTORS = 10
STEPS, LATER_STEPS = 20, 5  # of EM: from scratch, and from the model of almost the same rows


@dataclass(frozen=True)
class Factors:
    """x = means_g + W z + noise, z ~ N(0, I), noise ~ N(0, diag(noise)): the groups differ in their means only.

    Attributes
    ----------
    means : ndarray of shape (groups, D)
    W : ndarray of shape (D, r)
    noise : ndarray of shape (D,)
    """

    means: Array
    W: Array
    noise: Array

    def condition(self, X: Array, group_of: GroupLabels) -> Conditional:
        """All features given the observed ones (F11), in units in which the noise of every feature is 1."""
        return centred_condition(X - self.means[group_of], self.W, self.noise)

    def filled(self, X: Array, group_of: GroupLabels) -> Array:
        """The rows X (n, D), their missing values replaced by the means given the observed ones."""
        return np.asarray(filled(X, self.means[group_of], self.W, self.noise))

    def expected(self, X: Array, group: int) -> tuple[Array, Array]:
        """Expected mean (D,) and scatter (D, D) of the rows X (n, D) of one group, given what is observed of them.

        A missing value adds to its product with another of its row the covariance of the two given the observed ones.
        """
        group_of = np.full(len(X), group)
        given, absent = self.condition(X, group_of), np.isnan(X)
        filled = np.where(absent, self.means[group] + given.latent_mean @ self.W.T, X)
        mean = filled.mean(axis=0)
        apart = filled - mean
        scatter = apart.T @ apart
        some = absent.any(axis=1)
        roots = np.linalg.cholesky(given.latent_covariance()[some])  # (p, r, r)
        for k in range(self.W.shape[1]):
            spread = absent[some] * (roots[:, :, k] @ self.W.T)
            scatter += spread.T @ spread
        scatter.flat[:: len(mean) + 1] += self.noise * absent.sum(axis=0)
        return mean, scatter

    def stepped(self, X: Array, group_of: GroupLabels, least_noise: Array) -> Factors:
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


def fit_factors(X: Array, group_of: GroupLabels, start: Factors, steps: int) -> Factors:
    """The factor model of all rows X (n, D), nan where missing, after some steps from another.

    Parameters
    ----------
    X : ndarray of shape (n, D)
    group_of : ndarray of int of shape (n,)
        The group of each row: a mean of its own, all else in common.
    start : Factors
    steps : int
    """
    with np.errstate(invalid="ignore"):
        variance = np.nanmean((X - start.means[group_of]) ** 2, axis=0)
    least = LEAST_NOISE * np.where(variance > 0, variance, 1.0)
    model = start
    for _ in range(steps):
        model = model.stepped(X, group_of, least)
    return model


@dataclass(frozen=True)
class Common:
    """A factor model of rows about their groups' means, in units of the pooled standard deviations.

    Attributes
    ----------
    factors : Factors
    centre : Groups of ndarray of shape (D,)
        What is subtracted from the rows of each group; the model has means of its own about it.
    divisor : ndarray of shape (D,)
    """

    factors: Factors
    centre: Groups[Array]
    divisor: Array

    def stacked(self, rows: Groups[Array]) -> tuple[Array, GroupLabels]:
        """All rows in the model's units, and the group of each."""
        scaled = rows.map(lambda X, centre: (X - centre) / self.divisor, self.centre)
        return np.vstack(list(scaled)), np.repeat(np.arange(len(rows)), [len(X) for X in rows])

    def filled(self, rows: Groups[Array]) -> Groups[Array]:
        """The rows with E[x_m | x_o] for missing values; what was observed stays as it is, to the last digit."""
        filled = self.factors.filled(*self.stacked(rows))
        parts = rows.like(np.split(filled, np.cumsum([len(X) for X in rows])[:-1]))
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
    """The common model of some rows, nan where missing.

    Parameters
    ----------
    rows : Groups of ndarray of shape (n_g, D)
    before : Common, optional
        That of almost the same rows, from which few steps are enough.
    whole : Groups of ndarray of shape (n_g, D), optional
        The rows as they were before some values were taken away: every feature has a value in every group.
    """
    common = _start(rows, rows if whole is None else whole) if before is None else before
    steps = STEPS if before is None else LATER_STEPS
    return Common(fit_factors(*common.stacked(rows), common.factors, steps), common.centre, common.divisor)


def _start(rows: Groups[Array], whole: Groups[Array]) -> Common:
    """Where EM begins: the closed form (F2) on estimated moments, with one dimension more than F24 counts."""
    centre = whole.map(lambda X: np.nanmean(X, axis=0))
    divisor = np.sqrt(np.nanmean(np.vstack(list(whole.map(lambda X, mean: (X - mean) ** 2, centre))), axis=0))
    divisor[~(divisor > 0)] = 1.0
    D = divisor.size
    group, _ = observe(np.vstack(list(rows.map(lambda X, mean: (X - mean) / divisor, centre))))
    rank = dimensions_above_noise(estimated_moments(group), missing_edge(group)) + 1
    W, sigma2 = masked_start(Groups.of(group), 0.0, min(rank, MOST_FACTORS, D - 1))
    return Common(Factors(np.zeros((len(rows), D)), W, np.full(D, sigma2)), centre, divisor)
