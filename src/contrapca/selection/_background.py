"""Is the background fit to be one? What it has that the foreground lacks, swapped or equal tables, batches (F31)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import chi2, norm

from .._checks import SCALES, check_count, check_option, generator
from .._util.arrays import Array
from .._util.progress import Progress
from .._util.table import Table
from ..blocks import Indices, table_units
from ..fitting import dimensions_above_noise, many_problems, noise_variance
from ..groups import Groups, Tables
from ..moments import Complete, Contrast, Moments, collect
from ..rows import storage
from ..solvers import top_eigenpairs
from ._held_out import complete_tables

AXES = 50  # principal axes of all rows in which groups are compared
LEVEL = 0.01  # of a problem: permutations of centred rows call equal groups different a little too often (F31)
MIN_ROWS = 10  # rows, or blocks, of a group below which little can be said
NOISE_RATIO = 2.0  # of the groups' noise variances, either way, from which they were probably not measured alike
FAR = 1.0  # distance of a feature's means, in pooled standard deviations, that is large
BASCOD_CORRELATION = 0.7  # the correlation that BasCoD takes for similar


@dataclass(frozen=True)
class BackgroundCheck:
    """The result of `check_background`.

    Attributes
    ----------
    only_background, only_foreground : float
        Part of the structured variance of each group, that is of its dimensions above the noise, which lies outside the
        structured dimensions of the other: 0 if they are the same, 1 if they have nothing in common.
    p_background, p_foreground : float
        How often random groups of the same sizes have at least as much: small if it is more than chance. Approximate,
        and too small with few blocks; below 0.01 counts as a problem.
    dimensions : dict of str to int
        Dimensions of each group that stand out from its noise.
    noise_ratio : float
        Noise variance of the foreground, relative to that of the background.
    far_features : float
        Part of the features whose means differ by more than one pooled standard deviation.
    problems : tuple of str
        What is wrong, or may be, each with what to do; empty if the background is fit.
    n_permutations : int
    """

    only_background: float
    only_foreground: float
    p_background: float
    p_foreground: float
    dimensions: dict[str, int]
    noise_ratio: float
    far_features: float
    problems: tuple[str, ...]
    n_permutations: int

    @property
    def admissible(self) -> bool:
        """Whether no problem was found."""
        return not self.problems

    def table(self) -> Table:
        """One row for each group: what it has that the other lacks."""
        return Table(
            {
                "group": np.array(["foreground", "background"], dtype=object),
                "dimensions": np.array([self.dimensions["foreground"], self.dimensions["background"]]),
                "outside_the_other": np.array([self.only_foreground, self.only_background]),
                "p_value": np.array([self.p_foreground, self.p_background]),
            }
        )

    def __str__(self) -> str:
        verdict = "The background is fit to be one." if self.admissible else "Look at the background first:"
        return "\n".join([verdict, *self.problems, str(self.table())])


def check_background(
    X: Any,
    *,
    background: Any,
    blocks: Any = None,
    background_blocks: Any = None,
    scale: str | None = None,
    n_permutations: int = 199,
    random_state: Any = 0,
    progress: bool = True,
) -> BackgroundCheck:
    """Check whether a background is fit for a contrast with a foreground, before anything is fitted.

    A background should vary in some of the directions in which the foreground varies, and in no others: what only the
    background has cannot be removed from the foreground, and often comes from other batches or instruments. The idea is
    BasCoD's; but p-values come from permutations of rows, or of whole blocks, between the groups.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix of shape (n, D)
        The foreground, complete rows.
    background : array-like, data frame or sparse matrix of shape (m, D)
    blocks, background_blocks : array-like of shape (n,) and (m,), optional
        The donor, animal or plate of each row: blocks are permuted as a whole.
    scale : {None, "group", "pooled"}, default None
    n_permutations : int, default 199
    random_state : None, int, Generator or RandomState, default 0
    progress : bool, default True
        Show a progress bar on a terminal or in a notebook if it takes longer than two seconds.

    Returns
    -------
    BackgroundCheck

    Examples
    --------
    >>> from contrapca import check_background
    >>> from contrapca.datasets import make_hidden_clusters
    >>> data = make_hidden_clusters(random_state=0)
    >>> check_background(data.foreground, background=data.background).admissible
    True
    >>> check_background(data.background, background=data.foreground).problems[0][:40]
    'The groups may be swapped: the backgroun'
    """
    check_option(scale, "scale", SCALES)
    check_count(n_permutations, "n_permutations", least=99)
    tables = complete_tables(X, background, "check_background").with_one_background("check_background")
    units = table_units(tables, blocks, background_blocks, least=2, what="permuting rows")
    data = collect(tables, 1, scale)
    assert isinstance(data, Complete)
    q = data.groups.map(dimensions_above_noise)
    coordinates = _in_common_axes(tables, data)
    ranks = q.map(lambda own: int(np.clip(own, 1, max(coordinates.foreground.shape[1] // 2, 1))))
    observed = _outside(coordinates, ranks)
    stacked = np.vstack(list(coordinates))
    random, larger = generator(random_state), np.ones(2)
    with Progress("permutations", n_permutations, progress) as bar, many_problems(stacked.shape[1]):
        for k in range(n_permutations):
            bar.update(k, "permutations")
            in_foreground = _permuted(units, random)
            larger += _outside(Groups.of(stacked[in_foreground], stacked[~in_foreground]), ranks) >= observed
    p = larger / (n_permutations + 1)
    noise = data.groups.map(noise_variance)
    noise_ratio = noise.foreground / noise["background"] if noise["background"] > 0 else np.inf
    far = float(np.mean(_distances(data) > FAR))
    counts = units.map(lambda own: np.unique(own).size)
    problems = (
        *_about_rows(tables, counts),
        *_about_directions(observed, p, data.groups.map(Moments.total_variance)),
        *_about_batches(noise_ratio, far),
    )
    dimensions = dict(zip(q.names, q, strict=True))
    found = (float(observed[1]), float(observed[0]), float(p[1]), float(p[0]))
    return BackgroundCheck(*found, dimensions, float(noise_ratio), far, problems, n_permutations)


def _in_common_axes(tables: Tables, data: Complete) -> Groups[Array]:
    """Centred rows of each group along the first principal axes of all rows, each about its group's mean."""
    C = Contrast.of(*((1.0, group) for group in data.groups))
    V = data.vectors(top_eigenpairs(C, min(AXES, C.size - 1)).vectors)

    def projected(rows: Any, units: Any) -> Array:
        found = units.apply(lambda block: storage(block).centred_product(block, units.origin, V), rows)
        return np.asarray(found, dtype=np.float64)

    return tables.rows.map(projected, data.units)


def _outside(coordinates: Groups[Array], ranks: Groups[int]) -> Array:
    """Part of the variance of each group's first dimensions outside those of the other: foreground, background."""
    (values_x, U_x), (values_y, U_y) = (_first(rows, rank) for rows, rank in zip(coordinates, ranks, strict=True))
    cosines = (U_x.T @ U_y) ** 2
    return 1 - np.array(
        [values_x @ cosines.sum(axis=1) / values_x.sum(), values_y @ cosines.sum(axis=0) / values_y.sum()]
    )


def _first(rows: Array, rank: int) -> tuple[Array, Array]:
    centred = rows - rows.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    return np.maximum(values[: -rank - 1 : -1], np.finfo(float).tiny), vectors[:, : -rank - 1 : -1]


def _permuted(units: Groups[Indices], random: np.random.Generator) -> Any:
    """Which of the stacked rows are in the foreground: whole units, until it has its number of rows, shape (n + m,)."""
    every = np.concatenate(list(units))
    order = random.permutation(int(every.max()) + 1)
    rows = np.bincount(every, minlength=order.size)[order]
    before = np.cumsum(rows) - rows / 2
    return np.isin(every, order[before <= units.foreground.size])


def _distances(data: Complete) -> Array:
    """Distance of the means of each feature in standard deviations of the two groups together, shape (D,)."""
    left, right = data.units
    deviation = np.sqrt((left.weight * left.variance + right.weight * right.variance) / (left.weight + right.weight))
    apart = np.abs(left.mean - right.mean)
    return np.divide(apart, deviation, out=np.where(apart > 0, np.inf, 0.0), where=deviation > 0)


def _about_rows(tables: Tables, counts: Groups[int]) -> list[str]:
    found = []
    X, Y = tables.rows
    if X.shape == Y.shape and (X != Y).sum() == 0:
        found.append("Foreground and background are the same table: a contrast would find nothing. Pass the controls.")
    for name, count in zip(counts.names, counts, strict=True):
        if count < MIN_ROWS:
            found.append(
                f"The {name} has only {count} independent rows or blocks: too few to tell its directions from chance."
            )
    return found


def _about_directions(outside: Array, p: Array, totals: Groups[float]) -> list[str]:
    if p[1] > LEVEL:
        return []
    if p[0] > LEVEL and totals["background"] > totals.foreground:
        return [
            f"The groups may be swapped: the background has directions that the foreground lacks ({outside[1]:.0%} of "
            f"its structured variance, p = {p[1]:.3g}), the foreground has none, and the background varies more."
        ]
    return [
        f"The background varies in directions in which the foreground does not ({outside[1]:.0%} of its structured "
        f"variance, p = {p[1]:.3g}). A contrast cannot remove these; are they a batch, or another population? Then use "
        "other controls. ContraPCA and RatioPCA suffer less than CPCA and PCPCA."
    ]


def _about_batches(noise_ratio: float, far: float) -> list[str]:
    found = []
    if not 1 / NOISE_RATIO < noise_ratio < NOISE_RATIO:
        found.append(
            f"The noise of the foreground has {noise_ratio:.2g} times the variance of the background's: they were "
            "probably not measured or prepared alike. Prepare them together, or use scale='group'."
        )
    if far > 0.5:
        found.append(
            f"The means of {far:.0%} of the features differ by more than a standard deviation: a difference between "
            "batches is likely. Each group is centred by itself, so means do no harm, but variances may differ, too."
        )
    return found


def bascod_statistic(target: Array, background: Array) -> tuple[float, float, Array]:
    """BasCoD's statistic, its p-value and correlations, from orthonormal loadings (D, d) and (D, R) (F31).

    Large if background loadings are not in the span of the target's. Its p-value takes the features for independent,
    which they are not: `check_background` permutes rows instead.
    """
    D, R = background.shape
    inside = target @ (target.T @ background)
    r = np.array([np.corrcoef(a, b)[0, 1] for a, b in zip(background.T, inside.T, strict=True)])
    z = (np.arctanh(np.clip(r, -1 + 1e-15, 1 - 1e-15)) - np.arctanh(BASCOD_CORRELATION)) * np.sqrt(D - 3)
    statistic = float(-2 * norm.logcdf(z).sum())
    return statistic, float(chi2.sf(statistic, 2 * R)), r
