"""The maximum of the likelihood of observed values by gradients (F9), or the proof that there is none (F10)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .._util.arrays import Array
from .._util.threads import calm_threads
from ..groups import Groups
from ..moments import MaskedGroup, counted_terms, multiplications
from ..objectives import Evaluation, masked_log_likelihood
from ._lbfgs import minimise

Status = Literal["converged", "budget", "stalled", "unbounded"]
Algorithm = Literal["lbfgs", "adam"]
Observer = Callable[[int, float, float], None]  # of iteration, objective, relative gradient

# sigma2 below this part of the median variance is on its way to 0, loadings above this multiple of it to infinity.
VANISHING, RUNAWAY = 1e-10, 1e6
LOG_RANGE = (math.log(VANISHING) - 1, 30.0)  # of log sigma2, for trial points far off
LOOSEST = 1e-4  # the largest residual at which rounding may end the iteration
CERTAIN = 1e-9  # relative to its summands, how negative a difference must be not to be rounding
# Adam as in the paper's code, which is for standardised data: step size, decay of the first and second moment, floor of
# the denominator, floor of sigma2. Here variables are in units of the features' variances, whatever the data's.
STEP, DECAY, DECAY_SQUARE, DENOMINATOR, SIGMA2_FLOOR = 0.01, 0.9, 0.999, 1e-8, 1e-4


@dataclass(frozen=True)
class GradientSolution:
    """Where a gradient solver ended.

    Attributes
    ----------
    status : {"converged", "budget", "stalled", "unbounded"}
        "budget": out of iterations; "stalled": no step improves any more, though the criteria are far from met.
    reason : str
        For "unbounded": what runs off.
    W : ndarray of shape (D, d)
    sigma2 : float
    objective : float
    residual : float
        The largest of relative gradient, last relative change of the objective and relative error of F10's identity.
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
    """The objective in units in which its variables are of order one, watched for F10's certificate."""

    def __init__(self, groups: Groups[MaskedGroup], gamma: float, shape: tuple[int, ...]):
        foreground = groups.foreground
        self.terms, self.shape = counted_terms(groups, gamma), shape
        self.cells = sum(c * group.cells for c, group in self.terms)  # sum D_i - gamma_raw sum E_j
        self.variance = foreground.typical_variance
        # Rows of W in units of their feature's deviation: features in unequal units need not stall the solver.
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
        """The objective at a point; the last one is remembered."""
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
        """Refuse an iterate (not a mere trial point) that has run off."""
        W, sigma2 = self.unpack(theta)
        if sigma2 < VANISHING * self.variance:
            raise _Unbounded(
                "the noise variance goes to 0, as far as floating point can tell (if the features have very unequal "
                "units, scale='pooled' helps)"
            )
        if not np.vdot(W, W) < self.largest:
            raise _Unbounded("the loadings go to infinity")

    def _quadratic(self) -> tuple[float, float]:
        """sum x'A^-1 x - gamma_raw sum y'A^-1 y, and the sum of both."""
        parts = [c * q for (c, _), q in zip(self.terms, self.evaluation.quadratics, strict=True)]
        return sum(parts), sum(map(abs, parts))

    def loss(self, theta: Array) -> tuple[float, Array]:
        """What is minimised, -l / cells, with its gradient in theta."""
        evaluation = self.at(theta)
        _, sigma2 = self.unpack(theta)
        gradient = np.append((self.units * evaluation.gradient_W).ravel(), sigma2 * evaluation.gradient_sigma2)
        return -evaluation.value / self.cells, -gradient / self.cells

    def residuals(self, theta: Array) -> tuple[float, float]:
        """Relative gradient, and relative error of the identity that holds at every maximum (F10).

        There sum x'A^-1 x - gamma_raw sum y'A^-1 y = sum D_i - gamma_raw sum E_j: the derivative along A -> s A.
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
    algorithm: Algorithm = "lbfgs",
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
    algorithm : {"lbfgs", "adam"}
    tol : float
        Converged when relative gradient, relative change of the objective and relative error of F10's identity are
        all at most this.
    max_iter : int
    observer : callable, optional
        Called with iteration, objective and relative gradient; has no influence.
    """
    problem = _Problem(groups, gamma, W.shape)
    theta = problem.pack(W, sigma2)
    trace = _Trace(problem, theta, tol, observer)
    status: Status
    reason = ""
    try:
        with calm_threads(multiplications(groups, W.shape[1])):
            run = _lbfgs if algorithm == "lbfgs" else _adam
            status = "converged" if trace.add(theta) else run(problem, theta, trace, max_iter)
    except _Unbounded as proof:
        status, reason = "unbounded", str(proof)
    best, value = trace.last
    return GradientSolution(status, reason, *problem.unpack(best), value, trace.residual, np.array(trace.values))


class _Trace:
    """What happened so far, and whether it is enough."""

    def __init__(self, problem: _Problem, start: Array, tol: float, observer: Observer | None):
        self.problem, self.tol, self.observer = problem, tol, observer
        self.values: list[float] = []
        self.residual = np.inf
        self.last: tuple[Array, float] = (start, -np.inf)

    def add(self, theta: Array) -> bool:
        """Note an iterate; whether it satisfies all criteria."""
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
    """L-BFGS until all criteria hold; started afresh once when no step improves any more."""
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
    # No step improves the objective any more: that is the maximum as far as floating point can tell, unless it is not.
    return "converged" if trace.residual <= LOOSEST else "stalled"


def _adam(problem: _Problem, theta: Array, trace: _Trace, max_iter: int) -> Status:
    """The paper's procedure: Adam on (W, sigma2) with a fixed step size, for comparison."""
    x = np.append(theta[:-1], np.exp(theta[-1]))
    first, second = np.zeros(x.size), np.zeros(x.size)
    for step in range(1, max_iter + 1):
        gradient = -problem.loss(theta)[1]
        gradient[-1] /= x[-1]  # to sigma2 from log sigma2
        first = DECAY * first + (1 - DECAY) * gradient
        second = DECAY_SQUARE * second + (1 - DECAY_SQUARE) * gradient**2
        scaled = first / (1 - DECAY**step) / (np.sqrt(second / (1 - DECAY_SQUARE**step)) + DENOMINATOR)
        x = x + STEP * scaled
        x[-1] = max(x[-1], SIGMA2_FLOOR)
        theta = np.append(x[:-1], np.log(x[-1]))
        if trace.add(theta):
            return "converged"
    return "budget"
