"""Top eigenpairs of C(gamma') for many gamma' at about the cost of a few (a certified reduced basis).

Exact solutions at a few gamma' span a small space; at all others, Rayleigh-Ritz finds the eigenpairs in it at the cost
of a small dense problem. Every residual is checked, and the worst gamma' is solved exactly next, until all are small.

No top eigenvalue is missed in between, because of convexity: the sum f_k of the k largest eigenvalues is convex
in gamma', so between two exact solutions f_{d+1} lies below their chord, and lambda_{d+1} <= chord - (sum of the d Ritz
values). If that is not below the d-th Ritz value, gamma' is solved exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import TINY, Array
from .._util.threads import single_thread
from ..groups import Groups
from ..moments import Moments, contrast, mixture
from ._closed_form import Solution
from ._spectral import top_eigenpairs

TOLERANCE = 1e-9  # for residuals, relative to the largest |eigenvalue| of the path
SPARE = 4  # eigenvectors beyond the first d that an exact solution of a matrix adds to the basis
COARSE = 25  # gamma' that are checked before the others
FIRST_NODES, MORE_NODES = 5, 4  # exact solutions in the first round, and at most in each later round
INDEPENDENT = 1e-9  # a new direction adds nothing if less than this fraction of its length is outside the basis


@dataclass(frozen=True)
class PathSpectrum:
    """The d largest eigenpairs of cov_X - gamma' cov_Y along a grid of gamma'.

    Attributes
    ----------
    basis : ndarray of shape (size, k), orthonormal columns
    coordinates : ndarray of shape (G, k, d)
        Eigenvectors in the basis: basis @ coordinates[g].
    values : ndarray of shape (G, d), descending
        Eigenvalues of cov_X - gamma' cov_Y.
    covariances : Groups of ndarray of shape (k, k)
        Covariance of each group in the basis.
    solved : ndarray of shape (G,) of bool
        Where an exact solution was computed.
    residuals : ndarray of shape (G,)
        Largest |C u - lambda u|, relative to the largest |eigenvalue| of the path.
    """

    basis: Array
    coordinates: Array
    values: Array
    covariances: Groups[Array]
    solved: npt.NDArray[np.bool_]
    residuals: Array


def solve_path(groups: Groups[Moments], gammas: Array, d: int, tolerance: float = TOLERANCE) -> PathSpectrum:
    """Eigenpairs along increasing `gammas`, shape (G,), residuals at most `tolerance`."""
    G, size = gammas.size, groups.foreground.scatter.size
    dense = contrast(groups, 0.0).is_dense
    # One eigenvalue more than needed, for the certificate, if there is one.
    extra = 1 if d + 1 < size else 0
    # A matrix gives a few more eigenvectors at no cost; they may be among the first d at other gamma'.
    vectors = min(d + (SPARE if dense else extra), size - 1)
    weights = [group.weight for group in groups]
    factors = mixture(groups)  # of each background in cov_X - gamma' cov_Y
    basis = np.empty((size, 0))
    images: list[Array] = [np.empty((size, 0)) for _ in groups]  # covariance times the basis
    sums = np.full((G, 2), np.nan)  # f_d and f_{d+1} where solved
    exact = np.zeros(G, dtype=bool)
    start, iterate = None, True
    # Chebyshev's nodes, dense towards both ends.
    pending = sorted({round((G - 1) * (1 - np.cos(np.pi * k / (FIRST_NODES - 1))) / 2) for k in range(FIRST_NODES)})
    while pending:
        for g in pending:
            spectrum = top_eigenpairs(contrast(groups, gammas[g]), vectors, start=start, iterate=iterate)
            start, iterate = spectrum.vectors, spectrum.n_iter > 1  # if it gave up once, do not try again
            with single_thread():  # NumPy's threads would still be spinning while SciPy's solve the next problem
                new = outside(basis, spectrum.vectors)
                images = [
                    np.hstack([old, group.scatter.matmul(new) / group.weight])
                    for old, group in zip(images, groups, strict=True)
                ]
                basis = np.hstack([basis, new])
            total = spectrum.values / weights[0]
            sums[g] = total[:d].sum(), total[: d + extra].sum()
            exact[g] = True
        with single_thread():
            # Check some gamma' first: until these are good enough, the others need not be computed.
            some = np.unique(np.concatenate([np.flatnonzero(exact), np.arange(0, G, 1 + G // COARSE)]))
            found = _ritz(basis, images, factors, gammas[some], d)
            pending = [int(some[k]) for k in _next(found, gammas[some], sums[some], exact[some], extra, tolerance)]
            if not pending:
                found = _ritz(basis, images, factors, gammas, d)
                pending = _next(found, gammas, sums, exact, extra, tolerance)
    coordinates, values, residuals = found
    small = groups.like(map(symmetric, [basis] * len(groups), images))
    return PathSpectrum(basis, coordinates, values, small, exact, residuals)


def path_of_solutions(groups: Groups[Moments], gammas: Array, solve: Callable[..., Solution]) -> PathSpectrum:
    """Solutions at many gammas, one after the other, each started from the one before, in one basis; nan where there
    is none.

    For methods whose directions are not eigenvectors of C; `solve` takes a contrast and vectors to start from.
    """
    solutions: list[Solution] = []
    for gamma in gammas:
        start = solutions[-1].spectrum.vectors if solutions else None
        solutions.append(solve(contrast(groups, float(gamma)), start))
    feasible = np.array([solution.feasible for solution in solutions])
    vectors = np.array([solution.spectrum.vectors for solution in solutions])
    basis = outside(np.empty((vectors.shape[1], 0)), np.hstack(list(vectors)))
    coordinates = np.where(feasible[:, None, None], basis.T @ vectors, np.nan)
    values = np.array([solution.spectrum.values for solution in solutions]) / groups.foreground.weight
    covariances = groups.map(lambda group: symmetric(basis, group.scatter.matmul(basis)) / group.weight)
    return PathSpectrum(basis, coordinates, values, covariances, feasible, np.zeros(gammas.size))


def outside(basis: Array, vectors: Array) -> Array:
    """Orthonormal directions of `vectors` outside the basis, without those that are only rounding."""
    rest = vectors
    for _ in range(2):  # once is not enough in floating point
        rest = rest - basis @ (basis.T @ rest)
    U, lengths, _ = np.linalg.svd(rest, full_matrices=False)
    return U[:, lengths > INDEPENDENT]


def _ritz(basis: Array, images: list[Array], factors: Array, gammas: Array, d: int) -> tuple[Array, Array, Array]:
    """(coordinates, values, residuals) at every gamma' from the reduced basis."""
    small = [symmetric(basis, image) for image in images]
    background = np.tensordot(factors, small[1:], 1) if factors.size else np.zeros_like(small[0])
    values, vectors = np.linalg.eigh(small[0] - gammas[:, None, None] * background)
    values, vectors = values[:, : -d - 1 : -1], vectors[:, :, : -d - 1 : -1]
    # |C U - U lambda| of all gamma' from Gram matrices of size 3 k: the vectors themselves are never formed.
    combined = [images[0]] + ([np.tensordot(factors, images[1:], 1)] if factors.size else [])
    triangle: Array = np.linalg.qr(np.hstack([*combined, basis]), mode="r")  # type: ignore[assignment]
    blocks = np.split(triangle, len(combined) + 1, axis=1)
    parts = [blocks[0] @ vectors, -(blocks[-1] @ vectors) * values[:, None, :]]
    if factors.size:
        parts.append(-gammas[:, None, None] * (blocks[1] @ vectors))
    relative = np.sum(parts, axis=0) / max(float(np.abs(values).max()), TINY)  # before they are squared
    return vectors, values, np.linalg.norm(relative, axis=1).max(axis=1)


def symmetric(basis: Array, image: Array) -> Array:
    """A covariance in the basis, from its product with the basis."""
    product = basis.T @ image
    return (product + product.T) / 2


def _next(
    found: tuple[Any, ...], gammas: Array, sums: Array, exact: npt.NDArray[np.bool_], extra: int, tolerance: float
) -> list[int]:
    """The gamma' to solve exactly next: those with the worst residuals or certificates; none if all are good."""
    _, values, residuals = found
    open_ = ~exact
    if not open_.any():
        return []
    peaks = _peaks(np.where(open_ & (residuals > tolerance), residuals, 0.0), exact)
    if peaks or not extra:
        return peaks
    solved = np.flatnonzero(exact)
    chord = np.interp(gammas, gammas[solved], sums[solved, 1])
    margin = values[:, -1] - (chord - values.sum(axis=1))  # positive: no eigenvalue above the d-th was missed
    allowed = tolerance * np.abs(values).max()
    return _peaks(np.where(open_ & (margin < -allowed), -margin, 0.0), exact)


def _peaks(badness: Array, exact: npt.NDArray[np.bool_]) -> list[int]:
    """The worst gamma' between each two solved ones, and of these the worst few; none if all are good."""
    between = np.cumsum(exact)
    stretches = np.split(np.arange(badness.size), np.flatnonzero(np.diff(between)) + 1)
    worst = [int(part[np.argmax(badness[part])]) for part in stretches]
    bad = sorted((k for k in worst if badness[k] > 0), key=lambda k: -badness[k])
    return bad[:MORE_NODES]
