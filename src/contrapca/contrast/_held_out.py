"""Ratios of variances on unseen rows: held-out contrast by folds (F17), and intervals of a fit's components (F43)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.special

from .._util.arrays import TINY, Array
from ..data import Groups, kinds_of_units
from ..moments import Fold, Indices, mixture
from ._halves import HalfLatents, Training, many_problems, of_all_groups, unwarned

# The variance of a log ratio, over that between units along given axes: axes of other halves are other axes, and judge
# the same rows. 1.0 to 1.7 was measured where there is nothing to find.
OTHER_AXES = 1.75

PERMUTED = 199  # exchanges of units between the groups
MANY_UNITS = 500  # in the smaller group: from there on sums are normal
MOST_UNITS = 2000  # of a group are exchanged; more are not more telling
SURE = 0.95  # of an interval


# ---------------------------------------------------------------------- folds


@dataclass(frozen=True)
class HeldOut:
    """Log ratios of variances on unseen rows at G gammas: means over the axes, by which gammas are compared (F17)."""

    means: Array  # (G,): 0 is no contrast; infinite where a group does not vary at all along an axis
    mean_errors: Array  # (G,): standard errors


def held_out(folds: Sequence[Fold], directions: Callable[[Training], Groups[Array]]) -> HeldOut:
    """Held-out contrast of the axes that `directions` finds at G gammas: from training tables to each group's axes in
    original units, shape (G, D, k).

    The logarithm of the variance of few rows is too low, by about one over their number. So sums over the folds are
    made before the logarithm is taken.
    """
    squares, weights = [], np.array([fold.weights for fold in folds])
    for fold in folds:
        with unwarned(), many_problems(fold.left.foreground.mean.size):
            axes = of_all_groups(directions(fold.training), fold.left)
        gammas, _, k = axes.foreground.shape
        squares.append(fold.squares(axes.map(lambda own: np.hstack(list(own)))).reshape(len(axes), gammas, k))
    total, rows, mix = np.sum(squares, axis=0), weights.sum(axis=0), mixture(folds[0].left)
    left_out = [_log_ratio(total - one, rows - n, mix) for one, n in zip(squares, weights, strict=True)]
    means, count = np.array(left_out).mean(axis=-1), len(folds)
    with np.errstate(invalid="ignore"):  # infinite values have no spread
        spread = ((means - means.mean(axis=0)) ** 2).sum(axis=0)
    # The jackknife takes the folds for independent, but their axes come from training rows that overlap. The second
    # term is the correction of Nadeau and Bengio (2003), test size over training size: without it the error is too
    # small by a fifth where the axes are stable, and by a third to a half where there is nothing to find.
    errors = np.sqrt((count - 1) * (1 / count + 1 / (count - 1)) * spread)
    return HeldOut(_log_ratio(total, rows, mix).mean(axis=-1), errors)


def _log_ratio(squares: Array, weights: Array, mix: Array) -> Array:
    """Log ratio (..., k) of the foreground's mean squares to the backgrounds', from sums (groups, ..., k)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        foreground, *backgrounds = [np.maximum(s, 0.0) / weight for s, weight in zip(squares, weights, strict=True)]
        return np.asarray(np.log(foreground) - np.log(np.tensordot(mix, backgrounds, 1)))


def one_error_rule(gammas: Array, found: HeldOut) -> int:
    """The index of the smallest gamma whose contrast is within one standard error of the best."""
    means = np.where(np.isnan(found.means), -np.inf, found.means)
    best = int(np.argmax(means))
    error = found.mean_errors[best]
    near = means >= means[best] - (error if np.isfinite(error) else 0.0)
    return int(np.flatnonzero(near)[np.argmin(gammas[near])])


# ---------------------------------------------------------------------- independent units


@dataclass(frozen=True)
class UnitSquares:
    """What each independent unit adds to the variance of each group."""

    # (groups, units, k): sums of squares of the unit's rows along axes that they did not choose; 0 where it has no rows
    # in a group
    squares: Array
    weights: Array  # (groups, units): how many rows these are

    @classmethod
    def of(
        cls,
        latents: Sequence[HalfLatents],
        unit_of: Groups[Indices],
        weights: Groups[Array | None],
        sections: Groups[Indices] | None = None,
    ) -> UnitSquares:
        """From latents (n, k) of halves, each of which judges the rows that it has not seen.

        Rows of a section are about a mean of their own; without sections, all rows of a group are.
        """
        count = 1 + max(int(own.max()) for own in unit_of)
        k = latents[0].every.foreground.shape[1]
        squares, rows = np.zeros((len(unit_of), count, k)), np.zeros((len(unit_of), count))
        inside = unit_of.map(np.zeros_like) if sections is None else sections
        for half in latents:
            every = zip(half.every, half.unseen, unit_of, weights, inside, strict=True)
            for g, (Z, unseen, units, w, section) in enumerate(every):
                often = np.ones(len(Z)) if w is None else w
                # Deviations are from the mean of the units that were seen, which is as far from the truth as the mean
                # of as many units of one size is.
                seen = np.ones((len(Z), 1))
                for s in np.unique(section):
                    known = ~unseen & (section == s)
                    if known.any():
                        sizes = np.bincount(units[known], often[known])
                        seen[section == s] = sizes.sum() ** 2 / np.sum(sizes**2)
                own, part = units[unseen], (often[:, None] * Z**2 * seen / (seen + 1))[unseen]
                rows[g] += np.bincount(own, often[unseen], count)
                squares[g] += np.stack([np.bincount(own, column, count) for column in part.T], axis=1)
        return cls(squares, rows)

    def log_variances(self) -> tuple[Array, Array]:
        """The logarithm of each group's variances (groups, k), and what each unit adds to it (groups, units, k).

        That is by how much the logarithm changes without the unit, to first order: the more, the more rows it has.
        """
        total, rows = self.squares.sum(axis=1), self.weights.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            means = total / rows[:, None]
            added = self.squares - self.weights[:, :, None] * means[:, None]
            left = 1 - self.weights / rows[:, None]  # without the unit
            added /= np.where(total > 0, total, 1.0)[:, None] * np.maximum(left, TINY)[:, :, None]
            return np.log(means), added

    def log_ratios(self, mix: Array) -> tuple[Array, Array]:
        """Log ratios (k,) of the foreground's variance to the backgrounds', and what each unit adds (units, k)."""
        logs, added = self.log_variances()
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = mix[:, None] * np.exp(logs[1:])
            background = parts.sum(axis=0)
            return logs[0] - np.log(background), added[0] - np.einsum("guk,gk->uk", added[1:], parts / background)


def spread_of_units(added: Array, units: UnitSquares) -> tuple[Array, Array]:
    """The variance (k,) of a sum of what units add (units, k), and its degrees of freedom (Satterthwaite).

    Units with rows in one group, in the other, and in both are samples of their own. Units of unequal size
    count as their effective number, (sum n)^2 / sum n^2.
    """
    variances, freedom, kinds = [], [], kinds_of_units(units.weights > 0)
    for kind in np.unique(kinds[kinds > 0]):
        here = kinds == kind
        sizes, n = units.weights[:, here].sum(axis=0), int(np.sum(here))
        variances.append((n - 1) / n * np.sum(added[here] ** 2, axis=0))
        freedom.append(max(sizes.sum() ** 2 / np.sum(sizes**2) - 1, 1.0))
    total = np.sum(variances, axis=0)
    within = np.sum([v**2 / f for v, f in zip(variances, freedom, strict=True)], axis=0)
    return total, np.where(within > 0, total**2 / np.where(within > 0, within, 1.0), 1.0)


def exchanged(units: UnitSquares, log_ratios: Array, rng: np.random.Generator) -> Array:
    """Standardised log ratios (PERMUTED, k) of units that change groups at random, when both groups vary alike.

    The foreground's squares are divided by the ratio first. Units with rows in both groups exchange theirs.
    """
    kinds = kinds_of_units(units.weights > 0)  # only in the first group, only in the second, and in both
    some = [rng.permutation(np.flatnonzero(kinds == kind))[:MOST_UNITS] for kind in (2, 1, 3)]
    cases, controls, paired = map(len, some)
    squares, weights = (np.take(own, np.concatenate(some), axis=1) for own in (units.squares, units.weights))
    squares[0] /= np.exp(log_ratios)
    in_cases = np.arange(cases + controls) < cases
    draws = [(rng.permutation(cases + controls) < cases, rng.random(paired) < 0.5) for _ in range(PERMUTED)]
    now_cases, exchanged_pairs = (np.array(drawn) for drawn in zip(*draws, strict=True))
    # Units with rows in one group change it where they are drawn for the other; shape (PERMUTED, units).
    swap = np.hstack([now_cases != in_cases, exchanged_pairs])
    counts = np.hstack([np.where(now_cases, cases, controls), np.full(exchanged_pairs.shape, paired)])

    def placed(own: Array) -> tuple[Array, Array]:
        """What units have in each group after every exchange, from what they had, (2, units)."""
        return np.where(swap, own[1], own[0]), np.where(swap, own[0], own[1])

    rows = placed(weights)
    left = [np.maximum(1 - w / w.sum(axis=1, keepdims=True), TINY) for w in rows]
    found = np.empty((PERMUTED, squares.shape[2]))
    for j in range(squares.shape[2]):
        ratio, added = np.zeros(PERMUTED), np.zeros(swap.shape)
        for sign, own, w, rest in zip((1, -1), placed(squares[:, :, j]), rows, left, strict=True):
            total = own.sum(axis=1, keepdims=True)
            mean = total / w.sum(axis=1, keepdims=True)
            added += sign * (own - w * mean) / (total * rest)
            ratio += sign * np.log(mean[:, 0])
        found[:, j] = ratio / np.sqrt(np.maximum(np.sum((counts - 1) / counts * added**2, axis=1), TINY))
    return found


def ratio_intervals(units: UnitSquares, mix: Array, rng: np.random.Generator) -> tuple[Array, Array, Array, Array]:
    """Log ratios (k,), their standard errors, intervals (k, 2) that hold off the Gaussian, too, and p-values (F43).

    As wide as Student's t asks for, and wider on the side where the standardised log ratios of exchanged units are
    wider: few rows of heavy tails have a variance that is mostly too small, and seems more certain than it is.

    The p-values (k,) are of "no more variance in the foreground". They are those of the intervals: below .025 exactly
    where the interval lies above a ratio of 1.
    """
    ratios, added = units.log_ratios(mix)
    variance, freedom = spread_of_units(added, units)
    errors = np.where(np.isfinite(ratios), np.sqrt(OTHER_AXES * variance), np.nan)
    reach = scipy.special.stdtrit(freedom, (1 + SURE) / 2)
    low, high = -reach, reach
    present = (units.weights > 0).sum(axis=1)
    if len(units.weights) == 2 and present.min() < MANY_UNITS and np.isfinite(ratios).all():
        quantiles = np.quantile(exchanged(units, ratios, rng), [(1 - SURE) / 2, (1 + SURE) / 2], axis=0)
        low, high = np.minimum(low, quantiles[0]), np.maximum(high, quantiles[1])
    intervals = np.stack([ratios - high * errors, ratios - low * errors], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        p_values = scipy.special.stdtr(freedom, -ratios / errors * reach / high)
    return ratios, errors, intervals, p_values


def combined_logs(units: UnitSquares, factors: Array) -> tuple[Array, Array]:
    """Sums of the groups' log variances times a factor each, (k,), and their intervals (k, 2) by Student's t."""
    some = np.flatnonzero(factors)
    used = UnitSquares(units.squares[some], units.weights[some])
    logs, each = used.log_variances()
    with np.errstate(invalid="ignore"):
        sums, added = factors[some] @ logs, np.einsum("g,guk->uk", factors[some], each)
    variance, freedom = spread_of_units(added, used)
    errors = np.where(np.isfinite(sums), np.sqrt(OTHER_AXES * variance), np.nan)
    reach = scipy.special.stdtrit(freedom, (1 + SURE) / 2) * errors
    return sums, np.stack([sums - reach, sums + reach], axis=1)


def mean_ratio(units: UnitSquares, mix: Array) -> tuple[float, float]:
    """The mean of the log ratios over the axes, and its standard error."""
    ratios, added = units.log_ratios(mix)
    variance, _ = spread_of_units(added.mean(axis=1, keepdims=True), units)
    mean = float(ratios.mean())
    return mean, float(np.sqrt(OTHER_AXES * variance[0])) if np.isfinite(mean) else np.nan


def largest_shares(Z: Array, units: Indices, weights: Array | None) -> Array:
    """The largest part (k,) of a component's variance in one unit, from latents Z (n, k) about their mean."""
    squares = Z**2 if weights is None else weights[:, None] * Z**2
    sums = np.stack([np.bincount(units, column) for column in squares.T], axis=1)
    return np.asarray(sums.max(axis=0) / np.maximum(sums.sum(axis=0), TINY))
