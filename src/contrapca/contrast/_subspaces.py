"""Subspaces and frames: signs, angles, affinity, alignment, principal axes."""

from __future__ import annotations

import numpy as np

from .._util.arrays import Array


def canonical_sign_of(vectors: Array) -> Array:
    """The sign of each column's entry of largest magnitude, shape (..., d), for vectors (..., D, d).

    Among entries within 1e-6 of the largest, the first one counts, so the result does not depend on rounding or the
    number of threads.
    """
    magnitude = np.abs(vectors)
    decisive = np.argmax(magnitude >= (1 - 1e-6) * magnitude.max(axis=-2, keepdims=True), axis=-2)
    entries = np.take_along_axis(vectors, decisive[..., None, :], axis=-2)[..., 0, :]
    return np.where(entries < 0, -1.0, 1.0)


def canonical_signs(vectors: Array) -> Array:
    """Columns with the sign that makes their entry of largest magnitude positive, shape (..., D, d)."""
    return vectors * canonical_sign_of(vectors)[..., None, :]


def principal_axes(W: Array) -> tuple[Array, Array]:
    """Unit vectors (D, d) with canonical signs, and lengths (d,), longest first, of loadings W; they depend only on W
    W'."""
    U, lengths, _ = np.linalg.svd(W, full_matrices=False)
    return canonical_signs(U), lengths


def principal_angles(left: Array, right: Array) -> Array:
    """Angles between subspaces with orthonormal bases (..., D, d), in radians, the largest first, shape (..., d)."""
    cosines = np.linalg.svd(np.swapaxes(left, -1, -2) @ right, compute_uv=False)
    return np.arccos(np.clip(cosines, 0.0, 1.0))[..., ::-1]


def affinity(left: Array, right: Array) -> Array:
    """Mean squared cosine of the principal angles between subspaces with orthonormal bases (..., D, d)."""
    return np.sum((np.swapaxes(left, -1, -2) @ right) ** 2, axis=(-1, -2)) / left.shape[-1]


def align(loadings: Array, estimate: Array) -> Array:
    """Rotate (and reflect) each W (..., D, d) to be as close as possible to the estimate (D, d).

    Only W W' is identified, so draws must be aligned before their loadings are averaged.
    """
    return loadings @ procrustes(loadings, estimate)


def procrustes(loadings: Array, estimate: Array) -> Array:
    """The orthogonal R (..., d, d) for which W R is closest to the estimate, from the SVD of W'W_hat."""
    U, _, Vt = np.linalg.svd(np.swapaxes(loadings, -1, -2) @ estimate)
    return np.asarray(U @ Vt)
