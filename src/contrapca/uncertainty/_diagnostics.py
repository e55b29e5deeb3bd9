"""Convergence of chains: rank-normalised split R-hat and effective sample sizes (Vehtari et al. 2021)."""

from __future__ import annotations

import numpy as np
import scipy.fft
import scipy.special
import scipy.stats

from .._util.arrays import Array

MIN_DRAWS = 4  # of a chain: fewer cannot be split into halves that vary


def rank_normalised(x: Array) -> Array:
    """Normal scores of the ranks over all chains and draws, shape of x (chains, draws, ...)."""
    shape = x.shape
    flat = x.reshape(shape[0] * shape[1], -1)
    ranks = scipy.stats.rankdata(flat, axis=0, method="average")
    return scipy.special.ndtri((ranks - 0.375) / (flat.shape[0] + 0.25)).reshape(shape)


def split_chains(x: Array) -> Array:
    """Each chain as two of half its length, shape (2 chains, draws // 2, ...)."""
    half = x.shape[1] // 2
    return np.concatenate([x[:, :half], x[:, -half:]])


def r_hat(x: Array) -> Array:
    """Split R-hat, the larger of that of the ranks and that of the folded ranks, for draws (chains, draws, ...)."""
    folded = np.abs(x - np.median(x, axis=(0, 1)))
    return np.maximum(_plain_r_hat(x), _plain_r_hat(folded))


def _plain_r_hat(x: Array) -> Array:
    z = split_chains(rank_normalised(x))
    n = z.shape[1]
    within = z.var(axis=1, ddof=1).mean(axis=0)
    between = n * z.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(within > 0, np.sqrt((between / within + n - 1) / n), 1.0)


def ess_bulk(x: Array) -> Array:
    """Effective number of draws for the bulk of the distribution."""
    return effective_size(split_chains(rank_normalised(x)))


def effective_size(x: Array) -> Array:
    """Effective number of independent draws, by Geyer's initial monotone sequence, for draws (chains, draws, ...)."""
    chains, draws = x.shape[:2]
    flat = x.reshape(chains, draws, -1)
    centred = flat - flat.mean(axis=1, keepdims=True)
    length = scipy.fft.next_fast_len(2 * draws)
    spectrum = np.abs(scipy.fft.rfft(centred, length, axis=1)) ** 2
    covariance = scipy.fft.irfft(spectrum, length, axis=1)[:, :draws].mean(axis=0) / draws  # (draws, k)
    within = covariance[0] * draws / (draws - 1)
    total = within * (draws - 1) / draws
    if chains > 1:
        total = total + flat.mean(axis=1).var(axis=0, ddof=1)
    safe = np.where(total > 0, total, 1.0)
    rho = 1 - (within - covariance) / safe
    rho[0] = 1.0
    pairs = rho[: draws - draws % 2].reshape(-1, 2, rho.shape[1]).sum(axis=1)
    # Sums of neighbouring autocorrelations are positive and fall; from the first that is not on, nothing counts.
    alive = np.cumprod(pairs > 0, axis=0).astype(bool)
    monotone = np.minimum.accumulate(np.where(alive, pairs, 0.0), axis=0)
    tau = np.maximum(-1 + 2 * monotone.sum(axis=0), 1 / np.log10(chains * draws))
    return np.where(total > 0, chains * draws / tau, float(chains * draws)).reshape(x.shape[2:])
