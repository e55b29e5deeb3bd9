"""Clusters of cases without labels, named by the features that stand out in them."""

from __future__ import annotations

import math
import warnings

import numpy as np
import numpy.typing as npt
from scipy.spatial import KDTree

from .._util.arrays import Array, Rows, is_sparse

SAMPLE = 2000  # rows that are clustered; the others join the nearest one
NAMING_SAMPLE = 600  # rows that name a cluster
MIN_ROWS = 20  # of all clusters together: fewer show no gap that could not be there by chance
LEAST_SHARE = 20  # a cluster has at least this part of the rows

# Neighbours as a multiple of the root of n, and the fraction of rows between clusters above which there are none: in a
# plane, and on a line, where no path leads around a gap that is there by chance.
PLANE, LINE = (1.0, 0.25), (2.0, 0.05)
MIN_NEIGHBOURS = 5  # and rows of a cluster: the density around fewer is a guess
NAMING_FEATURES = 2  # in the name of a cluster
LEAST_DIFFERENCE = 0.5  # standard deviations within clusters: less does not help to tell them apart, however certain
LONGEST_NAME = 24  # characters of a feature in the name of a cluster
SEED = 0


def find_clusters(latents: Array) -> npt.NDArray[np.intp] | None:
    """The cluster of each row of latents (n, d), numbered from 0 by size; None if they do not fall into clusters.

    HDBSCAN splits any cloud of points, but calls most points of one without clusters noise (F40).
    """
    from sklearn.cluster import HDBSCAN  # slow to import; only tables without labels need it

    deviations = latents.std(axis=0)
    Z = (latents - latents.mean(axis=0)) / np.where(deviations > 0, deviations, 1.0)
    if len(Z) < MIN_ROWS or not deviations.any():
        return None
    part = Z if len(Z) <= SAMPLE else Z[np.random.default_rng(SEED).choice(len(Z), SAMPLE, replace=False)]
    multiple, most_between = LINE if Z.shape[1] == 1 else PLANE
    neighbours = max(MIN_NEIGHBOURS, round(multiple * math.sqrt(len(part))))
    least = max(MIN_NEIGHBOURS, len(part) // LEAST_SHARE)
    found = HDBSCAN(min_cluster_size=least, min_samples=neighbours, copy=True).fit_predict(part)
    inside = found >= 0
    if found.max() < 1 or np.mean(~inside) > most_between:
        return None
    clusters = found[inside][KDTree(part[inside]).query(Z)[1]]
    order = np.argsort(-np.bincount(clusters), kind="stable")
    return np.argsort(order)[clusters]


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
                f"{'high' if difference[j] > 0 else 'low'} {cut(features[j], LONGEST_NAME)}"
                for j in top
                if abs(difference[j]) > least[j]
            ]
            names.append(f"cluster {k + 1}: {', '.join(words)}" if words else f"cluster {k + 1}")
    return names


def cut(name: str, longest: int) -> str:
    """A name without its end if it is long."""
    return name if len(name) <= longest else f"{name[: longest - 1]}…"
