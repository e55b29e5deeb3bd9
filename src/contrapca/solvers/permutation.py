"""The parts of the permutation test for contrastive dimensions: exchangeable rows, whitening, the statistic."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.linalg

from .._array import Array


def helmert_contrasts(table: Array) -> Array:
    """n - 1 orthonormal contrasts of n rows (Helmert's): the same scatter, free of the mean, exchangeable rows.

    Row k is (x_1 + ... + x_k - k x_{k+1}) / sqrt(k (k + 1)). Rows about their mean would have one dimension less than
    their number, which permuted groups have not; with few rows that alone would look like a difference.
    """
    k = np.arange(1, len(table))[:, None]
    return (np.cumsum(table, axis=0)[:-1] - k * table[1:]) / np.sqrt(k * (k + 1))


def whitening(rows: Array) -> tuple[Array, Array]:
    """(C + t I)^(-1/2) and (C + t I)^(1/2), C the covariance of all rows, t its mean variance times D / rows.

    C is the same for all labellings, so that whitening costs no validity; it keeps directions in which both groups vary
    much, and their covariances differ much by chance, from drowning the others.
    """
    n, D = rows.shape
    values, U = np.linalg.eigh(rows.T @ rows / n)
    values = values + max(values.mean() * D / n, np.finfo(float).tiny)
    return (U / np.sqrt(values)) @ U.T, (U * np.sqrt(values)) @ U.T


def largest_excess(rows: Array, is_foreground: npt.NDArray[np.bool_], *, vector: bool = True) -> tuple[float, Array]:
    """The largest eigenvalue of cov_X - cov_Y, and its vector if wanted."""
    left, right = rows[is_foreground], rows[~is_foreground]
    matrix = left.T @ left / len(left) - right.T @ right / len(right)
    last = matrix.shape[0] - 1
    if not vector:
        return float(
            scipy.linalg.eigh(matrix, eigvals_only=True, subset_by_index=[last, last], check_finite=False)[0]
        ), matrix
    values, vectors = np.linalg.eigh(matrix)
    return float(values[-1]), vectors[:, -1]
