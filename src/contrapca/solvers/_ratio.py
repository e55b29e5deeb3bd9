"""Directions with the largest ratio of two groups' variances (F26, F27).

For covariances A of the foreground and B of the background, v'A v / v'M v is maximised, with M = gamma B + (1 - gamma)
(tr B / D) I: gamma = 1 is the pure ratio, gamma = 0 is PCA, and gamma = 1 / (1 + ridge) in between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg.lapack import dpocon, dpotrf

from .._util.arrays import EPS, TINY, Array
from .._util.devices import host, namespace, on_device, put
from ..exceptions import SolverError
from ..moments import Contrast, DenseScatter, Moments, Scatter, has_few_rows, reduced_contrast, rounding_variance
from ._closed_form import Solution
from ._few_rows import from_inner_products, inner_products
from ._path import outside, symmetric
from ._quotient import (
    BACKGROUND,
    BOTH,
    FOREGROUND,
    STATIONARY,
    DeflatedScatter,
    Found,
    Quotient,
    Terms,
    matrix,
    mean_of,
    product,
    strength,
)
from ._spectral import Spectrum, top_eigenpairs, top_of, top_vectors

# Variance of A where M has none, as a part of the whole, that rounding explains.
ROUNDED = 1e-11
MAX_STEPS = 60  # solutions of contrasts, of which some five are needed for each ratio
PROBES = 64  # random vectors for tr B^2: it is then right to 18 % at worst, and the ridge with it

# ---------------------------------------------------------------------- solutions


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
        former, then half of the latter (one less if d is odd).
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
    n_foreground = {FOREGROUND: d, BACKGROUND: 0, BOTH: (d + 1) // 2}[end]
    ends = [FOREGROUND] * n_foreground + [BACKGROUND] * (d - n_foreground)
    if not has_few_rows(group for _, group in contrast.terms):
        found = (_in_turn if orthogonal else _at_once)(contrast, ends, start)
    elif orthogonal or strength(contrast) == 1 or (found := _at_once(contrast, ends, start)) is None:
        found = _in_span(contrast, ends, _in_turn if orthogonal else _at_once)
    if found is None:
        empty = np.zeros((contrast.size, d))
        return Solution(Spectrum(np.zeros(d), empty, [empty] * len(contrast.terms)), np.ones(d), 0.0, feasible=False)
    values, vectors, n_iter = found
    spectrum = Spectrum(contrast.n_foreground * values, vectors, contrast.images(vectors), n_iter)
    return Solution(spectrum, np.ones(d), 0.0, feasible=True, eigenvectors=False)


def _at_once(contrast: Contrast, ends: list[str], start: Array | None) -> Found:
    """All directions of each end together."""
    values, vectors, total = [], [], 0
    for end in dict.fromkeys(ends):
        found = top_quotients(Quotient.of(contrast, end), ends.count(end), start)
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
    values, vectors, total = np.zeros(len(ends)), np.zeros((contrast.size, 0)), 0
    for k in order:
        quotient, lift = _outside_of(Quotient.of(contrast, ends[k]), vectors)
        found = top_quotients(quotient, 1)
        if found is None:
            return None
        values[k], total = found[0][0], total + found[2]
        vectors = np.hstack([vectors, lift(found[1])])
    return values, vectors[:, np.argsort(order)], total


def _in_span(contrast: Contrast, ends: list[str], find: Callable[..., Found]) -> Found:
    """The same for rows that are fewer than the features, from matrices in coordinates of their span (F7)."""
    small, basis = reduced_contrast(contrast, len(ends))
    found = find(small, ends, None)
    return None if found is None else (found[0], basis.vectors(found[1]), found[2])


def _outside_of(quotient: Quotient, V: Array) -> tuple[Quotient, Callable[[Array], Array]]:
    """The quotient in the complement of the orthonormal columns of V, and the way back from its coordinates."""
    if V.shape[1] == 0:
        return quotient, np.asarray
    if not quotient.needs_matrices:
        return quotient.over(lambda scatter: DeflatedScatter(scatter, V)), lambda found: found - V @ (V.T @ found)
    P = np.linalg.qr(V, mode="complete")[0][:, V.shape[1] :]

    def inside(scatter: Scatter) -> Scatter:
        matrix = scatter.dense()
        placed = put(P, matrix)
        return DenseScatter(placed.T @ matrix @ placed)

    return quotient.over(inside), lambda found: P @ found


def top_quotients(quotient: Quotient, d: int, start: Array | None = None) -> Found:
    """The d largest ratios and their M-orthogonal directions; None if A varies where M does not."""
    if has_few_rows(group for _, group in (*quotient.above, *quotient.below)):
        return from_inner_products(quotient, d)
    return _from_matrices(quotient, d) if quotient.needs_matrices else _from_contrasts(quotient, d, start)


# ---------------------------------------------------------------------- from matrices


@dataclass(frozen=True)
class InverseRoot:
    """T with T'M T = I, applied as `to` V = T V and `back` V = T'V where M is; T has `size` columns."""

    to: Callable[[Any], Any]
    back: Callable[[Any], Any]
    size: int


def _from_matrices(quotient: Quotient, d: int) -> Found:
    A, M = matrix(quotient.above), _with_floor(matrix(quotient.below), quotient.floor)
    root = _inverse_root(A, M, np.max([_rounding(group) for _, group in (*quotient.above, *quotient.below)], axis=0))
    if root is None or root.size < d:
        return None
    if on_device(A):
        u, n_iter = top_vectors(root.back(root.back(A).T), d), 1
    else:
        u, n_iter = top_of(lambda v: root.back(A @ root.to(v)), root.size, d, lambda: root.back(root.back(A).T))
    W = host(root.to(put(u, A)))
    W = W / np.linalg.norm(W, axis=0)
    above, below = (np.sum(W * DenseScatter(matrix).matmul(W), axis=0) for matrix in (A, M))
    return above / np.maximum(below, TINY), W, n_iter


def _with_floor(M: Any, floor: float) -> Any:
    """M + floor I, in place of M."""
    if on_device(M):
        return M + floor * namespace(M).eye(M.shape[0], dtype=M.dtype, device=M.device)
    M[np.diag_indices_from(M)] += floor
    return M


def _rounding(group: Moments) -> Array:
    """The largest variance that rounding of the mean can give each coordinate of a constant feature, shape (size,)."""
    if group.mean.size == group.scatter.size:
        return np.asarray((group.weight * EPS * group.mean) ** 2)
    return np.full(group.scatter.size, rounding_variance(group))


def _inverse_root(A: Any, M: Any, tiny: Array) -> InverseRoot | None:
    """T for M, restricted to where M varies; None if A varies elsewhere.

    M is judged with its diagonal scaled to 1, so that units of the features do not matter. Variances of at most `tiny`
    are rounding. On a device there is no estimate of the condition of a Cholesky factor, so it is not tried.
    """
    order, below = M.shape[0], DenseScatter(M).diagonal()
    variances = np.where(below > tiny, below, DenseScatter(A).diagonal())
    scale = put(np.sqrt(np.where(variances > tiny, variances, 1.0)), M)
    R = M / scale / scale[:, None]
    L, failed = (None, True) if on_device(M) else dpotrf(R, lower=1)
    if not failed and dpocon(L, np.abs(R).sum(axis=0).max(), uplo="L")[0] > order * EPS:

        def solve(V: Array, trans: str) -> Array:
            return np.asarray(scipy.linalg.solve_triangular(L, V, lower=True, trans=trans, check_finite=False))

        return InverseRoot(lambda V: solve(V, "T") / scale[:, None], lambda V: solve(V / scale[:, None], "N"), order)
    xp = namespace(M)
    values, Q = xp.linalg.eigh(R)
    n_null = int(np.sum(host(values) <= 4 * order * EPS * float(values[-1])))
    scaled, null = A / scale / scale[:, None], Q[:, :n_null]
    if float(xp.sum(null * (scaled @ null))) > ROUNDED * DenseScatter(scaled).trace:
        return None
    T = Q[:, n_null:] / xp.sqrt(values[n_null:]) / scale[:, None]
    return InverseRoot(lambda V: T @ V, lambda V: T.T @ V, order - n_null)


# ---------------------------------------------------------------------- from products with rows


def _from_contrasts(quotient: Quotient, d: int, start: Array | None) -> Found:
    """The same from eigenpairs of contrasts alone (F27): nothing is factorised, and nothing of size D x D is formed.

    rho_j is the j-th largest ratio if and only if the j-th largest eigenvalue of A - rho_j (M - floor I) is rho_j
    floor. The eigenvectors there are added to a basis, in which the ratios are computed next (Rayleigh and Ritz): they
    grow to the largest ones, each in about five steps. The last ratio comes first, since its d eigenvectors certify
    that no larger one is missed.
    """
    basis = np.empty((quotient.size, 0))
    images = [basis, basis]  # A and M times the basis
    rho, worst, products = np.zeros(d), d - 1, 0
    settled = np.zeros(d, dtype=bool)  # ratios whose eigenvectors add nothing to the basis, beyond rounding
    for _ in range(MAX_STEPS):
        below = tuple((-rho[worst] * c, group) for c, group in quotient.below)
        found = top_eigenpairs(Contrast.of(*quotient.above, *below), worst + 1, start=start)
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


def shrunk_strength(contrast: Contrast, end: str) -> float:
    """gamma in [0, 1) that shrinks the denominator's covariance as its rows demand (F27); of two ends, the smaller."""
    cases, controls = contrast.terms[:1], contrast.terms[1:]
    chosen = {FOREGROUND: [controls], BACKGROUND: [cases], BOTH: [cases, controls]}[end]
    return min(1 - shrinkage(mean_of(terms), contrast.n_features) for terms in chosen)


def shrinkage(terms: Terms, n_features: int) -> float:
    """Part of the identity in a shrunk covariance, in (0, 1], by the oracle-approximating rule.

    It needs the trace of the covariance and of its square only (Chen, Wiesel, Eldar and Hero 2010).
    """
    D, m = n_features, sum(group.weight for _, group in terms)
    trace = sum(c * group.scatter.trace for c, group in terms)
    square = _trace_of_square(tuple((c / trace, group) for c, group in terms)) if trace > 0 else 0.0
    spread = (m + 1 - 2 / D) * (square - 1 / D)
    return min(((1 - 2 / D) * square + 1) / spread, 1.0) if spread > 0 else 1.0


def _trace_of_square(terms: Terms) -> float:
    """tr B^2, estimated by random vectors (Hutchinson 1990) where B is not a matrix."""
    few = has_few_rows(group for _, group in terms)
    if few or all(isinstance(group.scatter, DenseScatter) for _, group in terms):
        found = inner_products(terms, terms) if few else matrix(terms)
        return float(namespace(found).linalg.matrix_norm(found)) ** 2
    probes = np.random.default_rng(0).choice([-1.0, 1.0], size=(terms[0][1].scatter.size, PROBES))
    return float(np.sum(product(terms, probes) ** 2)) / PROBES
