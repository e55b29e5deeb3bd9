"""One model of all groups but for their means, which completes rows and moments with missing values (F45)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._util.arrays import Array
from ..groups import Groups
from ..moments import DenseScatter, Moments, observe
from ..solvers import Factors, Labels, estimated_moments, fit_factors, masked_start, missing_edge
from ._axes import dimensions_above_noise

MOST_FACTORS = 10
STEPS, LATER_STEPS = 20, 5  # of EM: from scratch, and from the model of almost the same rows


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

    def stacked(self, rows: Groups[Array]) -> tuple[Array, Labels]:
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
