"""Estimates from observed values: moments and starting points before a fit, means and moments given a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from .._util.arrays import Array
from ..contrast import LOOSE, LatentGaussian, closed_form, masked_inverses, packed_products, top_eigenpairs, triangle
from ..data import Groups
from ..moments import Contrast, Moments
from ._likelihood import masked_latents
from ._rows import MaskedBlocks, MaskedGroup, MaskedRows, counted_terms

# Smallest noise variance and smallest squared length of a starting loading, as fractions of the median variance.
LEAST_NOISE, LEAST_LENGTH = 0.05, 0.01

CG_TOLERANCE, CG_STEPS = 1e-10, 1000  # of the means: a few digits below what a fit resolves


# ---------------------------------------------------------------------- before a fit


@dataclass(frozen=True)
class _EstimatedScatter:
    """An estimate of the scatter of all values from those observed, for products only.

    Sums of products of deviations over the rows in which both features are observed, S_jk, estimate
    p_j p_k times the full sums if features are observed independently with probabilities p_j (p_j alone on the
    diagonal).
    """

    group: MaskedGroup

    @property
    def size(self) -> int:
        return self.group.mean.size

    @property
    def _fraction(self) -> Array:
        """Fraction of each feature's values that were observed, shape (D,)."""
        return self.group.feature_counts / self.group.weight

    def diagonal(self) -> Array:
        return self.group.squares / self._fraction

    @property
    def trace(self) -> float:
        return float(self.diagonal().sum())

    def matmul(self, V: Array) -> Array:
        group, fraction = self.group, self._fraction[:, None]
        scaled = V / fraction
        product = np.zeros(V.shape)
        if group.rows is not None:
            product += group.rows.total(lambda rows: rows.values.T @ (rows.values @ scaled))
        if group.complete is not None:
            product += group.complete.scatter.matmul(scaled)
        squares = group.squares[:, None]
        return product / fraction + (squares / fraction - squares / fraction**2) * V

    def dense(self) -> Array:
        return self.matmul(np.eye(self.size))

    def scaled(self, divisor: Array) -> _EstimatedScatter:
        return _EstimatedScatter(self.group.scaled(divisor))


def estimated_moments(group: MaskedGroup) -> Moments:
    """Moments of all values, estimated from those observed."""
    return Moments(group.weight, group.mean, _EstimatedScatter(group))


def missing_edge(group: MaskedGroup) -> float:
    """The largest eigenvalue of what missing values add to an estimated scatter matrix: 2 s sqrt(n D (1 / p - 1)).

    (F24.) s is the mean variance of all features, signal included, and p the fraction of the rows in which two features
    are both observed.
    """
    n, D = group.weight, group.mean.size
    variance = estimated_moments(group).scatter.trace / (n * D)
    return 2 * variance * float(np.sqrt(D * n * max(n / group.pairs_per_entry - 1, 0.0)))


def masked_start(groups: Groups[MaskedGroup], gamma: float, d: int) -> tuple[Array, float]:
    """(W, sigma2) from the closed form (F2) on estimated moments, kept away from 0: these are not proper moments.

    Only a start: F3 must not be applied to such moments.
    """
    contrast = Contrast.of(*((c, estimated_moments(group)) for c, group in counted_terms(groups, gamma)))
    spectrum = top_eigenpairs(contrast, d, tol=LOOSE)
    variance = groups.foreground.typical_variance
    lengths, sigma2 = closed_form(
        spectrum.values,
        contrast.trace - float(spectrum.values.sum()),
        contrast.N,
        contrast.n_features,
        least_sigma2=LEAST_NOISE * variance,
        least_square=LEAST_LENGTH * variance,
    )
    return spectrum.vectors * lengths, sigma2


def random_start(groups: Groups[MaskedGroup], d: int, generator: np.random.Generator) -> tuple[Array, float]:
    """Random loadings that explain about half of each feature's variance."""
    variance = groups.foreground.variance
    W = generator.standard_normal((variance.size, d)) * np.sqrt(variance / (2 * d))[:, None]
    return W, float(variance.mean()) / 2


# ---------------------------------------------------------------------- given a model


def gls_mean(group: MaskedGroup, W: Array, sigma2: float) -> Array:
    """The generalised-least-squares mean of a group given A = W W' + sigma2 I, shape (D,).

    It solves sum_i L_i'A_i^-1 L_i (mean) = sum_i L_i'A_i^-1 x_i, where L_i selects the observed features of row i. It
    is unbiased even if missingness depends on observed values. Solved by conjugate gradients: nothing D x D is formed.
    """
    projection = LatentGaussian(group.mean, W, sigma2).projection()
    parts: list[Callable[[Array], Array]] = []  # calls v -> sum_i L_i'A_i^-1 L_i v sigma2
    right = np.zeros(group.mean.size)  # sum_i L_i'A_i^-1 (x_i - mean) sigma2
    if group.complete is not None:
        complete = group.complete

        def of_complete(v: Array) -> Array:
            return complete.weight * (v - projection @ (W.T @ v))

        parts.append(of_complete)
        right += of_complete(complete.mean - group.mean)
    if group.rows is not None:
        of_rows, own = _gls_system(group.rows, W, sigma2)
        parts.append(of_rows)
        right += own
    D = group.mean.size
    system = LinearOperator((D, D), matvec=lambda v: np.sum([part(v.ravel()) for part in parts], axis=0), dtype=float)
    scaling = LinearOperator((D, D), matvec=lambda v: v.ravel() / group.feature_counts, dtype=float)
    shift, _ = cg(system, right, rtol=CG_TOLERANCE, maxiter=CG_STEPS, M=scaling)
    return group.mean + shift


def _gls_system(rows: MaskedRows | MaskedBlocks, W: Array, sigma2: float) -> tuple[Callable[[Array], Array], Array]:
    """v -> sum_i L_i'A_i^-1 L_i v sigma2, and sum_i L_i'A_i^-1 (x_i - mean) sigma2, shape (D,)."""
    if isinstance(rows, MaskedBlocks):  # each product is a sum over blocks, as is a step of the optimiser

        def of_blocks(v: Array) -> Array:
            return rows.total(lambda block: _gls_system(block, W, sigma2)[0](v))

        return of_blocks, rows.total(lambda block: _gls_system(block, W, sigma2)[1])
    inverses, _ = masked_inverses(W, sigma2, rows.masks)
    often = rows.pattern_weights @ rows.masks

    def scatter(latents: Array) -> Array:
        """sum_p mask_p (W latent_p), from latents (d, P)."""
        return np.einsum("kj,jk->j", latents @ rows.masks, W)

    def of_rows(v: Array) -> Array:
        inside = W.T * v @ rows.masks.T  # (d, P)
        return often * v - scatter(np.einsum("ijp,jp->ip", inverses, inside) * rows.pattern_weights)

    sums = rows.by_pattern((rows.roots * rows.values).T)  # of deviations, by weight, (D, P)
    return of_rows, sums.sum(axis=1) - scatter(np.einsum("ijp,jp->ip", inverses, W.T @ sums))


def expected_total_variance(group: MaskedGroup, W: Array, sigma2: float) -> float:
    """E[|x - mean|^2 | observed values] under the model, averaged over rows.

    Observed values contribute their squares. A missing value adds w_j'E[z z'] w_j + sigma2; summed over the missing
    values of a pattern, the first term is the inner product of sum_j w_j w_j' and the sum of E[z z'] over its rows.
    """

    def missing_square(rows: MaskedRows) -> float:
        inverses, _, Z = masked_latents(rows, W, sigma2)
        upper, right, _ = triangle(W.shape[1])
        second = rows.by_pattern(packed_products(Z, Z)) + sigma2 * rows.pattern_weights * inverses[upper, right]
        loadings = packed_products(W.T, W.T)
        missing = loadings.sum(axis=1)[:, None] - loadings @ rows.masks.T  # sum of w_j w_j' over missing j, packed
        twice = np.where(upper == right, 1.0, 2.0)[:, None]  # off-diagonal entries count twice
        absent = rows.pattern_weights @ (W.shape[0] - rows.value_counts)
        return float(np.sum(twice * second * missing)) + sigma2 * float(absent)

    total = float(group.squares.sum())
    if group.rows is not None:
        total += group.rows.total(missing_square)
    return total / group.weight


def expected_covariance(group: MaskedGroup, U: Array, W: Array, sigma2: float) -> Array:
    """E[U'(x - mean)(x - mean)'U | observed values] under the model, averaged over rows, shape (k, k).

    For complete rows this is the covariance itself. For others, the missing part is Gaussian given the observed part
    (F11): mean U_h'W_h z, covariance sigma2 (U_h'W_h M^-1 W_h'U_h + U_h'U_h), where h are the missing features.
    """
    (D, k), d = U.shape, W.shape[1]

    def second_moment(rows: MaskedRows) -> Array:
        inverses, _, Z = masked_latents(rows, W, sigma2)
        # G[p, k] = W_h'u_h of pattern p and direction k, shape (P, k, d): the total minus the observed part.
        products = (U[:, :, None] * W[:, None, :]).reshape(D, -1)
        G = (products.sum(axis=0) - rows.masks @ products).reshape(-1, k, d)
        along = rows.values @ U + np.einsum("nki,in->nk", rows.by_row(G.transpose(1, 2, 0)).transpose(2, 0, 1), Z)
        total = along.T @ along
        total += sigma2 * np.einsum("p,pki,ijp,plj->kl", rows.pattern_weights, G, inverses, G, optimize=True)
        how_often_missing = rows.pattern_weights @ (1 - rows.masks)
        total += sigma2 * (U.T * how_often_missing) @ U
        return total

    total = np.zeros((k, k))
    if group.complete is not None:
        total += U.T @ group.complete.scatter.matmul(U)
    if group.rows is not None:
        total += group.rows.total(second_moment)
    return total / group.weight
