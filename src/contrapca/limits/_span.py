"""Upper bounds of PCPCA's limit from a few directions (F3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._util.arrays import TINY, Array
from ..groups import Groups
from ..moments import Moments, mixture
from ..solvers import outside

# Relative change of gamma that ends an iteration: steps converge quadratically, so the next would be below rounding.
STANDSTILL = 1e-9
SPARE = 16  # strong directions of the foreground beyond those that a bound takes
POWERS = 2  # products that make directions strong


@dataclass(frozen=True)
class Span:
    """Directions, and the covariances of the groups in them: every d of them bound PCPCA's limit from above.

    Attributes
    ----------
    basis : ndarray of shape (size, p), orthonormal columns
    covariances : ndarray of shape (2, p, p)
        Of the foreground, and of the backgrounds' mean, in the basis.
    """

    basis: Array
    covariances: Array

    @classmethod
    def strong(cls, groups: Groups[Moments], d: int) -> Span:
        """More than d directions in which the foreground varies strongly, from a few products with random vectors."""
        scatter = groups.foreground.scatter
        V = np.random.default_rng(0).standard_normal((scatter.size, min(d + SPARE, scatter.size)))
        for _ in range(POWERS):
            V = np.linalg.qr(scatter.matmul(V))[0]
        return cls(np.empty((scatter.size, 0)), np.empty((2, 0, 0))).plus(groups, V)

    def plus(self, groups: Groups[Moments], vectors: Array) -> Span:
        """These directions and others."""
        new, known = outside(self.basis, vectors), self.basis.shape[1]
        basis = np.hstack([self.basis, new])
        images = groups.map(lambda group: basis.T @ group.scatter.matmul(new) / group.weight)
        columns = np.array([images.foreground, np.tensordot(mixture(groups), images.backgrounds, 1)])
        lines = np.concatenate([self.covariances, columns[:, :known].transpose(0, 2, 1)], axis=1)
        return Span(basis, np.concatenate([lines, columns], axis=2))

    def limit(self, groups: Groups[Moments], d: int, gamma: float) -> float:
        """The least bound, at most `gamma`, by Newton's steps as in `pcpca_limit`."""
        totals = groups.map(lambda group: group.scatter.trace / group.weight)
        background = float(mixture(groups) @ totals.backgrounds)
        while True:
            matrix = self.covariances[0] - gamma * self.covariances[1]
            U = np.linalg.eigh((matrix + matrix.T) / 2)[1][:, -d:]
            above, below = (float(np.sum(U * (covariance @ U))) for covariance in self.covariances)
            proposal = (totals.foreground - above) / max(background - below, TINY)
            if not 0 < proposal < gamma * (1 - STANDSTILL):
                return gamma
            gamma = proposal
