"""Held-out contrast (F17): how much more the foreground varies along fitted axes, on rows they were not fitted to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._util.arrays import Array
from .._util.threads import calm_threads
from ..data import Groups, Tables
from ..moments import Complete, Fold, mixture
from ._axes import unwarned

Training = Tables | Complete  # what a fold leaves


@dataclass(frozen=True)
class HeldOut:
    """Log ratios of variances on unseen rows.

    Attributes
    ----------
    log_ratios : ndarray of shape (..., k)
        Of the foreground's to the background's variance along each axis; 0 is no contrast. Infinite where a group does
        not vary at all along an axis, which then has no standard error (nan).
    errors : ndarray of shape (..., k)
        Standard errors.
    means, mean_errors : ndarray of shape (...)
        Of the mean over the axes, by which methods, gammas, ranks and scalings are compared.
    left_out : ndarray of shape (n_folds, ...)
        That mean with one fold left out at a time: standard errors of differences come from these.
    """

    log_ratios: Array
    errors: Array
    means: Array
    mean_errors: Array
    left_out: Array

    @classmethod
    def of(cls, squares: Sequence[Array], weights: Sequence[Array], mix: Array) -> HeldOut:
        """From what each fold adds along its axes.

        The logarithm of the variance of few rows is too low, by about one over their number. So sums over the folds are
        made before the logarithm is taken.

        Parameters
        ----------
        squares : sequence of ndarray of shape (groups, ..., k)
            Of each fold, for every group, see `moments.Fold`.
        weights : sequence of ndarray of shape (groups,)
            Rows of each fold in every group.
        mix : ndarray of shape (backgrounds,)
            The part of each background in the contrast.
        """
        every, rows = np.array(squares), np.array(weights)
        total, all_rows = every.sum(axis=0), rows.sum(axis=0)
        log_ratios = _log_ratio(total, all_rows, mix)
        left_out = np.array([_log_ratio(total - one, all_rows - n, mix) for one, n in zip(every, rows, strict=True)])
        means = left_out.mean(axis=-1)
        return cls(log_ratios, fold_error(left_out), log_ratios.mean(axis=-1), fold_error(means), means)


def _log_ratio(squares: Array, weights: Array, mix: Array) -> Array:
    """Log ratio (..., k) of the foreground's mean squares to the backgrounds', from sums (groups, ..., k)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        foreground, *backgrounds = [np.maximum(s, 0.0) / weight for s, weight in zip(squares, weights, strict=True)]
        return np.asarray(np.log(foreground) - np.log(np.tensordot(mix, backgrounds, 1)))


def fold_error(left_out: Array) -> Array:
    """Standard error (...) of a quantity from its values (n_folds, ...) with one fold left out at a time.

    The jackknife takes the folds for independent, but their axes come from training rows that overlap. The second term
    is the correction of Nadeau and Bengio (2003), test size over training size: without it the error is too small by a
    fifth where the axes are stable, and by a third to a half where there is nothing to find.
    """
    folds = len(left_out)
    with np.errstate(invalid="ignore"):  # infinite values have no spread
        spread = ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0)
    return np.asarray(np.sqrt((folds - 1) * (1 / folds + 1 / (folds - 1)) * spread))


def held_out(folds: Sequence[Fold], directions: Callable[[Training], Groups[Array]]) -> HeldOut:
    """Held-out contrast of the axes that `directions` finds.

    Parameters
    ----------
    folds : sequence of Fold
    directions : callable
        From training tables to each group's axes in original units, shape (D, k) or (G, D, k) for G gammas.
    """
    squares, D = [], folds[0].left.foreground.mean.size
    for fold in folds:
        with unwarned(), many_problems(D):
            axes = _of_all_groups(directions(fold.training), fold.left)
        V = axes.foreground
        found = fold.squares(axes.map(lambda own: own if own.ndim == 2 else np.hstack(list(own))))
        squares.append(found if V.ndim == 2 else found.reshape(len(found), V.shape[0], V.shape[2]))
    return HeldOut.of(squares, [fold.weights for fold in folds], mixture(folds[0].left))


def many_problems(order: int) -> AbstractContextManager[None]:
    """Without threads of the BLAS up to order 1000: many problems one after the other wake them too often.

    On a busy machine of 2 cores a comparison of methods on 500 features took 264 s with two threads and 23 s with one.
    """
    return calm_threads(10.0 * order**2)


def in_original_units(components: Array, data: Complete) -> Groups[Array]:
    """Directions (..., D, k) that rows of each group are projected on, from those in the units of the model.

    With scale="group" each group is measured in its own units, as the model does.
    """
    return data.scaling.map(lambda own: components / own.scale[:, None])


def _of_all_groups(axes: Groups[Array], groups: Groups[Any]) -> Groups[Array]:
    """A model of the foreground alone has only its units, for the backgrounds too."""
    return groups.like(axes if len(axes) == len(groups) else [axes.foreground] * len(groups))


def one_error_rule(gammas: Array, found: HeldOut) -> int:
    """The index of the smallest gamma whose contrast is within one standard error of the best."""
    means = np.where(np.isnan(found.means), -np.inf, found.means)
    best = int(np.argmax(means))
    error = found.mean_errors[best]
    near = means >= means[best] - (error if np.isfinite(error) else 0.0)
    return int(np.flatnonzero(near)[np.argmin(gammas[near])])
