"""The test of a contrast: equal to its oracle, its level, its power, what it says, its errors."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
import scipy.stats

import oracle_split
from contrapca import Study, contrast_test
from contrapca.data import Groups, fewer_folds, looks_like_replicates, study_of, units_of
from contrapca.exceptions import ContrastWarning
from contrapca.inference import _axes, _spread, _test
from contrapca.inference._spread import compare_spread, relabelled_p, thinned, unit_values
from contrapca.inference._test import cauchy_combination, draw_splits, most_axes, verdict_on
from contrapca.inference._verdict import ContrastTest


def tables(seed, n, m, D, planted=0, variance=6.0):
    """Gaussian groups that share two strong directions; the foreground has `planted` more."""
    rng = np.random.default_rng(seed)
    W = np.linalg.qr(rng.standard_normal((D, 2 + planted)))[0]
    shared = 4 * W[:, :2]
    X = rng.standard_normal((n, D)) + rng.standard_normal((n, 2)) @ shared.T
    X = X + rng.standard_normal((n, planted)) @ W[:, 2:].T * np.sqrt(variance)
    return X, rng.standard_normal((m, D)) + rng.standard_normal((m, 2)) @ shared.T


def run(X, Y, n_axes=1, seed=0, blocks=None, **options):
    return contrast_test(Study(X, background=Y, blocks=blocks), max_components=n_axes, random_state=seed, **options)


def splits_of(n, m, n_splits, seed, blocks=None):
    units = units_of(Study(np.zeros((n, 1)), background=np.zeros((m, 1)), blocks=blocks), least=6, what="the test")
    return draw_splits(units, n_splits, np.random.default_rng(seed))


def oracle_p_values(X, Y, splits, n_axes):
    """The oracle's, with the rows that thinning leaves at random."""
    kept = []
    for finds, seed in zip(splits.finds, splits.seeds, strict=True):
        tests = splits.unit_of.map(lambda units, chunks, finds=finds: units[~finds[chunks]], splits.chunks)
        kept.append(list(thinned(tests, np.random.default_rng(seed))))
    return oracle_split.split_p_values(X, Y, splits, n_axes, kept)


def most_rejections(n, level):
    """So many of n tests of this level reject with probability 1e-4 or less."""
    return int(scipy.stats.binom.isf(1e-4, n, level))


# ---------------------------------------------------------------------- against the oracle

BLOCKS = {"none": None, "inside": 100, "paired": 0, "partly paired": 4}


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize(
    ("n", "m", "D", "planted"), [(40, 30, 6, 0), (60, 60, 20, 2), (20, 24, 80, 0), (40, 40, 120, 1)]
)
def test_equals_the_oracle(n, m, D, planted, blocks):
    X, Y = tables(1, n, m, D, planted)
    shift = BLOCKS[blocks]
    names = {} if shift is None else {"blocks": (np.arange(n) % 10, np.arange(m) % 10 + shift)}
    expected = oracle_p_values(X, Y, splits_of(n, m, 5, 3, **names), 2)
    np.testing.assert_allclose(run(X, Y, 2, seed=3, n_splits=5, **names).p_values, expected, rtol=1e-8)


def test_equals_the_oracle_on_counts():
    rng = np.random.default_rng(0)
    X, Y = rng.poisson(0.3, size=(70, 12)).astype(float), rng.poisson(0.3, size=(40, 12)).astype(float)
    expected = oracle_p_values(X, Y, splits_of(70, 40, 21, 3), 3)
    np.testing.assert_allclose(run(X, Y, 3, seed=3, n_splits=21).p_values, expected, rtol=1e-8)


@pytest.mark.parametrize("scale", ["group", "pooled"])
@pytest.mark.parametrize("D", [12, 700])
def test_scaling_is_that_of_the_rows(scale, D):
    X, Y = tables(2, 300, 280, D, planted=1)
    X, Y = (table * np.linspace(1, 50, D) for table in (X, Y))
    sd = [np.sqrt((X.var(axis=0) * 300 + Y.var(axis=0) * 280) / 580)] * 2 if scale == "pooled" else [X.std(0), Y.std(0)]
    by_hand = run(X / sd[0], Y / sd[1], 2, n_splits=3)
    np.testing.assert_allclose(run(X, Y, 2, n_splits=3, scale=scale).statistics, by_hand.statistics, rtol=1e-6)


@pytest.mark.parametrize(("n", "D"), [(60, 20), (60, 300), (400, 700)], ids=["tall", "span", "leading directions"])
def test_sparse_equals_dense(n, D):
    rng = np.random.default_rng(0)
    X, Y = (rng.poisson(0.2, size=(n, D)).astype(float) for _ in range(2))
    dense = run(X, Y, 2, n_splits=3)
    sparse = run(scipy.sparse.csr_matrix(X), scipy.sparse.csr_matrix(Y), 2, n_splits=3)
    np.testing.assert_allclose(sparse.p_values, dense.p_values, rtol=1e-6)
    np.testing.assert_allclose(sparse.statistics, dense.statistics, rtol=1e-6, atol=1e-8)
    assert sparse.noise_ratio == pytest.approx(dense.noise_ratio)


def test_subspace_iteration(monkeypatch):
    X, Y = tables(0, 120, 120, 60, planted=1, variance=10)
    monkeypatch.setattr(_axes, "WORKING_DIMENSIONS", 20)
    exact = run(X, Y, 2)
    monkeypatch.setattr(_axes, "EXACT_FEATURES", 50)
    dense, sparse = run(X, Y, 2), run(scipy.sparse.csr_matrix(X), scipy.sparse.csr_matrix(Y), 2)
    np.testing.assert_allclose(sparse.statistics, dense.statistics, rtol=1e-6, atol=1e-8)
    assert dense.n_components == exact.n_components == 1
    np.testing.assert_allclose(dense.statistics[:, 0], exact.statistics[:, 0], atol=0.5)


def test_the_span_of_a_wide_table_loses_nothing(monkeypatch):
    X, Y = tables(0, 30, 30, 200, planted=1, variance=30)
    in_span = run(X, Y, 2)
    monkeypatch.setattr(_test, "working_basis", lambda groups, rng: None)
    np.testing.assert_allclose(in_span.statistics, run(X, Y, 2).statistics, rtol=1e-7, atol=1e-9)


def test_small_blocks_of_rows_change_nothing(monkeypatch):
    X, Y = tables(0, 300, 260, 700, planted=1)
    expected = run(X, Y, 2, n_splits=3)
    monkeypatch.setattr(_axes, "BLOCK_NUMBERS", 5000)
    monkeypatch.setattr(_test, "BLOCK_NUMBERS", 5000)
    np.testing.assert_allclose(run(X, Y, 2, n_splits=3).statistics, expected.statistics, rtol=1e-8, atol=1e-10)


def test_threads_change_nothing(monkeypatch):
    X, Y = tables(0, 80, 60, 15, planted=1)
    asked = []
    monkeypatch.setattr(_test, "worker_count", lambda values: asked.append(values) or 1)
    alone = run(X, Y, 2)
    monkeypatch.setattr(_test, "worker_count", lambda values: 3)
    np.testing.assert_array_equal(run(X, Y, 2).statistics, alone.statistics)
    assert len(asked) == 1


def test_rotating_the_features_changes_nothing():
    X, Y = tables(0, 80, 60, 15, planted=1)
    Q = np.linalg.qr(np.random.default_rng(9).standard_normal((15, 15)))[0]
    np.testing.assert_allclose(run(X @ Q, Y @ Q, 2).statistics, run(X, Y, 2).statistics, rtol=1e-7, atol=1e-9)


def test_means_and_the_unit_of_measurement_do_not_matter():
    X, Y = tables(0, 80, 60, 15, planted=1)
    moved = run(1000 * X + 5e4, 1000 * Y - 3e4, 2)
    np.testing.assert_allclose(moved.statistics, run(X, Y, 2).statistics, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("D", [15, 250])
def test_float32_rows(D):
    X, Y = tables(0, 80, 60, D, planted=1)
    single = run(X.astype(np.float32), Y.astype(np.float32), 2)
    np.testing.assert_allclose(single.statistics, run(X, Y, 2).statistics, atol=1e-3)


# ---------------------------------------------------------------------- what it returns


def test_a_seed_repeats_and_progress_changes_nothing(capsys, watched):
    X, Y = tables(0, 60, 60, 10)
    seen = run(X, Y, 2, seed=7)
    assert "splits" in capsys.readouterr().err
    np.testing.assert_array_equal(seen.statistics, run(X, Y, 2, seed=7, progress=False).statistics)
    assert capsys.readouterr().err == ""
    assert not np.array_equal(seen.statistics, run(X, Y, 2, seed=8).statistics)


def test_the_first_axes_do_not_depend_on_how_many_follow():
    X, Y = tables(0, 200, 200, 30, planted=2)
    np.testing.assert_allclose(run(X, Y, 2).p_values, run(X, Y, 6).p_values[:2], rtol=1e-9)


def test_what_it_says():
    X, Y = tables(0, 300, 300, 30, planted=3)
    test = run(X, Y, 6)
    assert np.all(np.diff(test.p_values) >= 0)
    assert test.n_components == 3 == np.count_nonzero(test.p_values <= test.level)
    assert test.statistics.shape == (51, 6)
    assert test.table()["found"].tolist() == [True] * 3 + [False] * 3
    assert test.units == "300 + 300 rows"
    assert test.verdict() == "The cases vary more than chance allows in 3 directions (p < 1e-06)."
    assert "3 dimensions vary more in the cases: show more components" in test.remarks(2)[0]
    assert test.remarks(3) == []
    assert str(test).startswith(test.verdict())
    assert "noise of the cases over that of the controls: 1.0" in str(test)
    weaker = replace(test, p_values=np.array([0.001, 0.0049, 0.2, 0.3, 0.4, 0.5]), n_components=2)
    assert weaker.verdict() == "The cases vary more than chance allows in 2 directions (p = 0.0049)."
    nothing = run(Y, X, 2)
    assert nothing.n_components == 0
    assert nothing.verdict().startswith("Nothing found: the cases do not vary more than chance allows in any")
    with pytest.raises(AttributeError):
        test.level = 0.1


def test_more_is_shown_than_can_be_tested():
    X, Y = tables(0, 20, 20, 30, planted=1, variance=500)
    test = run(X, Y, 10)
    assert test.p_values.size == 5
    sure = ContrastTest(5, np.full(5, 0.01), test.statistics, 1.0, 0.05, "20 + 20 rows")
    assert sure.remarks(7) == ["No more than 5 could be tested with 20 + 20 rows."]
    assert "at least 5 dimensions" in sure.remarks(2)[0]


def test_noise_ratio():
    X, Y = tables(0, 300, 300, 30, planted=1)
    assert run(X, Y).noise_ratio == pytest.approx(1, abs=0.05)
    noisier = run(X + np.random.default_rng(1).standard_normal(X.shape), Y)
    assert noisier.noise_ratio == pytest.approx(2, abs=0.15)
    assert "noisier everywhere" in noisier.remarks()[0]


# ---------------------------------------------------------------------- level and power


@pytest.mark.parametrize("paired", [0, 4])
def test_thinned_blocks_have_as_many_rows(paired):
    rng = np.random.default_rng(0)
    x_sizes, y_sizes = rng.integers(1, 30, 14), rng.integers(1, 9, 23)
    x = np.repeat(np.arange(14), x_sizes)
    y = np.repeat(np.append(np.arange(paired), 100 + np.arange(23 - paired)), y_sizes)
    counts = np.zeros(x.size)
    for seed in range(300):
        x_keep, y_keep = thinned(Groups.of(x, y), np.random.default_rng(seed))
        counts += x_keep
        kept = [np.unique(units[keep], return_counts=True)[1] for units, keep in ((x, x_keep), (y, y_keep))]
        assert len(kept[0]) == 14
        assert len(kept[1]) == 23  # every block stays
        np.testing.assert_array_equal(kept[0][:paired], np.minimum(x_sizes, y_sizes[:14])[:paired])
        np.testing.assert_array_equal(kept[0][:paired], kept[1][:paired])
        expected = oracle_split.quotas(x_sizes[paired:], y_sizes[paired:])
        for own, quota in zip(kept, expected, strict=True):
            assert sorted(own[paired:]) == sorted(quota)
    assert counts.min() > 0  # any row may stay


def test_single_rows_are_not_thinned():
    for keep in thinned(Groups.of(np.arange(9), np.arange(9, 40)), np.random.default_rng(0)):
        assert keep.all()


@pytest.mark.parametrize("within", [True, False])
def test_unit_values(within):
    rng = np.random.default_rng(0)
    units = np.repeat([5, 2, 7, 3], [4, 2, 9, 3])
    x = np.round(rng.standard_normal((18, 3)), 1)  # with ties
    found = unit_values(1e6 + x, units, 9, within=within)
    for column in range(3):
        expected = oracle_split.unit_values(x[:, column], units, within)
        np.testing.assert_allclose(found[sorted(expected), column], [expected[u] for u in sorted(expected)], rtol=1e-7)
    assert np.isnan(found[[0, 1, 4, 6, 8]]).all()
    np.testing.assert_array_equal(unit_values(np.full((18, 1), 0.1), units, 9, within=within)[[2, 3, 5, 7]], 0)


GUARDED = {
    "rows": (np.arange(4), np.arange(4, 13)),
    "many cases": (np.arange(9), np.arange(9, 12)),
    "blocks": (np.repeat(np.arange(3), 3), np.repeat(np.arange(3, 11), 2)),
    "partly paired": (np.repeat(np.arange(4), 2), np.repeat(np.arange(2, 11), 2)),
}


@pytest.mark.parametrize("within", [True, False])
@pytest.mark.parametrize("kind", GUARDED)
def test_exchanged_labels(kind, within):
    """As many of 1,999 random exchanges as of all have a larger difference, up to a binomial's error."""
    x_units, y_units = GUARDED[kind]
    if within and np.unique(x_units).size == x_units.size:
        x_units, y_units = np.repeat(x_units, 2), np.repeat(y_units, 2)
    for seed in range(4):
        rng = np.random.default_rng([seed, 1])
        x, y = rng.standard_normal((x_units.size, 1)), rng.standard_normal((y_units.size, 1))
        codes = Groups.of(x_units, y_units)
        values = Groups.of(x, y).map(lambda z, own: unit_values(z, own, 13, within=within), codes)
        found = relabelled_p(Groups.of(x, y), codes, values, rng, within=within)[0]
        expected = oracle_split.exchange_p(x[:, 0], y[:, 0], x_units, y_units, within)
        assert abs(found - expected) < 4.5 * np.sqrt(expected * (1 - expected) / 1999) + 1e-3


def test_the_guard_takes_some_of_many_units():
    """A block is still a block if only some of its rows, and some of the blocks, are relabelled."""
    rng = np.random.default_rng(0)
    codes = Groups.of(np.repeat(np.arange(5), 40), np.repeat(np.arange(5, 305), 40))
    x = codes.map(lambda own: rng.standard_normal((own.size, 2)))
    values = x.map(lambda z, own: unit_values(z, own, 305, within=False), codes)
    assert np.all(relabelled_p(x, codes, values, rng, within=False) > 0.01)
    larger = Groups.of(5 * x.foreground, x.background)
    assert np.all(relabelled_p(larger, codes, values, rng, within=False) < 0.01)


def unequal_blocks(rng, x_rows, y_rows, icc=0.5):
    """15 + 15 blocks from one law, with the given numbers of rows."""
    labels = [np.repeat(np.arange(15), rows) for rows in (x_rows, y_rows)]
    x, y = (
        np.sqrt(icc) * rng.standard_normal(15)[own] + np.sqrt(1 - icc) * rng.standard_normal(own.size) for own in labels
    )
    return Groups.of(x[:, None], y[:, None]), Groups.of(labels[0], labels[1] + 15)


@pytest.mark.parametrize("within", [True, False])
@pytest.mark.parametrize(("x_rows", "y_rows"), [(40, 2), (2, 40)])
def test_the_level_with_unequal_blocks(x_rows, y_rows, within, monkeypatch):
    def rejections(n):
        rng, count = np.random.default_rng([x_rows, within]), 0
        for _ in range(n):
            count += compare_spread(*unequal_blocks(rng, x_rows, y_rows), rng, within=within)[1][0] <= 0.05
        return count

    assert rejections(1000) <= most_rejections(1000, 0.05)
    if within and y_rows == 2:  # the control: means over 2 rows vary more, and are more skewed, than over 40
        monkeypatch.setattr(_spread, "thinned", lambda codes, rng: codes.map(lambda own: np.ones(own.size, bool)))
        assert rejections(1000) > most_rejections(1000, 0.05)


@pytest.mark.parametrize("factor", [1e-140, 1e-108, 1e103, 1e140])
def test_any_unit_of_measurement(factor):
    X, Y = tables(0, 80, 60, 8, planted=1)
    np.testing.assert_allclose(run(factor * X, factor * Y, 2).p_values, run(X, Y, 2).p_values, rtol=1e-6)


@pytest.mark.parametrize(("factor", "said"), [(1e-160, "too small"), (1e-300, "too small"), (1e160, "too large")])
def test_what_cannot_be_squared_is_refused(factor, said):
    X, Y = tables(0, 80, 60, 8, planted=1)
    with pytest.raises(ValueError, match=f"{said} to be squared: rescale"):
        run(factor * X, factor * Y)
    assert run(0 * X, 0 * Y).n_components == 0  # the control: nothing is not too small


LAWS = {
    "gauss": lambda rng, n: rng.standard_normal((n, 10)),
    "t3": lambda rng, n: rng.standard_t(3, size=(n, 10)),
    "lognormal": lambda rng, n: rng.lognormal(size=(n, 10)),
    "counts": lambda rng, n: rng.poisson(0.1, size=(n, 10)).astype(float),
}


@pytest.mark.slow
@pytest.mark.parametrize(("n", "m"), [(60, 60), (100, 20), (8, 8), (6, 50), (20, 20)])
@pytest.mark.parametrize("law", LAWS)
def test_size(law, n, m):
    rejections = 0
    for seed in range(60):
        rng = np.random.default_rng([seed, n])
        rejections += run(LAWS[law](rng, n), LAWS[law](rng, m), seed=seed).n_components
    assert rejections <= most_rejections(60, 0.05)


def donors(rng):
    effect = np.repeat(rng.standard_normal((10, 10)), 20, axis=0)
    return effect + rng.standard_normal((200, 10)), np.repeat(np.arange(10), 20)


@pytest.mark.slow
def test_size_by_blocks_and_its_failure_by_rows():
    by_block = by_row = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        (X, blocks), (Y, own) = donors(rng), donors(rng)
        by_block += run(X, Y, seed=seed, blocks=(blocks, own + 10)).n_components
        by_row += run(X, Y, seed=seed).n_components
    limit = most_rejections(60, 0.05)
    assert by_block <= limit
    assert by_row > limit  # the control: this tolerance notices a test that is wrong


@pytest.mark.slow
@pytest.mark.parametrize("planted", [1, 2, 3])
def test_planted_dimensions_are_counted(planted):
    """The right number in 9 of 10 data sets or more; the tolerance is a binomial's."""
    right = sum(
        run(*tables(seed, 200, 200, 30, planted, 4.0), 5, seed=seed).n_components == planted for seed in range(30)
    )
    assert right >= 30 - scipy.stats.binom.isf(1e-3, 30, 0.1)


def few_donors(rng, *, within=0.0, between=0.0):
    """8 + 8 donors of 20 rows, three shared directions stronger than that of the cases; tables and their blocks."""
    W = np.linalg.qr(rng.standard_normal((30, 4)))[0]
    X, Y = (rng.standard_normal((160, 30)) + 4 * rng.standard_normal((160, 3)) @ W[:, :3].T for _ in range(2))
    own = within * rng.standard_normal(160) + between * np.repeat(rng.standard_normal(8), 20)
    labels = np.repeat(np.arange(8), 20)
    return X + np.outer(own, W[:, 3]), Y, {"blocks": (labels, labels + 8)}


def test_few_blocks_show_what_varies_within_them():
    """A rank limited by the number of blocks has no room for the shared directions and finds nothing."""
    X, Y, blocks = few_donors(np.random.default_rng(0), within=2.0)
    found = run(X, Y, **blocks)
    assert found.p_values[0] == found.least_p == 1 / 70  # 4 + 4 blocks test
    assert 3 < found.ratios[0] < 5  # 5 along the true direction
    assert not found.remarks()
    # Every other split; not if a block is a single row.
    assert splits_of(160, 160, 4, 0, *blocks.values()).within.tolist() == [False, True, False, True]
    blocks["blocks"][0][0] = 99
    assert not splits_of(160, 160, 4, 0, *blocks.values()).within.any()


def test_few_blocks_and_what_they_can_show():
    X, Y, blocks = few_donors(np.random.default_rng(0))
    nothing = run(X, Y, **blocks)
    assert nothing.block_ratio == pytest.approx(scipy.stats.f.ppf(0.95, 3, 3))  # 4 + 4 blocks test
    assert "With 8 + 8 blocks" in nothing.remarks()[0]
    assert "about 9.3 times as much" in nothing.remarks()[0]
    assert np.isnan(run(X, Y).block_ratio)
    paired = run(X, Y, blocks=(blocks["blocks"][0],) * 2)
    assert np.isnan(paired.block_ratio)
    assert paired.least_p == 1 / 16
    assert paired.remarks()[0].startswith("No p-value can be below 0.062 with 8 + 8 blocks, 8 of them in both groups: ")
    assert not replace(paired, level=0.07).remarks()


def test_ratios_are_those_of_the_testing_halves():
    X, Y = tables(0, 80, 60, 8, planted=1)
    splits = splits_of(80, 60, 5, 3)
    expected, shared = [], oracle_split.shared(X, Y, *splits.chunks, within=False)
    for finds in splits.finds:
        x, y = (T[finds[chunks]] for T, chunks in zip((X, Y), splits.chunks, strict=True))
        V = oracle_split.axes(np.cov(x.T, ddof=0), np.cov(y.T, ddof=0), len(x), len(y), 2, *shared)
        x, y = (T[~finds[chunks]] @ V for T, chunks in zip((X, Y), splits.chunks, strict=True))
        expected.append(np.log(x.var(axis=0) / y.var(axis=0)))
    np.testing.assert_allclose(run(X, Y, 2, seed=3, n_splits=5).ratios, np.exp(np.mean(expected, axis=0)), rtol=1e-8)


def test_paired_blocks_find_what_the_pairs_show():
    rng = np.random.default_rng(0)
    blocks = np.repeat(np.arange(24), 20)
    spread = np.repeat(np.exp(0.5 * rng.standard_normal(24)), 20)[:, None]
    X, Y = (spread * rng.standard_normal((480, 8)) for _ in range(2))
    X[:, 0] *= 2
    paired = run(X, Y, blocks=(blocks, blocks))
    assert paired.n_components == 1
    assert paired.units == "24 + 24 blocks, 24 of them in both groups"
    assert paired.p_values[0] < run(X, Y, blocks=(blocks, blocks + 24)).p_values[0]


def test_paired_blocks_fall_on_the_same_side():
    labels = np.arange(40) % 8
    splits = splits_of(40, 40, 9, 0, (labels, labels[::-1]))
    for finds in splits.finds:
        own = [set(units[finds[chunks]]) for units, chunks in zip(splits.unit_of, splits.chunks, strict=True)]
        assert own[0] == own[1]
        assert np.count_nonzero(finds) == 4


def plain_cauchy(p_values):
    return scipy.stats.cauchy.sf(np.mean(np.tan((0.5 - np.minimum(p_values, 0.99)) * np.pi), axis=0))


@pytest.mark.parametrize("n_splits", [2, 21, 51, 101])
def test_the_cauchy_rule_keeps_its_level_under_dependence(n_splits):
    rng, rates = np.random.default_rng(0), {cauchy_combination: [], plain_cauchy: []}
    for rho in (0.0, 0.2, 0.4, 0.7, 1.0):
        z = np.sqrt(rho) * rng.standard_normal(20_000) + np.sqrt(1 - rho) * rng.standard_normal((n_splits, 20_000))
        for rule, counts in rates.items():
            counts.append(np.count_nonzero(rule(scipy.stats.norm.sf(z)) <= 0.05))
    limit = most_rejections(20_000, 0.054)
    assert max(rates[cauchy_combination]) <= limit
    if n_splits >= 21:
        assert max(rates[plain_cauchy]) > limit  # the control
    assert cauchy_combination(np.zeros((n_splits, 1)))[0] < 1e-200


def test_constant_tables():
    noise = np.random.default_rng(0).standard_normal((60, 4))
    assert run(np.ones((20, 4)), np.ones((20, 4))).n_components == 0
    assert run(np.ones((20, 4)), noise).n_components == 0
    assert run(noise, np.ones((60, 4))).n_components == 1


# ---------------------------------------------------------------------- bad input


def bad(labels, at, value):
    return [value if k == at else label for k, label in enumerate(labels)]


NAMES = [f"donor {k % 5}" for k in range(20)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"blocks": (["a"] * 20, NAMES)}, "The foreground has 1 block: the test needs at least 6"),
        ({"blocks": (NAMES, bad(NAMES, 3, None))}, r"blocks of the background has no label for 1 of 20 .* row 3"),
        ({"blocks": (bad(NAMES, 0, float("nan")), NAMES)}, "blocks of the foreground has no label"),
        ({"blocks": (bad(NAMES, 0, ""), NAMES)}, "blocks of the foreground has no label"),
        ({"n_axes": 0}, "max_components=0 must be a whole number"),
        ({"n_splits": 0}, "n_splits=0"),
        ({"level": 1.0}, r"level=1.0 must be below 1"),
        ({"level": 0.0}, r"level=0.0 must be a finite number above 0"),
        ({"scale": "both"}, "scale='both' is not valid"),
    ],
)
def test_bad_options(options, words):
    X, Y = tables(0, 20, 20, 8)
    with pytest.raises(ValueError, match=words):
        run(X, Y, **options)


def test_bad_tables():
    X, Y = tables(0, 20, 20, 8)
    with pytest.raises(ValueError, match=r"The foreground has 3 rows: the test needs at least 6"):
        run(X[:3], Y)
    with pytest.raises(ValueError, match="The foreground has 7 features and the background 8"):
        run(X[:, :7], Y)
    with pytest.raises(ValueError, match="1 feature"):
        run(X[:, :1], Y[:, :1])
    with pytest.raises(ValueError, match="contrasts two groups"):
        run(X, None)
    with pytest.raises(ValueError, match="too large to be squared"):
        run(X * 1e200, Y)
    X[2, 3] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        run(X, Y)


def test_most_axes():
    def most(n, m, D):
        return most_axes(Groups.of(np.arange(n), np.arange(m)), D)

    assert [most(100, 100, 5), most(20, 100, 50), most(4, 4, 50), most(8, 8, 2)] == [4, 5, 1, 1]


# ---------------------------------------------------------------------- the verdict


def test_verdict_on_tables():

    def verdict(X, Y, **options):
        checked = study_of(X, Y, "it").tables
        return verdict_on(checked, n_shown=2, **options)

    X, Y = tables(0, 200, 200, 12, planted=2)
    found = verdict(X, Y)
    assert found.sentence.startswith("The cases vary more than chance allows in 2 directions (p ")
    assert found.summary() == verdict(X, Y).summary()
    assert found.summary()["test"]["n_components"] == 2
    X[0, 0] = np.nan
    assert verdict(X, Y).sentence.startswith("The cases vary more than chance allows in 2 directions")
    assert verdict(X, Y).summary()["test"]["missing"] == {"foreground": 1 / 2400, "background": 0.0, "differ": False}
    assert "one group has 3 rows" in verdict(Y, Y[:3]).sentence
    for labels, group in ((np.arange(200) % 5, "5 blocks"), (np.arange(200) % 2, "2 blocks")):
        found = verdict(Y, Y, blocks=Groups.of(labels, labels + 5))
        assert f"not tested: one group has {group}, but the test needs at least 6 in each." in found.sentence
        assert found.test is None
    with pytest.raises(
        ValueError, match="The foreground has 1 block: the test needs at least 6"
    ):  # another column was meant
        verdict(Y, Y, blocks=Groups.of(np.zeros(200), np.ones(200)))


# ---------------------------------------------------------------------- replicates


@pytest.mark.parametrize(
    ("names", "stems"),
    [
        (["309_1", "309_2", "311_1", "311_2", "312_1"], ["309", "309", "311", "311", "312"]),
        (["a-b-1", "a-b-2", "c 1", "c 2", "d.r1", "d.r2"], ["a-b", "a-b", "c", "c", "d", "d"]),
        (["s1.rep1", "s1.rep2", "s2.rep1", "s2.rep2", "s3.rep1"], ["s1", "s1", "s2", "s2", "s3"]),
        (["case_1", "case_2", "control_1", "control_2"], None),  # names of groups
        (["AAAC-1", "AAAG-1", "AAAT-1", "AACC-1"], None),  # barcodes
        (["1", "2", "3", "4"], None),
        (["309_1", "309_1", "311_1", "311_1", "312_1"], None),  # not distinct
        (["x1", "x2", "309_1", "309_2", "a", "b", "c"], None),  # too few of them
        ([], None),
    ],
)
def test_names_of_replicates(names, stems):
    assert looks_like_replicates(names) == stems


def test_replicates_are_noticed(need):
    pd = need("pandas")
    X, Y = tables(0, 20, 20, 8)
    names = [f"{i // 3}_{i % 3}" for i in range(20)]
    frames = [pd.DataFrame(table, index=names) for table in (X, Y)]
    for frame in frames:
        frame.columns = [f"g{j}" for j in range(8)]
    with pytest.warns(
        ContrastWarning, match=r"look like replicates \('0_0', '0_1', '1_0', ...\).* Pass a Study with blocks="
    ):
        run(frames[0], pd.DataFrame(Y, columns=frames[0].columns))
    with pytest.warns(ContrastWarning, match="Every row is its own block, but"):
        run(X, Y, blocks=(names, [f"b{name}" for name in names]))
    donors = [name[0] for name in names]
    assert run(*frames, blocks=(donors, donors)).units.startswith("7 + 7 blocks, 7 of them")


def test_folds_keep_blocks():
    units = Groups.of(np.arange(20) % 4, np.arange(20) % 6)
    assert fewer_folds(units, 3) == 3
    with pytest.warns(ContrastWarning, match="4 blocks in the smaller group, fewer than n_folds=5: using 4 folds"):
        assert fewer_folds(units, 5) == 4
    with pytest.raises(ValueError, match="in one block"):
        fewer_folds(Groups.of(np.zeros(5, dtype=int), np.arange(5)), 2)
