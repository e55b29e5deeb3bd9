"""The permutation test of 0.1, kept for comparison: the largest excess of variance under random group labels.

It keeps its level for Gaussian rows only (F18).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import scipy.linalg

from .._util.arrays import TINY, Array, is_sparse
from .._util.progress import Progress
from .._util.threads import calm_threads
from ..blocks import Indices, paired_units
from ..exceptions import GroupError
from ..groups import Groups, Tables
from ..moments import Basis, Complete, collect
from ._splits import Flags

# An excess of whitened variances below this is rounding. Where no direction has any, the largest is that of the
# directions found before, which is 0 in every labelling.
NOTHING = 1e-12


@dataclass(frozen=True)
class PermutationOutcome:
    """The result of the permutation test.

    Attributes
    ----------
    p_values : ndarray of shape (k,)
        p-values of "no further dimension" at each step, up to the first that is not rejected.
    excess : ndarray of shape (k,)
        Excess of the foreground's variance over the background's along each tested direction, relative to both.
    directions : ndarray of shape (n_found, D)
        Unit vectors in scaled units: the directions with excess variance.
    """

    p_values: Array
    excess: Array
    directions: Array


def permutation_test(
    tables: Tables,
    unit_of: Groups[Indices] | None,
    scale: str | None,
    *,
    max_components: int,
    level: float,
    n_permutations: int,
    rng: np.random.Generator,
    progress: bool,
) -> PermutationOutcome:
    """Test step by step whether the foreground varies more along some direction than permuted labels allow.

    The statistic is the largest eigenvalue of cov_X - cov_Y of rows whitened by the covariance of all rows, in the
    space orthogonal to the directions found before. Without blocks, the labels of Helmert contrasts are permuted, which
    do not depend on the means and, for Gaussian rows, are exchangeable. With blocks (`unit_of`), the labels of whole
    blocks are permuted and the permuted groups are centred again, like the given ones.
    """
    groups, basis = _coordinates(tables, scale)
    if unit_of is None:
        groups = groups.map(helmert_contrasts)
        blocks = np.arange(sum(map(len, groups)))
    else:
        _refuse_pairs(unit_of)
        blocks = np.concatenate(list(unit_of))
    recentred = unit_of is not None
    in_foreground = np.zeros(blocks.max() + 1, dtype=bool)
    in_foreground[blocks[: len(groups.foreground)]] = True
    rows = np.vstack(list(groups))
    whitener, colour = whitening(rows)
    rows = rows @ whitener
    steps = min(max_components, rows.shape[1] - 1)
    p_values: list[float] = []
    excess: list[float] = []
    directions: list[Array] = []
    with Progress("permutations", steps * n_permutations, progress) as bar, calm_threads(rows.size * rows.shape[1]):
        for step in range(steps):
            observed, direction = largest_excess(excess_matrix(rows, in_foreground[blocks], recentred))
            larger = 0
            for k in range(n_permutations):
                labels = rng.permutation(in_foreground)[blocks]
                larger += largest_value(excess_matrix(rows, labels, recentred)) >= observed
                bar.update(step * n_permutations + k + 1, f"dimension {step + 1}")
            p_values.append((1 + larger) / (1 + n_permutations))
            excess.append(observed)
            if p_values[-1] > level:
                break
            coloured = colour @ direction
            pattern: Array = coloured if basis is None else basis.vectors(coloured[:, None])[:, 0]
            directions.append(pattern / np.linalg.norm(pattern))
            rows = rows - np.outer(rows @ direction, direction)
    found = np.array(directions).reshape(len(directions), tables.n_features)
    return PermutationOutcome(np.array(p_values), np.array(excess), found)


def _refuse_pairs(unit_of: Groups[Indices]) -> None:
    both = paired_units(unit_of)
    if both:
        raise GroupError(
            f"{both} of the blocks have rows in both groups, but method='permutation' moves whole blocks between "
            "groups: use method='split', which keeps such pairs together."
        )


def _coordinates(tables: Tables, scale: str | None) -> tuple[Groups[Array], Basis | None]:
    """Centred, scaled rows of each group, in a basis of their span if there are fewer rows than features."""
    dense = replace(tables, rows=tables.rows.map(lambda rows: rows.toarray() if is_sparse(rows) else rows))
    wide = tables.n_features > sum(rows.shape[0] for rows in tables.rows)
    data = collect(dense, 0, scale, "dual" if wide else "lanczos")
    assert isinstance(data, Complete)
    if isinstance(data.basis, Basis):
        parts = tuple(data.basis.R[a:b] for a, b in pairwise(data.basis.edges))
        return tables.rows.like(parts), data.basis
    return dense.rows.map(lambda rows, units: (rows - units.mean) / units.scale, data.units), None


def helmert_contrasts(table: Array) -> Array:
    """n - 1 orthonormal (Helmert) contrasts of n rows: same scatter, independent of the mean, exchangeable if Gaussian.

    Row k is (x_1 + ... + x_k - k x_{k+1}) / sqrt(k (k + 1)). Centred rows span one dimension fewer than their number,
    but permuted groups do not; with few rows, this alone would look like a difference.
    """
    k = np.arange(1, len(table))[:, None]
    return (np.cumsum(table, axis=0)[:-1] - k * table[1:]) / np.sqrt(k * (k + 1))


def whitening(rows: Array) -> tuple[Array, Array]:
    """(C + t I)^(-1/2) and (C + t I)^(1/2), C the covariance of all rows, t its mean variance times D / rows.

    C is the same for all labellings, so whitening keeps the test valid. It prevents directions in which both groups
    vary a lot, and whose covariances differ a lot by chance, from hiding the others.
    """
    n, D = rows.shape
    values, U = np.linalg.eigh(rows.T @ rows / n)
    values = values + max(values.mean() * D / n, TINY)
    return (U / np.sqrt(values)) @ U.T, (U * np.sqrt(values)) @ U.T


def excess_matrix(rows: Array, is_foreground: Flags, recentred: bool) -> Array:
    """cov_X - cov_Y (D, D) of a labelling; about the groups' means if `recentred`, about zero otherwise."""
    covariances = []
    for group in (rows[is_foreground], rows[~is_foreground]):
        centred = group - group.mean(axis=0) if recentred else group
        covariances.append(centred.T @ centred / len(centred))
    return covariances[0] - covariances[1]


def largest_excess(matrix: Array) -> tuple[float, Array]:
    """The largest eigenvalue of a symmetric matrix and its vector, shape (D,)."""
    values, vectors = np.linalg.eigh(matrix)
    return _beyond_rounding(values[-1]), vectors[:, -1]


def largest_value(matrix: Array) -> float:
    """The largest eigenvalue of a symmetric matrix."""
    last = matrix.shape[0] - 1
    found = scipy.linalg.eigh(matrix, eigvals_only=True, subset_by_index=[last, last], check_finite=False)
    return _beyond_rounding(found[0])


def _beyond_rounding(excess: float) -> float:
    return 0.0 if abs(excess) < NOTHING else float(excess)
