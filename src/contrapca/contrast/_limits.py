"""Exact limits of gamma (F3).

Everything here is in gamma' units, that is with covariances S / rows instead of scatters. With several backgrounds
gamma' is their total, and cov_Y their mean, each with its part of gamma' (F20).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import lobpcg

from .._util.arrays import EPS, TINY, Array, is_sparse
from .._util.threads import single_thread
from ..data import Groups
from ..exceptions import SolverError
from ..moments import MAX_DENSE, DenseScatter, Moments, RowScatter, alone, contrast, in_span, mixed, reduce_rows
from ._eigen import LOOSE, SECOND_ORDER, Spectrum, noise_sum, top_eigenpairs
from ._path import outside

MAX_STEPS = 100  # the iterations take 4-10 steps; this only keeps them from running forever
CLEARLY = 1e-6  # relative size of a singular value that no rounding can explain

# The search by LOBPCG: vectors beyond those wanted, the residual that ends it, and how many iterations it may take.
SPARE_VECTORS, RESIDUAL, MAX_ITERATIONS = 4, 1e-6, 500

# Relative change of gamma that ends an iteration: steps converge quadratically, so the next would be below rounding.
STANDSTILL = 1e-9

SPARE = 16  # strong directions of the foreground beyond those that a bound takes
POWERS = 2  # products that make directions strong


def pcpca_limit(groups: Groups[Moments], d: int, near: float = 1.0) -> tuple[float, Array]:
    """The exact limit of gamma' for PCPCA, and the top eigenvectors of C near it, shape (size, d).

    PCPCA is feasible below the limit, which is in [0, 1], and infeasible at or above it (F3); the limit is 0 if the
    foreground's rank is at most d. f(gamma') = tr C - sum_{i<=d} lambda_i is concave. Newton's step from the right,
    written as a ratio of traces to avoid cancellation, is gamma' <- tr(Q'cov_X Q) / tr(Q'cov_Y Q) with Q the D - d
    bottom eigenvectors of C(gamma'): it decreases to the root, and starting at gamma' = 1, where N = 0, it never moves
    if f is positive there. `near` is a starting point, if something is known about the limit: from anywhere, the first
    step leads to the right of the limit.
    """
    if not rank_exceeds(groups.foreground, d):
        # f is nowhere positive, but may be 0 up to some gamma', where Newton would stop.
        return 0.0, np.zeros((groups.foreground.scatter.size, d))
    if not contrast(groups, near).is_dense:
        return _limit_from_products(groups, d, near)
    gamma, largest, iterate = near, 1.0, True
    vectors: Array | None = None
    for _ in range(MAX_STEPS):
        spectrum = top_eigenpairs(contrast(groups, gamma), d, start=vectors, iterate=iterate)
        vectors, iterate = spectrum.vectors, spectrum.n_iter > 1  # if it gave up once, do not try again
        proposal = _newton_step(groups, spectrum)
        if proposal <= 0:
            return 0.0, vectors
        proposal = min(largest, proposal)
        change = abs(1 - proposal / gamma)
        gamma = largest = proposal
        if change <= STANDSTILL:
            break
    assert vectors is not None
    return gamma, vectors


def _limit_from_products(groups: Groups[Moments], d: int, near: float) -> tuple[float, Array]:
    """The limit if C is not a matrix, where each solution is dear: two are needed, and seldom more.

    Any Q gives an upper bound whose error is of second order in Q's, so the first solution may be loose. The start is a
    bound from strong directions of the foreground, and every later bound uses all directions found so far.
    """
    span = Span.strong(groups, d)
    largest = span.limit(groups, d, 1.0)
    gamma, before, tol = min(near, largest), 0.0, LOOSE
    vectors: Array | None = None
    for _ in range(MAX_STEPS):
        spectrum = top_eigenpairs(contrast(groups, gamma), d, start=vectors, tol=tol)
        vectors, proposal = spectrum.vectors, _newton_step(groups, spectrum)
        if proposal <= 0:
            return 0.0, vectors
        span = span.plus(groups, vectors)
        proposal = span.limit(groups, d, min(largest, proposal))
        change = abs(1 - proposal / gamma)
        gamma = largest = proposal
        # Errors fall at least quadratically, and the change is the error before this step.
        left = change if before == 0 else min(change, change * (change / before) ** 2)
        if left <= STANDSTILL and tol < LOOSE:
            break
        before, tol = change, SECOND_ORDER
    assert vectors is not None
    return gamma, vectors


def _newton_step(groups: Groups[Moments], spectrum: Spectrum) -> float:
    """tr(Q'cov_X Q) / tr(Q'cov_Y Q), Q orthogonal to eigenvectors of C; infinite if the background is constant in Q."""
    left = []
    for group, image in zip(groups, spectrum.images, strict=True):
        inside = np.sum(spectrum.vectors * image, axis=0) / group.weight
        own = group.scatter.trace / group.weight - float(np.sum(inside))  # tr(Q'cov Q) = tr cov - tr(U'cov U)
        left.append(own if own > alone(group).rounding / group.weight else 0.0)
    background = float(mixed(groups, groups.like(left)))
    if background > 0:
        return left[0] / background
    return math.inf if left[0] > 0 else 0.0


def rank_exceeds(group: Moments, d: int) -> bool:
    """Whether the scatter has more than d eigenvalues beyond rounding."""
    C = alone(group)
    # Products with d + 1 random vectors are as independent as the rank allows, so a clear yes is cheap.
    images = C.matmul(np.random.default_rng(0).standard_normal((C.size, d + 1)))
    strengths = np.linalg.svd(images, compute_uv=False)
    if strengths[-1] > CLEARLY * strengths[0]:
        return True
    return noise_sum(C, top_eigenpairs(C, d, tol=SECOND_ORDER).values) > 0


def cpca_limit(groups: Groups[Moments], d: int) -> float:
    """The exact limit of gamma' for CPCA: below it C has d positive eigenvalues.

    By Courant and Fischer it is the largest, over d-dimensional subspaces, of the smallest ratio v'cov_X v / v'cov_Y v
    inside the subspace, so every subspace gives a lower bound. Starting at gamma' = 0, the bound from the top d
    eigenvectors of C(gamma') is the next gamma': it increases, and near the limit it is Newton's step on lambda_d.
    Directions in which neither group varies never matter, unlike in a test of the sign of lambda_d.

    Near the limit the wanted eigenvalues of C are tiny beside the others, which products with the rows alone resolve
    too slowly: groups of implicit scatter matrices are reduced to matrices of the order of their rows or features,
    whichever are fewer, or, if both are too many, the ratios are maximised directly (F23). Infinite if there are d
    directions of the foreground in which the background does not vary.
    """
    if not contrast(groups, 0.0).is_dense:
        scatters = [group.scatter for group in groups if isinstance(group.scatter, RowScatter)]
        n_rows, D = sum(scatter.rows.shape[0] for scatter in scatters), groups.foreground.mean.size
        if min(n_rows, D) > MAX_DENSE:
            return _iterated_cpca_limit(groups, d)
        if n_rows >= D:
            groups = groups.map(lambda group: replace(group, scatter=DenseScatter(group.scatter.dense())))
        elif any(is_sparse(scatter.rows) for scatter in scatters):
            groups, unshared = in_span(groups, d)
            if unshared >= d:
                return math.inf
        else:
            groups, _ = reduce_rows(groups, d)
    gamma, vectors = 0.0, None
    for _ in range(MAX_STEPS):
        C = contrast(groups, gamma)
        spectrum = top_eigenpairs(C, d, start=vectors)
        if spectrum.values[-1] <= C.rounding:
            break
        vectors = spectrum.vectors
        proposal = _least_ratio(groups, spectrum.images, vectors)
        if proposal == math.inf:
            return proposal
        if proposal <= gamma * (1 + STANDSTILL):
            break
        gamma = proposal
    return gamma


def _least_ratio(groups: Groups[Moments], images: list[Array], U: Array) -> float:
    """The smallest ratio v'cov_X v / v'cov_Y v in the span of U, from S_k U: a lower bound of CPCA's limit."""
    scatters = groups.like(U.T @ image for image in images)
    covariances = scatters.map(lambda inside, group: inside / group.weight, groups)
    reciprocal = scipy.linalg.eigh(mixed(groups, covariances), covariances.foreground, eigvals_only=True)[-1]
    ratio = 1 / float(reciprocal) if reciprocal > 0 else math.inf
    # At so large a gamma rounding errors hide the foreground.
    hidden = ratio < math.inf and contrast(groups, ratio).rounding >= np.linalg.eigvalsh(scatters.foreground)[0]
    return math.inf if hidden else ratio


def _iterated_cpca_limit(groups: Groups[Moments], d: int) -> float:
    """The d-th largest ratio v'cov_X v / v'cov_Y v by LOBPCG, from products with the rows only (F23).

    The search maximises v'cov_X v / v'(cov_X + cov_Y) v, which is finite and has the same directions, in features of
    common variance. Ratios of the directions found are lower bounds, and their errors are squares of the residuals',
    which must be small.
    """
    variances = groups.map(lambda group: group.scatter.diagonal() / group.weight)
    unit = np.sqrt(variances.foreground + mixed(groups, variances))[:, None]
    unit[unit == 0] = 1.0

    def image(group: Moments, V: Array) -> Array:
        return group.scatter.matmul(V / unit) / unit / group.weight

    def foreground(V: Array) -> Array:
        return image(groups.foreground, V)

    def both(V: Array) -> Array:
        images = groups.map(lambda group: image(group, V))
        return images.foreground + mixed(groups, images) + EPS * unit.size * V  # positive, also where nothing varies

    start = np.random.default_rng(0).standard_normal((unit.size, d + SPARE_VECTORS))
    with warnings.catch_warnings(), single_thread():
        warnings.simplefilter("ignore")  # of too few iterations: the residual tells
        values, V = lobpcg(foreground, start, B=both, tol=RESIDUAL, maxiter=MAX_ITERATIONS)
    V = V[:, np.argsort(values)[: -d - 1 : -1]]
    U = np.linalg.qr(V / unit)[0]
    limit = _least_ratio(groups, contrast(groups, 0.0).images(U), U)
    if limit == math.inf:
        return limit
    images, total = foreground(V), both(V)
    shares = np.sum(V * images, axis=0) / np.sum(V * total, axis=0)
    residual = np.linalg.norm(images - shares * total, axis=0) / np.linalg.norm(images, axis=0)
    if residual.max() > LOOSE:
        raise SolverError(
            f"The exact limit of gamma for CPCA was not found: it is at least {limit:.4g}. {unit.size} features and as "
            "many rows are too many for the exact limit: pass gamma explicitly, or use fewer features."
        )
    return limit


@dataclass(frozen=True)
class Span:
    """Directions, and the covariances of the groups in them: every d of them bound PCPCA's limit from above."""

    basis: Array  # (size, p), orthonormal columns
    covariances: Array  # (2, p, p): of the foreground, and of the backgrounds' mean, in the basis

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
        columns = np.array([images.foreground, mixed(groups, images)])
        lines = np.concatenate([self.covariances, columns[:, :known].transpose(0, 2, 1)], axis=1)
        return Span(basis, np.concatenate([lines, columns], axis=2))

    def limit(self, groups: Groups[Moments], d: int, gamma: float) -> float:
        """The least bound, at most `gamma`, by Newton's steps as in `pcpca_limit`."""
        totals = groups.map(lambda group: group.scatter.trace / group.weight)
        background = float(mixed(groups, totals))
        while True:
            matrix = self.covariances[0] - gamma * self.covariances[1]
            U = np.linalg.eigh((matrix + matrix.T) / 2)[1][:, -d:]
            above, below = (float(np.sum(U * (covariance @ U))) for covariance in self.covariances)
            proposal = (totals.foreground - above) / max(background - below, TINY)
            if not 0 < proposal < gamma * (1 - STANDSTILL):
                return gamma
            gamma = proposal
