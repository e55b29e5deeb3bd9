"""Clusters of cases without labels: places where points are dense, with valleys of thinner ones around them."""

from __future__ import annotations

import math
import warnings

import numpy as np
import numpy.typing as npt
from scipy.spatial import KDTree

from .._util.arrays import Array, Rows, is_sparse

SAMPLE = 2000  # rows whose density is estimated; the others join the nearest one
NAMING_SAMPLE = 600  # rows that name a cluster
MIN_ROWS = 20
# A peak of the density is a cluster if a valley this deep is between it and any higher one: by a factor of 2, and by
# some standard errors more than the largest of n / k independent errors.
DEPTH = math.log(2)
# Neighbours k as a multiple of the root of n, and those standard errors: for large clusters, then for small ones.
SCALES = ((1.0, 0.8), (0.5, 1.5))
MIN_NEIGHBOURS = 5
NAMING_FEATURES = 2
LEAST_DIFFERENCE = 0.5  # standard deviations within clusters: less is no help to tell them apart, however sure it is
LONGEST_NAME = 24  # characters of a feature in the name of a cluster
SEED = 0


def find_clusters(latents: Array) -> npt.NDArray[np.intp] | None:
    """The cluster of each row, numbered from 0 by size; None if the rows do not fall into clusters.

    Peaks of the density of k nearest neighbours, separated by valleys that are too deep for chance (F40). The density
    has the same relative error everywhere, in the middle as in the tails, so that neither heavy nor skewed tails nor
    sharp edges make a cluster.

    Parameters
    ----------
    latents : ndarray of shape (n, d)
    """
    deviations = latents.std(axis=0)
    Z = (latents - latents.mean(axis=0)) / np.where(deviations > 0, deviations, 1.0)
    if len(Z) < MIN_ROWS or not deviations.any():
        return None
    part = Z if len(Z) <= SAMPLE else Z[np.random.default_rng(SEED).choice(len(Z), SAMPLE, replace=False)]
    tree = KDTree(part)
    on_a_line = Z.shape[1] == 1  # where there is no way around a gap that is there by chance
    for multiple, more in SCALES[:1] if on_a_line else SCALES:
        k = max(MIN_NEIGHBOURS, round(multiple * math.sqrt(len(part))))
        distances, neighbours = tree.query(part, k + 1)
        log_radii = np.log(np.maximum(distances, 1e-9))  # rows may be equal
        heights = -_dimension(log_radii, Z.shape[1]) * log_radii[:, -1]
        errors = more + (1 + on_a_line) * math.sqrt(2 * math.log(len(part) / k))
        peaks = peaks_of(heights, neighbours, max(DEPTH, errors * math.sqrt(2 / k)), least=k)
        if np.any(peaks != peaks[0]):
            break
    clusters = np.unique(peaks, return_inverse=True)[1]
    if clusters.max() == 0:
        return None
    if len(part) < len(Z):
        clusters = clusters[tree.query(Z)[1]]
    order = np.argsort(-np.bincount(clusters), kind="stable")
    return np.argsort(order)[clusters]


def _dimension(log_radii: Array, most: int) -> float:
    """The dimension of what points lie on, such as 1 for a curve, from the distances of their neighbours (F40)."""
    spread = float(np.median(log_radii[:, -1] - log_radii[:, 1:-1].mean(axis=1)))
    return min(float(most), 1 / spread) if spread > 0 else float(most)


def peaks_of(heights: Array, neighbours: npt.NDArray[np.intp], depth: float, least: int) -> npt.NDArray[np.intp]:
    """The peak that each point belongs to, as the index of the point at its top, shape (n,).

    Points join from the highest down: each the peak of its highest neighbour. Where a point joins two peaks, it is
    their pass, and the lower one becomes part of the higher unless it rises by `depth` above the pass and has at least
    `least` points there (persistence of peaks: Chazal et al. 2013, doi:10.1145/2535927).

    Parameters
    ----------
    heights : ndarray of shape (n,)
    neighbours : ndarray of int, shape (n, k)
        The neighbours of each point; the point itself may be among them.
    depth : float
    least : int
    """
    order = np.argsort(-heights, kind="stable")
    rank = np.argsort(order)
    # From here on points are named by their ranks, so that the smaller is the higher.
    levels, near = heights[order].tolist(), rank[neighbours][order].tolist()
    parent, sizes = list(range(len(order))), [1] * len(order)

    def peak(i: int) -> int:
        while parent[i] != i:
            parent[i] = i = parent[parent[i]]
        return i

    for i, others in enumerate(near):
        highest = min(others)
        if highest >= i:
            continue  # a new peak
        own = peak(highest)
        parent[i] = own
        sizes[own] += 1
        for other in sorted({peak(j) for j in {parent[j] for j in others if j < i}} - {own}):
            high, low = min(own, other), max(own, other)
            if levels[low] - levels[i] < depth or sizes[low] < least:
                parent[low] = own = high
                sizes[high] += sizes[low]
    return np.asarray(order[[peak(i) for i in range(len(order))]][rank])


def named_clusters(latents: Array, rows: Rows, features: list[str]) -> npt.NDArray[np.str_] | None:
    """The name of each row's cluster; None if the rows do not fall into clusters."""
    clusters = find_clusters(latents)
    return None if clusters is None else np.array(cluster_names(rows, clusters, features))[clusters]


def cluster_names(rows: Rows, clusters: npt.NDArray[np.intp], features: list[str]) -> list[str]:
    """For each cluster its number, and the features in which it differs most from the other cases, if any stands out.

    Differences are in units of the spread within clusters. Those of features that tell nothing are errors of the
    means; the largest of N independent errors is about sqrt(2 log N) of their standard errors.
    """
    chosen, count = np.sort(np.random.default_rng(SEED).permutation(len(clusters))[:NAMING_SAMPLE]), clusters.max() + 1
    table, clusters = rows[chosen], clusters[chosen]
    table = np.asarray(table.toarray() if is_sparse(table) else table, dtype=np.float64)
    errors = 1 + math.sqrt(2 * math.log(2 * len(features) * count))
    names = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # columns without any value
        means = np.stack([np.nanmean(table[clusters == k], axis=0) for k in range(count)])
        within = np.maximum(np.nanstd(table - means[clusters], axis=0), 1e-9 * np.nanstd(table, axis=0))
        for k in range(count):
            own, others = table[clusters == k], table[clusters != k]
            difference = np.nan_to_num((means[k] - np.nanmean(others, axis=0)) / within, posinf=0, neginf=0)
            sizes = (np.isfinite(part).sum(axis=0) for part in (own, others))
            least = np.maximum(LEAST_DIFFERENCE, errors * np.sqrt(sum(1 / size for size in sizes)))
            top = np.argsort(-np.abs(difference), kind="stable")[:NAMING_FEATURES]
            words = [
                f"{'high' if difference[j] > 0 else 'low'} {_short(features[j])}"
                for j in top
                if abs(difference[j]) > least[j]
            ]
            names.append(f"cluster {k + 1}: {', '.join(words)}" if words else f"cluster {k + 1}")
    return names


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
