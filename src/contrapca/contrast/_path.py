"""The largest eigenpairs of a contrast at many gammas, certified."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg

from .._util.arrays import TINY, Array, host, namespace, on_device, put
from .._util.threads import single_thread, worker_count
from ..data import Groups
from ..moments import Contrast, Moments, contrast, mixture
from ._eigen import Solution, top_eigenpairs

TOLERANCE = 1e-9  # for residuals, relative to the largest |eigenvalue| of the path

# Eigenvectors beyond the first d that an exact solution of a matrix adds to the basis: with more, fewer solutions are
# needed, but each costs more products, which are cheap on a GPU.
SPARE, SPARE_ON_DEVICE = 4, 8

COARSE = 25  # gamma' that are checked before the others
FIRST_NODES, MORE_NODES = 5, 4  # exact solutions in the first round, and at most in each later round
FACTORED_ORDER = 2000  # matrices up to this order are factored, and larger ones if Lanczos has failed with them
INDEPENDENT = 1e-9  # a new direction adds nothing if less than this fraction of its length is outside the basis
EXACT = 1e-13  # the same where the basis holds all solutions there are


@dataclass(frozen=True)
class PathSpectrum:
    """The d largest eigenpairs of cov_X - gamma' cov_Y along a grid of gamma'."""

    basis: Array  # (size, k), orthonormal columns
    coordinates: Array  # (G, k, d): eigenvectors in the basis: basis @ coordinates[g]
    values: Array  # (G, d), descending: eigenvalues of cov_X - gamma' cov_Y
    covariances: Groups[Array]  # (k, k): covariance of each group in the basis
    solved: npt.NDArray[np.bool_]  # (G,): where an exact solution was computed
    residuals: Array  # (G,): largest |C u - lambda u|, relative to the largest |eigenvalue| of the path


def solve_path(groups: Groups[Moments], gammas: Array, d: int, tolerance: float = TOLERANCE) -> PathSpectrum:
    """Eigenpairs along increasing `gammas`, shape (G,), residuals at most `tolerance`."""
    G, size = gammas.size, groups.foreground.scatter.size
    C = contrast(groups, 0.0)
    # One eigenvalue more than needed, for the certificate, if there is one. A matrix gives a few more at little cost;
    # their vectors may be among the first d at other gamma'.
    spare = SPARE_ON_DEVICE if C.on_device else SPARE
    count = min(d + (spare if C.is_dense else 1), size - 1)
    factors = mixture(groups)  # of each background in cov_X - gamma' cov_Y
    basis = np.empty((size, 0))
    like = groups.foreground.scatter.dense() if C.on_device else basis  # where there is work of size D
    workers = worker_count(COARSE * (FIRST_NODES * count) ** 3)  # as many as the BLAS has threads now
    images: list[Array] = [np.empty((size, 0)) for _ in groups]  # covariance times the basis
    sums = np.full((G, count), np.nan)  # f_1, f_2, ... where solved
    exact, certified = np.zeros((2, G), dtype=bool)
    start, iterate = None, True
    # Chebyshev's nodes, dense towards both ends.
    pending = sorted({round((G - 1) * (1 - np.cos(np.pi * k / (FIRST_NODES - 1))) / 2) for k in range(FIRST_NODES)})
    while pending:
        for g in pending:
            spectrum = top_eigenpairs(contrast(groups, gammas[g]), count, start=start, iterate=iterate)
            start, iterate = spectrum.vectors, spectrum.n_iter > 1  # if it gave up once, do not try again
            with single_thread():  # NumPy's threads would still be spinning while SciPy's solve the next problem
                new = outside(basis, spectrum.vectors)
                images = [
                    np.hstack([old, group.scatter.matmul(new) / group.weight])
                    for old, group in zip(images, groups, strict=True)
                ]
                basis = np.hstack([basis, new])
            sums[g] = np.cumsum(spectrum.values) / groups.foreground.weight
            exact[g] = True
        with single_thread():
            # Check some gamma' first: until these are good enough, the others need not be computed.
            some = np.unique(np.concatenate([np.flatnonzero(exact), np.arange(0, G, 1 + G // COARSE)]))
            for chosen in (some, np.arange(G)):
                coordinates, values, residuals = _ritz(basis, images, factors, gammas[chosen], d, count, like, workers)
                badness = np.where(exact[chosen] | (residuals <= tolerance), 0.0, residuals)
                if not badness.any() and d < count:
                    doubts = _doubts(values, gammas[chosen], sums[chosen], exact[chosen], d, tolerance)
                    badness = np.where(certified[chosen], 0.0, doubts)
                    if C.is_dense and not C.on_device and (size <= FACTORED_ORDER or not iterate):
                        allowed = tolerance * np.abs(values[:, :d]).max()
                        for k in np.flatnonzero(badness):
                            pairs = values[k, :d], basis @ coordinates[k]
                            if has_no_more(contrast(groups, gammas[chosen[k]]), *pairs, allowed):
                                certified[chosen[k]], badness[k] = True, 0.0
                pending = [int(chosen[k]) for k in _peaks(badness, exact[chosen])]
                if pending:
                    break
    small = groups.like(map(symmetric, [basis] * len(groups), images))
    return PathSpectrum(basis, coordinates, values[:, :d], small, exact, residuals)


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
    basis = outside(np.empty((vectors.shape[1], 0)), np.hstack(list(vectors)), EXACT)
    coordinates = np.where(feasible[:, None, None], basis.T @ vectors, np.nan)
    values = np.array([solution.spectrum.values for solution in solutions]) / groups.foreground.weight
    covariances = groups.map(lambda group: symmetric(basis, group.scatter.matmul(basis)) / group.weight)
    return PathSpectrum(basis, coordinates, values, covariances, feasible, np.zeros(gammas.size))


def outside(basis: Array, vectors: Array, least: float = INDEPENDENT) -> Array:
    """Orthonormal directions of `vectors` outside the basis, without those that are only rounding."""
    rest = vectors
    for _ in range(2):  # once is not enough in floating point
        rest = rest - basis @ (basis.T @ rest)
    U, lengths, _ = np.linalg.svd(rest, full_matrices=False)
    return U[:, lengths > least]


def _ritz(
    basis: Array, images: list[Array], factors: Array, gammas: Array, d: int, count: int, like: Any, workers: int
) -> tuple[Array, Array, Array]:
    """(coordinates of d vectors, `count` values, residuals) at every gamma' from the reduced basis.

    Products of size D are made where `like` is, and the small eigenproblems in as many threads as there are workers.
    """
    combined = [images[0]] + ([-np.tensordot(factors, images[1:], 1)] if factors.size else [])
    placed, rest = put(basis, like), put(np.hstack(combined), like)
    inside = placed.T @ rest
    rest = rest - placed @ inside
    # A triangle that has the lengths of what the images have outside the basis.
    triangle = host(namespace(rest).linalg.qr(rest).R if on_device(rest) else np.linalg.qr(rest, mode="r"))
    strengths = np.stack([np.ones_like(gammas), gammas][: len(combined)], axis=1)[..., None, None]
    small = sum(strengths[:, k] * half for k, half in enumerate(np.split(host(inside), len(combined), axis=1)))
    small = (small + np.swapaxes(small, 1, 2)) / 2
    if workers == 1:
        values, vectors = np.linalg.eigh(small)
    else:
        with ThreadPoolExecutor(workers) as pool:
            found = pool.map(np.linalg.eigh, np.array_split(small, workers))
            values, vectors = map(np.concatenate, zip(*found, strict=True))
    values, vectors = values[:, : -count - 1 : -1], vectors[:, :, : -d - 1 : -1]
    # C U - U lambda is orthogonal to the basis: its length follows from the triangle, so that vectors themselves are
    # never formed.
    parts = np.split(triangle / max(float(np.abs(values[:, :d]).max()), TINY), len(combined), axis=1)  # then squared
    outside = sum(strengths[:, k] * (part @ vectors) for k, part in enumerate(parts))
    return vectors, values, np.linalg.norm(outside, axis=1).max(axis=1)


def symmetric(basis: Array, image: Array) -> Array:
    """A covariance in the basis, from its product with the basis."""
    product = basis.T @ image
    return (product + product.T) / 2


def _doubts(values: Array, gammas: Array, sums: Array, exact: npt.NDArray[np.bool_], d: int, tolerance: float) -> Array:
    """How far above the d-th eigenvalue another may have been missed at each gamma', shape (G,); 0 where it cannot."""
    solved = np.flatnonzero(exact)
    chords = np.transpose([np.interp(gammas, gammas[solved], line) for line in sums[solved, d:].T])
    excess = (chords - np.cumsum(values, axis=1)[:, d:]).min(axis=1)
    margin = values[:, d - 1] - values[:, d] - excess  # positive: no eigenvalue above the d-th was missed
    allowed = tolerance * np.abs(values[:, :d]).max()
    return np.where(~exact & (margin < -allowed), -margin, 0.0)


def has_no_more(C: Contrast, values: Array, U: Array, allowed: float) -> bool:
    """Whether no other eigenvalue of C / n is above the last of these by more than is allowed.

    With the eigenvalues along U (size, d) moved out of the way, s I - C / n for s = values[-1] + allowed has a Cholesky
    factor: then Q'C Q / n, for Q orthogonal to U, has no eigenvalue above s, and neither has C a further one (Cauchy).
    """
    bound, away = values[-1] + allowed, float(np.abs(values).max())
    matrix = (U * (values - bound + away)) @ U.T - C.dense() / C.n_foreground
    matrix.flat[:: C.size + 1] += bound
    try:
        scipy.linalg.cholesky(matrix, overwrite_a=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return False
    return True


def _peaks(badness: Array, exact: npt.NDArray[np.bool_]) -> list[int]:
    """The worst gamma' between each two solved ones, and of these the worst few; none if all are good."""
    between = np.cumsum(exact)
    stretches = np.split(np.arange(badness.size), np.flatnonzero(np.diff(between)) + 1)
    worst = [int(part[np.argmax(badness[part])]) for part in stretches]
    bad = sorted((k for k in worst if badness[k] > 0), key=lambda k: -badness[k])
    return bad[:MORE_NODES]
