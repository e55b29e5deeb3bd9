"""The largest eigenpairs of a contrast, directly or by products, and what methods make of them: a `Solution`.

`top_eigenpairs` chooses: LAPACK for a matrix, ARPACK's Lanczos iteration for rows and for few vectors of a large
matrix. Lanczos can miss repeated eigenvalues and stop too early, so its results are checked; where the checks fail,
LAPACK takes over.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from .._util.arrays import Array, available_memory, host, namespace, on_device, put
from .._util.threads import calm_threads, one_blas_thread, single_thread
from ..exceptions import SolverError
from ..moments import Contrast, Indices, has_few_rows, reduced_contrast

# Relative accuracy of eigenvalues: of results, of those whose vectors affect a result only to second order, and of
# those that only guide a Newton step.
TIGHT, SECOND_ORDER, LOOSE = 1e-12, 1e-7, 1e-3

GUARD_STEPS = 12  # steps of the search for a missed eigenvalue
MAX_RESTARTS = 200  # ARPACK's default, 10 D, is too many for a large D

# If C is a matrix, Lanczos is worth a try from this order upwards, for few vectors and with at most as many restarts as
# cost one direct solution: a restart is 20 products, a direct solution order / 10 products.
MIN_ITERATED_ORDER, MAX_ITERATED_SHARE, RESTARTS_PER_ORDER = 500, 1 / 30, 1 / 200

# The same on a GPU: 10 pairs of order 2000 take 26 ms directly and 7 ms by Lanczos, whose products take 0.06 ms each.
MIN_ITERATED_ON_DEVICE, MAX_SHARE_ON_DEVICE = 1000, 1 / 100

MAX_UNTHREADED = 64  # up to this order products with vectors are so small that a BLAS uses one thread anyway

# Orders at which two threads of the BLAS make a direct solution faster by a seventh at best, and, where another program
# wants the cores, wait for each other at each of its many products: on 2 cores a path took 55 s instead of 1.2 s.
UNTHREADED = range(200, 1000)

WORTHWHILE = 0.9  # part of the features, at most, that must vary so that it pays to leave out the others
RESIDUAL_BOUND = 1e-9  # for |C u - lambda u| relative to the largest |lambda|, for results

# When Lanczos finds an invariant subspace, it continues from a random vector: seeded if SciPy allows it (1.17).
SEEDED: dict[str, Any] = {"rng": 0} if "rng" in inspect.signature(eigsh).parameters else {}

Apply = Callable[[Array], Array]


@dataclass(frozen=True)
class Spectrum:
    """The d largest algebraic eigenpairs of a contrast."""

    values: Array  # (d,), descending
    vectors: Array  # (size, d), orthonormal columns
    images: list[Array]  # S_k times the vectors, (size, d), for every group k of the contrast
    n_iter: int = 1  # products with C by an iterative solver; 1 for a direct one
    note: str = ""  # what did not go as planned; usually empty

    def covariances(self, contrast: Contrast) -> list[Array]:
        """V'cov_k V, shape (d, d), for every group k."""
        found: list[Array] = []
        for image, (_, group) in zip(self.images, contrast.terms, strict=True):
            product = self.vectors.T @ image / group.weight
            found.append((product + product.T) / 2)
        return found


@dataclass(frozen=True)
class Solution:
    """What a method makes of a contrast: directions, lengths of the loadings along them, and the noise variance."""

    spectrum: Spectrum  # the directions v, v'C v along them, and their images; not necessarily eigenvectors
    lengths: Array  # (d,): norms of the columns of W = U diag(lengths); 1 if there is no model
    sigma2: float  # 0 if there is no model
    feasible: bool  # whether a maximum exists; all else is meaningless if not
    eigenvectors: bool = True  # whether the directions are orthonormal eigenvectors of C


def noise_sum(contrast: Contrast, values: Array) -> float:
    """f = tr C - sum_{i<=d} lambda_i, or 0 if it is only rounding (F3)."""
    f = contrast.trace - float(values.sum())
    return f if f > contrast.rounding else min(f, 0.0)


def top_eigenpairs(
    contrast: Contrast, d: int, *, start: Array | None = None, tol: float = TIGHT, iterate: bool = True
) -> Spectrum:
    """The `d` largest algebraic eigenpairs of C, fewer than its order.

    C is indefinite: "largest magnitude" or a randomised SVD would return background directions. An iterative solver
    begins at `start`, approximate eigenvectors (size, k), if these are known. `tol` is its accuracy if C is not a
    matrix; of a matrix, for which it is tried first if `iterate`, results are always accurate.
    """
    if contrast.is_dense:
        if iterate and is_iterated(contrast, d):
            with contextlib.suppress(Unconverged):
                return _lanczos(contrast, d, start, TIGHT)
        return _direct(contrast, d)
    try:
        return _lanczos(contrast, d, start, tol)
    except Unconverged as failure:
        needed = 4 * 8 * contrast.n_features**2
        if needed > available_memory():
            raise SolverError(
                f"The Lanczos solver failed ({failure}), and a dense solver needs {needed / 2**30:.1f} GiB, "
                "more than is available. Use fewer features or components, or scale the features (scale='pooled')."
            ) from failure
        note = f"Lanczos failed ({failure}), solved densely instead"
        return replace(_direct(contrast, d), note=note)


def top_eigenvalues(contrast: Contrast, d: int) -> Array:
    """The `d` largest algebraic eigenvalues of C, descending, shape (d,): to three digits if C is large, else exact."""
    if has_few_rows(group for _, group in contrast.terms):
        contrast = reduced_contrast(contrast, d)[0]
    if not contrast.is_dense:
        return top_eigenpairs(contrast, d, tol=LOOSE).values
    if is_iterated(contrast, d):
        with contextlib.suppress(Unconverged):
            return _lanczos(contrast, d, None, LOOSE).values
    matrix = contrast.dense()
    if on_device(matrix):
        return host(namespace(matrix).linalg.eigvalsh(matrix)[-d:])[::-1]
    # All values by this driver cost less than the largest few by LAPACK's partial solver, of small matrices a quarter.
    with _threads_of(contrast.size):
        values = scipy.linalg.eigh(matrix, eigvals_only=True, driver="evd", overwrite_a=True, check_finite=False)
    return np.asarray(values[: -d - 1 : -1])


def is_iterated(contrast: Contrast, d: int) -> bool:
    """Whether `d` eigenpairs of C are found by products with it: if it is not a matrix, or one large enough."""
    least, share = MIN_ITERATED_ORDER, MAX_ITERATED_SHARE
    if contrast.on_device:
        least, share = MIN_ITERATED_ON_DEVICE, MAX_SHARE_ON_DEVICE
    return not contrast.is_dense or (contrast.size >= least and d <= share * contrast.size)


# ---------------------------------------------------------------------- directly


def _threads_of(order: int) -> contextlib.AbstractContextManager[None]:
    """The threads of the BLAS that a direct solution of this order uses."""
    return one_blas_thread if order in UNTHREADED else contextlib.nullcontext()


def _direct(contrast: Contrast, d: int) -> Spectrum:
    """Partial eigendecomposition of C as a dense matrix; on a device the whole one, and d vectors leave it."""
    matrix, last = contrast.dense(), contrast.size - 1
    if on_device(matrix):
        found = namespace(matrix).linalg.eigh(matrix)
        values, vectors = host(found.eigenvalues[-d:])[::-1], host(found.eigenvectors[:, -d:])[:, ::-1]
        return Spectrum(values, np.ascontiguousarray(vectors), contrast.images(vectors))
    with _threads_of(contrast.size):
        values, vectors = scipy.linalg.eigh(
            matrix, subset_by_index=[last - d + 1, last], overwrite_a=True, check_finite=False
        )
    if values.size < d:  # LAPACK's partial solver can silently lose repeated eigenvalues
        values, vectors = np.linalg.eigh(contrast.dense())
    values, vectors = values[: -d - 1 : -1], vectors[:, : -d - 1 : -1]
    # NumPy's threads would still spin while SciPy's solve the next problem.
    with contextlib.nullcontext() if contrast.size <= MAX_UNTHREADED else one_blas_thread:
        return Spectrum(values, vectors, contrast.images(vectors))


def top_vectors(K: Any, d: int) -> Array:
    """The top d eigenvectors of a symmetric matrix, which may be on a device, the first first."""
    K, last = (K + K.T) / 2, K.shape[0] - 1
    if on_device(K):
        return host(namespace(K).linalg.eigh(K).eigenvectors[:, -d:])[:, ::-1]
    values, u = scipy.linalg.eigh(K, subset_by_index=[last - d + 1, last], check_finite=False)
    if values.size < d:  # LAPACK's partial solver can silently lose repeated eigenvalues
        u = np.linalg.eigh(K)[1][:, -d:]
    return u[:, ::-1]


# ---------------------------------------------------------------------- by products


class Unconverged(Exception):
    """Raised when the result of an iterative solver cannot be used."""


def _lanczos(contrast: Contrast, d: int, start: Array | None, tol: float) -> Spectrum:
    """Implicitly restarted Lanczos (ARPACK), with a check of residuals and a search for missed eigenvalues.

    Vectors have entries for features that vary only, unless an eigenvalue that the others add, 0, is among the largest.
    """
    if contrast.is_dense:
        return _lanczos_inside(contrast, d, start, tol, np.arange(contrast.size))
    varying = np.flatnonzero(np.any([group.scatter.diagonal() for _, group in contrast.terms], axis=0))
    if d < varying.size < WORTHWHILE * contrast.size:
        found = _lanczos_inside(contrast, d, start, tol, varying)
        if found.values[-1] > contrast.rounding:
            return found
    return _lanczos_inside(contrast, d, start, tol, np.arange(contrast.size))


def _lanczos_inside(contrast: Contrast, d: int, start: Array | None, tol: float, inside: Indices) -> Spectrum:
    """Lanczos restricted to the features `inside`: entries of vectors are 0 elsewhere."""
    D, size = contrast.size, inside.size
    matrix = contrast.dense() if contrast.is_dense else None
    max_restarts = MAX_RESTARTS if matrix is None else int(RESTARTS_PER_ORDER * D)
    products = 0
    # A fixed start makes results reproducible.
    noise, other = np.random.default_rng(0).standard_normal((2, D))
    v0 = noise if start is None else start.sum(axis=1) + 1e-3 * noise / np.sqrt(D)

    def lifted(V: Array) -> Array:
        if size == D:
            return V
        found = np.zeros((D, V.shape[1]))
        found[inside] = V
        return found

    # Products with rows use their own threads; products with a small matrix do not need any.
    with single_thread() if matrix is None else calm_threads(D**2):

        def apply(V: Array) -> Array:
            nonlocal products
            products += 1
            V = V.reshape(size, -1)
            if matrix is not None:
                return host(matrix @ put(V, matrix))
            image = contrast.matmul(lifted(V))
            return image if size == D else image[inside]

        for _ in range(2):
            values, vectors = largest(apply, v0[inside], d, tol, max_restarts)
            vectors = lifted(vectors)
            images = contrast.images(vectors)
            if tol > SECOND_ORDER:
                break
            allowed = contrast.rounding + max(RESIDUAL_BOUND, 10 * tol) * np.abs(values).max()
            worst = np.linalg.norm(contrast.combine(images) - vectors * values, axis=0).max()
            if not worst <= allowed:  # Ritz values that have not converged understate the largest ones
                raise Unconverged(f"residual {worst:.1e}, allowed {allowed:.1e}")
            missed = missed_direction(apply, values, vectors[inside], other[inside], allowed)
            if missed is None:
                break
            v0 = np.column_stack([vectors, lifted(missed[:, None])]).sum(axis=1)
        else:
            raise Unconverged("it keeps missing a repeated eigenvalue")
    return Spectrum(values, vectors, images, products)


def largest(apply: Apply, v0: Array, d: int, tol: float, max_restarts: int) -> tuple[Array, Array]:
    """The d largest algebraic eigenpairs of the operator, descending."""
    D = v0.size
    operator = LinearOperator((D, D), matvec=apply, dtype=np.float64)
    # More Lanczos vectors than ARPACK's own 2 d + 1 save restarts on clustered spectra.
    ncv = min(D, max(3 * d, d + 20))
    try:
        values, vectors = eigsh(operator, d, which="LA", v0=v0, ncv=ncv, tol=tol, maxiter=max_restarts, **SEEDED)
    except ArpackError as error:  # no convergence included
        raise Unconverged(str(error).strip()) from error
    return values[::-1].copy(), np.ascontiguousarray(vectors[:, ::-1])  # strided views are slow to multiply with


def missed_direction(apply: Apply, values: Array, vectors: Array, v0: Array, allowed: float) -> Array | None:
    """A direction orthogonal to all found vectors with a larger C than the last eigenvalue; None if none is found.

    One starting vector sees one copy of a repeated eigenvalue, so Lanczos can miss the others. A few steps from another
    start, orthogonal to all found vectors, reveal a missed one: a Ritz value never exceeds the largest remaining
    eigenvalue.
    """

    def outside(v: Array) -> Array:
        return v - vectors @ (vectors.T @ v)

    basis = np.empty((v0.size, GUARD_STEPS), order="F")
    images = np.empty_like(basis)
    v = outside(v0)
    for k in range(GUARD_STEPS):
        length = np.linalg.norm(v)
        if length <= 1e-10 * np.linalg.norm(v0):
            basis, images = basis[:, :k], images[:, :k]  # nothing new is left
            break
        basis[:, k] = v / length
        images[:, k] = outside(apply(basis[:, k]).ravel())
        v = images[:, k]
        for _ in range(2):  # once is not enough in floating point
            v = v - basis[:, : k + 1] @ (basis[:, : k + 1].T @ v)
    if basis.shape[1] == 0:
        return None
    ritz, coordinates = np.linalg.eigh(basis.T @ images)
    return basis @ coordinates[:, -1] if ritz[-1] > values[-1] + allowed else None


def top_of(apply: Apply, size: int, d: int, matrix: Callable[[], Array]) -> tuple[Array, int]:
    """The top eigenvectors (size, d) of a symmetric operator, and the number of products: of a large one by Lanczos, or
    else from its matrix."""
    products = 0

    def counted(v: Array) -> Array:
        nonlocal products
        products += 1
        return apply(v.reshape(size, -1))

    if size >= MIN_ITERATED_ORDER and d <= MAX_ITERATED_SHARE * size:
        v0, other = np.random.default_rng(0).standard_normal((2, size))
        with contextlib.suppress(Unconverged), calm_threads(float(size) ** 2):
            values, vectors = largest(counted, v0, d, TIGHT, int(RESTARTS_PER_ORDER * size))
            if missed_direction(counted, values, vectors, other, 10 * TIGHT * abs(values[0])) is None:
                return vectors, products
    return top_vectors(matrix(), d), 1
