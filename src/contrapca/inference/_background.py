"""Is the background suitable? What it has that the foreground lacks, swapped or equal tables, batches (F31)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._util.arrays import Array, Rows, host, row_slices
from .._util.checks import SCALES, check_count, check_option, generator
from .._util.tables import Result, Table
from ..contrast import dimensions_above_noise, noise_is_visible, top_eigenpairs
from ..data import Groups, Scaling, Tables, adjusted_tables, count_units, refuse, refuse_devices, study_of, units_of
from ..missing import collect
from ..moments import Complete, Contrast, Moments
from ._spread import MIN_UNITS
from ._test import SURE, refuse_weights, significance_of
from ._verdict import ContrastTest, in_brief

LEVEL = 0.05  # of the test of each group's own directions
OWN_RATIO = 2.0  # of the groups' variances, from which a direction is called a group's own
MIN_ROWS = 10  # rows, or blocks, of a group below which little can be said
NOISE_RATIO = 2.0  # of the groups' noise variances, either way, from which they were probably not measured alike
NOISE_DIRECTIONS = 50
FAR = 1.0  # distance of a feature's means, in pooled standard deviations, that is large
COMPARED_ROWS = 10_000  # at a time, of rows that may not be in memory


@dataclass(frozen=True)
class BackgroundCheck(Result):
    """The result of `check_background`.

    Attributes
    ----------
    p_background, p_foreground : float
        p-value of "this group nowhere varies more than the other", from `contrast_test`; nan if a group has fewer than
        6 independent rows or blocks.
    ratio_background, ratio_foreground : float
        How many times as much this group varies as the other, along the direction in which that is most, in rows that
        did not choose the direction.
    only_background, only_foreground : float
        Part of the structured variance of each group, that is of its dimensions above the noise, which lies outside the
        structured dimensions of the other: 0 if they are the same, 1 if they have nothing in common. In small tables it
        is above 0 by chance.
    dimensions : dict of str to int
        Dimensions of each group that stand out from its noise.
    noise_ratio : float
        Noise variance of the foreground, relative to that of the background, in typical rows (medians); nan if so many
        dimensions stand out that there is no noise to be seen, as in most real tables.
    far_features : float
        Part of the features whose means differ by more than one pooled standard deviation.
    problems : tuple of str
        Problems, each with what to do; empty if the background is suitable.
    """

    p_background: float
    p_foreground: float
    ratio_background: float
    ratio_foreground: float
    only_background: float
    only_foreground: float
    dimensions: dict[str, int]
    noise_ratio: float
    far_features: float
    problems: tuple[str, ...]

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
                "ratio": np.array([self.ratio_foreground, self.ratio_background]),
                "p_value": np.array([self.p_foreground, self.p_background]),
            }
        )

    def _parts(self) -> list[str | Table]:
        verdict = "The background looks suitable." if self.admissible else "Check the background:"
        return [verdict, *self.problems, self.table()]


def check_background(
    X: Any,
    *,
    background: Any = None,
    scale: str | None = None,
    n_splits: int = 51,
    random_state: Any = 0,
    progress: bool = True,
) -> BackgroundCheck:
    """Check whether a background is fit for a contrast with a foreground, before anything is fitted.

    A background should vary in some of the directions in which the foreground varies, and in no others: what only the
    background has cannot be removed from the foreground, and often comes from other batches or instruments. The idea is
    BasCoD's. Here one half of the rows, or of whole blocks, finds the direction in which the background varies most
    relative to the foreground, and the other half tests it: `contrast_test` with the groups exchanged, whose level
    holds. It is a problem if the test finds a direction in which the background varies at least twice as much, apart
    from a difference in noise.

    Parameters
    ----------
    X : Study, or array-like, data frame or sparse matrix of shape (n, D)
        A `Study`, or the foreground: complete rows without weights. Blocks are split as a whole, and covariates are
        regressed out.
    background : array-like, data frame or sparse matrix of shape (m, D), optional
        If `X` is not a Study.
    scale : {None, "group", "pooled"}, default None
    n_splits : int, default 51
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
    check_count(n_splits, "n_splits")
    study = study_of(X, background, "check_background")
    refuse_weights(study, "check_background")
    refuse(study, "check_background", missing=True)
    refuse_devices(study.tables, "check_background")
    tables = adjusted_tables(study).with_one_background("check_background")
    counts = units_of(study, least=2, what="the check").map(count_units)
    data = collect(tables, 1, scale)
    assert isinstance(data, Complete)
    q_x, q_y = data.groups.map(dimensions_above_noise)
    only_x, only_y = _outside(data, q_x, q_y)
    noise_ratio, surely = np.nan, False
    if noise_is_visible(q := max(q_x, q_y), tables.n_features, *counts):
        (low_x, noise_x, high_x), (low_y, noise_y, high_y) = tables.rows.map(
            partial(_noise, data, q), data.groups, data.scaling
        )
        noise_ratio, surely = _ratio(noise_x, noise_y), low_x > high_y or low_y > high_x
    far = float(np.mean(_distances(data) > FAR))
    found, about_directions = np.full((2, 2), np.nan), list[str]()
    if min(counts) >= MIN_UNITS:
        exchanged = None if study.blocks is None else study.blocks.like(list(study.blocks)[::-1])
        asked: dict[str, Any] = {"paired": study.paired, "max_components": 1, "level": LEVEL, "n_splits": n_splits}
        asked |= {"scale": scale, "random_state": generator(random_state), "progress": progress}
        test = significance_of(tables, blocks=study.blocks, **asked)
        tests = test, significance_of(tables.exchanged(), blocks=exchanged, **asked)
        found = np.array([[test.p_values[0], test.ratios[0]] for test in tests])
        about_directions = _about_directions(*tests, noise_ratio, data.groups.map(Moments.total_variance))
    problems = (*_about_rows(tables, counts), *about_directions)
    if surely and not 1 / NOISE_RATIO < noise_ratio < NOISE_RATIO:
        problems += (
            f"The noise of the foreground has {noise_ratio:.2g} times the variance of the background's: they may "
            "not have been measured or prepared alike. Prepare them together, or use scale='group'.",
        )
    if far > 0.5:
        problems += (
            f"The means of {far:.0%} of the features differ by more than a standard deviation: a difference between "
            "batches is likely. Each group is centred by itself, so means do no harm, but variances may differ, too.",
        )
    (p_x, ratio_x), (p_y, ratio_y) = found.tolist()
    return BackgroundCheck(
        p_background=p_y,
        p_foreground=p_x,
        ratio_background=ratio_y,
        ratio_foreground=ratio_x,
        only_background=only_y,
        only_foreground=only_x,
        dimensions={"foreground": q_x, "background": q_y},
        noise_ratio=noise_ratio,
        far_features=far,
        problems=problems,
    )


def _outside(data: Complete, q_x: int, q_y: int) -> tuple[float, float]:
    """Part of the variance of each group's first dimensions outside those of the other: foreground, background."""

    def first(group: Moments, rank: int) -> tuple[Array, Array]:
        spectrum = top_eigenpairs(Contrast.of((1.0, group)), int(np.clip(rank, 1, max(group.mean.size // 2, 1))))
        values = np.maximum(spectrum.values, np.finfo(float).tiny)
        return values / values.sum(), spectrum.vectors

    x, y = data.groups
    (parts_x, U_x), (parts_y, U_y) = first(x, q_x), first(y, q_y)
    cosines = (U_x.T @ U_y) ** 2
    return float(1 - parts_x @ cosines.sum(axis=1)), float(1 - parts_y @ cosines.sum(axis=0))


def _noise(data: Complete, q: int, rows: Rows, group: Moments, scaling: Scaling) -> Array:
    """The variance of a typical row of a group (the median) per dimension outside the first q of the group, between two
    values that it lies between with hardly any doubt, shape (3,).

    In random directions, which are all of them if there are at most 50. A mean over rows would be that of the few
    largest, which differ from table to table if tails are heavy.
    """
    D, n = scaling.mean.size, rows.shape[0]
    inside = data.vectors(top_eigenpairs(Contrast.of((1.0, group)), q).vectors) if q else np.zeros((D, 0))
    others = np.random.default_rng(0).standard_normal((D, min(D - q, NOISE_DIRECTIONS)))
    outside = np.linalg.qr(others - inside @ (inside.T @ others))[0]
    squares = np.mean(host(scaling.project(rows, outside)) ** 2, axis=1)
    error = min(1.5 / np.sqrt(n), 0.5)  # three standard errors of the rank of a median
    # The q largest dimensions of few rows hold a good part of their noise, too.
    return np.quantile(squares, [0.5 - error, 0.5, 0.5 + error]) * n / max(n - 1 - q, 1)


def _ratio(left: float, right: float) -> float:
    """left / right, infinite if right is 0, and 1 if both are."""
    if right > 0:
        return float(left / right)
    return np.inf if left > 0 else 1.0


def _distances(data: Complete) -> Array:
    """Distance of the means of each feature in standard deviations of the two groups together, shape (D,)."""
    left, right = data.scaling
    deviation = np.sqrt((left.weight * left.variance + right.weight * right.variance) / (left.weight + right.weight))
    apart = np.abs(left.mean - right.mean)
    return np.divide(apart, deviation, out=np.where(apart > 0, np.inf, 0.0), where=deviation > 0)


def _about_rows(tables: Tables, counts: Groups[int]) -> list[str]:
    found = []
    X, Y = tables.rows
    if X.shape == Y.shape and all((X[k, :] != Y[k, :]).sum() == 0 for k in row_slices(X.shape[0], COMPARED_ROWS)):
        found.append("Foreground and background are the same table: a contrast would find nothing. Pass the controls.")
    for name, count in zip(counts.names, counts, strict=True):
        if count < MIN_ROWS:
            found.append(
                f"The {name} has only {count} independent rows or blocks: too few to tell its directions from chance."
            )
    return found


def _about_directions(
    foreground: ContrastTest, background: ContrastTest, noise_ratio: float, totals: Groups[float]
) -> list[str]:
    if not _has_its_own(background, _ratio(1.0, noise_ratio)):
        return []
    total_x, total_y = totals
    much = f"{background.ratios[0]:.2g} times as much as the foreground along some direction"
    sure = background.p_values[0] < SURE
    if sure and not _has_its_own(foreground, noise_ratio) and total_y > total_x:
        return [
            f"The groups may be swapped: the background varies {much} ({in_brief(background.p_values[0])}), the "
            "foreground has no direction of its own, and the background varies more in total."
        ]
    return [
        f"The background varies {much} ({in_brief(background.p_values[0])}). Components leave such directions out. "
        "That is as it should be if only part of the foreground is like the background; if it is a batch, or another "
        "population, use other controls. ContraPCA and RatioPCA suffer less than CPCA and PCPCA."
    ]


def _has_its_own(test: ContrastTest, noise: float) -> bool:
    """Whether a group varies far more than the other along some direction, also relative to their noise."""
    return bool(test.n_components and test.ratios[0] >= OWN_RATIO * np.fmax(noise, 1.0))
