"""Is there any direction in which the foreground varies more than the background, and how many are there? (F18)

`contrast_test` and `verdict_on` ask `significance_of`, which takes these steps: `draw_splits` puts units (rows, or
blocks as a whole) into random halves; `split_outcomes` finds axes with one half (`_axes`) and compares the other along
them, by one value of each unit (`_spread`; for conditions, factors and doses `_designs`); `combine` makes one p-value
of those of all splits.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.special

from .._util.arrays import Array
from .._util.checks import SCALES, check_count, check_option, check_positive, generator
from .._util.progress import Progress
from .._util.tables import Table
from .._util.text import plural
from .._util.threads import single_thread, worker_count
from ..data import (
    DEPTHS,
    Design,
    Groups,
    Indices,
    Study,
    Tables,
    adjusted_tables,
    column_means,
    count_units,
    kinds_of_units,
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
from ..missing import collect, filled_draws, usable
from ._axes import (
    BLOCK_NUMBERS,
    Chunks,
    Flags,
    GroupRows,
    axes_of_split,
    chunk_moments,
    refit_rows,
    shared_axes,
    working_basis,
)
from ._designs import (
    DesignTest,
    UnseenHalf,
    cell_units,
    checked_cells,
    compare_groups,
    design_test,
    only_in_condition,
)
from ._spread import MIN_UNITS
from ._verdict import ContrastTest, Missing, Tested, Verdict, at_equal_depth

DRAWS = 7  # of thinned masks: where both groups lack 30 %, the power is .44, and .34 with three
LEAST_APART = 0.02  # mean difference of rates of missing values that is mentioned

# Halves are drawn as 10 of 20 chunks, whose moments are computed once: 184,756 halves of each group, each for 20
# additions of D x D matrices. More chunks gain nothing; fewer make the splits more alike. Of many kinds of units there
# are fewer chunks each, so that the matrices of all fit into memory.
N_CHUNKS, MOST_CHUNKS = 20, 80
LONE = 4  # units of a kind, below which they are split together with those of other such kinds

# A p-value near 1 would outweigh any evidence in the Cauchy rule (its score tends to minus infinity): truncate.
LARGEST_P = 0.99
SMALLEST_P = 1e-300  # keeps scores finite
TRIMMED = 20  # the smallest 1/20 of the p-values of splits are replaced by the next one

SEED = 0  # of a verdict: the same tables give the same page
SURE = 0.001  # p-value below which nothing in the cases, and something in the controls, is said
SWAPPED = "But the controls vary more than the cases (p < 0.001): were the two tables swapped?"
N_TESTED = 10  # number of dimensions of a verdict, or as many as are shown


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


def verdict_on(
    tables: Tables,
    *,
    n_shown: int,
    blocks: Groups[Any] | None = None,
    paired: bool = False,
    design: Design | None = None,
    scale: str | None = None,
    depth: str = "ignore",
    ignores_replicates: bool = False,
    progress: bool = True,
) -> Verdict:
    """Test the tables of a model with `n_shown` components, or say why that is not possible.

    `blocks` are checked, and may be pairs. `depth` is that of `contrast_test`, but "warn" is left to the checks of the
    tables. If rows look like replicates (`ignores_replicates`), the verdict says that they were taken for independent.
    The rows of a `design` are about the means of its cells.
    """
    check_option(depth, "depth", DEPTHS)
    rng = generator(SEED)
    if depth == "match":
        cases, controls = tables.with_one_background("The test").rows
        labels = None if blocks is None else tuple(blocks)
        matched = match_depth(Study(cases, background=controls, blocks=labels), random_state=rng)
        tables, blocks = matched.tables, matched.blocks
    reason = ""
    try:
        tables = usable(tables, "the test")
    except GroupError as error:
        reason = str(error).removesuffix(".")
    unit_of = table_units(tables, blocks, least=1, what="the test")
    if design is not None and design.kind != "dose":
        try:
            checked_cells(unit_of, design, blocks is not None)
        except GroupError as error:
            fewest = min(map(count_units, cell_units(unit_of, design)))
            about = Tested(design.kind, design.name, design.cells[-1], fewest, blocks is not None)
            reason = " ".join([str(error), *about.remarks()]).removesuffix(".")
    least = min(map(count_units, unit_of))
    what = "row" if blocks is None else "pair" if paired else "block"
    if not reason and least < MIN_UNITS and (blocks is None or least > 1):  # one label for all rows is an error
        reason = f"one group has {plural(least, what)}, but the test needs at least {MIN_UNITS} in each"
    elif not reason and tables.n_features < 2:
        reason = "there is one feature"
    if reason:
        return Verdict(f"The contrast was not tested: {reason}.", [], None, n_shown)
    settings: dict[str, Any] = {"scale": scale, "progress": progress}
    most = max(n_shown, N_TESTED)
    asked: dict[str, Any] = {"paired": paired, "design": design, "max_components": most, "random_state": rng}
    test = significance_of(tables, blocks=blocks, **asked, **settings)
    test = replace(test, ignores_replicates=ignores_replicates)
    verdict = Verdict.of(at_equal_depth(test) if depth == "match" else test, n_shown)
    if test.n_components == 0 and design is None:
        other = None if blocks is None else blocks.like(list(blocks)[::-1])
        settings |= {"max_components": 1, "random_state": SEED}
        if significance_of(tables.exchanged(), blocks=other, **settings).p_values[0] < SURE:
            verdict = replace(verdict, remarks=[*verdict.remarks, SWAPPED])
    return verdict


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

    The rows of a `design` are about the means of its cells.
    """
    tables.with_one_background("contrast_test")
    _check_settings(design, only_in, scale, max_components, n_splits, level)
    tables = usable(tables, "contrast_test")
    if tables.n_features < 2:
        raise ValueError("The tables have 1 feature: the test needs at least 2.")
    # Units, by number, and what is compared: groups or cells, of which the smallest decides how many axes are tested.
    unit_of = table_units(tables, blocks, paired=paired, least=MIN_UNITS, what="the test")
    rng, by_blocks = generator(random_state), blocks is not None
    compared, test = unit_of, None if design is None else design_test(design)
    if design is not None and design.kind != "dose":
        compared = checked_cells(unit_of, design, by_blocks)
    n_axes = min(max_components, most_axes(compared, tables.n_features))
    words = _in_words(compared, by_blocks, paired)
    if design is not None and only_in is not None:
        tables, unit_of, test = only_in_condition(tables, unit_of, design, only_in)
    # Splits, and what each says.
    cell_of, few = (None, False) if test is None else (test.cell_of, test.refit is None)
    splits, count = draw_splits(unit_of, n_splits, rng, cell_of, few_chunks=few), itertools.count(1)
    with Progress("splits", n_splits, progress) as bar:
        # Where values are missing, each share of the splits has a draw of its own (F45).
        shares = splits.shares(min(DRAWS, n_splits) if tables.incomplete else 1)
        found = [
            split_outcomes(own, share, scale, n_axes, rng, lambda: bar.update(next(count)), test)
            for own, share in zip(filled_draws(tables, len(shares), rng), shares, strict=True)
        ]
    outcomes = SplitOutcomes(*map(np.concatenate, zip(*found, strict=True)))
    # One p-value of those of all splits; of several comparisons, for any (Bonferroni's rule) or for all of them.
    pairs = [unit_of] if test is None else test.units_of_pairs(unit_of)
    least_p = np.array([least_p_value(pair) for pair in pairs])
    each_p, each_ratio, noise_ratio = combine(outcomes, least_p)
    if only_in is None:
        p_values, ratios = np.minimum(len(pairs) * each_p.min(axis=0), 1.0), each_ratio.mean(axis=0)
        statistics, least = outcomes.statistics.max(axis=1), len(pairs) * float(least_p.min())
    else:
        p_values, ratios = each_p.max(axis=0), each_ratio.min(axis=0)
        statistics, least = outcomes.statistics.min(axis=1), float(least_p.max())
    about = conditions = None
    if design is not None:
        kind, name = (design.kind, design.name) if only_in is None else ("only_in", only_in)
        about = Tested(kind, name, design.cells[-1], min(map(count_units, compared)), by_blocks)
        if kind == "conditions":
            about = replace(about, each=dict(zip(design.cells, each_p[:, 0].tolist(), strict=False)))
            alone = _one_by_one(tables, splits, design, scale, n_axes, rng, least_p) if len(each_p) > 1 else each_p
            conditions = _by_condition(design.cells[:-1], each_p, alone, each_ratio)
    return ContrastTest(
        n_components=int(np.count_nonzero(p_values <= level)),
        p_values=p_values,
        statistics=statistics,
        noise_ratio=noise_ratio,
        level=level,
        units=words,
        ratios=ratios,
        block_ratio=_block_ratio(unit_of, level) if by_blocks and test is None else np.nan,
        least_p=least,
        missing=missing_of(tables.rows) if tables.incomplete else None,
        design=about,
        conditions=conditions,
    )


def _check_settings(
    design: Design | None, only_in: str | None, scale: str | None, max_components: int, n_splits: int, level: float
) -> None:
    """Raise for arguments that are impossible with any tables."""
    check_option(scale, "scale", SCALES)
    for value, name in ((max_components, "max_components"), (n_splits, "n_splits")):
        check_count(value, name)
    check_positive(level, "level")
    if level >= 1:
        raise ValueError(f"level={level} must be below 1, for example 0.05.")
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


def _one_by_one(
    tables: Tables,
    splits: Splits,
    design: Design,
    scale: str | None,
    n_axes: int,
    rng: np.random.Generator,
    least_p: Array,
) -> Array:
    """p-values (conditions, k) of each condition and the background by themselves, with the same splits."""
    found = []
    for cell, least in enumerate(least_p):
        here = design.cell_of.foreground == cell
        keep = Groups.of(here, np.ones(len(design.cell_of.backgrounds[0]), dtype=bool))
        rows = tables.rows.map(lambda own, some: own[some], keep)
        alone = replace(
            tables,
            rows=rows,
            means=rows.map(lambda own: column_means(own, None)),
            weights=rows.map(lambda _: None),
            kept=rows.map(lambda _: None),
        )
        unit_of, chunks = (own.map(lambda v, some: v[some], keep) for own in (splits.unit_of, splits.chunks))
        own = replace(splits, unit_of=unit_of, chunks=chunks)
        found.append(combine(split_outcomes(alone, own, scale, n_axes, rng, lambda: None), least)[0][0])
    return np.array(found)


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


# ---------------------------------------------------------------------- splits


@dataclass(frozen=True)
class Splits:
    """Random halves of independent units (rows, or blocks of rows)."""

    unit_of: Groups[Indices]  # the unit of each row; one with rows in both groups is a paired block
    chunks: Groups[Indices]  # the chunk of each row: units that are always in the same half
    finds: Flags  # (n_splits, n_chunks): whether each chunk finds the axes or tests them
    within: Flags  # whether each split compares what varies within blocks: every other one, if no block is a row (F38)
    seeds: Indices  # of what is random on the testing half of each split: thinning and relabelling (F44)

    def shares(self, count: int) -> list[Splits]:
        """The splits cut into `count` shares, for as many versions of the tables."""
        parts = np.array_split(np.arange(len(self.finds)), count)
        return [
            replace(self, finds=self.finds[part], within=self.within[part], seeds=self.seeds[part]) for part in parts
        ]


def draw_splits(
    unit_of: Groups[Indices],
    n_splits: int,
    rng: np.random.Generator,
    cell_of: Groups[Indices] | None = None,
    *,
    few_chunks: bool = False,
) -> Splits:
    """Random halves of the units.

    Each kind of units is split by itself, so that both halves contain it: those with rows in the same groups or, in a
    design, in the same cells. `few_chunks` limits those of all kinds together.
    """
    cells = unit_of.like(np.zeros_like(own) + k for k, own in enumerate(unit_of)) if cell_of is None else cell_of
    n_units = 1 + max(int(own.max()) for own in unit_of)
    sizes = np.zeros((n_units, 1 + max(int(own.max()) for own in cells)), dtype=np.intp)
    for own, cell in zip(unit_of, cells, strict=True):
        np.add.at(sizes, (own, cell), 1)
    here = np.flatnonzero(sizes.any(axis=1))
    _, kind_of, counts = np.unique(kinds_of_units(sizes[here].T > 0), return_inverse=True, return_counts=True)
    if cell_of is not None and np.any(counts < LONE):
        kind_of[counts[kind_of] < LONE] = np.argmax(counts < LONE)
    present = np.unique(kind_of)[::-1]
    most = max(2, min(N_CHUNKS, MOST_CHUNKS // present.size)) if few_chunks else N_CHUNKS
    unit_chunks, finds = np.empty(n_units, dtype=np.intp), []
    first = 0
    for kind in present:
        members = rng.permutation(here[kind_of == kind])
        count = min(most, members.size)
        unit_chunks[members] = first + np.arange(members.size) % count
        # With an odd number of chunks the larger half tests.
        finds.append(np.argsort(rng.random((n_splits, count)), axis=1) < count // 2)
        first += count
    repeated = sizes[sizes > 0].min() > 1
    within = (np.arange(n_splits) % 2 == 1) & repeated
    seeds = rng.integers(2**62, size=n_splits)
    return Splits(unit_of, unit_of.map(lambda own: unit_chunks[own]), np.hstack(finds), within, seeds)


def least_p_value(unit_of: Groups[Indices]) -> float:
    """One over the number of ways to label the testing units: no honest p-value is smaller (F44).

    With more than 20 units of a kind the testing halves vary a little; then this is their mean, and tiny.
    """
    paired = paired_units(unit_of)
    n, m = (own - own // 2 for own in (count_units(units) - paired for units in unit_of))
    return float(1 / (2.0 ** (paired - paired // 2) * scipy.special.comb(n + m, n)))


def most_axes(unit_of: Groups[Indices], n_features: int) -> int:
    """The maximum number of axes to test: half the units of the smaller group find them, and there are fewer than
    features."""
    return max(1, min(min(map(count_units, unit_of)) // 4, n_features - 1))


# ---------------------------------------------------------------------- what the splits say


class SplitOutcomes(NamedTuple):
    """The tests of L splits along k axes each: P comparisons, of which plain groups have one."""

    statistics: Array  # (L, P, k) of each axis by itself: `combine` takes the running maximum
    p_values: Array
    log_ratios: Array  # (L, P, k) of foreground to background variance of the testing rows
    log_noise: Array  # (L,) of the mean variance outside the subspace of the axes' model


def split_outcomes(
    tables: Tables,
    splits: Splits,
    scale: str | None,
    n_axes: int,
    rng: np.random.Generator,
    tick: Callable[[], None],
    design: DesignTest | None = None,
) -> SplitOutcomes:
    """Find axes with one half of complete tables and test them with the other, for every split.

    `rng` is for the working basis of wide tables; `tick` is called after each split. A `design` says how rows count and
    are compared; plain groups are compared as a whole.
    """
    divisors = tables.means.map(np.ones_like)
    if scale:
        divisors = collect(tables, 0, scale, "lanczos").scaling.map(lambda scaling: scaling.scale)
    weights: Groups[Any] = tables.rows.map(lambda _: None) if design is None else design.weights
    groups = tables.rows.map(GroupRows, tables.means, divisors, weights)
    basis = working_basis(groups, rng)
    if design is None or design.refit is None:
        chunks: Groups[Any] = groups.map(lambda group, own: chunk_moments(group, own, basis), splits.chunks)
    else:
        chunks = refit_rows(groups, splits.chunks, basis, design.refit)
    compare, count = (compare_groups, 1) if design is None else (design.compare, max(len(design.pairs), 1))
    found, log_noise = _axes_of_splits(chunks, splits, n_axes, tick)
    directions = found if basis is None else [basis @ axes for axes in found]
    n_splits = len(directions)
    statistics, p_values, log_ratios = np.empty((3, n_splits, count, n_axes))
    # Coordinates of all rows along the axes of as many splits at a time as fit into memory.
    together = max(1, BLOCK_NUMBERS // (max(map(len, splits.unit_of)) * n_axes))
    for start in range(0, n_splits, together):
        batch = range(start, min(start + together, n_splits))
        stacked = np.hstack(directions[start : batch.stop])
        coordinates = groups.map(lambda group, V=stacked: group.coordinates(V))  # type: ignore[misc]
        for k, split in enumerate(batch):
            finds, own = splits.finds[split], slice(k * n_axes, (k + 1) * n_axes)
            tests = splits.chunks.map(lambda chunks, finds=finds: ~finds[chunks])  # type: ignore[misc]
            tested = coordinates.map(lambda Z, test, own=own: Z[test, own], tests)  # type: ignore[misc]
            units = splits.unit_of.map(lambda unit, test: unit[test], tests)
            half = UnseenHalf(tested, units, tests, int(splits.seeds[split]), bool(splits.within[split]))
            statistics[split], p_values[split], log_ratios[split] = compare(half)
    return SplitOutcomes(statistics, p_values, log_ratios, log_noise)


def _axes_of_splits(
    chunks: Groups[Chunks], splits: Splits, n_axes: int, tick: Callable[[], None]
) -> tuple[list[Array], Array]:
    """Axes of each split, and their log noise ratios."""
    n_splits = len(splits.finds)
    # Matrices of order 500 or less gain little from the threads of the BLAS; so each of ours takes splits of its own.
    workers = worker_count(n_splits * chunks.foreground.coordinates.shape[1] ** 3 // 100)
    shared = [shared_axes(chunks, n_axes, within=kind) for kind in (False, True)[: 1 + any(splits.within)]]

    def find(split: int) -> tuple[Array, float]:
        within = bool(splits.within[split])
        return axes_of_split(chunks, splits.finds[split], n_axes, shared[within], within=within)

    found = []
    with single_thread(), ThreadPoolExecutor(workers) as pool:
        for axes in pool.map(find, range(n_splits)):
            found.append(axes)
            tick()
    return [axes for axes, _ in found], np.array([noise for _, noise in found])


def combine(outcomes: SplitOutcomes, least_p: Array) -> tuple[Array, Array, float]:
    """What all splits say together: p-values (P, k) that never decrease, ratios of variances (P, k), the noise ratio.

    The p-values of each comparison are at least `least_p` (P,) (`least_p_value`).
    """
    n_splits, *shape = outcomes.p_values.shape
    running = np.maximum.accumulate(outcomes.p_values, axis=2).reshape(n_splits, -1)
    p_values = np.maximum(cauchy_combination(running).reshape(shape), np.reshape(least_p, (-1, 1)))
    with np.errstate(over="ignore"):  # infinite where the background does not vary at all
        return p_values, np.exp(outcomes.log_ratios.mean(axis=0)), float(np.exp(outcomes.log_noise.mean()))


def cauchy_combination(p_values: Array) -> Array:
    """Combine p-values (n_splits, k) into one per column: the trimmed Cauchy rule (F44).

    Splits share rows. For equicorrelated normal statistics the plain Cauchy rule (Liu & Xie 2020) exceeds its level by
    a factor that grows with their number: at level .05 and the worst correlation 1.44 for 21 and 1.59 for 51 splits.
    Its excess comes from the smallest few p-values, which trimming replaces by the next.
    """
    p_values = np.sort(np.clip(p_values, SMALLEST_P, LARGEST_P), axis=0)
    trimmed = min(max(len(p_values) // TRIMMED, 1), len(p_values) - 1)
    score = np.mean(1 / np.tan(np.pi * np.maximum(p_values, p_values[trimmed])), axis=0)
    return np.arctan2(1.0, score) / np.pi
