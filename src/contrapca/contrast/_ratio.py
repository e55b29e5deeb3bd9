"""Directions with the largest ratio of two groups' variances (F26, F27).

For covariances A of the foreground and B of the background, v'A v / v'M v is maximised, with M = gamma B + (1 - gamma)
(tr B / D) I: gamma = 1 is the pure ratio, gamma = 0 is PCA, and gamma = 1 / (1 + ridge) in between. Matrices are
factorised; large tables are only multiplied with. Rows that are fewer than their features enter by their inner
products or, for a pure ratio, by their coordinates in their span (F7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg.lapack import dpocon, dpotrf

from .._util.arrays import EPS, TINY, Array, host, namespace, on_device, put
from .._util.threads import calm_threads
from ..data import Groups
from ..exceptions import GroupError, SingularGroupError, SolverError
from ..moments import (
    MAX_DENSE,
    Contrast,
    DenseScatter,
    Moments,
    RowScatter,
    background_contrast,
    contrast,
    has_few_rows,
    mixed,
    reduced_contrast,
    rounding_variance,
)
from ._eigen import Solution, Spectrum, top_eigenpairs, top_eigenvalues, top_of, top_vectors
from ._limits import rank_exceeds
from ._path import outside, symmetric
from ._whitening import ledoit_wolf, oracle_approximating

FOREGROUND, BACKGROUND, BOTH = "foreground", "background", "both"
STATIONARY = 1e-9  # for |A v - rho M v|, relative to |A v|
ROUNDED = 1e-11  # variance of A where M has none, as a part of the whole, that rounding explains
MAX_STEPS = 60  # solutions of contrasts; about five are needed for each ratio

# The floor of ratio axes: how many of the background's eigenvalues may be too large for it, as what multiple of the
# floor each of these counts, and how many steps are taken at most to find it.
CLIPPED, HIGHEST, MAX_CLIPS = 51, 8.0, 200

PROBES = 64  # random vectors for tr B^2: it is then right to 18 % at worst, and the ridge with it
Terms = tuple[tuple[float, Moments], ...]  # sum of c_k S_k
WeightedRows = Sequence[tuple[float, RowScatter]]
Map = Callable[[Any], Any]
Axes = tuple[Array, Array]  # ratios of variances (k,), and directions of unit length
Found = tuple[Array, Array, int] | None  # ratios (d,), unit vectors (size, d), iterations; None where there are none
ENDS = (FOREGROUND, BACKGROUND, BOTH)

# Largest and smallest ridge above 0 in the default grid.
LARGEST, LEAST = 100.0, 1e-3


def strength(contrast: Contrast) -> float:
    """gamma of a contrast, from its coefficients 1 and -gamma n / m."""
    _, *backgrounds = contrast.terms
    return -sum(c * group.weight for c, group in backgrounds) / contrast.n_foreground


def count_of_foreground(end: str, d: int) -> int:
    """How many of d directions are of the foreground's end: of both ends, one more if d is odd. They come first."""
    return {FOREGROUND: d, BACKGROUND: 0, BOTH: (d + 1) // 2}[end]


def solve_ratio(
    contrast: Contrast, d: int, end: str = FOREGROUND, *, orthogonal: bool = False, start: Array | None = None
) -> Solution:
    """The d directions with the most extreme ratios at the gamma of the contrast.

    Parameters
    ----------
    contrast : Contrast
        Its groups, and its gamma in [0, 1].
    d : int
    end : {"foreground", "background", "both"}
        Directions in which the foreground varies most for the background's variance, the reverse, or half of the
        former, then half of the latter.
    orthogonal : bool
        Whether each direction is the best of those orthogonal to all that were found before; with both ends they are
        found in turn. Otherwise directions are orthogonal in the metric M.
    start : ndarray of shape (size, k), optional
        Vectors near the solution.

    Returns
    -------
    Solution
        Directions of unit length, with n times the ratios to M as values. Not feasible if the foreground varies where M
        does not: ratios are then infinite.
    """
    count = count_of_foreground(end, d)
    ends, find = [FOREGROUND] * count + [BACKGROUND] * (d - count), _in_turn if orthogonal else _at_once
    few, found = has_few_rows(group for _, group in contrast.terms), None
    if not few or (strength(contrast) < 1 and not orthogonal):
        found = find(contrast, ends, start)
    if few and found is None:
        small, basis = reduced_contrast(contrast, d)
        if (found := find(small, ends, None)) is not None:
            found = found[0], basis.vectors(found[1]), found[2]
    if found is None:
        empty = np.zeros((contrast.size, d))
        return Solution(Spectrum(np.zeros(d), empty, [empty] * len(contrast.terms)), np.ones(d), 0.0, feasible=False)
    values, vectors, n_iter = found
    spectrum = Spectrum(contrast.n_foreground * values, vectors, contrast.images(vectors), n_iter)
    return Solution(spectrum, np.ones(d), 0.0, feasible=True, eigenvectors=False)


# ---------------------------------------------------------------------- ratios of some groups


def _at_once(contrast: Contrast, ends: list[str], start: Array | None) -> Found:
    """All directions of each end together."""
    values, vectors, total = [], [], 0
    for end in dict.fromkeys(ends):
        quotient, d = Quotient.of(contrast, end), ends.count(end)
        if has_few_rows(group for _, group in contrast.terms):
            found = _from_few_rows(quotient, d)
        elif contrast.is_dense or quotient.floor == 0:  # only matrices tell where M does not vary
            found = _from_matrices(*quotient.matrices("ridge=0"), d)
        else:
            found = _from_contrasts(quotient, d, start)
        if found is None:
            return None
        values.append(found[0])
        vectors.append(found[1])
        total += found[2]
    return np.concatenate(values), np.hstack(vectors), total


def _in_turn(contrast: Contrast, ends: list[str], start: Array | None) -> Found:
    """One direction after the other, each orthogonal to those before; the ends alternate."""
    first = ends.count(ends[0])
    order = sorted(range(len(ends)), key=lambda k: (k % first, k // first))
    values, V, total = np.zeros(len(ends)), np.zeros((contrast.size, 0)), 0
    matrices = {end: Quotient.of(contrast, end).matrices("orthogonal=True") for end in set(ends)}
    for k in order:
        A, M, tiny = matrices[ends[k]]
        P = np.linalg.qr(V, mode="complete")[0][:, V.shape[1] :]
        if V.shape[1]:
            placed = put(P, A)
            A, M, tiny = placed.T @ A @ placed, placed.T @ M @ placed, np.full(P.shape[1], tiny.max())
        if (found := _from_matrices(A, M, tiny, 1)) is None:
            return None
        values[k], total = found[0][0], total + found[2]
        V = np.hstack([V, P @ found[1]])
    return values, V[:, np.argsort(order)], total


@dataclass(frozen=True)
class Quotient:
    """v'A v / v'M v, with A the mean covariance of the groups above, and M = gamma B + floor I of those below."""

    above: Contrast  # A
    below: Contrast  # B
    gamma: float
    floor: float

    @classmethod
    def of(cls, contrast: Contrast, end: str) -> Quotient:
        """The quotient of a contrast's groups at its gamma; for the background's end, with the groups swapped."""
        gamma = strength(contrast)
        parts = contrast.terms[:1], contrast.terms[1:]
        above, below = (_mean_of(part) for part in (parts if end == FOREGROUND else parts[::-1]))
        if not any(group.total_variance() > 0 for _, group in below.terms):
            constant = BACKGROUND if end == FOREGROUND else FOREGROUND
            raise GroupError(f"The {constant} does not vary at all, so there is no ratio of variances: check it.")
        return cls(above, below, gamma, (1 - gamma) * below.trace / contrast.n_features)

    def matrices(self, setting: str) -> tuple[Any, Any, Array]:
        """A, M, and the variances (size,) that are rounding; `setting` is what needs them."""
        above, below, size = self.above, self.below, self.above.size
        if size > MAX_DENSE and not (above.is_dense and below.is_dense):
            raise ValueError(
                f"{setting} needs matrices of all features, and {size} are too many (at most {MAX_DENSE}): use "
                "ridge='auto' or a number above 0, such as ridge=0.1, without orthogonal=True."
            )
        A, M = above.dense(), self.gamma * below.dense()
        if on_device(M):
            M = M + self.floor * namespace(M).eye(size, dtype=M.dtype, device=M.device)
        else:
            M[np.diag_indices_from(M)] += self.floor
        return A, M, np.max([_rounding(group) for _, group in (*above.terms, *below.terms)], axis=0)

    def images(self, V: Array) -> tuple[Array, Array]:
        """A V and M V."""
        return self.above.matmul(V), self.gamma * self.below.matmul(V) + self.floor * V


def _mean_of(terms: Terms) -> Contrast:
    """The mean covariance of some groups, in their parts of the contrast; by rows at gamma = 0."""
    sizes = [abs(c) for c, _ in terms] if any(c for c, _ in terms) else [1.0] * len(terms)
    weight = sum(size * group.weight for size, (_, group) in zip(sizes, terms, strict=True))
    return Contrast.of(*((size / weight, group) for size, (_, group) in zip(sizes, terms, strict=True)))


def _rounding(group: Moments) -> Array:
    """The largest variance that rounding of the mean can give each coordinate of a constant feature, shape (size,)."""
    if group.mean.size == group.scatter.size:
        return np.asarray((group.weight * EPS * group.mean) ** 2)
    return np.full(group.scatter.size, rounding_variance(group))


# ---------------------------------------------------------------------- the generalised eigenproblem


def _from_matrices(A: Any, M: Any, tiny: Array, d: int) -> Found:
    """The d largest ratios and their M-orthogonal directions; None if A varies where M does not."""
    root = _inverse_root(A, M, tiny)
    if root is None or root[2] < d:
        return None
    to, back, size = root
    # NumPy multiplies and SciPy solves in turn: the threads of each would spin while those of the other work.
    with calm_threads(float(A.shape[0]) ** 2):
        if on_device(A):
            u, n_iter = top_vectors(back(back(A).T), d), 1
        else:
            u, n_iter = top_of(lambda v: back(A @ to(v)), size, d, lambda: back(back(A).T))
        W = host(to(put(u, A)))
        W = W / np.linalg.norm(W, axis=0)
        above, below = (np.sum(W * DenseScatter(matrix).matmul(W), axis=0) for matrix in (A, M))
    return above / np.maximum(below, TINY), W, n_iter


def _inverse_root(A: Any, M: Any, tiny: Array) -> tuple[Map, Map, int] | None:
    """V -> T V and V -> T'V for T with T'M T = I, and the columns of T, as many as M varies in; None if A varies
    elsewhere.

    M is judged with its diagonal scaled to 1, so that units of the features do not matter. Variances of at most `tiny`
    are rounding. On a device there is no estimate of the condition of a Cholesky factor, so it is not tried.
    """
    order, below = M.shape[0], DenseScatter(M).diagonal()
    variances = np.where(below > tiny, below, DenseScatter(A).diagonal())
    scale = put(np.sqrt(np.where(variances > tiny, variances, 1.0)), M)
    R = M / scale
    R /= scale[:, None]
    L, failed = (None, True) if on_device(M) else dpotrf(R, lower=1)
    if not failed and dpocon(L, np.linalg.norm(R, 1), uplo="L")[0] > order * EPS:
        T = partial(scipy.linalg.solve_triangular, L, lower=True, check_finite=False)
        return lambda V: T(V, trans="T") / scale[:, None], lambda V: T(V / scale[:, None]), order
    xp = namespace(M)
    values, Q = xp.linalg.eigh(R)
    n_null = int(np.sum(host(values) <= 4 * order * EPS * float(values[-1])))
    scaled, null = A / scale / scale[:, None], Q[:, :n_null]
    if float(xp.sum(null * (scaled @ null))) > ROUNDED * DenseScatter(scaled).trace:
        return None
    T = Q[:, n_null:] / xp.sqrt(values[n_null:]) / scale[:, None]
    return lambda V: T @ V, lambda V: T.T @ V, order - n_null


def _from_few_rows(quotient: Quotient, d: int) -> Found:
    """The d largest ratios from inner products of few rows alone (F27): of the order of each group, not of both.

    With A = P'P and M = Q'Q + floor I, P M^-1 P' has the same eigenvalues as M^-1 A, and by Woodbury's formula it is
    (P P' - P Q'(Q Q' + floor I)^-1 Q P') / floor. None if rounding spoils the difference: the residuals tell.
    """
    below = [(quotient.gamma * c, group) for c, group in quotient.below.terms]
    P, Q = _weighted_rows(quotient.above.terms), _weighted_rows(below)
    PP, QP, metric = inner_products(P, P), inner_products(Q, P), inner_products(Q, Q)
    metric[np.diag_indices_from(metric)] += quotient.floor
    if len(PP) < d:
        return None
    with calm_threads(float(len(PP)) ** 2):
        try:
            L = scipy.linalg.cholesky(metric, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            return None
        H = scipy.linalg.solve_triangular(L, QP, lower=True, check_finite=False)
        K = PP - H.T @ H
        u, n_iter = top_of(lambda v: K @ v, len(K), d, lambda: K)
        s = scipy.linalg.solve_triangular(L, H @ u, lower=True, trans="T", check_finite=False)
    V = _combined(P, u) - _combined(Q, s)
    lengths = np.linalg.norm(V, axis=0)
    if not np.all(lengths > 0):  # P varies in fewer than d directions
        return None
    V /= lengths
    above, below_ = quotient.images(V)
    rho = np.sum(V * above, axis=0) / np.sum(V * below_, axis=0)
    if np.any(np.linalg.norm(above - rho * below_, axis=0) > STATIONARY * np.linalg.norm(above, axis=0)):
        return None
    return rho, V, n_iter


def _weighted_rows(terms: Iterable[tuple[float, Moments]]) -> WeightedRows:
    """The rows of groups, each with the root of its coefficient."""
    return [(float(np.sqrt(c)), group.scatter) for c, group in terms if isinstance(group.scatter, RowScatter)]


def inner_products(left: WeightedRows, right: WeightedRows) -> Array:
    """P Q' of rows times the roots of their coefficients; a group's own are computed once."""

    def block(c: float, one: RowScatter, e: float, other: RowScatter) -> Array:
        found = one.gram if one is other else one.centred(slice(None)) @ other.centred(slice(None)).T
        return np.asarray(c * e * found)

    return np.block([[block(*one, *other) for other in right] for one in left])


def _combined(groups: WeightedRows, weights: Array) -> Array:
    """P'w for weights (rows, k), shape (D, k)."""
    parts = np.split(weights, np.cumsum([len(scatter.rows) for _, scatter in groups])[:-1])
    return np.sum([c * (scatter.centred(slice(None)).T @ w) for (c, scatter), w in zip(groups, parts, strict=True)], 0)


def _from_contrasts(quotient: Quotient, d: int, start: Array | None) -> Found:
    """The d largest ratios from eigenpairs of contrasts alone (F27): nothing is factorised or of size D x D.

    rho_j is the j-th largest ratio if and only if the j-th largest eigenvalue of A - rho_j (M - floor I) is rho_j
    floor. The eigenvectors there are added to a basis, in which the ratios are computed next (Rayleigh and Ritz): they
    grow to the largest ones, each in about five steps. The last ratio comes first, since its d eigenvectors certify
    that no larger one is missed.
    """
    basis = np.empty((quotient.above.size, 0))
    images = [basis, basis]  # A and M times the basis
    rho, worst, products = np.zeros(d), d - 1, 0
    settled = np.zeros(d, dtype=bool)  # ratios whose eigenvectors add nothing to the basis, beyond rounding
    for _ in range(MAX_STEPS):
        below = ((-rho[worst] * quotient.gamma * c, group) for c, group in quotient.below.terms)
        found = top_eigenpairs(Contrast.of(*quotient.above.terms, *below), worst + 1, start=start)
        products += found.n_iter
        new = outside(basis, found.vectors)
        settled[worst] = new.shape[1] == 0
        basis = np.hstack([basis, new])
        images = [np.hstack(pair) for pair in zip(images, quotient.images(new), strict=True)]
        A, M = (symmetric(basis, image) for image in images)
        try:
            values, w = scipy.linalg.eigh(A, M)
        except np.linalg.LinAlgError:  # M is singular in the basis
            return None
        if values[-1] > 1 / ROUNDED:
            return None
        rho, w = values[: -d - 1 : -1], w[:, : -d - 1 : -1]
        allowed = STATIONARY * np.linalg.norm(images[0] @ w, axis=0)
        moving = np.linalg.norm(images[0] @ w - images[1] @ (w * rho), axis=0) > allowed
        bad = np.flatnonzero(moving & ~settled)
        if bad.size == 0:
            W = basis @ w
            return rho, W / np.linalg.norm(W, axis=0), products
        worst, start = int(bad[-1]), basis @ w
    raise SolverError("The ratios did not converge. Use a larger ridge, fewer components, or scale='pooled'.")


# ---------------------------------------------------------------------- the automatic ridge


def shrunk_strength(contrast: Contrast, end: str, fourths: Groups[float] | None = None) -> float:
    """gamma in [0, 1) that shrinks the denominator's covariance as its rows demand (F27); of two ends, the smaller.

    `fourths` are the sums of |y|^4 over the rows of each group about its mean, in units of its total variance; without
    them rows count as Gaussian.
    """
    terms = contrast.terms
    parts = {FOREGROUND: [slice(1, None)], BACKGROUND: [slice(1)], BOTH: [slice(1), slice(1, None)]}[end]
    every = [None] * len(terms) if fourths is None else list(fourths)
    return min(1 - _shrinkage(_mean_of(terms[part]), every[part]) for part in parts)


def _shrinkage(covariance: Contrast, fourths: Sequence[float | None]) -> float:
    """Part of the identity in a shrunk covariance B, in (0, 1]: by Ledoit and Wolf, or from moments alone.

    Where B is not a matrix, random vectors estimate tr B^2 (Hutchinson 1990).
    """
    trace, m = covariance.trace, sum(group.weight for _, group in covariance.terms)
    if not trace > 0:
        return 1.0
    # tr B is 1 in these units, so that squares do not overflow.
    B = Contrast.of(*((c / trace, group) for c, group in covariance.terms))
    few = has_few_rows(group for _, group in B.terms)
    if few or B.is_dense:
        rows = _weighted_rows(B.terms)
        matrix = inner_products(rows, rows) if few else B.dense()
        square = float(namespace(matrix).linalg.matrix_norm(matrix)) ** 2
    else:
        probes = np.random.default_rng(0).choice([-1.0, 1.0], size=(B.size, PROBES))
        square = float(np.sum(B.matmul(probes) ** 2)) / PROBES
    shares = [group.total_variance() / trace for _, group in covariance.terms]
    known = [own * share**2 for own, share in zip(fourths, shares, strict=True) if own is not None]
    if len(known) < len(shares):
        return oracle_approximating(square, 1.0, covariance.n_features, m)
    return ledoit_wolf(square, 1.0, covariance.n_features, m, sum(known) / m)


# ---------------------------------------------------------------------- gamma = 1 / (1 + ridge), and what belongs to it


def ratio_limit(groups: Groups[Moments], d: int, end: str, *, orthogonal: bool) -> tuple[float, Array | None]:
    """1 where only a ridge makes the ratios finite, else the next number above it; 0 for too low a rank. And vectors
    near the solution there."""
    if not rank_exceeds(groups.foreground, d):
        return 0.0, None
    solution = solve_ratio(contrast(groups, 1.0), d, end, orthogonal=orthogonal)
    return (float(np.nextafter(1.0, 2.0)), solution.spectrum.vectors) if solution.feasible else (1.0, None)


def sum_of_theta(contrast: Contrast, values: Array) -> float:
    """The sum of theta = rho / (1 + rho), of 1 - theta at the background's end: what the eigenvectors maximise."""
    rho = strength(contrast) * values / contrast.n_foreground
    return float(np.sum(rho / (1 + rho)))


def ratios(values: Array, gamma: float, end: str) -> Array:
    """rho of each direction from its values: those of the background's end are reciprocals, shape (d,)."""
    n_foreground, rho = count_of_foreground(end, values.size), gamma * values
    with np.errstate(divide="ignore"):
        return np.concatenate([rho[:n_foreground], 1 / rho[n_foreground:]])


def ratio_grid(limit: float, points: int) -> Array:
    """`points` gammas from 0, which is PCA, to the pure ratio if that exists."""
    ridges = np.geomspace(LARGEST, LEAST, points - 1)
    if limit > 1:
        ridges[-1] = 0.0
    return np.concatenate([[0.0], 1 / (1 + ridges)])


def ratio_refusal(gamma: float, end: str, hint: str) -> SingularGroupError:
    """The error for a ratio that is infinite."""
    varying, constant = (FOREGROUND, BACKGROUND) if end == FOREGROUND else (BACKGROUND, FOREGROUND)
    return SingularGroupError(gamma, varying, constant, hint)


def strength_of_ridge(ridge: float) -> float:
    """gamma = 1 / (1 + ridge): the weight of the background in the metric (F27)."""
    return 1 / (1 + ridge)


def ridge_of_strength(gamma: float) -> float:
    """The ridge that belongs to a gamma; infinite at 0."""
    return (1 - gamma) / gamma if gamma > 0 else np.inf


# ---------------------------------------------------------------------- ratio axes


def ratio_axes(groups: Groups[Moments], k: int, share: float | None = None) -> Axes | None:
    """The k largest ratios of A v = theta (B + t I) v and their directions of unit length, shape (size, k) (F41); None
    if the background does not vary, as ratios are then infinite. `share` is that of `floor_share`, if it is known."""
    if mixed(groups, groups.map(Moments.total_variance)) <= 0:
        return None
    gamma = strength_of_ridge(floor_share(groups) if share is None else share)  # the metric is gamma (B + t I)
    found = solve_ratio(contrast(groups, gamma), k)
    return gamma * found.spectrum.values / groups.foreground.weight, found.spectrum.vectors


def floor_share(groups: Groups[Moments]) -> float:
    """t, in units of the background's mean variance: the mean of its eigenvalues, none counted as more than
    `HIGHEST` times t itself.

    So a few strong directions that both groups share do not raise the floor above all that is weaker. Beyond the
    largest eigenvalues all are taken as they are.
    """
    B = background_contrast(groups)
    values = top_eigenvalues(B, min(CLIPPED, B.size - 1)) * B.n_features / B.trace
    t, rest = 1.0, max(B.n_features - float(values.sum()), 0.0)
    for _ in range(MAX_CLIPS):
        t, before = (float(np.minimum(values, HIGHEST * t).sum()) + rest) / B.n_features, t
        if before - t <= EPS:
            break
    return t
