"""Directions whose sum of |v| is penalised: the maximum of v'C v - 2 weight |v|_1 over unit vectors (F36)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg

from .._util.arrays import TINY, Array
from ..moments import Indices
from ._sparse_parts import Left, Sparse
from ._spectral import LOOSE, Unconverged, largest, top_vectors

ROUNDS, MOST_NEW = 100, 50  # rounds in which features are let in; how many in each, or as many as there are
MAX_STEPS = 10  # steps on given features in a round, after which a start that is behind another is left
STATIONARY = 1e-9  # for the conditions of a maximum, relative to the largest entry of C v
MAX_BLOCK = 2000  # features up to which their block of C is formed
RESTARTS = 20  # of Lanczos, where it is not
# Long steps: how many, the change that ends them, the part of the largest entry that is nothing, and for how many
# features they are worth an eigenproblem each.
REWEIGHTED, NEAR, NOTHING, MAX_REWEIGHTED = 30, 1e-2, 1e-6, 300
NEWTON_STEPS = 20


def ascend(left: Left, starts: list[Array], weight: float) -> Sparse:
    """The best of the maxima to which several starts lead."""
    best = _ascended(left, starts[0], weight)
    for v in starts[1:]:
        best = max(best, _ascended(left, v, weight, best.objective), key=lambda one: one.objective)
    return best


def _ascended(left: Left, v: Array, weight: float, other: float = -np.inf) -> Sparse:
    """Climb from a direction to a maximum.

    On the features of v the objective is maximised; then others are let in whose entries of C v exceed the weight,
    until there are none; or until this takes long and is still below what another start has reached.
    """
    v = drawn_in(left.matmul(v), weight)
    working, steps = np.flatnonzero(v), 0
    for _ in range(ROUNDS):
        x, taken = _maximum_on(left, working, v, weight)
        v = np.zeros(v.size)
        v[working], steps = x, steps + taken
        gradient, support = left.matmul(v), np.flatnonzero(v)
        excess = np.where(v == 0, np.abs(gradient) - weight, 0.0)
        new = np.flatnonzero(excess > STATIONARY * np.abs(gradient).max())
        slow = taken == MAX_STEPS
        if not (new.size or slow) or (slow and _total(v, gradient, weight) < other):
            break
        new = new[np.argsort(-excess[new])[: max(MOST_NEW, support.size)]]
        working = np.sort(np.concatenate([support, new]))
    return Sparse(support, v[support], float(v @ gradient), _total(v, gradient, weight), steps)


def _total(v: Array, gradient: Array, weight: float) -> float:
    """What is maximised, v'C v - 2 weight |v|_1, from C v."""
    return float(v @ gradient - 2 * weight * np.abs(v).sum())


def drawn_in(gradient: Array, weight: float) -> Array:
    """The unit vector with the largest v'gradient - weight |v|_1."""
    found = np.sign(gradient) * np.maximum(np.abs(gradient) - weight, 0.0)
    if not found.any():  # then that of one feature is the best
        j = int(np.argmax(np.abs(gradient)))
        found[j] = 1.0 if gradient[j] >= 0 else -1.0
    return np.asarray(found / np.linalg.norm(found))


def _maximum_on(left: Left, working: Indices, v: Array, weight: float) -> tuple[Array, int]:
    """A maximum on some features, from the entries that v has there, and the number of steps.

    A step replaces x by C x + shift x, with its entries drawn to 0 by the weight, at unit length: with C + shift I
    positive, it can only gain (Journee, Nesterov, Richtarik and Sepulchre 2010). Newton's method ends what such steps
    would only approach.
    """
    x, D = v[working], v.size
    block = left.block(working) if working.size <= MAX_BLOCK else None

    def apply(x: Array) -> Array:
        if block is not None:
            return block @ x
        filled = np.zeros(D)
        filled[working] = x.ravel()
        return left.matmul(filled)[working]

    shift = max(0.0, -_smallest(apply, block, working.size))
    gradient = apply(x)
    for step in range(MAX_STEPS):
        if _violation(x, gradient, weight) <= STATIONARY * np.abs(gradient).max():
            return x, step
        x = drawn_in(gradient + shift * x, weight)
        if block is not None:
            if np.count_nonzero(x) <= MAX_REWEIGHTED:
                x = _reweighted(block, x, weight)
            x = _settled(block, x, weight)
        gradient = apply(x)
    return x, MAX_STEPS


def _smallest(apply: Callable[[Array], Array], block: Array | None, size: int) -> float:
    """The smallest eigenvalue, or, of what is no matrix, a number below it."""
    if block is not None:
        return float(scipy.linalg.eigvalsh(block, subset_by_index=[0, 0], check_finite=False)[0])
    v0 = np.random.default_rng(0).standard_normal(size)
    try:
        return -1.1 * float(largest(lambda x: -apply(x), v0, 1, LOOSE, RESTARTS)[0][0])
    except Unconverged:
        return -float(np.linalg.norm(apply(v0))) * size


def _violation(x: Array, gradient: Array, weight: float) -> float:
    """How far x is from (C x)_j = mu x_j + weight sign(x_j) on its features, and |(C x)_j| <= weight elsewhere."""
    inside = x != 0
    mu = float(x @ gradient - weight * np.abs(x).sum())
    within = np.abs(gradient - weight * np.sign(x) - mu * x)[inside].max()
    return float(max(within, np.max(np.abs(gradient[~inside]) - weight, initial=0.0)))


def _reweighted(block: Array, x: Array, weight: float) -> Array:
    """Long steps that gain: |x_j| is at most (x_j^2 / a_j + a_j) / 2 for all a_j > 0, and equal at a_j = |x_j|.

    So a first eigenvector of C - weight diag(1 / |x|) gains. Entries that shrink to nothing are left out.
    """
    for _ in range(REWEIGHTED):
        support = np.flatnonzero(np.abs(x) > NOTHING * np.abs(x).max())
        B, y = block[np.ix_(support, support)], np.abs(x[support])
        B[np.diag_indices_from(B)] -= weight / y
        before, x = x, np.zeros(x.size)
        x[support] = top_vectors(B, 1)[:, 0]
        if np.abs(np.abs(x) - np.abs(before)).max() < NEAR:
            break
    return x


def _settled(block: Array, x: Array, weight: float) -> Array:
    """The maximum with the signs of x by Newton's method, if it gains; otherwise x.

    Features whose entries would change their signs are left out: all of them, or, if that loses, the first.
    """
    support, y = np.flatnonzero(x), x[x != 0]
    level, best = _objective(block, support, y, weight), x
    for _ in range(support.size):
        found = _newton(block[np.ix_(support, support)], y, weight)
        if found is None:
            break
        before, towards, lengths = found
        first = float(lengths.min())
        if first > 1:
            trials = [(support, towards)]
        else:
            part, most, all_but_one = before + first * (towards - before), lengths > 1, lengths > first
            trials = [(support[most], towards[most]), (support[all_but_one], part[all_but_one])]
        for some, z in trials:
            if z.size and (reached := _objective(block, some, z / np.linalg.norm(z), weight)) >= level:
                break
        else:
            break
        support, y, level, best = some, z / np.linalg.norm(z), reached, np.zeros(x.size)
        best[support] = y
        if first > 1:
            break
    return best


def _newton(B: Array, y: Array, weight: float) -> tuple[Array, Array, Array] | None:
    """The maximum with the signs of y: (B - mu) y = weight sign(y), |y| = 1; or a step to it on which signs change.

    Returns
    -------
    before, after : ndarray of shape (s,)
        Of the last step.
    lengths : ndarray of shape (s,)
        The part of that step after which each entry is 0; infinite if it goes the other way.
    None if there is no step, or what it leads to is no maximum.
    """
    identity, signs, mu = np.eye(y.size), np.sign(y), float(y @ B @ y - weight * np.abs(y).sum())
    try:
        for _ in range(NEWTON_STEPS):
            residual = np.append(weight * signs + mu * y - B @ y, (1 - y @ y) / 2)
            step = np.linalg.solve(np.block([[B - mu * identity, -y[:, None]], [y, np.zeros(1)]]), residual)
            lengths = np.where(step[:-1] * signs < 0, np.abs(y) / np.maximum(np.abs(step[:-1]), TINY), np.inf)
            before, y, mu = y, y + step[:-1], mu + float(step[-1])
            if lengths.min() <= 1:
                return before, y, lengths
            if np.abs(step[:-1]).max() < 1e-3 * STATIONARY:
                break
        # A maximum among unit vectors: B - mu I is not positive in any direction orthogonal to y.
        np.linalg.cholesky(mu * identity - B + (np.abs(np.diagonal(B)).sum() + abs(mu)) * np.outer(y, y))
    except np.linalg.LinAlgError:
        return None
    return before, y, lengths


def _objective(block: Array, support: Indices, y: Array, weight: float) -> float:
    """What is maximised, of entries y on some of the features of a block."""
    return _total(y, block[np.ix_(support, support)] @ y, weight)
