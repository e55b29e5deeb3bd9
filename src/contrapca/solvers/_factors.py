"""One factor model of several groups with missing values, each about its own mean (F45)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array
from ..gaussian import Conditional, centred_condition, filled

Labels = npt.NDArray[np.intp]

LEAST_NOISE = 0.1  # of a feature's variance: with few values, factors would explain all of it


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

    def condition(self, X: Array, group_of: Labels) -> Conditional:
        """All features given the observed ones (F11), in units in which the noise of every feature is 1."""
        return centred_condition(X - self.means[group_of], self.W, self.noise)

    def filled(self, X: Array, group_of: Labels) -> Array:
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

    def stepped(self, X: Array, group_of: Labels, least_noise: Array) -> Factors:
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


def fit_factors(X: Array, group_of: Labels, start: Factors, steps: int) -> Factors:
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
