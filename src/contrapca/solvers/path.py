"""Top eigenpairs of C(gamma') for many gamma' at little more than the cost of a few (a certified reduced basis).

Exact solutions at a few gamma' span a small space; elsewhere Rayleigh and Ritz find the eigenpairs in it, at the cost
of a small dense problem. Every residual is checked, the worst gamma' is solved exactly next, until all are small.

That no top eigenvalue is missed in between follows from convexity: the sum f_k of the k largest eigenvalues is convex
in gamma', so between two exact solutions f_{d+1} lies below their chord, and lambda_{d+1} <= chord - (sum of the d Ritz
values). Where that is not below the d-th Ritz value, gamma' is solved exactly.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._array import Array, calm_threads, lapack_first
from ..moments import Pair
from ._spectral import top_eigenpairs

TOLERANCE = 1e-9  # of residuals, relative to the largest |eigenvalue| of the path
SPARE = 4  # eigenvectors beyond the first d that an exact solution of a matrix adds to the basis
COARSE = 25  # gamma' that are looked at before all are
FIRST_NODES, MORE_NODES = 5, 4  # exact solutions to begin with, and at most in each further round
INDEPENDENT = 1e-9  # of a new direction's length outside the basis, below which it adds nothing


@dataclass(frozen=True)
class PathSpectrum:
    """The d largest eigenpairs of cov_X - gamma' cov_Y along a grid of gamma'.

    Attributes
    ----------
    basis : ndarray of shape (size, k), orthonormal columns
    coordinates : ndarray of shape (G, k, d)
        Eigenvectors in the basis: basis @ coordinates[g].
    values : ndarray of shape (G, d), descending
        Of cov_X - gamma' cov_Y.
    variances : ndarray of shape (2, G, d)
        Of foreground and background along each eigenvector.
    solved : ndarray of shape (G,) of bool
        Where an exact solution was computed.
    residuals : ndarray of shape (G,)
        |C u - lambda u| at most, relative to the largest |eigenvalue| of the path.
    """

    basis: Array
    coordinates: Array
    values: Array
    variances: Array
    solved: npt.NDArray[np.bool_]
    residuals: Array


def solve_path(pair: Pair, gammas: Array, d: int) -> PathSpectrum:
    """Eigenpairs along increasing `gammas`, shape (G,)."""
    with lapack_first() if pair.contrast(0.0).is_dense else contextlib.nullcontext():
        return _solve_path(pair, gammas, d)


def _solve_path(pair: Pair, gammas: Array, d: int) -> PathSpectrum:
    G, groups = gammas.size, pair.groups
    size = pair.contrast(0.0).size
    # One more eigenvalue than wanted, for the certificate, where there is one more.
    extra = 1 if d + 1 < size else 0
    # A matrix gives a few more eigenvectors at no cost; they may come into the first d further on.
    vectors = min(d + (SPARE if pair.contrast(0.0).is_dense else extra), size - 1)
    weights = [group.weight for group in groups]
    basis = np.empty((size, 0))
    images: list[Array] = [np.empty((size, 0)) for _ in groups]  # covariance times the basis
    sums = np.full((G, 2), np.nan)  # f_d and f_{d+1} where solved
    exact = np.zeros(G, dtype=bool)
    start, iterate = None, True
    # Chebyshev's nodes, dense towards both ends.
    pending = sorted({round((G - 1) * (1 - np.cos(np.pi * k / (FIRST_NODES - 1))) / 2) for k in range(FIRST_NODES)})
    while pending:
        for g in pending:
            contrast = pair.contrast(gammas[g])
            spectrum = top_eigenpairs(contrast, vectors, start=start, iterate=iterate)
            start, iterate = spectrum.vectors, spectrum.n_iter > 1  # given up once is given up for all
            new = _outside(basis, spectrum.vectors)
            images = [
                np.hstack([old, image / weight])
                for old, image, weight in zip(images, contrast.images(new), weights, strict=True)
            ]
            basis = np.hstack([basis, new])
            total = spectrum.values / weights[0]
            sums[g] = total[:d].sum(), total[: d + extra].sum()
            exact[g] = True
        with calm_threads(basis.shape[1] ** 3):
            # A look at some gamma' first: as long as these are not good enough, the others need not be computed.
            some = np.unique(np.concatenate([np.flatnonzero(exact), np.arange(0, G, 1 + G // COARSE)]))
            found = _ritz(basis, images, gammas[some], d)
            pending = [int(some[k]) for k in _next(found, gammas[some], sums[some], exact[some], extra)]
            if not pending:
                found = _ritz(basis, images, gammas, d)
                pending = _next(found, gammas, sums, exact, extra)
    return PathSpectrum(basis, *found[:3], exact, found[3])


def _outside(basis: Array, vectors: Array) -> Array:
    """Orthonormal directions of `vectors` outside the basis, rounding left out."""
    rest = vectors
    for _ in range(2):  # once is not enough in floating point
        rest = rest - basis @ (basis.T @ rest)
    U, lengths, _ = np.linalg.svd(rest, full_matrices=False)
    return U[:, lengths > INDEPENDENT]


def _ritz(basis: Array, images: list[Array], gammas: Array, d: int) -> tuple[Array, Array, Array, Array]:
    """(coordinates, values, variances, residuals) at every gamma' from the reduced basis."""
    products = [basis.T @ image for image in images]
    small = [(product + product.T) / 2 for product in products]
    background = small[1] if len(small) == 2 else np.zeros_like(small[0])
    values, vectors = np.linalg.eigh(small[0] - gammas[:, None, None] * background)
    values, vectors = values[:, : -d - 1 : -1], vectors[:, :, : -d - 1 : -1]
    variances = np.stack([np.einsum("gkd,kl,gld->gd", vectors, matrix, vectors) for matrix in (small[0], background)])
    # |C U - U lambda| of all gamma' from Gram matrices of size 3 k: the vectors themselves are never formed.
    stacked = np.hstack([*images, basis])
    triangle: Array = np.linalg.qr(stacked, mode="r")  # type: ignore[assignment]
    parts = [triangle[:, : basis.shape[1]] @ vectors]
    if len(images) == 2:
        parts.append(-gammas[:, None, None] * (triangle[:, basis.shape[1] : -basis.shape[1]] @ vectors))
    parts.append(-(triangle[:, -basis.shape[1] :] @ vectors) * values[:, None, :])
    residuals = np.linalg.norm(np.sum(parts, axis=0), axis=1).max(axis=1)
    return vectors, values, variances, residuals / max(float(np.abs(values).max()), np.finfo(float).tiny)


def _next(found: tuple[Array, ...], gammas: Array, sums: Array, exact: npt.NDArray[np.bool_], extra: int) -> list[int]:
    """The gamma' to be solved exactly next: the worst residual, or the worst certificate; none if all is well."""
    _, values, _, residuals = found
    open_ = ~exact
    if not open_.any():
        return []
    peaks = _peaks(np.where(open_ & (residuals > TOLERANCE), residuals, 0.0), exact)
    if peaks or not extra:
        return peaks
    solved = np.flatnonzero(exact)
    chord = np.interp(gammas, gammas[solved], sums[solved, 1])
    margin = values[:, -1] - (chord - values.sum(axis=1))  # positive: no eigenvalue above the d-th was missed
    allowed = TOLERANCE * np.abs(values).max()
    return _peaks(np.where(open_ & (margin < -allowed), -margin, 0.0), exact)


def _peaks(badness: Array, exact: npt.NDArray[np.bool_]) -> list[int]:
    """The worst gamma' between each two that are solved, the worst few of these; none where nothing is bad."""
    between = np.cumsum(exact)
    stretches = np.split(np.arange(badness.size), np.flatnonzero(np.diff(between)) + 1)
    worst = [int(part[np.argmax(badness[part])]) for part in stretches]
    bad = sorted((k for k in worst if badness[k] > 0), key=lambda k: -badness[k])
    return bad[:MORE_NODES]
