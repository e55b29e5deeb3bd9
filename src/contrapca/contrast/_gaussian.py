"""The fitted model as a distribution: x = mean + W z + noise, z ~ N(0, I), noise ~ N(0, sigma2 I).

The only implementation of F6: with M = sigma2 I_d + W'W and A = W W' + sigma2 I_D,
log|A| = (D - d) log sigma2 + log|M|, A^-1 = (I - W M^-1 W') / sigma2 and
z | x ~ N(M^-1 W'(x - mean), sigma2 M^-1). No D x D matrix is formed unless requested.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg

from .._files import check_values
from .._util.arrays import Array, Rows, cast, is_sparse, namespace
from ..data import Scaling
from ..data.rows import storage
from ..moments import Filling


def log_normaliser(n_values: Array | float, d: float, sigma2: Array | float, log_M: Array | float) -> Array | float:
    """-(n log 2 pi + log|A|) / 2 of n values, log|A| = (n - d) log sigma2 + log|M| (F6)."""
    log_sigma2 = math.log(sigma2) if isinstance(sigma2, float) else np.log(sigma2)
    return -0.5 * (n_values * math.log(2 * math.pi) + (n_values - d) * log_sigma2 + log_M)


@dataclass(frozen=True)
class LatentGaussian:
    """N(mean, W W' + sigma2 I).

    Attributes
    ----------
    mean : ndarray of shape (D,)
    W : ndarray of shape (D, d)
    sigma2 : float, positive
    """

    mean: Array
    W: Array
    sigma2: float

    def _check_values(self) -> None:
        """Raise if no distribution has these."""
        check_values(self, {"mean": "D", "W": "Dd"}, positive=("sigma2",))

    @property
    def M(self) -> Array:
        """sigma2 I_d + W'W, shape (d, d)."""
        return self.sigma2 * np.eye(self.W.shape[1]) + self.W.T @ self.W

    def log_normaliser(self, n_features: int | None = None) -> float:
        """-(D log 2 pi + log|A|) / 2; D is `n_features` if W has fewer coordinates than there are features."""
        D, d = self.W.shape
        return float(log_normaliser(n_features or D, d, self.sigma2, np.linalg.slogdet(self.M)[1]))

    def trace_product(self, trace: float, SW: Array) -> float:
        """tr(A^-1 S) = (tr S - tr M^-1 W'S W) / sigma2 from tr S and S W."""
        inside = np.linalg.solve(self.M, self.W.T @ (SW / self.sigma2))  # W'S W itself may overflow
        return trace / self.sigma2 - float(np.trace(inside))

    def projection(self) -> Array:
        """P = W M^-1, shape (D, d): the latent mean of a row x is (x - mean) P."""
        return scipy.linalg.solve(self.M, self.W.T, assume_a="pos").T

    def latent_mean(self, X: Rows) -> Array:
        """E[z | x] for each row, shape (n, d), in the float type of `X`."""
        return storage(X).centred_product(X, self.mean, self.projection())

    def latent_covariance(self) -> Array:
        """Covariance sigma2 M^-1 of z | x, the same for every complete row, shape (d, d)."""
        return self.sigma2 * np.linalg.inv(self.M)

    def log_prob(self, X: Rows) -> Array:
        """log N(x; mean, A) for each row, shape (n,), in the float type of `X`.

        The quadratic form is ``|x - mean - W z|^2 / sigma2 + |z|^2`` with ``z = E[z | x]``: a sum of squares,
        which does not cancel when sigma2 is small.
        """
        residual, length = storage(X).squared_lengths(X, self.mean, self.projection(), self.W)
        return cast(self.log_normaliser() - 0.5 * (residual / float(self.sigma2) + length), X)

    def condition(self, X: Rows) -> Conditional:
        """All features given the observed ones, for dense rows whose missing values are NaN.

        With o the observed features of a row and M = sigma2 I + W_o'W_o, z | x_o ~ N(M^-1 W_o'(x_o - mean_o), sigma2
        M^-1) (F9). Rows with the same missing features share their M; one product of masks with products of loadings
        gives all M.
        """
        observed = ~np.isnan(X)
        packed, pattern = np.unique(np.packbits(observed, axis=1), axis=0, return_inverse=True)
        masks = np.unpackbits(packed, axis=1, count=self.mean.size).astype(np.float64)
        centred, pattern = np.where(observed, X - self.mean, 0.0), pattern.reshape(-1)
        inverses, log_determinants = masked_inverses(self.W, self.sigma2, masks)
        inverses = inverses.transpose(2, 0, 1)
        latent_mean = times(inverses[pattern], centred @ self.W)
        return Conditional(self, centred, masks, inverses, log_determinants, pattern, latent_mean)

    def sample(self, n: int, generator: np.random.Generator) -> Array:
        """`n` new rows, shape (n, D)."""
        D, d = self.W.shape
        noise = np.sqrt(self.sigma2) * generator.standard_normal((n, D))
        return self.mean + generator.standard_normal((n, d)) @ self.W.T + noise

    def covariance(self) -> Array:
        """A, shape (D, D)."""
        A = self.W @ self.W.T
        A.flat[:: A.shape[0] + 1] += self.sigma2
        return A

    def precision(self) -> Array:
        """A^-1, shape (D, D)."""
        inverse = -self.projection() @ self.W.T / self.sigma2
        inverse.flat[:: inverse.shape[0] + 1] += 1 / self.sigma2
        return inverse


@dataclass(frozen=True)
class Conditional:
    """The distribution of every feature of some rows given the observed ones (F11)."""

    model: LatentGaussian
    centred: Array  # (n, D): deviations from the mean, 0 where missing
    masks: Array  # (P, D): P patterns of missing values: 1 for observed, 0 for missing
    inverses: Array  # (P, d, d): M^-1 of each pattern
    log_determinants: Array  # (P,): log|M| of each pattern
    pattern: npt.NDArray[np.intp]  # (n,): the pattern of each row
    latent_mean: Array  # (n, d)

    def mean(self) -> Array:
        """mean + W z, shape (n, D)."""
        return self.model.mean + self.latent_mean @ self.model.W.T

    def latent_covariance(self) -> Array:
        """sigma2 M^-1 of each row, shape (n, d, d)."""
        return np.asarray((self.model.sigma2 * self.inverses)[self.pattern])

    def log_prob(self) -> Array:
        """log N(x_o; mean_o, A_o) of the observed values of each row, shape (n,); 0 for a row without any.

        The quadratic form is |x_o - mean_o - W_o z|^2 / sigma2 + |z|^2, as for complete rows.
        """
        sigma2, Z = self.model.sigma2, self.latent_mean
        constants: Any = log_normaliser(self.masks.sum(axis=1), Z.shape[1], sigma2, self.log_determinants)
        R = self.centred - (Z @ self.model.W.T) * self.masks[self.pattern]
        return np.asarray(constants[self.pattern] - 0.5 * (np.sum(R * R, axis=1) / sigma2 + np.sum(Z * Z, axis=1)))

    def deviation(self) -> Array:
        """Standard deviation of each unobserved feature, sqrt(sigma2 (1 + w_j'M^-1 w_j)), shape (n, D)."""
        W, d = self.model.W, self.model.W.shape[1]
        pairs = (W[:, :, None] * W[:, None, :]).reshape(-1, d * d)
        return np.asarray(np.sqrt(self.model.sigma2 * (1 + self.inverses.reshape(-1, d * d) @ pairs.T))[self.pattern])

    def draw(self, generator: np.random.Generator) -> Array:
        """One draw of all features, shape (n, D); features of a row share its latent."""
        sigma, (n, d) = math.sqrt(self.model.sigma2), self.latent_mean.shape
        roots = np.linalg.cholesky(self.inverses)[self.pattern]
        Z = self.latent_mean + sigma * times(roots, generator.standard_normal((n, d)))
        noise = generator.standard_normal((n, self.model.mean.size))
        return self.model.mean + Z @ self.model.W.T + sigma * noise


def centred_condition(apart: Array, W: Array, noise: Array) -> Conditional:
    """Given the observed values of rows about their means, where the noise of every feature has its own variance (F45).

    In units in which that is 1: latents are the same in these.
    """
    root = np.sqrt(noise)
    return LatentGaussian(np.zeros(root.size), W / root[:, None], 1.0).condition(apart / root)


def filled(X: Array, mean: Array, W: Array, noise: Array) -> Array:
    """Rows X (n, D), their missing values replaced by the means given the observed ones (F45).

    `mean` is (D,) or (n, D); `noise` (D,) are variances.
    """
    latent = centred_condition(X - mean, W, noise).latent_mean
    return np.where(np.isnan(X), mean + latent @ W.T, X)


def project(rows: Rows, P: Array, scaling: Scaling, filling: Filling | None) -> Array:
    """`Scaling.project`, of rows whose missing values are replaced by their means given the observed ones (F45)."""
    if filling is None or is_sparse(rows):
        return scaling.project(rows, P)
    W, noise = filling.W / scaling.scale[:, None], filling.noise / scaling.scale**2

    def product(block: Rows) -> Array:
        if namespace(block).any(namespace(block).isnan(block)):
            block = filled(block, scaling.origin, W, noise)
        return storage(block).centred_product(block, scaling.origin, P)

    return scaling.apply(product, rows)


def times(matrices: Array, vectors: Array) -> Array:
    """A_i v_i for matrices (n, d, d) and vectors (n, d), shape (n, d)."""
    return np.asarray(np.sum(matrices * vectors[:, None, :], axis=2))


def masked_inverses(W: Array, sigma2: float, masks: Array) -> tuple[Array, Array]:
    """M^-1 (d, d, P) and log|M| (P,) of M = sigma2 I + W_o'W_o for each pattern o of observed features (F9).

    One product of the masks (P, D), of 1 and 0, with products of loadings gives all M; nothing has size D x D. Patterns
    are last: the loops below run over d and are vectorised over patterns, several times faster than calling LAPACK for
    each matrix.
    """
    d, P = W.shape[1], masks.shape[0]
    root = unpack(packed_products(W.T, W.T) @ masks.T, d)
    np.einsum("iip->ip", root)[...] += sigma2
    for k in range(d):  # Cholesky's factor, in the lower triangle
        column = root[k:, k]
        column -= np.einsum("jp,ijp->ip", root[k, :k], root[k:, :k])
        np.maximum(column[0], sigma2, out=column[0])  # as it would be without rounding
        column /= np.sqrt(column[0])
    inverse_root = np.zeros((d, d, P))
    for i in range(d):  # by forward substitution
        inverse_root[i, i] = 1 / root[i, i]
        inverse_root[i, :i] = np.einsum("kp,kjp->jp", root[i, :i], inverse_root[:i, :i]) * -inverse_root[i, i]
    inverses = np.empty((d, d, P))
    for i in range(d):
        product = np.einsum("kp,kjp->jp", inverse_root[i:, i], inverse_root[i:, : i + 1])
        inverses[i, : i + 1] = inverses[: i + 1, i] = product
    return inverses, 2 * np.log(np.einsum("iip->ip", root)).sum(axis=0)


def packed_products(A: Array, B: Array) -> Array:
    """a_i b_j for i <= j of each column of A and B (d, n), shape (d (d + 1) / 2, n)."""
    upper, right, _ = triangle(A.shape[0])
    return A[upper] * B[right]


def unpack(packed: Array, d: int) -> Array:
    """Symmetric matrices from their upper triangles, shape (d, d, n)."""
    return packed[triangle(d)[2]]


@lru_cache
def triangle(d: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Row and column indices of the upper triangle of a (d, d) matrix, and the position in it of each matrix entry."""
    upper, right = np.triu_indices(d)
    position = np.empty((d, d), dtype=np.intp)
    position[upper, right] = position[right, upper] = np.arange(upper.size)
    return upper, right, position
