"""Which axes of a solution are shown: the first principal ones, or contrast axes (F16)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._util.arrays import EPS, Array
from ..groups import Groups
from ..limits import rank_exceeds
from ..moments import Complete, Contrast, MaskedGroup, Moments, alone
from ..objectives import least_losses
from ..solvers import (
    CAP,
    SPARE,
    Solution,
    contrast_axes,
    estimated_moments,
    is_iterated,
    latent_rank,
    latent_rotation,
    missing_edge,
    noise_outside,
    noise_rank,
    top_eigenpairs,
    top_eigenvalues,
)
from ..subspaces import canonical_sign_of
from ._fit import Latents

# Eigenvalues that the rank rule considers: more than 50 would not count. If each costs products, the first few are
# tried first: they are enough for most tables.
LOOKS = (12, 51)
MASKED_SPARE = 10  # latent dimensions of a model of incomplete rows beyond those that are shown


@dataclass(frozen=True)
class ShownAxes:
    """The axes of a model that are shown, in the coordinates of its principal directions U (D, r).

    Attributes
    ----------
    directions : ndarray of shape (r, k)
        Unit directions U d that rows are projected onto.
    rotation : ndarray of shape (r, r)
        Rotation R of the latent space: the first k columns of W = U diag(lengths) R belong to the axes that are shown.
    variances : Groups of ndarray of shape (k,)
        Variance of each group along the directions.
    ratios : ndarray of shape (k,) or None
        Variance ratios of contrast axes.
    """

    directions: Array
    rotation: Array
    variances: Groups[Array]
    ratios: Array | None

    def lift(self, U: Array, lengths: Array) -> tuple[Array, Array]:
        """Components (D, k), and W (D, r) whose first k columns have the same canonical signs, the others their own."""
        k, W = self.directions.shape[1], U * lengths
        components, W = (U[:, :k], W) if self.ratios is None else (U @ self.directions, W @ self.rotation)
        signs = canonical_sign_of(np.hstack([components, W[:, k:]]))
        return components * signs[:k], W * signs


def show_axes(
    latents: Latents,
    lengths: Array,
    sigma2: float,
    covariances: Groups[Array],
    totals: Groups[float],
    mix: Array,
    n_features: int,
) -> ShownAxes:
    """The axes to show of the loadings U diag(lengths).

    Parameters
    ----------
    latents : Latents
    lengths : ndarray of shape (r,)
    sigma2 : float
    covariances : Groups of ndarray of shape (r, r)
        U'cov U of each group.
    totals : Groups of float
        Total variance of each group.
    mix : ndarray of shape (backgrounds,)
        The part of each background in the contrast.
    n_features : int
    """
    k, r = latents.n_shown, lengths.size
    if not latents.contrast_axes or not covariances.backgrounds:
        identity = np.eye(r)
        return ShownAxes(identity[:, :k], identity, covariances.map(lambda c: np.diagonal(c)[:k].copy()), None)
    background = np.tensordot(mix, covariances.backgrounds, 1)
    noise = [noise_outside(total, inside, n_features) for total, inside in zip(totals, covariances, strict=True)]
    ratios, w = contrast_axes(covariances.foreground, background, noise[0], float(mix @ noise[1:]), k)
    rotation = latent_rotation(lengths, sigma2, w)
    # Latent means are along U diag(l / (l^2 + sigma2)) R; where that vanishes, use the direction of the loading itself.
    directions = (lengths / (lengths**2 + sigma2))[:, None] * rotation[:, :k]
    norms = np.linalg.norm(directions, axis=0)
    directions = np.where(norms > 0, directions / np.where(norms > 0, norms, 1.0), rotation[:, :k])
    variances = covariances.map(lambda c: np.einsum("ri,rs,si->i", directions, c, directions))
    return ShownAxes(directions, rotation, variances, ratios)


def variance_inside(solution: Solution, covariance: Array) -> float:
    """Variance in the span of a solution's directions V, from the covariance V'S V: its trace if V is orthonormal."""
    if solution.eigenvectors:
        return float(np.trace(covariance))
    V = solution.spectrum.vectors
    return float(np.trace(np.linalg.lstsq(V.T @ V, covariance, rcond=None)[0]))


def automatic_rank(data: Complete, k: int) -> int:
    """Number of latent dimensions of a model that shows k of them, from the spectra of the groups (F16)."""
    groups, q = data.groups, 0
    for group in sorted(groups, key=lambda group: group.weight):  # the fewer rows, the less a spectrum costs
        if q + SPARE < CAP:  # else the others do not matter any more
            q = max(q, dimensions_above_noise(group))
    D, rows = groups.foreground.mean.size, [int(group.weight) for group in groups]
    rank = latent_rank(q, q, k, D, rows[0], min(rows))
    if rank > k and not rank_exceeds(groups.foreground, rank):  # repeated features, or repeated rows
        rank = max(feasible_rank(alone(groups.foreground), rank), k)
    return rank


def feasible_rank(C: Contrast, r: int) -> int:
    """The largest number of latent dimensions, at most r, for which the contrast has a solution; 0 if there is none."""
    if C.N <= EPS * C.n_foreground:
        return 0
    left = least_losses(C, top_eigenpairs(C, r).values)[1:] * C.n_foreground  # f of F3 for 1, ..., r dimensions
    return int(np.max(np.flatnonzero(left > C.rounding) + 1, initial=0))


def masked_rank(groups: Groups[MaskedGroup], k: int) -> int:
    """The same for incomplete rows, from estimated moments (F24), and at most k + 10: every fit is iterative.

    Rows count as often as they have both of two features, and a row can hold only fewer dimensions than values.
    """
    q = groups.map(lambda group: dimensions_above_noise(estimated_moments(group), missing_edge(group)))
    values = min(int(group.cells / group.weight) for group in groups)
    rows = [int(group.pairs_per_entry) for group in groups]
    rank = latent_rank(q.foreground, max(q.backgrounds, default=0), k, values, rows[0], min(rows))
    return min(rank, k + MASKED_SPARE)


def dimensions_above_noise(group: Moments, more: float = 0.0) -> int:
    """Number of dimensions of a group that stand out from its noise, and from what is `more` than that (F16)."""
    return _values_above_noise(group, more).size


def _values_above_noise(group: Moments, more: float = 0.0) -> Array:
    """The largest eigenvalues of the scatter that stand out from the noise, and from what is `more` than that."""
    C = alone(group)
    for look in LOOKS if is_iterated(C, LOOKS[0]) else LOOKS[-1:]:
        count = min(look, C.size - 1)
        values = top_eigenvalues(C, count)
        found = noise_rank(values, group.weight, C.n_features, C.trace, more=more)
        if found < count or count < look:
            break
    return values[:found]


def noise_variance(group: Moments) -> float:
    """Mean variance in the dimensions that do not stand out from the noise, of which a quarter of all is assumed."""
    D = group.mean.size
    values = _values_above_noise(group)[: 3 * D // 4]
    return (group.scatter.trace - float(values.sum())) / (D - values.size) / group.weight
