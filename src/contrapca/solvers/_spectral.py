"""Largest algebraic eigenpairs of a contrast, and the one sign convention (F2, F7)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from .._array import Array, available_memory, thread_map, worker_count
from ..exceptions import SolverError
from ..moments import Contrast

TIGHT = 1e-12  # relative accuracy of eigenvalues that are kept
LOOSE = 1e-3  # of those that only steer a Newton step
ROUGH = 1e-1  # of one that only has to stand out
RESIDUAL_BOUND = 1e-9  # of |C u - lambda u| relative to the largest |lambda|, for results that are kept


Apply = Callable[[Array], Array]


@dataclass(frozen=True)
class Spectrum:
    """The d largest algebraic eigenpairs of a contrast.

    Attributes
    ----------
    values : ndarray of shape (d,), descending
    vectors : ndarray of shape (size, d), orthonormal columns
    n_iter : int
        Products with C that an iterative solver made; 1 for a direct one.
    note : str
        What went otherwise than planned; empty as a rule.
    """

    values: Array
    vectors: Array
    n_iter: int = 1
    note: str = ""


def top_eigenpairs(contrast: Contrast, d: int, *, start: Array | None = None, tol: float = TIGHT) -> Spectrum:
    """The `d` largest algebraic eigenpairs of C.

    C is indefinite: "largest magnitude" or a randomised SVD would return background directions.

    Parameters
    ----------
    contrast : Contrast
    d : int, less than the order of C
    start : (size, k) ndarray, optional
        Vectors near the wanted ones, to warm-start an iterative solver.
    tol : float
        Accuracy asked of an iterative solver.
    """
    if contrast.is_dense:
        return _direct(contrast.dense(), d)
    try:
        return _lanczos(contrast, d, start, tol)
    except _Unconverged as failure:
        needed = 4 * 8 * contrast.n_features**2
        if needed > available_memory():
            raise SolverError(
                f"The Lanczos solver failed ({failure}), and a dense one would need {needed / 2**30:.1f} GiB, "
                "more than is free. Use fewer features or components, or scale the features (scale='pooled')."
            ) from failure
        direct = _direct(contrast.dense(), d)
        return Spectrum(direct.values, direct.vectors, note=f"Lanczos failed ({failure}), solved densely instead")


def _direct(C: Array, d: int) -> Spectrum:
    """Partial eigendecomposition of a dense symmetric matrix, which is overwritten."""
    size = C.shape[0]
    values, vectors = scipy.linalg.eigh(C, subset_by_index=[size - d, size - 1], overwrite_a=True, check_finite=False)
    return Spectrum(values[::-1], vectors[:, ::-1])


class _Unconverged(Exception):
    """Why an iterative solver's result cannot be used."""


def _lanczos(contrast: Contrast, d: int, start: Array | None, tol: float) -> Spectrum:
    """Implicitly restarted Lanczos (ARPACK), its residuals checked and missed eigenvalues looked for."""
    D = contrast.n_features
    products = 0
    # A fixed start makes results reproducible.
    noise = np.random.default_rng(0).standard_normal(D)
    v0 = noise if start is None else start.sum(axis=1) + 1e-3 * noise / np.sqrt(D)
    with thread_map(worker_count()) as map_:

        def apply(V: Array) -> Array:
            nonlocal products
            products += 1
            return contrast.matmat(V.reshape(D, -1), map_)

        for _ in range(2):
            values, vectors = _largest(apply, v0, d, tol)
            if tol > TIGHT:
                break
            _check_residuals(apply, values, vectors)
            missed = _missed_direction(apply, values, vectors, noise)
            if missed is None:
                break
            v0 = np.column_stack([vectors, missed]).sum(axis=1)
        else:
            raise _Unconverged("it keeps missing a repeated eigenvalue")
    return Spectrum(values, vectors, products)


def _largest(apply: Apply, v0: Array, d: int, tol: float) -> tuple[Array, Array]:
    """The d largest algebraic eigenpairs of the operator, descending."""
    D = v0.size
    operator = LinearOperator((D, D), matvec=apply, dtype=np.float64)
    # More Lanczos vectors than ARPACK's own 2 d + 1 save restarts on clustered spectra.
    ncv = min(D, max(3 * d, d + 20))
    try:
        values, vectors = eigsh(operator, d, which="LA", v0=v0, ncv=ncv, tol=tol)
    except ArpackError as error:  # no convergence included
        raise _Unconverged(str(error).strip()) from error
    return values[::-1], vectors[:, ::-1]


def _check_residuals(apply: Apply, values: Array, vectors: Array) -> None:
    """Refuse eigenpairs with |C u - lambda u| above the bound: Ritz values understate the largest ones."""
    residuals = np.linalg.norm(apply(vectors) - vectors * values, axis=0)
    worst = residuals.max() / np.abs(values).max()
    if not worst <= RESIDUAL_BOUND:
        raise _Unconverged(f"relative residual {worst:.1e}")


def _missed_direction(apply: Apply, values: Array, vectors: Array, v0: Array) -> Array | None:
    """A direction of larger C than the last eigenvalue found, orthogonal to all found; None if there is none.

    One starting vector sees one copy of a repeated eigenvalue, so Lanczos can miss the others. The
    largest eigenvalue of C with the found directions pushed to the bottom, even a rough one, tells.
    """
    largest = np.abs(values).max()

    def deflated(v: Array) -> Array:
        inside = vectors.T @ v
        image = apply(v - vectors @ inside).ravel()
        return image - vectors @ (vectors.T @ image + 2 * largest * inside)

    try:
        rest, directions = _largest(deflated, v0, 1, ROUGH)
    except _Unconverged:
        return None  # nothing stands out
    return directions if rest[0] > values[-1] + RESIDUAL_BOUND * largest else None


def canonical_signs(vectors: Array) -> Array:
    """Columns with the sign that makes their entry of largest magnitude positive.

    Among entries within 1e-6 of the largest the first decides, so that rounding, and with it the
    number of threads, cannot.
    """
    magnitude = np.abs(vectors)
    decisive = np.argmax(magnitude >= (1 - 1e-6) * magnitude.max(axis=0), axis=0)
    signs = np.where(vectors[decisive, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)
    return vectors * signs
