"""Draws from the Gibbs posterior of CPCA, a matrix Bingham distribution: exp(w tr V'C V) on orthonormal V (F13).

Everything is in the eigenbasis of C, where C = diag(values). Vectors are drawn exactly, by rejection from an
angular central Gaussian distribution (Kent, Ganeiber and Mardia 2018): with a = shift - values, t = x'diag(a) x >= 0
on the unit sphere of a q-dimensional space and Omega = I + 2 diag(a) / b,

    exp(-t) <= exp(-(q - b) / 2) (q / b)^(q/2) (x'Omega x)^(-q/2)    for 0 < b <= q,

and x = y / |y| with y ~ N(0, Omega^-1) has a density proportional to (x'Omega x)^(-q/2).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.optimize

from .._util.arrays import EPS, TINY, Array

BATCH, MAX_BATCHES = 8, 5000  # proposals at a time for one vector of a sweep, and how often at most
SHIFT_TOLERANCE = 0.01  # by which a shift may stay below the smallest eigenvalue: it lowers acceptance by exp of it


def sample_vectors(values: Array, n: int, generator: np.random.Generator) -> Array:
    """`n` independent unit vectors with density exp(x'diag(values) x), shape (n, D)."""
    D = values.size
    a = values.max() - values
    b = _envelope(a, D)
    omega = 1 + 2 * a / b
    found = np.empty((0, D))
    while found.shape[0] < n:
        y = generator.standard_normal((n, D)) / np.sqrt(omega)
        found = np.vstack([found, _accept(y, a, omega, b, D, generator)])
    return found[:n]


def _envelope(a: Array, q: int) -> float:
    """b that makes the envelope tightest: sum_i 1 / (b + 2 a_i) = 1, in (0, q]."""

    def excess(log_b: float) -> float:
        return float(np.sum(1 / (np.exp(log_b) + 2 * a))) - 1

    if excess(np.log(q)) >= 0:
        return float(q)
    return float(np.exp(scipy.optimize.brentq(excess, np.log(0.5), np.log(q), xtol=1e-2)))


def _accept(y: Array, a: Array, omega: Array, b: float, q: int, generator: np.random.Generator) -> Array:
    """The proposals (rows of y, made unit vectors) that are accepted."""
    x = y / np.linalg.norm(y, axis=1, keepdims=True)
    square = x**2
    bound = -(q - b) / 2 + q / 2 * np.log(q / b)
    log_ratio = -(square @ a) + q / 2 * np.log(np.maximum(square @ omega, TINY)) - bound
    return x[np.log(generator.random(x.shape[0])) < log_ratio]


def sample_frames(
    values: Array,
    d: int,
    sweeps: int,
    burn_in: int,
    generator: np.random.Generator,
    observer: Callable[[int], None] | None = None,
) -> Array:
    """`sweeps` frames V with density exp(tr V'diag(values) V) by column-wise Gibbs (Hoff 2009), shape (sweeps, D, d).

    Given the other columns, a column is a Bingham vector on the sphere orthogonal to them, drawn exactly.
    """
    D = values.size
    V = np.zeros((D, d))
    V[:d] = np.linalg.qr(generator.standard_normal((d, d)))[0]
    frames = np.empty((sweeps, D, d))
    for sweep in range(-burn_in, sweeps):
        for k in range(d):
            V[:, k] = _column(values, np.delete(V, k, axis=1), V[:, k], generator)
        if sweep >= 0:
            frames[sweep] = V
        if observer is not None:
            observer(sweep + burn_in + 1)
    return frames


def _column(values: Array, others: Array, current: Array, generator: np.random.Generator) -> Array:
    """One Bingham vector orthogonal to the columns of `others`, without an eigendecomposition.

    With diag(omega) = I + 2 (A - shift) / b, y ~ N(0, (B'diag(omega) B)^-1) in the space B orthogonal to the others.
    Some omega may be negative, for directions that the others occupy: these are replaced by positive ones,
    diag(omega) = diag(plus) - F F', and

        (B'diag(omega) B)^-1 = S + S F (I - F'S F)^-1 F'S,   S = (B'diag(plus) B)^-1

    (Woodbury), so that y is a draw with covariance S, an unconstrained one projected, and a low-rank Gaussian.
    """
    a = values.max() - values
    shift = _smallest_inside(a, others, float(current**2 @ a))
    margin = EPS * (1 + shift)
    while True:
        try:
            return _drawn(a - shift, others, generator)
        except np.linalg.LinAlgError:  # rounding has put the shift above the smallest eigenvalue
            shift, margin = shift - margin, 10 * margin


def _drawn(relative: Array, others: Array, generator: np.random.Generator) -> Array:
    """`_column` for A less its smallest eigenvalue inside."""
    D, k = others.shape
    q = D - k
    # The eigenvalues inside, the smallest of which is 0 now, interlace with all; they matter for efficiency only.
    inside = np.maximum(np.sort(relative)[k:], 0.0)
    inside[0] = 0.0
    b = _envelope(inside, q)
    omega = 1 + 2 * relative / b
    # Mirrored, not merely raised: what is added and taken away again is then of the size of what remains.
    plus = np.where(omega < 0.5, 1 - omega, omega)
    low = np.flatnonzero(omega < 0.5)
    gain = others / plus[:, None]
    small = np.linalg.cholesky(others.T @ gain)
    half = np.linalg.solve(small, gain.T)  # S = diag(1 / plus) - half'half
    addition = None
    if low.size:
        F = np.sqrt(plus[low] - omega[low])
        S_low = -half.T @ half[:, low]
        S_low[low, np.arange(low.size)] += 1 / plus[low]
        S_F = S_low * F  # S F, shape (D, r)
        addition = S_F @ np.linalg.inv(np.linalg.cholesky(np.eye(low.size) - F[:, None] * S_F[low])).T
    for _ in range(MAX_BATCHES):
        y = generator.standard_normal((BATCH, D)) / np.sqrt(plus)
        y -= y @ others @ np.linalg.solve(small.T, half)
        if addition is not None:
            y += generator.standard_normal((BATCH, addition.shape[1])) @ addition.T
        accepted = _accept(y, relative, omega, b, q, generator)
        if accepted.shape[0]:
            x = accepted[0]
            x = x - others @ (others.T @ x)  # rounding
            return x / np.linalg.norm(x)
    raise ValueError(
        "This posterior is so concentrated that floating point cannot draw from it. Use a smaller power: "
        "calibrate_power finds one."
    )


def _smallest_inside(a: Array, others: Array, upper: float) -> float:
    """Just below the smallest eigenvalue of diag(a) restricted to the space orthogonal to `others`, by bisection.

    The number of eigenvalues below mu there is neg(diag(a) - mu) + pos(S) - k with S = others'(diag(a) - mu)^-1 others
    (inertia of the bordered matrix), and `upper`, a Rayleigh quotient, is above the smallest one.
    """
    k = others.shape[1]
    low, high = 0.0, upper
    while high - low > SHIFT_TOLERANCE:
        middle = (low + high) / 2
        if not low < middle < high:  # as near as floating point comes
            break
        difference = a - middle
        difference[difference == 0] = TINY
        S = others.T @ (others / difference[:, None])
        positive = int(S[0, 0] > 0) if k == 1 else np.count_nonzero(np.linalg.eigvalsh(S) > 0)
        low, high = (low, middle) if np.count_nonzero(difference < 0) + positive > k else (middle, high)
    return low
