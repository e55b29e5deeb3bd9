"""ContraPCA the slow, obvious way: dense covariances in, every step in the open. The reference of the fast paths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from contrapca.contrast._axes import contrast_axes, latent_rank, latent_rotation, noise_rank

Array = np.ndarray

FRACTION = 0.5  # of the exact limit of gamma: from 0 to 0.9 directions hardly change, and densities want at most half


@dataclass(frozen=True)
class ContraFit:
    """A fitted ContraPCA.

    Attributes
    ----------
    n_latent : int
        r, the dimensions of the model.
    gamma, gamma_max : float
        What was used, and the exact limit at rank r, in gamma' units.
    theta : ndarray of shape (k,)
        Regularised ratios of variances of the axes.
    U : ndarray of shape (D, r)
        Orthonormal basis of the model's subspace.
    lengths : ndarray of shape (r,)
        Lengths of the loadings ``U diag(lengths)``.
    sigma2 : float
        Noise variance.
    rotation : ndarray of shape (r, k)
        Axes of the latent space that are shown.
    directions : ndarray of shape (D, k)
        Unit directions U w that axes 1 to k were found along; not orthogonal.
    """

    n_latent: int
    gamma: float
    gamma_max: float
    theta: Array
    U: Array
    lengths: Array
    sigma2: float
    rotation: Array
    directions: Array

    @property
    def loadings(self) -> Array:
        """The shown columns (D, k) of the rotated loadings."""
        return self.U @ (self.lengths[:, None] * self.rotation)

    def transform(self, rows: Array) -> Array:
        """Latent means (n, k) of rows (n, D) that have been centred."""
        z = rows @ self.U * (self.lengths / (self.lengths**2 + self.sigma2))
        return z @ self.rotation


def top_eigenvectors(matrix: Array, d: int) -> tuple[Array, Array]:
    """The d largest eigenvalues (d,) of a symmetric matrix, descending, and their eigenvectors (D, d)."""
    values, vectors = np.linalg.eigh(matrix)
    return values[::-1][:d], vectors[:, ::-1][:, :d]


def gamma_limit(cov_X: Array, cov_Y: Array, d: int) -> float:
    """Exact limit of gamma' for d latent dimensions (F3): Newton from the right, written as a ratio of traces.

    Parameters
    ----------
    cov_X, cov_Y : ndarray of shape (D, D)
    d : int
        Less than D.

    Returns
    -------
    float
        At most 1; 0 where the foreground has no more than d dimensions, and no gamma is feasible.
    """
    gamma = 1.0
    while True:
        _, U = top_eigenvectors(cov_X - gamma * cov_Y, d)
        ours, theirs = (np.trace(cov) - np.trace(U.T @ cov @ U) for cov in (cov_X, cov_Y))
        if ours <= np.finfo(np.float64).eps * np.trace(cov_X):
            return 0.0
        # What is left outside U is ours - gamma theirs. Where that is positive gamma is feasible; where it is zero up
        # to rounding, gamma is the limit. Either way the step would not decrease it.
        if ours >= gamma * theirs * (1 - 1e-14):
            return gamma
        gamma = ours / theirs


def fit_contrapca(
    cov_X: Array,
    cov_Y: Array,
    n: int,
    m: int,
    k: int,
    *,
    n_latent: int | None = None,
    blocks: tuple[int, int] | None = None,
) -> ContraFit:
    """ContraPCA from covariances: rank, half the limit, closed form, contrast axes, rotation (F2, F3, F16).

    Parameters
    ----------
    cov_X, cov_Y : ndarray of shape (D, D)
        Covariances (ddof 0) of foreground and background.
    n, m : int
        Their rows.
    k : int
        Dimensions to show.
    n_latent : int, optional
        r; chosen by `latent_rank` unless given.
    blocks : (int, int), optional
        Numbers of blocks of the two groups, where rows come in blocks.

    Returns
    -------
    ContraFit
    """
    D = len(cov_X)
    if n_latent is None:
        q_x = noise_rank(n * np.linalg.eigvalsh(cov_X)[::-1], n, D)
        q_y = noise_rank(m * np.linalg.eigvalsh(cov_Y)[::-1], m, D)
        n_latent = latent_rank(q_x, q_y, k, D, *(blocks or (n, m)), foreground_rank=min(n - 1, D))
    r = n_latent
    gamma_max = gamma_limit(cov_X, cov_Y, r)
    if gamma_max == 0:
        raise ValueError(f"No gamma is feasible: the foreground has no more than {r} dimensions.")
    gamma = FRACTION * gamma_max
    contrast = cov_X - gamma * cov_Y
    values, U = top_eigenvectors(contrast, r)
    sigma2 = (np.trace(contrast) - values.sum()) / ((1 - gamma) * (D - r))
    lengths = np.sqrt(np.maximum(values / (1 - gamma) - sigma2, 0.0))
    a, b = U.T @ cov_X @ U, U.T @ cov_Y @ U
    nu_x, nu_y = ((np.trace(cov) - np.trace(inside)) / (D - r) for cov, inside in ((cov_X, a), (cov_Y, b)))
    theta, w = contrast_axes(a, b, nu_x, nu_y, k)
    return ContraFit(r, gamma, gamma_max, theta, U, lengths, sigma2, latent_rotation(lengths, sigma2, w)[:, :k], U @ w)


def kind_of_noise(cov_X: Array, cov_Y: Array, n: int, m: int) -> tuple[str | None, str]:
    """Units and axes that the noise asks for (F41): (None or "pooled", "contrast" or "ratio")."""
    D = len(cov_X)
    most = min(D - 1, n - 1, m - 1, 51)
    deviation = np.sqrt((n * np.diag(cov_X) + m * np.diag(cov_Y)) / (n + m))

    def counted(divisor: Array) -> int:
        spectra = ((size, np.linalg.eigvalsh(cov / np.outer(divisor, divisor))[::-1]) for size, cov in groups)
        return min(51, max(noise_rank(size * values, size, D) for size, values in spectra))

    groups = (n, cov_X), (m, cov_Y)
    if counted(np.ones(D)) < 0.5 * most:
        return None, "contrast"
    return "pooled", "contrast" if counted(deviation) < 0.9 * most else "ratio"


def ratio_axes(cov_X: Array, cov_Y: Array, k: int) -> tuple[Array, Array]:
    """The k largest theta of A v = theta (B + t I) v and unit vectors v (D, k), t by bisection (F41)."""
    D, values = len(cov_X), np.linalg.eigvalsh(cov_Y)
    low, high = 0.0, float(values.mean())  # the largest root, which is where an iteration from above ends
    grid = np.linspace(low, high, 200_001)[1:]
    excess = np.minimum(values[:, None], 8 * grid[None, ::100]).mean(axis=0) - grid[::100]
    last = np.flatnonzero(excess >= 0)[-1]
    low, high = grid[::100][last], grid[::100][min(last + 1, excess.size - 1)]
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(values, 8 * middle).mean() >= middle else (low, middle)
    theta, V = scipy.linalg.eigh(cov_X, cov_Y + (low + high) / 2 * np.eye(D))
    V = V[:, ::-1][:, :k]
    return theta[::-1][:k], V / np.linalg.norm(V, axis=0)


def row_factors(X: Array) -> Array:
    """s of each row (F42), one at a time; missing values are nan."""
    centre, lengths = np.nanmedian(X, axis=0), []
    for row in X:
        distances = [(x - c) ** 2 for x, c in zip(row, centre, strict=True) if not np.isnan(x)]
        lengths.append((sum(distances) / len(distances)) ** 0.5)
    usual = np.median(lengths)
    reach = usual + 3 * 1.4826 * np.median([abs(length - usual) for length in lengths])
    return np.array([min(1.0, reach / length) for length in lengths])
