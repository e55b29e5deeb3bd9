"""The strength of a contrast by a budget (F28): how much background variance each direction may have.

The directions V (D, d) of the largest foreground variance tr V'A V, among those with tr V'B_j V <= d c_j for every
background j, are those of cov_X - sum_j tau_j B_j, with tau >= 0 the minimiser of the convex function

    F(tau) = sum_{i<=d} lambda_i(A - sum_j tau_j B_j) + d sum_j c_j tau_j.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from .._util.arrays import EPS, Array
from ..exceptions import SolverError
from ..groups import Groups
from ..moments import Contrast, Moments
from ._path import outside, symmetric
from ._spectral import top_eigenpairs

# Distance of value and bound, relative to the value at 0, and relative change of the strengths, that end the search.
GAP, STILL = 1e-10, 1e-9
MAX_ROUNDS = 50  # eigenproblems: five to ten are needed
REACH = 8.0  # of the box in which the next strengths are looked for, relative to the present ones
SPARE = 4  # eigenvectors beyond the first d that are added to the basis
# Temperatures of the smoothed problem, relative to the largest eigenvalue of A, from coarse to fine; steps of Newton's
# method at each, and the decrease at which they end.
TEMPERATURES, MAX_NEWTON, CLOSE = np.geomspace(1e-1, 1e-13, 25), 50, 1e-14


@dataclass(frozen=True)
class Budget:
    """The strengths that a budget demands, with a proof.

    Attributes
    ----------
    strengths : ndarray of shape (J,)
        tau of each background.
    value : float
        F(tau).
    lower : float
        What F can nowhere be below: the certificate.
    """

    strengths: Array
    value: float
    lower: float


def budget_strengths(groups: Groups[Moments], d: int, costs: Sequence[float]) -> Budget:
    """The strengths tau of all backgrounds for which F is smallest.

    In the span of eigenvectors found before, F is replaced by a small problem (Rayleigh and Ritz), nowhere above it,
    whose minimum is therefore a lower bound of F's. The eigenvectors at its minimiser are added to the span, until
    value and bound meet: a spectral bundle method (Helmberg and Rendl 2000) that keeps all vectors.

    Parameters
    ----------
    groups : Groups of Moments
    d : int
    costs : sequence of float, above 0
        c_j: the mean variance along the directions that each background may have.
    """
    c = np.asarray(costs, dtype=np.float64)
    n, weights = groups.foreground.weight, np.array([group.weight for group in groups.backgrounds])
    size = groups.foreground.scatter.size
    vectors, basis = min(d + SPARE, size - 1), np.empty((size, 0))
    images: list[Array] = [basis for _ in groups]  # covariance of each group times the basis
    tau: Array = np.zeros(c.size)
    strengths = tau
    best, lower, allowed, start = np.inf, -np.inf, np.inf, None
    for _ in range(MAX_ROUNDS):
        terms = ((1.0, groups.foreground), *zip(-tau * n / weights, groups.backgrounds, strict=True))
        found = top_eigenpairs(Contrast.of(*terms), vectors, start=start)
        value = float(found.values[:d].sum()) / n + d * float(c @ tau)
        still = np.abs(tau - strengths) <= STILL * (tau + 1e-3)
        allowed = GAP * abs(value) if np.isinf(allowed) else allowed
        if value <= best + allowed:
            best, strengths = min(value, best), tau
        new, start = outside(basis, found.vectors), found.vectors
        if best - lower <= allowed and (still.all() or new.shape[1] == 0):
            return Budget(strengths, best, lower)
        basis = np.hstack([basis, new])
        images = [
            np.hstack([old, group.scatter.matmul(new) / group.weight])
            for old, group in zip(images, groups, strict=True)
        ]
        A, *B = (symmetric(basis, image) for image in images)
        # With few vectors the small problem may be unbounded: it is solved in a box, and where the box ends no bound.
        box = REACH * (strengths + float(np.linalg.eigvalsh(A)[-1]) / c)
        tau, bound = _small_minimum(A, np.array(B), d, c, strengths, box)
        lower = max(lower, bound) if np.all(tau < box) else lower
    raise SolverError(
        "The strengths of the contrast did not converge: perhaps no directions vary little enough in all backgrounds. "
        "Pass gamma= as a number, or as a dict with one for each background."
    )


def _small_minimum(A: Array, B: Array, d: int, c: Array, tau: Array, box: Array) -> tuple[Array, float]:
    """Minimiser tau (J,), 0 <= tau <= box, of F for small A (k, k) and B (J, k, k), and a bound of the minimum.

    The sum of the d largest eigenvalues is the least value over nu of d nu + sum_i max(lambda_i - nu, 0). The maximum
    is smoothed to T log(1 + exp((lambda_i - nu) / T)), which is larger by at most T log 2; Newton's method on (tau, nu)
    follows the minimum to ever smaller temperatures T. So it does not matter whether eigenvalues meet at the minimum.
    """
    k = A.shape[0]
    if k <= d:  # the trace, which is linear: no minimum until there are more vectors
        return tau, -np.inf
    unit = float(np.abs(np.linalg.eigvalsh(A)).max())
    A, B, c = A / unit, B / unit, c / unit
    smooth = Smoothed(A, np.concatenate([-B, -np.eye(k)[None]]), d * np.append(c, 1.0))
    least, largest = np.append(np.zeros(c.size), -np.inf), np.append(box, np.inf)
    rounding = 4 * EPS * k * smooth.linear  # of a gradient, which steps along a flat direction would blow up
    x = np.append(tau, np.linalg.eigvalsh(A - np.tensordot(tau, B, 1))[-d])
    for T in TEMPERATURES:
        for _ in range(MAX_NEWTON):
            value, gradient, hessian = smooth(x, T)
            free = ((x > least) | (gradient < 0)) & ((x < largest) | (gradient > 0)) & (np.abs(gradient) > rounding)
            step = np.zeros_like(x)
            step[free] = -np.linalg.lstsq(hessian[np.ix_(free, free)], gradient[free], rcond=None)[0]
            decrease = -float(gradient[free] @ step[free])
            trial = None
            if decrease > CLOSE:
                trial = _searched(smooth, x, step, T, value, gradient, (least, largest))
            if trial is None:
                break
            x = trial
    return x[:-1], unit * (value - max(decrease, 0.0) - k * T * np.log(2))


def _searched(
    smooth: Smoothed, x: Array, step: Array, T: float, value: float, gradient: Array, edges: tuple[Array, Array]
) -> Array | None:
    """The first point along a step, halved as often as needed, that is lower enough; None if only rounding is left."""
    for length in 0.5 ** np.arange(40):
        trial = np.clip(x + length * step, *edges)
        if smooth(trial, T)[0] < value + 1e-4 * float(gradient @ (trial - x)):
            return trial
    return None


@dataclass(frozen=True)
class Smoothed:
    """linear'x + sum_i T log(1 + exp(mu_i / T)) with mu_i the eigenvalues of A + sum_j x_j E_j: convex in x."""

    A: Array
    E: Array
    linear: Array

    def __call__(self, x: Array, T: float) -> tuple[float, Array, Array]:
        """Value, gradient (J + 1,) and Hessian (J + 1, J + 1)."""
        mu, U = np.linalg.eigh(self.A + np.tensordot(x, self.E, 1))
        f = expit(mu / T)
        E = U.T @ self.E @ U
        value = float(self.linear @ x + T * np.logaddexp(0, mu / T).sum())
        gradient = self.linear + np.einsum("jaa,a->j", E, f)
        # Divided differences of f; where eigenvalues meet, its derivative.
        apart = mu[:, None] - mu
        slope = (f * (1 - f) / T)[:, None] + np.zeros_like(apart)
        near = np.abs(apart) < 1e-6 * T
        K = np.divide(f[:, None] - f, apart, out=slope, where=~near)
        return value, gradient, np.einsum("jab,ab,kab->jk", E, K, E)
