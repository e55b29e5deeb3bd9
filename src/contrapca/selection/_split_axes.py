"""Contrast axes from one half of the rows (F16, F18)."""

from __future__ import annotations

import math

import numpy as np

from .._util.arrays import Array
from ..groups import Groups
from ..moments import contrast
from ..solvers import contrast_axes, has_plateau, latent_rank, noise_rank, top_eigenpairs
from ._split_moments import ChunkMoments, Half
from ._splits import Splits


def axes_of_split(chunks: Groups[ChunkMoments], splits: Splits, split: int, n_axes: int) -> tuple[Array, float]:
    """Contrast axes from the finding half, and the noise ratio of the testing half outside their model.

    Returns
    -------
    axes : ndarray of shape (p, n_axes)
        Unit directions in the working basis. The first axes do not depend on `n_axes`.
    noise : float
        Log ratio of foreground to background mean variance outside the subspace of the axes' model; nan if so many
        dimensions stand out that what is outside is no noise.
    """
    finds, within = splits.finds[split], splits.within[split]
    merge = ChunkMoments.within if within else ChunkMoments.merged
    halves = chunks.map(lambda group: merge(group, finds))
    # Descending eigenvalues of the scatters. NumPy lets other threads run while it solves several matrices, not one.
    scatters = np.stack([half.moments.scatter.dense() for half in halves])
    spectra = halves.like(np.linalg.eigvalsh(scatters)[:, ::-1])
    signals = halves.map(
        lambda half, values: noise_rank(values, half.moments.weight, half.n_features, half.total), spectra
    )
    ranks = _model_ranks(halves, signals, n_axes)
    C = contrast(halves.map(lambda half: half.moments), _strength(halves, spectra, ranks[0]))
    spectrum = top_eigenpairs(C, ranks[-1], iterate=False)
    a, b = spectrum.covariances(C)
    weights = np.zeros((ranks[-1], n_axes))
    for k, r in enumerate(ranks):
        inside = Groups.of(np.diagonal(a)[:r], np.diagonal(b)[:r])
        nu_x, nu_y = halves.map(Half.outside, inside)
        earlier = weights[:r, :k] if k else None
        weights[:r, k] = contrast_axes(a[:r, :r], b[:r, :r], nu_x, nu_y, 1, earlier=earlier)[1][:, 0]
    tests = chunks.map(lambda group: merge(group, ~finds))
    plateau = has_plateau(
        max(signals), halves.foreground.n_features, *halves.map(lambda half: int(half.moments.weight))
    )
    return spectrum.vectors @ weights, _log_noise_ratio(tests, spectrum.vectors) if plateau else math.nan


def _model_ranks(halves: Groups[Half], signals: Groups[int], n_axes: int) -> list[int]:
    """Ranks of the models with 1, ..., n_axes contrast axes and room for what the groups share (F16).

    Rows are counted even if they come in blocks: the test half judges the axes, and few blocks would leave no room for
    what is shared (F38).
    """
    half, (q_x, q_y), (n, m) = halves.foreground, signals, halves.map(lambda half: int(half.moments.weight))
    rank = min(n - 1, half.moments.mean.size)
    return [latent_rank(q_x, q_y, k, half.n_features, n, m, foreground_rank=rank) for k in range(1, n_axes + 1)]


def _strength(halves: Groups[Half], spectra: Groups[Array], r: int) -> float:
    """gamma at half the sharper sufficient bound of F4 for rank r, at most one half.

    The exact limit would take several eigendecompositions; directions do not change between 0 and 0.9 of it (F16).
    """
    foreground, background = halves.map(lambda half: half.total / half.moments.weight)
    mu, rho = spectra.map(lambda values, half: values / half.moments.weight, halves)
    foreground -= float(mu[:r].sum())
    # In a working basis the r smallest eigenvalues of cov_Y are unknown or zero; including them lowers the bound.
    D = halves.foreground.n_features
    background -= float(rho[D - r :].sum()) if rho.size == D else 0.0
    return 0.5 * min(1.0, max(foreground, 0.0) / background) if background > 0 else 0.0


def _log_noise_ratio(tests: Groups[Half], U: Array) -> float:
    """Computed on rows that did not choose the subspace: on those that did, the foreground noise looks too small."""
    inside = tests.map(lambda half: np.einsum("ij,ij->j", U, half.moments.scatter.matmul(U)) / half.moments.weight)
    x, y = tests.map(Half.outside, inside)
    return math.log(x / y) if min(x, y) > 0 else 0.0
