"""Tests of several conditions, two factors and doses (F48): their oracles, level, power, sentences and errors."""

import numpy as np
import pytest
import scipy.stats

import oracle_designs as oracle
from contrapca import ContraPCA, Study, contrast_test
from contrapca.data import Groups, conditions, doses, interaction
from contrapca.exceptions import GroupError
from contrapca.inference._axes import GroupRows, chunk_moments, left_by, refit_rows
from contrapca.inference._designs import design_test, interaction_p, mid_ranks, trend_p
from contrapca.inference._spread import upper_tail
from contrapca.inference._test import draw_splits

pd = pytest.importorskip("pandas")

D = 8


def frame(X, **columns):
    return pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])]).assign(**columns)


def several(rng, sizes, scales=(), blocks=None):
    """A study of conditions A, B, ... and the background (last); `scales` multiply feature 0 of each."""
    tables = [rng.standard_normal((n, D)) for n in sizes]
    for table, scale in zip(tables, scales, strict=False):
        table[:, 0] *= scale
    names = "ABCDEFG"[: len(sizes) - 1]
    return Study(groups=dict(zip(names, tables, strict=False)), background=tables[-1], blocks=blocks)


def two_factors(rng, n, both=1.0, blocks=None):
    """Main effects on features 0 and 1, and an interaction on feature 2."""
    first, second = np.repeat(["mut", "wt"], 2 * n), np.tile(np.repeat(["treated", "no"], n), 2)
    X = rng.standard_normal((4 * n, D))
    X[first == "mut", 0] *= 2
    X[second == "treated", 1] *= 2
    X[(first == "mut") & (second == "treated"), 2] *= both
    known = {} if blocks is None else {"donor": blocks}
    return Study.from_frame(
        frame(X, genotype=first, drug=second, **known),
        interaction=("genotype", "drug"),
        case=("mut", "treated"),
        blocks=None if blocks is None else "donor",
    )


def of_doses(rng, z, growth=0.0, strata=None, blocks=None, X=None):
    """Feature 0 has the variance (1 + growth * z / max z); all means move with the dose."""
    z = np.asarray(z, dtype=float)
    X = rng.standard_normal((z.size, D)) if X is None else X
    X[:, 0] *= np.sqrt(1 + growth * z / z.max())
    X = X + z[:, None] ** 2
    known = {"compound": strata, "plate": blocks}
    return Study.from_frame(
        frame(X, dose=z, **{name: own for name, own in known.items() if own is not None}),
        dose="dose",
        strata=None if strata is None else "compound",
        blocks=None if blocks is None else "plate",
    )


def run(study, seed=0, **options):
    return contrast_test(study, random_state=seed, progress=False, **{"max_components": 1} | options)


# ---------------------------------------------------------------------- two groups are the same as before


@pytest.mark.parametrize("blocks", [None, (np.arange(40) % 10, np.arange(30) % 8 + 5)], ids=["rows", "blocks"])
def test_two_doses_and_one_condition_are_two_groups(blocks):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((40, D)) * [2, *[1] * (D - 1)], rng.standard_normal((30, D))
    plain = run(Study(X, background=Y, blocks=blocks), max_components=3)
    one = Study(
        groups={"A": X}, background=Y, blocks=None if blocks is None else {"A": blocks[0], "background": blocks[1]}
    )
    of_one = run(one, max_components=3)
    np.testing.assert_array_equal(of_one.p_values, plain.p_values)
    np.testing.assert_array_equal(of_one.statistics, plain.statistics)
    known = {} if blocks is None else {"plate": np.concatenate(blocks)}
    table = frame(np.vstack([X, Y]), dose=np.repeat([3.0, 0.5], [40, 30]), **known)
    two = run(Study.from_frame(table, dose="dose", blocks="plate" if known else None), max_components=3)
    np.testing.assert_allclose(two.p_values, plain.p_values, rtol=1e-12)
    np.testing.assert_allclose(two.ratios, plain.ratios, rtol=1e-12)


# ---------------------------------------------------------------------- oracles


def test_the_moments_of_a_trend_are_those_of_all_orders():
    """Within two strata of 5 and 4 rows, every exchange of values counted."""
    rng = np.random.default_rng(2)
    a, e, strata = rng.standard_normal(9), rng.exponential(size=9), np.repeat([3, 1], [5, 4])
    variance = third = 0.0
    for own in (1, 3):
        here = strata == own
        v, t = oracle.exchanged_moments(a[here], e[here])
        variance, third = variance + v, third + t
    T = sum(np.dot(a[strata == own] - a[strata == own].mean(), e[strata == own]) for own in (1, 3))
    statistic, p = trend_p(e[:, None], a, strata)
    assert statistic[0] == pytest.approx(T / np.sqrt(variance))
    assert p[0] == pytest.approx(upper_tail(np.array([T / np.sqrt(variance)]), np.array([third / variance**1.5]), 7)[0])


def slow_interaction(values, signs):
    """T, its variance by units, and the larger p-value of Welch's test and that with one variance for all units."""
    cells = [own[~np.isnan(own)] for own in values]
    v = [np.var(e, ddof=1) / len(e) / np.mean(e) ** 2 for e in cells]
    T = sum(s * (np.log(np.mean(e)) + own / 2) for s, e, own in zip(signs, cells, v, strict=True))
    at_null = [np.mean(e) * np.exp(-s * own / sum(v) * T) for s, e, own in zip(signs, cells, v, strict=True)]
    psi, kinds = [], []
    for u in range(values.shape[1]):
        inside = [c for c in range(4) if not np.isnan(values[c, u])]
        parts = [signs[c] * (values[c, u] - np.mean(cells[c])) / len(cells[c]) / at_null[c] for c in inside]
        psi.append(sum(parts))
        kinds.append(tuple(inside))
    groups = [np.array([own for own, kind in zip(psi, kinds, strict=True) if kind == k]) for k in sorted(set(kinds))]
    parts = [len(own) * np.var(own, ddof=1) for own in groups]
    free = [len(own) - 1 for own in groups]
    df = sum(parts) ** 2 / sum(part**2 / own for part, own in zip(parts, free, strict=True))
    pooled = sum(f * len(own) * part for f, own, part in zip(free, groups, parts, strict=True)) / sum(free)
    pooled *= sum(1 / len(own) for own in groups)
    p = max(scipy.stats.t.sf(T / np.sqrt(sum(parts)), df), scipy.stats.t.sf(T / np.sqrt(pooled), sum(free)))
    return T / np.sqrt(sum(parts)), p


@pytest.mark.parametrize("donors", [False, True])
def test_interactions_equal_the_slow_formula(donors):
    rng = np.random.default_rng(3)
    signs = np.array([1.0, -1.0, -1.0, 1.0])
    values = np.full((4, 14 if donors else 40, 1), np.nan)
    for c in range(4):
        units = np.arange(7) + 7 * (c // 2) if donors else np.arange(10) + 10 * c
        values[c, units, 0] = rng.exponential(size=units.size) * (1.5 if c == 0 else 1.0)
    statistic, p = interaction_p(values, signs)
    expected = slow_interaction(values[:, :, 0], signs)
    np.testing.assert_allclose([statistic[0], p[0]], expected, rtol=1e-10)
    logs, _ = oracle.log_interaction([own[~np.isnan(own)] for own in values[:, :, 0]])
    assert np.sign(logs) == np.sign(statistic[0])
    # Values in another unit, and those of another axis beside them, change nothing.
    beside = np.concatenate([1e-9 * values, rng.exponential(size=values.shape) + 0 * values], axis=2)
    np.testing.assert_allclose(interaction_p(beside, signs)[1][0], p[0], rtol=1e-9)


def test_what_does_not_vary_has_no_interaction():
    values = np.ones((4, 12, 1))
    values[1] = 0.0
    assert interaction_p(values, np.array([1.0, -1.0, -1.0, 1.0]))[1] == 1.0
    assert trend_p(np.ones((9, 1)), np.arange(9.0), np.zeros(9, dtype=int))[1] == 1.0
    assert trend_p(np.ones((9, 1)), np.ones(9), np.zeros(9, dtype=int))[1] == 1.0


@pytest.mark.parametrize("kind", ["conditions", "interaction", "dose"])
def test_moments_of_all_chunks_are_those_of_the_design(kind):
    """A and n_A, B and n_B of explicit signed weights, of rows about the means of their cells."""
    rng = np.random.default_rng(4)
    n = [15, 30, 24, 20]
    cell = np.repeat(np.arange(4), n)
    X = rng.standard_normal((cell.size, D)) + cell[:, None]
    if kind == "conditions":
        rows = Groups.of(np.flatnonzero(cell < 3), np.flatnonzero(cell == 3))
        design = conditions(rows.map(lambda own: cell[own]), ["A", "B", "C", "control"])
        weights = oracle.several_weights(["ABCY"[c] for c in cell], "Y")
    elif kind == "interaction":
        first, second = cell // 2, cell % 2
        rows, design = interaction(first, second, (1, 0))
        weights = oracle.interaction_weights(first.tolist(), second.tolist(), (1, 0))
    else:
        z = np.array([0.5, 1.0, 4.0, 9.0])[cell]
        rows, design = doses(z)
        weights = oracle.dose_weights(z.tolist())
    A, n_A, B, n_B = oracle.signed_moments(oracle.about_cell_means(X, cell.tolist()), weights)
    residuals = oracle.about_cell_means(X, cell.tolist())
    units = rows.like([np.arange(len(rows.foreground)), len(rows.foreground) + np.arange(len(rows["background"]))])
    test = design_test(design)
    splits = draw_splits(units, 3, rng, test.cell_of, few_chunks=True)
    for own, at, chunks, weight, M, count in zip(
        rows, rows, splits.chunks, test.weights, (A, B), (n_A, n_B), strict=True
    ):
        group = GroupRows(residuals[own], np.zeros(D), np.ones(D), weight)
        for basis in (None, np.eye(D)):
            moments = chunk_moments(group, chunks, basis)
            half = moments.half(np.ones(splits.finds.shape[1], dtype=bool), within=False)
            assert half.moments.weight == pytest.approx(count)
            np.testing.assert_allclose(half.moments.scatter.dense() / half.moments.weight, M, atol=1e-12)
            assert half.total / count == pytest.approx(np.trace(M))
        assert at.size == weight.size


def test_few_rows_of_a_dose_are_about_a_curve_of_their_own_half():
    """Least squares of each half alone: long rows of the other half change nothing."""
    rng = np.random.default_rng(5)
    z = rng.uniform(size=60)
    rows, design = doses(z)
    test = design_test(design)
    assert test.refit is not None
    X = rng.standard_normal((60, D)) + z[:, None]
    units = rows.like([np.arange(len(rows.foreground)), len(rows.foreground) + np.arange(len(rows["background"]))])
    splits = draw_splits(units, 1, rng, test.cell_of)
    finds = splits.finds[0]

    def halves(table):
        groups = rows.map(lambda own, weights: GroupRows(table[own], np.zeros(D), np.ones(D), weights), test.weights)
        return [own.half(finds, within=False) for own in refit_rows(groups, splits.chunks, None, test.refit)]

    longer = X.copy()
    for own, chunks in zip(rows, splits.chunks, strict=True):
        longer[own[~finds[chunks]]] *= 1e3
    inside = [finds[own] for own in splits.chunks]
    columns = np.vstack([own[keep] for own, keep in zip(test.refit, inside, strict=True)])
    table = np.vstack([X[own][keep] for own, keep in zip(rows, inside, strict=True)])
    left = table - columns @ np.linalg.lstsq(columns, table, rcond=None)[0]
    leverages = np.diag(columns @ np.linalg.pinv(columns))
    left /= np.sqrt(1 - leverages)[:, None]
    np.testing.assert_allclose(left_by(columns, table), left, atol=1e-10)
    weights = np.concatenate([own[keep] for own, keep in zip(test.weights, inside, strict=True)])
    front = np.arange(len(left)) < inside[0].sum()
    for found, again, keep in zip(halves(X), halves(longer), (front, ~front), strict=True):
        expected = (weights[keep, None] * left[keep]).T @ left[keep]
        np.testing.assert_allclose(found.moments.scatter.dense(), expected, atol=1e-9)
        np.testing.assert_allclose(again.moments.scatter.dense(), expected, atol=1e-9)


def test_mid_ranks_within_groups():
    z, groups = np.array([3.0, 1, 1, 5, 2, 2, 2]), np.array([0, 0, 0, 0, 1, 1, 1])
    expected = [*oracle.mid_ranks(z[:4].tolist()), *oracle.mid_ranks(z[4:].tolist())]
    np.testing.assert_array_equal(mid_ranks(z, groups), expected)


@pytest.mark.parametrize("few_chunks", [False, True])
def test_both_halves_have_units_of_every_cell(few_chunks):
    rng = np.random.default_rng(6)
    cell = np.repeat(np.arange(30), 12)
    cell_of = Groups.of(cell[:180], cell[180:])
    unit = np.arange(360) // 2
    units = Groups.of(unit[:180], unit[180:])
    splits = draw_splits(units, 20, rng, cell_of, few_chunks=few_chunks)
    chunks = np.concatenate(list(splits.chunks))
    for finds in splits.finds:
        half = finds[chunks]
        assert all(half[unit == u].min() == half[unit == u].max() for u in range(180))
        assert np.bincount(cell[half], minlength=30).min() >= 2
        assert np.bincount(cell[~half], minlength=30).min() >= 2


# ---------------------------------------------------------------------- what is found, and what is said


def test_conditions_that_vary_are_named():
    study = several(np.random.default_rng(0), (60, 60, 60, 60), (3.0, 1.0, 3.0))
    test = run(study)
    assert test.verdict().startswith("A and C vary more than the background in ")
    assert test.verdict().endswith("nothing is shown for B.")
    assert test.units == "60 + 60 + 60 + 60 rows"
    table = test.conditions
    assert list(table["condition"]) == ["A", "B", "C"]
    p = np.asarray(table["p"], dtype=float)
    assert max(p[0], p[2]) < 0.01 < p[1]
    assert test.p_values[0] == pytest.approx(min(1, 3 * p.min()))
    assert np.asarray(table["ratio"], dtype=float)[0] == pytest.approx(9, rel=0.5)
    assert "pairwise_p" in str(test)


@pytest.mark.slow
def test_all_conditions_together_find_what_each_alone_does_not():
    """A direction that three conditions share, at variances that pairwise tests miss."""
    shared = pairwise = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        test = run(several(rng, (60, 60, 60, 60), (1.7, 1.7, 1.7)), seed)
        shared += test.p_values[0] <= 0.05
        pairwise += 3 * np.asarray(test.conditions["pairwise_p"], dtype=float).min() <= 0.05
    assert shared > pairwise


def test_what_only_one_condition_has():
    study = several(np.random.default_rng(1), (60, 60, 60), (3.0, 1.0))
    only = run(study, only_in="A")
    assert only.verdict().startswith("A varies more than the background and every other condition in ")
    both = run(several(np.random.default_rng(1), (60, 60, 60), (3.0, 3.0)), only_in="A")
    assert both.verdict().startswith("Nothing found that varies more in A alone")
    assert run(several(np.random.default_rng(1), (60, 60, 60), (3.0, 3.0))).n_components == 1


def test_an_interaction_is_found_and_main_effects_are_not():
    found = run(two_factors(np.random.default_rng(0), 120, both=3.0))
    assert found.verdict() == f"The effect of drug on variation depends on genotype in 1 direction ({p_in(found)})."
    nothing = run(two_factors(np.random.default_rng(1), 120))
    assert nothing.verdict().startswith("Nothing found: that the effect of drug on variation depends on genotype")
    assert nothing.remarks() == []


def p_in(test):
    p = test.p_values[0]
    return "p < 1e-06" if p < 1e-6 else f"p = {p:.2g}"


@pytest.mark.parametrize(("blocks", "words"), [(None, "with 30 rows in a cell"), (5, "with 6 blocks in a cell")])
def test_a_small_interaction_cannot_be_shown(blocks, words):
    donors = None if blocks is None else np.arange(120) // blocks
    [remark] = run(two_factors(np.random.default_rng(1), 30, blocks=donors)).remarks()
    assert remark.startswith("An interaction cannot be shown")
    assert words in remark


def test_variation_that_grows_with_the_dose():
    z = np.repeat([0.0, 1, 3, 10], 40)
    found = run(of_doses(np.random.default_rng(0), z, growth=8))
    assert found.verdict() == f"Variation grows with dose in 1 direction ({p_in(found)})."
    nothing = run(of_doses(np.random.default_rng(1), z))
    assert nothing.verdict().startswith("Nothing found: variation does not grow with dose")


def test_noise_that_grows_with_the_dose():
    """Everywhere, which is said; low doses are not called controls."""
    z = np.repeat([0.0, 1, 3, 10], 40)
    X = np.random.default_rng(0).standard_normal((160, 30)) * np.sqrt(1 + z[:, None])
    test = run(Study.from_frame(frame(X, dose=z), dose="dose"))
    assert test.remarks()[0].startswith("Rows of high doses are noisier everywhere")
    assert "noise of rows of high doses over that of those of low ones" in str(test)


@pytest.mark.parametrize("kind", ["continuous", "strata", "plates"])
def test_doses_of_few_rows_and_plates(kind):
    rng = np.random.default_rng(3)
    z, strata, blocks = np.tile(np.repeat([0.0, 1, 2, 3], 5), 8), None, None
    if kind == "continuous":
        z = rng.uniform(size=400)
    elif kind == "strata":
        strata = np.repeat([f"compound {k}" for k in range(8)], 20)
    else:
        blocks = np.repeat(np.arange(20), 8)
        z = np.tile(np.repeat([0.0, 1, 2, 3], 2), 20)
    assert run(of_doses(rng, z, 10, strata, blocks)).n_components == 1
    assert run(of_doses(rng, z, 0, strata, blocks)).n_components == 0


@pytest.mark.slow
def test_many_conditions_of_few_rows():
    rng = np.random.default_rng(0)
    tables = {f"c{k}": rng.standard_normal((8, D)) for k in range(25)}
    for table in tables.values():
        table[:, 0] *= 4
    test = run(Study(groups=tables, background=rng.standard_normal((60, D))))
    assert test.n_components == 1
    assert len(test.conditions["condition"]) == 25


def test_wide_tables():
    """In a working basis, and with rows that are fewer than features."""
    rng = np.random.default_rng(0)
    tables = [rng.standard_normal((40, 700)) for _ in range(3)]
    tables[0][:, :1] += 12 * rng.standard_normal((40, 1))
    assert run(Study(groups={"A": tables[0], "B": tables[1]}, background=tables[2])).n_components == 1
    z, X = rng.uniform(size=120), rng.standard_normal((120, 700))
    X[:, 0] *= 12 * z
    assert run(Study.from_frame(frame(X, dose=z), dose="dose")).n_components == 1


def test_a_seed_repeats_and_covariates_are_taken_out():
    rng = np.random.default_rng(0)
    sizes, age = (50, 40, 60), [rng.uniform(20, 80, size=n) for n in (50, 40, 60)]
    tables = [rng.standard_normal((n, D)) + own[:, None] for n, own in zip(sizes, age, strict=True)]
    groups = {"A": tables[0], "B": tables[1]}
    ages = dict(zip(("A", "B", "background"), age, strict=True))
    study = Study(groups=groups, background=tables[2], covariates=ages)
    first, second = run(study), run(study)
    np.testing.assert_array_equal(first.p_values, second.p_values)
    assert first.n_components == 0


# ---------------------------------------------------------------------- bad input


def test_bad_input():
    rng = np.random.default_rng(0)
    study = several(rng, (30, 5, 30))
    with pytest.raises(GroupError, match="'B' has 5 rows: the test needs at least 6"):
        run(study)
    study = several(rng, (30, 30, 30))
    with pytest.raises(ValueError, match="only_in"):
        run(study, only_in="C")
    with pytest.raises(ValueError, match="several conditions"):
        run(two_factors(rng, 20), only_in="A")
    with pytest.raises(ValueError, match="several conditions"):
        contrast_test(rng.standard_normal((20, 3)), background=rng.standard_normal((20, 3)), only_in="A")
    with pytest.raises(ValueError, match="second condition"):
        run(several(rng, (30, 30)), only_in="A")
    with pytest.raises(GroupError, match="several conditions"):
        run(study, depth="match")


# ---------------------------------------------------------------------- the level


LAWS = {
    "gaussian": lambda rng, shape: rng.standard_normal(shape),
    "t3": lambda rng, shape: rng.standard_t(3, size=shape),
    "lognormal": lambda rng, shape: np.exp(rng.standard_normal(shape)),
    "counts": lambda rng, shape: rng.poisson(0.5, size=shape).astype(float),
}
RUNS, FEW = 60, 21


def most_rejections(n, level):
    """So many of n tests of this level reject with probability 1e-4 or less."""
    return int(scipy.stats.binom.isf(1e-4, n, level))


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(40, 40, 40, 40), (15, 100, 100, 15), (100, 15, 15, 100)], ids=str)
@pytest.mark.parametrize("law", LAWS)
def test_size_of_conditions_and_interactions(law, sizes):
    rejections = dict.fromkeys(("any", "only in A", "interaction"), 0)
    for seed in range(RUNS):
        rng = np.random.default_rng([seed, sizes[0]])
        a, b, c, d = (LAWS[law](rng, (n, D)) for n in sizes)
        study = Study(groups={"A": a, "B": b, "C": c}, background=d)
        rejections["any"] += run(study, seed, n_splits=FEW).n_components
        rejections["only in A"] += run(study, seed, only_in="A", n_splits=FEW).n_components
        first, second = np.repeat([1, 1, 0, 0], sizes), np.repeat([1, 0, 1, 0], sizes)
        table = frame(np.vstack([a, b, c, d]), g=first, h=second)
        both = Study.from_frame(table, interaction=("g", "h"), case=(1, 1))
        rejections["interaction"] += run(both, seed, n_splits=FEW).n_components
    assert max(rejections.values()) <= most_rejections(RUNS, 0.05), rejections


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["four", "unequal", "continuous", "strata", "plates"])
@pytest.mark.parametrize("law", LAWS)
def test_size_of_doses(law, kind):
    z = np.repeat([0.0, 1, 2, 3], (15, 100, 100, 15) if kind == "unequal" else 30)
    strata = blocks = None
    if kind == "strata":
        z, strata = np.tile(np.repeat([0.0, 1, 2, 3], 5), 6), np.repeat(list("abcdef"), 20)
    elif kind == "plates":
        z, blocks = np.tile(np.repeat([0.0, 1, 2, 3], 2), 15), np.repeat(np.arange(15), 8)
    rejections = 0
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        z = rng.uniform(size=120) if kind == "continuous" else z
        study = of_doses(rng, z, 0, strata, blocks, LAWS[law](rng, (z.size, D)))
        rejections += run(study, seed, n_splits=FEW).n_components
    assert rejections <= most_rejections(RUNS, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["conditions", "interaction", "dose"])
def test_size_by_blocks_and_its_failure_by_rows(kind):
    """Donors of 10 rows with effects of their own; taken for independent rows, they make noise look like a finding."""
    by_block = by_row = 0
    donor = np.repeat(np.arange(40), 10)
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        X = 2 * rng.standard_normal((40, D))[donor] + rng.standard_normal((400, D))
        cell = donor // 10
        columns = {"g": cell // 2, "h": cell % 2, "cell": cell, "donor": donor}
        for blocks in ("donor", None):
            table = frame(X, **columns if blocks else {name: columns[name] for name in ("g", "h", "cell")})
            if kind == "dose":
                study = Study.from_frame(table.drop(columns=["g", "h"]), dose="cell", blocks=blocks)
            elif kind == "interaction":
                table = table.drop(columns="cell")
                study = Study.from_frame(table, interaction=("g", "h"), case=(1, 1), blocks=blocks)
            else:
                table = table.drop(columns=["g", "h"])
                study = Study.from_frame(table, groupby="cell", background=0, conditions=True, blocks=blocks)
            found = run(study, seed, n_splits=FEW).n_components
            by_block, by_row = by_block + found * (blocks is not None), by_row + found * (blocks is None)
    limit = most_rejections(RUNS, 0.05)
    assert by_block <= limit
    assert by_row > limit  # the control: this tolerance notices a test that is wrong


@pytest.mark.slow
def test_three_conditions_find_an_axis_that_they_share():
    """60 rows of each, 50 features: one direction of variance 1 + 3 in every condition, three that all rows share."""
    tables, found, pairwise, cosines = 40, 0, 0, []
    for seed in range(tables):
        rng = np.random.default_rng([seed, 34])
        axes = np.linalg.qr(rng.standard_normal((50, 4)))[0]

        def rows(planted, rng=rng, axes=axes):
            scales = np.sqrt([planted, 9, 9, 9])
            return rng.standard_normal((60, 50)) + (rng.standard_normal((60, 4)) * scales) @ axes.T

        study = Study(groups={name: rows(3) for name in "ABC"}, background=rows(0))
        cosines.append((ContraPCA(3).fit(study).components_[0] @ axes[:, 0]) ** 2)
        test = run(study, seed)
        found += test.n_components
        pairwise += 3 * min(test.conditions["pairwise_p"]) <= 0.05
    assert np.mean(cosines) >= 0.85 - 2 * np.std(cosines) / np.sqrt(tables)
    assert found / tables >= 0.7
    assert found >= pairwise  # together they find what each alone may not
