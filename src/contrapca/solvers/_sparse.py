"""Directions of few features: at most s entries are not zero (F29), or their sum is penalised (F36).

One direction after the other is found in what those before leave of C (projection deflation). On given features the
best direction of the first kind is the first eigenvector of that block of C, which needs these columns of the rows
only; features are exchanged by the gradient C v, until none is worth it. Nothing of size D x D is formed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._util.arrays import EPS, Array
from .._util.threads import single_thread
from ..moments import Contrast, Indices
from ._closed_form import Solution
from ._penalised import ascend
from ._sparse_parts import Kept, Left, Sparse, full
from ._spectral import TIGHT, Spectrum, Unconverged, largest, top_eigenpairs, top_vectors

WIDER, COLUMNS = 4, 4  # features of a start by their variances, relative to those wanted; columns of C that are tried
LARGE = 800  # features from which on products with the rows are cheaper than a block of C
ITERATED = 150  # features from which on Lanczos is cheaper than a direct solution
TOLERANCE, RESTARTS = 1e-10, 50  # of Lanczos with products
MAX_SWAPS = 200  # exchanges of features for one component and start
LEAST_GAIN = 1e-10  # relative gain of v'C v below which an exchange is only rounding


@dataclass(frozen=True)
class Metric:
    """A - B and B of two covariances, and the least variance of a direction in B."""

    excess: Contrast
    background: Contrast
    least: float

    def shown_best(self, v: Array) -> Array:
        """The unit vector u on the features of v that maximises (u'(A - B) v)^2 / u'B u, shape of v."""
        support = np.flatnonzero(v)
        excess = self.excess.block(support) @ v[support]
        if v[support] @ excess <= self.excess.rounding:  # nothing to show
            return v
        variances, Q = np.linalg.eigh(self.background.block(support))
        found = np.zeros(v.size)
        found[support] = Q @ ((Q.T @ excess) / np.maximum(variances, self.least))
        return np.asarray(found / np.linalg.norm(found))


@dataclass(frozen=True)
class Target:
    """What sparse directions are to hold as much as possible of.

    Attributes
    ----------
    C : Kept
        In the coordinates of the features.
    dense : Spectrum
        Its top eigenpairs, from which the search starts and whose values are the units of a penalty.
    metric : Metric or None
        If given, directions are those on the features of the sparse vectors that show them best.
    """

    C: Kept
    dense: Spectrum
    metric: Metric | None = None

    @classmethod
    def of(cls, contrast: Contrast, d: int) -> Target:
        """C itself, for d directions."""
        return cls(Kept(contrast), top_eigenpairs(contrast, d))


def solve_sparse(
    contrast: Contrast, target: Target, size: int | None, penalty: float | None, start: Array | None = None
) -> Solution:
    """Sparse directions, one after the other, as many as the target has eigenpairs.

    Parameters
    ----------
    contrast : Contrast
        In the coordinates of the features; what the solution reports variances of.
    target : Target
    size : int or None
        Largest number of features of a direction.
    penalty : float or None
        Instead of that, the weight of the sum of |v|, in units of the eigenvalue of each component.
    start : ndarray of shape (D, d), optional
        Directions near the solution, such as those with more features.

    Returns
    -------
    Solution
        Unit vectors, not orthogonal. The values are v'C v of the unit vector of each outside those before: they add up
        to tr C in the span of all.
    """
    C, dense = target.C, target.dense
    D, d = dense.vectors.shape
    wanted = size if penalty is None else min(int(penalty**-2) + 1, D)  # as many loadings can be above the penalty
    assert wanted is not None
    values, V, steps, feasible = np.zeros(d), np.zeros((D, d)), 0, True
    with single_thread():  # products with the rows use threads of their own
        for k in range(d):
            C.make_room()
            left = Left.of(C, V[:, :k])
            starts = _starts(left, wanted, dense.vectors, None if start is None else start[:, k])
            if penalty is None:
                best = climb(left, starts, wanted)
            else:
                best = ascend(left, starts, penalty * float(dense.values[k]) / 2)
            V[best.support, k] = best.entries
            outside = V[:, k] - left.Q @ (left.Q.T @ V[:, k])
            values[k] = best.value / max(float(outside @ outside), EPS)
            feasible = feasible and best.value > C.contrast.rounding
            steps += best.steps
    if target.metric is not None:
        V = np.column_stack([target.metric.shown_best(v) for v in V.T])
    spectrum = Spectrum(values, V, contrast.images(V), steps)
    return Solution(spectrum, np.ones(d), 0.0, feasible, eigenvectors=False)


def _starts(left: Left, s: int, dense: Array, given: Array | None) -> list[Array]:
    """Directions from which features are exchanged.

    The best in the span of the eigenvectors of C; the best on the features with the largest contrast of variances,
    which wins where there are many more features than rows (Johnstone and Lu 2009); the columns of C that belong to a
    few of these features; and a given one, besides which one column is enough.
    """
    D = left.Q.shape[0]
    diagonal = left.C.contrast.diagonal()
    widest = _largest_of(diagonal, min(max(min(WIDER * s, LARGE), s), D))
    many = full(_best_on(left, widest, diagonal, 0), D)
    frame = np.linalg.qr(dense - left.Q @ (left.Q.T @ dense))[0]
    small = frame.T @ left.matmul(frame)
    first = frame @ np.linalg.eigh((small + small.T) / 2)[1][:, -1]
    strongest = np.argsort(-diagonal)[: COLUMNS if given is None else 1]
    units = np.zeros((D, strongest.size))
    units[strongest, np.arange(strongest.size)] = 1.0
    return [first, many, *left.matmul(units).T, *([] if given is None else [given])]


def climb(left: Left, starts: list[Array], s: int) -> Sparse:
    """Exchange features while v'C v grows, from several starts side by side: one product with the rows serves all.

    Where one comes to features that another has been at, it is left out: they would end alike.
    """
    reached = [_best_on(left, _largest(v, s), v, 0) for v in starts]
    best, seen = max(reached, key=lambda one: one.value), set[bytes]()
    for _ in range(MAX_SWAPS):
        new = {key: one for one in reached if (key := one.support.tobytes()) not in seen}
        if not new:
            break
        seen |= new.keys()
        V = np.column_stack([full(one, left.Q.shape[0]) for one in new.values()])
        pairs = zip(new.values(), V.T, left.matmul(V).T, strict=True)
        reached = [better for one, v, gradient in pairs if (better := _exchanged(left, one, v, gradient, s))]
        best = max([best, *reached], key=lambda one: one.value)
    return best


def _exchanged(left: Left, best: Sparse, v: Array, gradient: Array, s: int) -> Sparse | None:
    """A better direction after an exchange of features; None if none is worth it.

    The features to keep are those with the largest entries of C v + shift v. A large enough shift makes C + shift I
    positive, and an exchange can then only gain (Yuan and Zhang 2013); so the shift grows after each that does not.
    """
    shift = 0.0
    while not np.array_equal(support := _largest(gradient + shift * v, s), best.support):
        trial = _best_on(left, support, gradient + shift * v, best.steps + 1)
        if trial.value > best.value + LEAST_GAIN * abs(best.value):
            return trial
        shift = 2 * shift or 0.1 * (abs(best.value) + float(np.abs(gradient).max())) or 1.0
    return None


def _largest(v: Array, s: int) -> Indices:
    """Indices of the s entries of largest magnitude, increasing."""
    return _largest_of(np.abs(v), s)


def _largest_of(values: Array, count: int) -> Indices:
    """Indices of the `count` largest values, increasing."""
    return np.sort(np.argpartition(-values, count - 1)[:count])


def _best_on(left: Left, support: Indices, near: Array, steps: int) -> Sparse:
    """The best direction with these features; `near` (D,) is not far from it."""
    s = support.size
    start = near[support] if np.any(near[support]) else np.ones(s)
    # Noise, lest the start has nothing of the first eigenvector.
    start = start + 1e-3 * np.linalg.norm(start) / np.sqrt(s) * np.random.default_rng(0).standard_normal(s)
    if s > LARGE:

        def apply(entries: Array) -> Array:
            v = np.zeros(near.size)
            v[support] = entries.ravel()
            return left.matmul(v)[support]

        try:
            values, vectors = largest(apply, start, 1, TOLERANCE, RESTARTS)
        except Unconverged:
            values, vectors = np.linalg.eigh(left.block(support))
        return Sparse(support, vectors[:, -1], float(values[-1]), float(values[-1]), steps)
    block = left.block(support)
    try:
        if s < ITERATED:
            raise Unconverged("not tried")
        entries = largest(lambda v: block @ v, start, 1, TIGHT, RESTARTS)[1][:, 0]
    except Unconverged:
        entries = top_vectors(block, 1)[:, 0]
    value = float(entries @ block @ entries)
    return Sparse(support, entries, value, value, steps)
