"""The likelihood of the observed values of incomplete rows: value, gradient and maximum (F9), the proof that there is
none (F10), and whether it determines the noise (F25)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import lsqr

from .._util.arrays import Array
from .._util.threads import calm_threads
from ..contrast import Evaluation, log_normaliser, masked_inverses, minimise, moments_log_likelihood, triangle, unpack
from ..data import Groups
from ._rows import MaskedGroup, MaskedRows, counted_terms, multiplications

# sigma2 below this fraction of the median variance is going to 0; loadings above this multiple of it are going to
# infinity. Where rounding ends the iteration, a larger sigma2 counts if the objective still rises as fast as this, per
# observed value, when log sigma2 falls; a sigma2 that has settled is just small.
VANISHING, RUNAWAY = 1e-14, 1e6
FAINT, FALLING = 1e-10, 0.01

LOG_RANGE = (math.log(VANISHING) - 1, 30.0)  # range of log sigma2 for distant trial points
LOOSEST = 1e-4  # the largest residual at which rounding may end the iteration
CERTAIN = 1e-9  # how negative a difference must be, relative to its terms, to exceed rounding
LSQR_TOLERANCE, LSQR_STEPS = 1e-10, 2000
MISFIT = 1e-4  # relative residual above which the equations have no solution
VANISHED = (
    "the noise variance goes to 0, as far as floating point can tell (if the features have very unequal units, "
    "scale='pooled' helps)"
)

Status = Literal["converged", "budget", "stalled", "unbounded"]
Observer = Callable[[int, float, float], None]  # called with iteration, objective, relative gradient


# ---------------------------------------------------------------------- value and gradient


def masked_log_likelihood(
    terms: list[tuple[float, MaskedGroup]], W: Array, sigma2: float, *, determinants: bool = True
) -> Evaluation:
    """The relative log-likelihood of the observed values, with its gradient (F9).

    l = sum_k c_k sum_i log N(x_o; mean_o, A_o) over groups k with coefficients c_k and their rows i, where o are the
    observed features of a row and A_o that part of A = W W' + sigma2 I. Without `determinants` the terms log|A_o| (and
    2 pi) are left out: -1/2 sum_k c_k sum_i x_o'A_o^-1 x_o remains.
    """
    # In latents along the principal axes of W, long and short columns do not mix: M can then be inverted accurately
    # even if features differ by many orders of magnitude.
    U, lengths, rotation = np.linalg.svd(W, full_matrices=False)
    W = U * lengths
    value, gradient_W, gradient_sigma2 = 0.0, np.zeros(W.shape), 0.0
    quadratics = []
    for coefficient, group in terms:
        parts = []
        if group.complete is not None:
            parts.append(moments_log_likelihood(group.complete, W, sigma2, determinants=determinants))
        if group.rows is not None:
            of_rows = partial(_of_rows, W=W, sigma2=sigma2, determinants=determinants)
            of_value, of_W, of_sigma2, q = group.rows.total(of_rows)
            parts.append(Evaluation(of_value, of_W, of_sigma2, [q]))
        value += coefficient * sum(part.value for part in parts)
        gradient_W += coefficient * sum(part.gradient_W for part in parts)
        gradient_sigma2 += coefficient * sum(part.gradient_sigma2 for part in parts)
        quadratics.append(sum(part.quadratics[0] for part in parts))
    return Evaluation(value, gradient_W @ rotation, gradient_sigma2, quadratics)


def masked_latents(rows: MaskedRows, W: Array, sigma2: float) -> tuple[Array, Array, Array]:
    """M^-1 (d, d, P) and log|M| (P,) of each pattern, and z = M^-1 W_o'x_o of each row, (d, n) (F9)."""
    inverses, log_determinants = masked_inverses(W, sigma2, rows.masks)
    Z = np.einsum("ijn,jn->in", rows.by_row(inverses), (rows.values @ W).T)
    return inverses, log_determinants, Z


def _of_rows(rows: MaskedRows, W: Array, sigma2: float, *, determinants: bool) -> tuple[float, Array, float, float]:
    """The objective of masked rows, its gradients for W and sigma2, and q = sum x_o'A_o^-1 x_o.

    With M = sigma2 I + W_o'W_o, z = M^-1 W_o'x_o and the residual r = x_o - W_o z: A_o^-1 x_o = r / sigma2, q =
    |r|^2 / sigma2 + |z|^2, and row j of dl/dW is sum_i r_ij z_i / sigma2 - H_j w_j, where H_j = sum_i M_i^-1 over the
    rows in which feature j is observed comes from the determinants. Nothing cancels, however small sigma2 is.
    """
    d = W.shape[1]
    inverses, log_determinants, Z = masked_latents(rows, W, sigma2)
    square, products = rows.residual_sums(Z, W)
    square /= sigma2
    q = square + float(np.vdot(Z, Z))
    gradient_W = (products / sigma2).T
    normaliser = traces = 0.0
    if determinants:
        upper, right, _ = triangle(d)
        H = unpack(rows.pattern_weights * inverses[upper, right] @ rows.masks, d)
        gradient_W -= np.einsum("klj,jl->jk", H, W)
        normaliser = float(rows.pattern_weights @ log_normaliser(rows.value_counts, d, sigma2, log_determinants))
        # tr A_o^-1 of each pattern
        traces = float(rows.pattern_weights @ ((rows.value_counts - d) / sigma2 + np.einsum("iip->p", inverses)))
    gradient_sigma2 = 0.5 * (square / sigma2 - traces)
    return normaliser - 0.5 * q, gradient_W, gradient_sigma2, q


# ---------------------------------------------------------------------- the maximum


@dataclass(frozen=True)
class GradientSolution:
    """Where a gradient solver ended."""

    # "budget": out of iterations; "stalled": no step improves the objective, although the criteria are far from met
    status: Status
    reason: str  # for "unbounded": what diverges
    W: Array  # (D, d)
    sigma2: float
    objective: float
    # The largest of the relative gradient, the last relative change of the objective, and the error of F10's identity
    residual: float
    history: Array  # (n_iter + 1,): the objective after each iteration

    @property
    def n_iter(self) -> int:
        """Iterations made."""
        return self.history.size - 1


class _Unbounded(Exception):
    """Proof, or overwhelming evidence, that the objective has no maximum."""


class _Ascent:
    """The objective in units in which its variables are of order one, and how far an iteration has come."""

    def __init__(
        self,
        groups: Groups[MaskedGroup],
        gamma: float,
        start: tuple[Array, float],
        tol: float,
        observer: Observer | None,
    ):
        foreground, (W, sigma2) = groups.foreground, start
        self.terms, self.shape = counted_terms(groups, gamma), W.shape
        self.cells = sum(c * group.cells for c, group in self.terms)  # sum D_i - gamma_raw sum E_j
        self.variance = foreground.typical_variance
        # Rows of W are in units of their feature's standard deviation, so unequal units do not stall the solver.
        self.units = np.sqrt(np.maximum(foreground.variance, self.variance))[:, None]
        counts = np.sum([c * group.feature_counts for c, group in self.terms], axis=0)
        margin = min(float(np.min(counts / foreground.feature_counts)), 1.0)
        self.largest = RUNAWAY * float(foreground.variance.sum()) / margin
        self.tol, self.observer = tol, observer
        self.key: bytes = b""  # of the last evaluation
        self.values: list[float] = []
        self.residual = np.inf
        # The last iterate, (W, log sigma2) as one vector, and the objective there.
        self.last: tuple[Array, float] = np.append((W / self.units).ravel(), np.log(sigma2 / self.variance)), -np.inf

    def unpack(self, theta: Array) -> tuple[Array, float]:
        """W and sigma2 from the vector."""
        return self.units * theta[:-1].reshape(self.shape), self.variance * float(np.exp(theta[-1]))

    def at(self, theta: Array) -> Evaluation:
        """The objective at a point; raises if it is unbounded (F10). The last evaluation is cached."""
        key = theta.tobytes()
        if key != self.key:
            W, sigma2 = self.unpack(theta)
            self.evaluation = masked_log_likelihood(self.terms, W, sigma2)
            self.key = key
            parts = [c * q for (c, _), q in zip(self.terms, self.evaluation.quadratics, strict=True)]
            self.difference = sum(parts)  # sum x'A^-1 x - gamma_raw sum y'A^-1 y
            if self.difference <= -CERTAIN * sum(map(abs, parts)):
                raise _Unbounded("the noise variance goes to 0")
        return self.evaluation

    def loss(self, theta: Array) -> tuple[float, Array]:
        """The loss -l / cells and its gradient in theta."""
        evaluation = self.at(theta)
        _, sigma2 = self.unpack(theta)
        gradient = np.append((self.units * evaluation.gradient_W).ravel(), sigma2 * evaluation.gradient_sigma2)
        return -evaluation.value / self.cells, -gradient / self.cells

    def add(self, theta: Array) -> bool:
        """Record an iterate; whether it satisfies all criteria. Raises if it, not just a trial point, has diverged."""
        W, sigma2 = self.unpack(theta)
        if sigma2 < VANISHING * self.variance:
            raise _Unbounded(VANISHED)
        if not np.vdot(W, W) < self.largest:
            raise _Unbounded("the loadings go to infinity")
        evaluation = self.at(theta)
        change = abs(evaluation.value - self.last[1]) / self.cells if self.values else 0.0
        self.values.append(evaluation.value)
        self.last = theta.copy(), evaluation.value
        size = max(float(np.linalg.norm(theta[:-1])), np.sqrt(sigma2 / self.variance))
        slope = size * float(np.linalg.norm(self.units * evaluation.gradient_W))
        slope = max(slope, sigma2 * abs(evaluation.gradient_sigma2)) / self.cells
        # At every maximum the derivative along A -> s A is 0, that is
        # sum x'A^-1 x - gamma_raw sum y'A^-1 y = sum D_i - gamma_raw sum E_j (F10).
        self.residual = max(slope, change, abs(self.difference / self.cells - 1))
        if self.observer is not None:
            self.observer(len(self.values) - 1, evaluation.value, slope)
        return self.residual <= self.tol

    def run(self, max_iter: int) -> Status:
        """L-BFGS until all criteria are met; restarted once when no step improves the objective."""
        for _ in range(2):
            left = max_iter - len(self.values) + 1
            if left <= 0:
                break
            minimise(self.loss, self.last[0], max_iter=left, stop=self.add, last_range=LOG_RANGE)
            if self.residual <= self.tol:
                return "converged"
        if len(self.values) > max_iter:
            return "budget"
        # No step improves the objective: this is probably the maximum in floating point, unless rounding hides that
        # the last iterate is on its way to sigma2 = 0.
        sigma2 = self.unpack(self.last[0])[1]
        slope = sigma2 * self.at(self.last[0]).gradient_sigma2 / self.cells
        if sigma2 < FAINT * self.variance and slope < -FALLING:
            raise _Unbounded(VANISHED)
        return "converged" if self.residual <= LOOSEST else "stalled"


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

    Needs sum D_i > gamma_raw sum E_j. It has converged when the relative gradient, the relative change of the objective
    and the relative error of F10's identity are all at most `tol`. The observer does not affect the result.
    """
    ascent = _Ascent(groups, gamma, (W, sigma2), tol, observer)
    status: Status = "unbounded"
    reason = ""
    try:
        with calm_threads(multiplications(groups, W.shape[1])):
            status = "converged" if ascent.add(ascent.last[0]) else ascent.run(max_iter)
    except _Unbounded as proof:
        reason = str(proof)
    best, value = ascent.last
    return GradientSolution(status, reason, *ascent.unpack(best), value, ascent.residual, np.array(ascent.values))


def noise_is_determined(group: MaskedGroup, W: Array) -> bool:
    """Whether no change of W makes up for one of sigma2 in the covariance A_o of every row (F25).

    A row with more than d observed values suffices: sigma2 is the smallest eigenvalue of its A_o. Otherwise sigma2 is
    arbitrary if there are changes v_j of the loadings w_j of the features with w_j'v_k + w_k'v_j = -1 for j = k, and 0
    for j != k, for all features j, k that are observed together.
    """
    D, d = W.shape
    if np.any(group.by_count[d + 1 :] > 0) or group.rows is None:
        return True
    j, k = np.nonzero(np.triu(group.rows.total(lambda rows: rows.masks.T @ rows.masks)))
    # One equation for each pair, with unknowns v (D, d) row by row; equal features meet twice.
    equation, unknown = np.repeat(np.arange(j.size), d), np.arange(d)
    entries = np.concatenate([W[k].ravel(), W[j].ravel()])
    places = np.concatenate([(j[:, None] * d + unknown).ravel(), (k[:, None] * d + unknown).ravel()])
    equations = sp.csr_array((entries, (np.tile(equation, 2), places)), shape=(j.size, D * d))
    wanted = -(j == k).astype(float) * float(np.mean(W**2))  # of order one in any units
    misfit = lsqr(equations, wanted, atol=LSQR_TOLERANCE, btol=LSQR_TOLERANCE, iter_lim=LSQR_STEPS)[3]
    return bool(misfit > MISFIT * np.linalg.norm(wanted))
