"""Clusters of cases without labels: a Gaussian mixture in the picture, whose parts count as one unless a valley is
between them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array, Rows, is_sparse

MOST = 6  # parts of a mixture
SAMPLE = 600  # rows that a mixture is fitted to, and that name a cluster
VALLEY = 0.25  # density between two centres, as a fraction of the lower centre, below which they are two clusters
SMALLEST = 0.02  # fraction of the rows
MIN_ROWS = 20  # of a part, on average
NAMING_FEATURES = 2
LONGEST_NAME = 24  # characters of a feature in the name of a cluster
SEED = 0


def find_clusters(latents: Array) -> npt.NDArray[np.intp] | None:
    """The cluster of each row, numbered from 0 by size; None if the rows do not fall into clusters.

    The number of Gaussians is chosen by BIC. A heavy tail or a gradient needs several, but has no valleys.

    Parameters
    ----------
    latents : ndarray of shape (n, d)
    """
    deviations = latents.std(axis=0)
    Z = (latents - latents.mean(axis=0)) / np.where(deviations > 0, deviations, 1.0)
    part = Z if len(Z) <= SAMPLE else Z[np.random.default_rng(SEED).choice(len(Z), SAMPLE, replace=False)]
    mixture = _best_mixture(part)
    if mixture is None:
        return None
    cluster_of_part = _joined(mixture)
    shares = np.zeros((len(Z), cluster_of_part.max() + 1))
    for k, probability in enumerate(mixture.predict_proba(Z).T):
        shares[:, cluster_of_part[k]] += probability
    sizes = np.bincount(shares.argmax(axis=1), minlength=shares.shape[1])
    large = np.flatnonzero(sizes >= max(2, SMALLEST * len(Z)))
    large = large[np.argsort(-sizes[large], kind="stable")]
    return shares[:, large].argmax(axis=1) if large.size > 1 else None


def _best_mixture(Z: Array) -> Any:
    """The mixture of 2 or more Gaussians with the least BIC, or None if one Gaussian has less."""
    from sklearn.mixture import GaussianMixture  # takes long to import, and most reports have labels

    best, least = None, np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a mixture with too many parts may not converge, and is not taken then
        for parts in range(1, min(MOST, len(Z) // MIN_ROWS) + 1):
            mixture = GaussianMixture(parts, reg_covar=1e-4, random_state=SEED).fit(Z)
            criterion = mixture.bic(Z)
            if criterion < least:
                best, least = mixture, criterion
            elif best is not None and parts > best.n_components + 1:
                break
    return best if best is not None and best.n_components > 1 else None


def _joined(mixture: Any) -> npt.NDArray[np.intp]:
    """The cluster of each Gaussian: those without a valley between their centres are one."""
    centres = mixture.means_
    cluster = np.arange(len(centres))
    steps = np.linspace(0, 1, 13)[:, None]
    for i in range(len(centres)):
        for j in range(i):
            density = mixture.score_samples(centres[i] + steps * (centres[j] - centres[i]))
            if density.min() > np.log(VALLEY) + min(density[0], density[-1]):
                cluster[cluster == cluster[i]] = cluster[j]
    return np.unique(cluster, return_inverse=True)[1]


def cluster_names(rows: Rows, clusters: npt.NDArray[np.intp], features: list[str]) -> list[str]:
    """For each cluster its number, and the features in which it differs most from the other cases."""
    chosen = np.sort(np.random.default_rng(SEED).permutation(len(clusters))[:SAMPLE])
    table, clusters = rows[chosen], clusters[chosen]
    table = np.asarray(table.toarray() if is_sparse(table) else table, dtype=np.float64)
    names = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # columns without any value
        deviations = np.nanstd(table, axis=0)
        for k in range(clusters.max() + 1):
            own, others = table[clusters == k], table[clusters != k]
            difference = np.nan_to_num((np.nanmean(own, axis=0) - np.nanmean(others, axis=0)) / deviations, posinf=0)
            top = np.argsort(-np.abs(difference), kind="stable")[:NAMING_FEATURES]
            words = [f"{'high' if difference[j] > 0 else 'low'} {_short(features[j])}" for j in top if difference[j]]
            names.append(f"cluster {k + 1}: {', '.join(words)}" if words else f"cluster {k + 1}")
    return names


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
