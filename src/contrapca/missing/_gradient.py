"""Maximise the likelihood of observed values by gradients (F9), or prove that there is no maximum (F10)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import lsqr

from .._util.arrays import Array
from .._util.threads import calm_threads
from ..contrast import Evaluation, minimise
from ..data import Groups
from ._likelihood import masked_log_likelihood
from ._rows import MaskedGroup, counted_terms, multiplications

Status = Literal["converged", "budget", "stalled", "unbounded"]
Observer = Callable[[int, float, float], None]  # called with iteration, objective, relative gradient

# sigma2 below this fraction of the median variance is going to 0; loadings above this multiple of it are going to
# infinity. Where rounding ends the iteration, a larger sigma2 counts if the objective still rises as fast as this, per
# observed value, when log sigma2 falls; a sigma2 that has settled is just small.
VANISHING, RUNAWAY = 1e-14, 1e6

FAINT, FALLING = 1e-10, 0.01
LOG_RANGE = (math.log(VANISHING) - 1, 30.0)  # range of log sigma2 for distant trial points
LOOSEST = 1e-4  # the largest residual at which rounding may end the iteration
VANISHED = (
    "the noise variance goes to 0, as far as floating point can tell (if the features have very unequal units, "
    "scale='pooled' helps)"
)

CERTAIN = 1e-9  # how negative a difference must be, relative to its terms, to exceed rounding
LSQR_TOLERANCE, LSQR_STEPS = 1e-10, 2000
MISFIT = 1e-4  # relative residual above which the equations have no solution


@dataclass(frozen=True)
class GradientSolution:
    """Where a gradient solver ended.

    Attributes
    ----------
    status : {"converged", "budget", "stalled", "unbounded"}
        "budget": out of iterations; "stalled": no step improves the objective, although the criteria are far from met.
    reason : str
        For "unbounded": what diverges.
    W : ndarray of shape (D, d)
    sigma2 : float
    objective : float
    residual : float
        The largest of the relative gradient, the last relative change of the objective and the relative error of F10's
        identity.
    history : ndarray of shape (n_iter + 1,)
        The objective after each iteration.
    """

    status: Status
    reason: str
    W: Array
    sigma2: float
    objective: float
    residual: float
    history: Array

    @property
    def n_iter(self) -> int:
        """Iterations made."""
        return self.history.size - 1


class _Unbounded(Exception):
    """Proof, or overwhelming evidence, that the objective has no maximum."""


class _Problem:
    """The objective in units in which its variables are of order one, with checks for F10's certificate."""

    def __init__(self, groups: Groups[MaskedGroup], gamma: float, shape: tuple[int, ...]):
        foreground = groups.foreground
        self.terms, self.shape = counted_terms(groups, gamma), shape
        self.cells = sum(c * group.cells for c, group in self.terms)  # sum D_i - gamma_raw sum E_j
        self.variance = foreground.typical_variance
        # Rows of W are in units of their feature's standard deviation, so unequal units do not stall the solver.
        self.units = np.sqrt(np.maximum(foreground.variance, self.variance))[:, None]
        counts = np.sum([c * group.feature_counts for c, group in self.terms], axis=0)
        margin = min(float(np.min(counts / foreground.feature_counts)), 1.0)
        self.largest = RUNAWAY * float(foreground.variance.sum()) / margin
        self.key: bytes = b""

    def pack(self, W: Array, sigma2: float) -> Array:
        """(W, log sigma2) as one vector, in units of order one."""
        return np.append((W / self.units).ravel(), np.log(sigma2 / self.variance))

    def unpack(self, theta: Array) -> tuple[Array, float]:
        """W and sigma2 from the vector."""
        return self.units * theta[:-1].reshape(self.shape), self.variance * float(np.exp(theta[-1]))

    def at(self, theta: Array) -> Evaluation:
        """The objective at a point; the last evaluation is cached."""
        key = theta.tobytes()
        if key != self.key:
            W, sigma2 = self.unpack(theta)
            self.evaluation = masked_log_likelihood(self.terms, W, sigma2)
            self.key = key
            difference, size = self._quadratic()
            if difference <= -CERTAIN * size:
                raise _Unbounded("the noise variance goes to 0")
        return self.evaluation

    def watch(self, theta: Array) -> None:
        """Raise if an iterate (not just a trial point) has diverged."""
        W, sigma2 = self.unpack(theta)
        if sigma2 < VANISHING * self.variance:
            raise _Unbounded(VANISHED)
        if not np.vdot(W, W) < self.largest:
            raise _Unbounded("the loadings go to infinity")

    def watch_end(self, theta: Array) -> None:
        """Raise if the last iterate, beyond which rounding hides all progress, is on its way to sigma2 = 0."""
        sigma2 = self.unpack(theta)[1]
        slope = sigma2 * self.at(theta).gradient_sigma2 / self.cells
        if sigma2 < FAINT * self.variance and slope < -FALLING:
            raise _Unbounded(VANISHED)

    def _quadratic(self) -> tuple[float, float]:
        """sum x'A^-1 x - gamma_raw sum y'A^-1 y, and the sum of both."""
        parts = [c * q for (c, _), q in zip(self.terms, self.evaluation.quadratics, strict=True)]
        return sum(parts), sum(map(abs, parts))

    def loss(self, theta: Array) -> tuple[float, Array]:
        """The loss -l / cells and its gradient in theta."""
        evaluation = self.at(theta)
        _, sigma2 = self.unpack(theta)
        gradient = np.append((self.units * evaluation.gradient_W).ravel(), sigma2 * evaluation.gradient_sigma2)
        return -evaluation.value / self.cells, -gradient / self.cells

    def residuals(self, theta: Array) -> tuple[float, float]:
        """Relative gradient, and relative error of the identity that holds at every maximum (F10).

        The identity is sum x'A^-1 x - gamma_raw sum y'A^-1 y = sum D_i - gamma_raw sum E_j: at a maximum, the
        derivative along A -> s A is 0.
        """
        evaluation = self.at(theta)
        _, sigma2 = self.unpack(theta)
        size = max(float(np.linalg.norm(theta[:-1])), np.sqrt(sigma2 / self.variance))
        slope = size * float(np.linalg.norm(self.units * evaluation.gradient_W))
        slope = max(slope, sigma2 * abs(evaluation.gradient_sigma2))
        return slope / self.cells, abs(self._quadratic()[0] / self.cells - 1)


def maximise(
    groups: Groups[MaskedGroup],
    gamma: float,
    W: Array,
    sigma2: float,
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
    observer: Observer | None = None,
) -> GradientSolution:
    """Maximise the relative log-likelihood of the observed values over (W, log sigma2), from a start.

    Parameters
    ----------
    groups : Groups of MaskedGroup
    gamma : float
        gamma', with sum D_i > gamma_raw sum E_j.
    W : (D, d) ndarray
    sigma2 : float, positive
    tol : float
        Converged when the relative gradient, the relative change of the objective and the relative error of F10's
        identity are all at most this.
    max_iter : int
    observer : callable, optional
        Called with iteration, objective and relative gradient; does not affect the result.
    """
    problem = _Problem(groups, gamma, W.shape)
    theta = problem.pack(W, sigma2)
    trace = _Trace(problem, theta, tol, observer)
    status: Status
    reason = ""
    try:
        with calm_threads(multiplications(groups, W.shape[1])):
            status = "converged" if trace.add(theta) else _lbfgs(problem, theta, trace, max_iter)
    except _Unbounded as proof:
        status, reason = "unbounded", str(proof)
    best, value = trace.last
    return GradientSolution(status, reason, *problem.unpack(best), value, trace.residual, np.array(trace.values))


class _Trace:
    """The history of the iteration, and whether it has converged."""

    def __init__(self, problem: _Problem, start: Array, tol: float, observer: Observer | None):
        self.problem, self.tol, self.observer = problem, tol, observer
        self.values: list[float] = []
        self.residual = np.inf
        self.last: tuple[Array, float] = (start, -np.inf)

    def add(self, theta: Array) -> bool:
        """Record an iterate; return whether it satisfies all criteria."""
        self.problem.watch(theta)
        value = self.problem.at(theta).value
        change = abs(value - self.last[1]) / self.problem.cells if self.values else 0.0
        self.values.append(value)
        self.last = theta.copy(), value
        gradient, identity = self.problem.residuals(theta)
        self.residual = max(gradient, change, identity)
        if self.observer is not None:
            self.observer(len(self.values) - 1, value, gradient)
        return self.residual <= self.tol


def _lbfgs(problem: _Problem, theta: Array, trace: _Trace, max_iter: int) -> Status:
    """L-BFGS until all criteria are met; restarted once when no step improves the objective."""
    for _ in range(2):
        left = max_iter - len(trace.values) + 1
        if left <= 0:
            break
        minimise(problem.loss, theta, max_iter=left, stop=trace.add, last_range=LOG_RANGE)
        if trace.residual <= trace.tol:
            return "converged"
        theta = trace.last[0]
    if len(trace.values) > max_iter:
        return "budget"
    problem.watch_end(theta)
    # No step improves the objective: this is probably the maximum in floating point.
    return "converged" if trace.residual <= LOOSEST else "stalled"


def noise_is_determined(group: MaskedGroup, W: Array) -> bool:
    """Whether no change of W makes up for one of sigma2 in the covariance A_o of every row (F25).

    A row with more than d observed values suffices: sigma2 is the smallest eigenvalue of its A_o. Otherwise sigma2 is
    arbitrary if there are changes v_j of the loadings w_j of the features with w_j'v_k + w_k'v_j = -1 for j = k, and 0
    for j != k, for all features j, k that are observed together.

    Parameters
    ----------
    group : MaskedGroup
    W : (D, d) ndarray
    """
    D, d = W.shape
    if np.any(group.by_count[d + 1 :] > 0) or group.rows is None:
        return True
    j, k = np.nonzero(np.triu(group.rows.together()))
    # One equation for each pair, with unknowns v (D, d) row by row; equal features meet twice.
    equation, unknown = np.repeat(np.arange(j.size), d), np.arange(d)
    entries = np.concatenate([W[k].ravel(), W[j].ravel()])
    places = np.concatenate([(j[:, None] * d + unknown).ravel(), (k[:, None] * d + unknown).ravel()])
    equations = sp.csr_array((entries, (np.tile(equation, 2), places)), shape=(j.size, D * d))
    wanted = -(j == k).astype(float) * float(np.mean(W**2))  # of order one in any units
    misfit = lsqr(equations, wanted, atol=LSQR_TOLERANCE, btol=LSQR_TOLERANCE, iter_lim=LSQR_STEPS)[3]
    return bool(misfit > MISFIT * np.linalg.norm(wanted))
