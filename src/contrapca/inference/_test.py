"""Is there any direction in which the foreground varies more than the background, and how many are there? (F18)"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.special

from .._util.arrays import Array
from .._util.checks import SCALES, check_count, check_option, check_positive, generator
from .._util.progress import Progress
from .._util.tables import Table
from .._util.text import LEAST_P, MAX_LISTED, joined, plural
from ..data import (
    DEPTHS,
    Design,
    Groups,
    Indices,
    Study,
    Tables,
    adjusted_tables,
    count_units,
    match_depth,
    paired_units,
    refuse,
    refuse_devices,
    refuse_moments,
    study_of,
    table_units,
)
from ..data.checks import warn_of_depth, warn_of_far_cells, warn_of_imputed, warn_of_replicates
from ..exceptions import GroupError
from ..missing import filled_draws, usable
from ._designs import cell_units, check_cells, design_test, one_by_one, only_in_condition
from ._outcomes import SplitOutcomes, combine, split_outcomes
from ._result import Result
from ._splits import MIN_UNITS, draw_splits, least_p_value, most_axes

NOISIER = 1.2  # noise ratio above which a remark says that the cases vary more everywhere
LARGE_BLOCK_RATIO = 4.0  # a remark says that more is needed: with fewer than about 16 blocks in a group
DRAWS = 7  # of thinned masks: where both groups lack 30 %, the power is .44, and .34 with three
BLOCKS_OF_A_CELL, ROWS_OF_A_CELL = 10, 100  # with fewer, an interaction must be very strong to be found
LEAST_APART = 0.02  # mean difference of rates of missing values that is mentioned


@dataclass(frozen=True)
class Missing:
    """How much is missing in the foreground and the background, as shares of all values.

    Attributes
    ----------
    foreground, background : float
    differ : bool
        Whether some features are missing more often in one of the groups than chance makes likely.
    """

    foreground: float
    background: float
    differ: bool

    def __str__(self) -> str:
        words = f"{self.foreground:.1%} of the cases' and {self.background:.1%} of the controls' values are missing."
        if not self.differ:
            return words
        return (
            f"{words} The groups miss different shares, so the result holds only if whether a value is missing "
            "does not depend on the value itself, as it does below a limit of detection."
        )


@dataclass(frozen=True)
class Tested:
    """What the test of a design was about.

    Attributes
    ----------
    kind : {"conditions", "only_in", "interaction", "dose"}
    name : str
        "drug", "genotype x drug", "concentration"; of "only_in" the condition.
    background : str
    least : int
        Rows, or blocks, of the smallest condition or cell.
    by_blocks : bool
    each : dict of float
        The p-value of each condition along the first axis.
    """

    kind: str
    name: str
    background: str
    least: int
    by_blocks: bool
    each: dict[str, float] = field(default_factory=dict)

    @property
    def groups(self) -> tuple[str, str]:
        """Whose noise is compared, for a sentence."""
        return {
            "conditions": ("the conditions", f"the {self.background}"),
            "only_in": (f"rows of {self.name}", "the others"),
            "interaction": ("rows with both factors or neither", "those with one"),
            "dose": ("rows of high doses", "those of low ones"),
        }[self.kind]

    def sentence(self, found: int, p: str, where: str, level: float) -> str:
        """The result in one sentence: p is that of the dimensions found, or of the first."""
        if self.kind == "conditions":
            return self._on_conditions(found, p, where, level)
        if self.kind == "only_in":
            if found:
                return f"{self.name} varies more than the {self.background} and every other condition {where} ({p})."
            return (
                f"Nothing found that varies more in {self.name} alone than chance allows, compared with the "
                f"{self.background} and with each other condition ({p})."
            )
        if self.kind == "interaction":
            first, second = self.name.split(" x ", 1)
            if found:
                return f"The effect of {second} on variation depends on {first} {where} ({p})."
            return (
                f"Nothing found: that the effect of {second} on variation depends on {first} is not shown in any "
                f"direction ({p})."
            )
        if found:
            return f"Variation grows with {self.name} {where} ({p})."
        return (
            f"Nothing found: variation does not grow with {self.name} more than chance allows in any direction ({p})."
        )

    def _on_conditions(self, found: int, p: str, where: str, level: float) -> str:
        """Which conditions vary more, by Holm's rule: at this level none of them is named wrongly."""
        order = sorted(self.each, key=lambda name: self.each[name])
        shown = []
        for k, name in enumerate(order):
            if self.each[name] * (len(order) - k) > level:
                break
            shown.append(name)
        if not found or not shown:
            return (
                f"Nothing found: no condition varies more than the {self.background} by more than chance allows, in "
                f"any direction ({p}); any components shown may be noise."
            )
        names = [name for name in self.each if name in shown]
        others = [name for name in self.each if name not in shown]
        verb = "varies" if len(names) == 1 else "vary"
        names_of_others = joined(others) if 0 < len(others) <= MAX_LISTED else f"the {len(others)} others"
        rest = f"; nothing is shown for {names_of_others}" if others else ""
        return f"{joined(names)} {verb} more than the {self.background} {where} ({p}){rest}."

    def remarks(self) -> list[str]:
        """What to know where nothing was found."""
        enough = BLOCKS_OF_A_CELL if self.by_blocks else ROWS_OF_A_CELL
        if self.kind != "interaction" or self.least >= enough:
            return []
        return [
            f"An interaction cannot be shown with {plural(self.least, 'block' if self.by_blocks else 'row')} in a "
            f"cell: about {BLOCKS_OF_A_CELL} blocks are needed in each of the four, or {ROWS_OF_A_CELL} rows without "
            "blocks."
        ]


@dataclass(frozen=True)
class ContrastTest(Result):
    """The result of `contrast_test`.

    Attributes
    ----------
    n_components : int
        Number of dimensions found, with p-values at or below the level; 0 if nothing was found.
    p_values : ndarray of shape (k,)
        p-values of "the foreground varies more along 1, ..., k axes"; they never decrease.
    statistics : ndarray of shape (n_splits, k)
        Standardised difference of the mean deviations on the test half of each split.
    noise_ratio : float
        Ratio of foreground to background mean variance outside the model's subspace, on rows that did not choose it.
        Far above 1, the cases are noisier everywhere, which alone makes the test reject. nan if so many dimensions
        stand out that there is no noise to be seen, as in most real tables.
    level : float
    units : str
        What was split: "60 + 50 rows", "9 + 8 blocks", "20 pairs".
    ratios : ndarray of shape (k,)
        Ratios of foreground to background variance along the axes, on the test halves (geometric means over splits):
        how strong the contrast is.
    block_ratio : float
        By blocks: how many times the variance between the background's blocks that between the foreground's must be to
        be found in about half of such tables. Few blocks need a large one. nan by rows, and for paired blocks.
    least_p : float
        The least p-value that this many rows or blocks can give: one over the number of ways to exchange the labels of
        those that test.
    ignores_replicates : bool
        Whether rows look like replicates, by their names or a column, and were taken for independent: the verdict
        begins with that.
    missing : Missing or None
        Where values are missing: their share in the `foreground` and the `background`, and whether these `differ`.
    design : Tested or None
        What was compared, of a study of several conditions, two factors or a dose: its `kind` ("conditions", "only_in",
        "interaction" or "dose"), its `name` and that of its `background`. p-values are then those of its question.
    conditions : Table or None
        Of several conditions: the p-value of each along 1, ..., k axes that all conditions share (`p`), that of a test
        of the condition and the background alone (`pairwise_p`), and the `ratio` of variances along the shared axes.
    """

    n_components: int
    p_values: Array
    statistics: Array
    noise_ratio: float
    level: float
    units: str
    ratios: Array = field(default_factory=lambda: np.empty(0), repr=False)
    block_ratio: float = np.nan
    least_p: float = 0.0
    ignores_replicates: bool = False
    missing: Missing | None = field(default=None, repr=False)
    design: Tested | None = field(default=None, repr=False)
    conditions: Table | None = field(default=None, repr=False)

    def verdict(self) -> str:
        """The result in one sentence."""
        found = self.n_components
        p = in_brief(self.p_values[max(found, 1) - 1])
        least = "at least " * (found == self.p_values.size > 1)
        where = f"in {least}{plural(found, 'direction')}"
        if self.design is not None:
            sentence = self.design.sentence(found, p, where, self.level)
        elif found == 0:
            sentence = (
                "Nothing found: the cases do not vary more than chance allows in any direction "
                f"({p}); any components shown may be noise."
            )
        else:
            sentence = f"The cases vary more than chance allows {where} ({p})."
        if not self.ignores_replicates:
            return sentence
        return f"Without regard to replicates, which makes p-values too small, {sentence[0].lower()}{sentence[1:]}"

    def remarks(self, n_shown: int | None = None) -> list[str]:
        """Remarks on the verdict, as sentences; usually none."""
        remarks = [] if self.missing is None else [str(self.missing)]
        if n_shown is not None and n_shown < self.n_components:
            least = "at least " * (self.n_components == self.p_values.size)
            remarks.append(
                f"In total, {least}{self.n_components} dimensions "
                f"{'vary more in the cases' if self.design is None else 'were found'}: show more components."
            )
        if n_shown is not None and self.n_components == self.p_values.size < n_shown:
            remarks.append(f"No more than {self.p_values.size} could be tested with {self.units}.")
        if self.least_p > self.level:
            remarks.append(
                f"No p-value can be below {self.least_p:.2g} with {self.units}: nothing can be found at level "
                f"{self.level:g}, however strong it is, without more of them."
            )
        elif not self.n_components and self.block_ratio > LARGE_BLOCK_RATIO:
            remarks.append(
                f"With {self.units}, what varies between blocks is likely to be found only if it varies about "
                f"{self.block_ratio:.2g} times as much in the cases: that nothing was found says little about it."
            )
        if self.n_components and self.noise_ratio >= NOISIER:
            who, others = self._noise_of
            remarks.append(
                f"{who[0].upper()}{who[1:]} are noisier everywhere ({self.noise_ratio:.2g} times the variance of "
                f"{others}), which alone makes the test reject: check that both groups were measured in the same way."
            )
        if self.design is not None and self.n_components == 0:
            remarks += self.design.remarks()
        return remarks

    @property
    def _noise_of(self) -> tuple[str, str]:
        return ("the cases", "the controls") if self.design is None else self.design.groups

    def table(self) -> Table:
        """One row per tested dimension; statistics are medians over splits."""
        steps = np.arange(1, self.p_values.size + 1)
        columns = {"dimension": steps, "statistic": np.median(self.statistics, axis=0), "p": self.p_values}
        return Table(columns | {"found": steps <= self.n_components})

    def _parts(self) -> list[str | Table]:
        about = f"Level {self.level:g}, {self.units}"
        if not np.isnan(self.noise_ratio):
            who, others = self._noise_of
            about += f"; noise of {who} over that of {others}: {self.noise_ratio:.2f}"
        tables = [self.table()] if self.conditions is None else [self.table(), self.conditions]
        return [self.verdict(), *self.remarks(), *tables, about]


def in_brief(p: float) -> str:
    """A p-value in words."""
    return f"p < {LEAST_P:g}" if p < LEAST_P else f"p = {p:.2g}"


def contrast_test(
    X: Any,
    *,
    background: Any = None,
    max_components: int = 10,
    level: float = 0.05,
    n_splits: int = 51,
    scale: str | None = None,
    depth: str = "warn",
    only_in: str | None = None,
    random_state: Any = 0,
    progress: bool = True,
) -> ContrastTest:
    """Test whether the foreground varies more than the background in any direction, and in how many.

    The null hypothesis is that both groups, apart from their means, come from the same distribution. The test rejects
    only if the foreground varies more, but a background with heavier tails and equal variances can look like that.

    One random half of each group finds contrast axes, as ContraPCA does, and the other half tests whether rows of the
    foreground are further apart along them. The p-values of several splits are combined into one per axis. The level
    holds for Gaussian, heavy-tailed, skewed, count and binary rows, small or unequal groups, blocks of unequal size and
    wide tables. Each group needs at least 6 rows (or blocks). The first p-values do not depend on `max_components`.

    Where values are missing, some of the group that has more are left out, feature by feature, until both lack the same
    share, and the gaps are then filled from one model of both groups, several times. The result holds if whether
    a value is missing does not depend on the value itself; it fails if, say, low values are missing more often in one
    of the groups. `missing` has the rates of both.

    A study of several conditions asks whether any of them varies more than the background (`conditions` has each); of
    two factors, whether rows with both vary by more than each factor by itself explains; of a dose, whether variation
    grows with it.

    Parameters
    ----------
    X : Study, or array-like, data frame or sparse matrix of shape (n, D)
        A `Study`, or the foreground. With covariates, residuals of all rows are tested. Blocks are split and compared
        as a whole, by as many rows of each in both groups; pairs are compared within, so that what a donor's rows share
        does not count. There may be no weights. Values may be missing (NaN) in both groups, at any rates: leave them as
        they are. Values imputed beforehand, each group by its own model, look like a contrast. Rows without values,
        and features that a group lacks, are left out with a warning.
    background : array-like, data frame or sparse matrix of shape (m, D), optional
        If `X` is not a Study.
    max_components : int, default 10
        Maximum number of dimensions to test; at most a quarter of the rows (or blocks) of the smaller group, and fewer
        than D.
    level : float, default 0.05
    n_splits : int, default 51
        More make p-values depend less on the seed: 101 if a decision hangs on it.
    scale : {None, "group", "pooled"}, default None
        As for PCPCA.
    depth : {"warn", "match", "ignore"}, default "warn"
        What to do about counts, raw or log-normalised, that add up to less in one group, as in cells that were
        sequenced less deeply, which alone makes the test reject: warn, or thin both groups to equal depth first
        (`match_depth`).
    only_in : str, optional
        Of a study of several conditions: whether this one varies more than the background and than every other
        condition, along axes of the condition against an even mix of all these.
    random_state : None, int, Generator or RandomState, default 0
    progress : bool, default True

    Returns
    -------
    ContrastTest

    Examples
    --------
    >>> from contrapca import contrast_test
    >>> from contrapca.datasets import make_hidden_clusters
    >>> data = make_hidden_clusters(random_state=0)
    >>> test = contrast_test(data.foreground, background=data.background, random_state=0)
    >>> test.n_components  # the plane of the clusters
    2
    """
    check_option(depth, "depth", DEPTHS)
    rng = generator(random_state)
    study = study_of(X, background, "contrast_test", designs=True)
    if study.design is None:
        refuse_weights(study, "contrast_test")
    elif study.tables.incomplete:
        raise GroupError("The test of a design needs complete rows, but values are missing: drop rows or features.")
    if depth == "match":
        study = match_depth(study, random_state=rng)
    tables = study.tables
    refuse_devices(tables, "contrast_test")
    if depth == "warn":
        warn_of_depth(tables.rows)
    warn_of_imputed(list(study.rows))
    # Covariates are regressed out of all rows, not of each half by itself as in `held_out_contrast`: residuals of a
    # regression on the other half are too long where covariates are far from their mean, by twice as much as those of
    # one regression on all rows are too short. If one group has the wider covariates, that looks like a contrast. With
    # all rows the level holds: .013 to .06 of 150 with five covariates three times as wide in one group of 40 + 40.
    tables = adjusted_tables(study)
    warn_of_far_cells(tables.rows, tables.names, study.sample_names)
    found = significance_of(
        tables,
        blocks=study.blocks,
        paired=study.paired,
        design=study.design,
        only_in=only_in,
        max_components=max_components,
        level=level,
        n_splits=n_splits,
        scale=scale,
        random_state=rng,
        progress=progress,
    )
    if study.blocks is None:
        found = replace(found, ignores_replicates=warn_of_replicates(study.sample_names))
    return at_equal_depth(found) if depth == "match" else found


def refuse_weights(study: Study, name: str) -> None:
    """Raise if rows have weights, which no test of ours has."""
    refuse_moments(study, name)
    refuse(study, name, weights="its p-values are for rows that count once, so leave them out or repeat rows in blocks")


def significance_of(
    tables: Tables,
    *,
    blocks: Groups[Any] | None = None,
    paired: bool = False,
    design: Design | None = None,
    only_in: str | None = None,
    max_components: int = 10,
    level: float = 0.05,
    n_splits: int = 51,
    scale: str | None = None,
    random_state: Any = None,
    progress: bool = True,
) -> ContrastTest:
    """`contrast_test` for tables, and blocks of their rows, that are already checked.

    Labels of blocks become numbers (`table_units`) that no split takes apart (`draw_splits`). For each split these say
    which rows of the testing half belong together (`split_outcomes`): a p-value compares one value of each block
    (`compare_spread`), and those of all splits become one (`combine`).
    The rows of a `design` are about the means of its cells.
    """
    tables.with_one_background("contrast_test")
    check_option(scale, "scale", SCALES)
    for value, name in ((max_components, "max_components"), (n_splits, "n_splits")):
        check_count(value, name)
    check_positive(level, "level")
    if level >= 1:
        raise ValueError(f"level={level} must be below 1, for example 0.05.")
    check_only_in(design, only_in)
    tables = usable(tables, "contrast_test")
    if tables.n_features < 2:
        raise ValueError("The tables have 1 feature: the test needs at least 2.")
    unit_of = table_units(tables, blocks, paired=paired, least=MIN_UNITS, what="the test")
    rng, by_blocks = generator(random_state), blocks is not None
    compared = None if design is None else design_test(design)
    compared_groups = unit_of  # of these groups, or of the cells, the smallest decides how many axes are tested
    if design is not None and design.kind != "dose":
        check_cells(unit_of, design, by_blocks)
        compared_groups = cell_units(unit_of, design)
    n_axes = min(max_components, most_axes(compared_groups, tables.n_features))
    words = _in_words(compared_groups, by_blocks, paired)
    if design is not None and only_in is not None:
        tables, unit_of, compared = only_in_condition(tables, unit_of, design, only_in)
    if compared is None:
        splits = draw_splits(unit_of, n_splits, rng)
    else:
        splits = draw_splits(unit_of, n_splits, rng, compared.cell_of, few_chunks=compared.refit is None)
    count = itertools.count(1)
    with Progress("splits", n_splits, progress) as bar:
        # Where values are missing, each share of the splits has a draw of its own (F45).
        shares = splits.shares(min(DRAWS, n_splits) if tables.incomplete else 1)
        draws = zip(filled_draws(tables, len(shares), rng), shares, strict=True)
        outcomes = SplitOutcomes.joined(
            [
                split_outcomes(own, share, scale, n_axes, rng, lambda: bar.update(next(count)), compared)
                for own, share in draws
            ]
        )
    pairs = [unit_of] if compared is None else compared.units_of_pairs(unit_of)
    least_p = np.array([least_p_value(pair) for pair in pairs])
    each_p, each_ratio, noise_ratio = combine(outcomes, least_p)
    if only_in is None:  # any comparison, by Bonferroni's rule; plain groups have one
        p_values, ratios = np.minimum(len(pairs) * each_p.min(axis=0), 1.0), each_ratio.mean(axis=0)
        statistics, least = outcomes.statistics.max(axis=1), len(pairs) * float(least_p.min())
    else:  # all of them
        p_values, ratios = each_p.max(axis=0), each_ratio.min(axis=0)
        statistics, least = outcomes.statistics.min(axis=1), float(least_p.max())
    found = ContrastTest(
        int(np.count_nonzero(p_values <= level)),
        p_values,
        statistics,
        noise_ratio,
        level,
        words,
        ratios,
        np.nan if blocks is None or compared is not None else _block_ratio(unit_of, level),
        least,
        missing=missing_of(tables.rows) if tables.incomplete else None,
    )
    if design is None:
        return found
    kind, name = (design.kind, design.name) if only_in is None else ("only_in", only_in)
    about = Tested(kind, name, design.cells[-1], min(map(count_units, compared_groups)), by_blocks)
    if kind != "conditions":
        return replace(found, design=about)
    names = design.cells[:-1]
    alone = each_p
    if len(names) > 1:
        by_one = [split_outcomes(*own, scale, n_axes, rng, lambda: None) for own in one_by_one(tables, splits, design)]
        alone = np.vstack([combine(own, least_p[[g]])[0] for g, own in enumerate(by_one)])
    each = dict(zip(names, each_p[:, 0].tolist(), strict=True))
    return replace(found, design=replace(about, each=each), conditions=_by_condition(names, each_p, alone, each_ratio))


def check_only_in(design: Design | None, only_in: str | None) -> None:
    """Raise unless `only_in` is one of several conditions."""
    if only_in is None:
        return
    if design is None or design.kind != "conditions":
        raise ValueError(
            f"only_in={only_in!r} is for a study of several conditions: "
            'Study(groups={"A": XA, "B": XB}, background=Y).'
        )
    if len(design.cells) == 2:
        raise ValueError(f"only_in={only_in!r} needs a second condition to compare with: leave it out.")
    check_option(only_in, "only_in", design.cells[:-1])


def _by_condition(names: Sequence[str], p: Array, alone: Array, ratios: Array) -> Table:
    """A row for each condition and number of axes; all arrays have the shape (conditions, k)."""
    k = p.shape[1]
    columns = {
        "condition": np.repeat(np.array(names, dtype=object), k),
        "dimension": np.tile(np.arange(1, k + 1), len(names)),
        "p": p.ravel(),
        "pairwise_p": alone.ravel(),
        "ratio": ratios.ravel(),
    }
    return Table(columns)


def missing_of(rows: Groups[Array]) -> Missing:
    """How much is missing in two groups, and whether they differ in it.

    They differ if the features' rates do by .02 on average, and by one and a half times as much as by chance.
    """
    n, m = rows.map(len)
    x, y = rows.map(lambda X: np.isnan(X).mean(axis=0))
    rate = (n * x + m * y) / (n + m)
    by_chance = np.mean(np.sqrt(2 / np.pi * rate * (1 - rate) * (1 / n + 1 / m)))
    apart = float(np.abs(x - y).mean())
    return Missing(float(x.mean()), float(y.mean()), bool(apart >= max(LEAST_APART, 1.5 * by_chance)))


def at_equal_depth(found: ContrastTest) -> ContrastTest:
    """The result, which says that depths were matched first."""
    return replace(found, units=f"{found.units} of equal depth")


def _block_ratio(unit_of: Groups[Indices], level: float) -> float:
    """The ratio of variances between blocks that an F test of the testing halves finds half of the time (F38)."""
    if paired_units(unit_of):
        return np.nan
    n, m = unit_of.map(lambda own: (count_units(own) + 1) // 2 - 1)
    return float(scipy.special.fdtri(n, m, 1 - level) / scipy.special.fdtri(n, m, 0.5))


def _in_words(unit_of: Groups[Indices], by_blocks: bool, by_pairs: bool) -> str:
    """What was split: "60 + 50 rows", "20 pairs", or blocks and how many of them are in both groups."""
    if by_pairs:
        return f"{count_units(unit_of.foreground)} pairs"
    numbers = " + ".join(str(count_units(own)) for own in unit_of)
    paired = paired_units(unit_of) if len(unit_of) == 2 else 0
    return f"{numbers} {'blocks' if by_blocks else 'rows'}" + (f", {paired} of them in both groups" if paired else "")
