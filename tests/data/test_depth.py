"""Unequal depth of counts (F46): counts recovered, depths matched, the warning, and the test at equal depth."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats

import oracles
from contrapca import Study, check_tables, contrast_test, match_depth, report
from contrapca.data._depth import (
    KINDS,
    depth_gap,
    kind_of,
    linear,
    matched_totals,
    molecule_values,
    smallest_counts,
    thinned,
    totals_in,
    typical_ratio,
)
from contrapca.data.checks import depth_finding
from contrapca.exceptions import GroupError, TableWarning


def cells(n, D=80, *, depth=1.0, seed=0, extra=0.0):
    """Negative binomial counts of cells of several depths and one type; `extra` adds a program that only some have."""
    rng, genes = np.random.default_rng(seed), np.random.default_rng(99)
    level = genes.gamma(0.5, 8, size=D) + 0.2
    size = np.exp(0.3 * rng.standard_normal(n))
    shared = np.exp(0.3 * rng.standard_normal((n, 1)) * genes.standard_normal(D))
    program = np.exp(extra * rng.standard_normal((n, 1)) * (np.arange(D) % 7 == 0))
    rate = level * size[:, None] * shared * program * rng.gamma(4, 0.25, size=(n, D))
    return rng.binomial(rng.poisson(rate), depth)


def logs(counts, total=1e4, base=None):
    """log(1 + counts per 10,000)."""
    found = np.log1p(counts * (total / np.maximum(counts.sum(axis=1), 1))[:, None])
    return found if base is None else found / np.log(base)


# ---------------------------------------------------------------- counts are recovered


def test_the_kinds():
    counts = cells(60)
    shares = counts / counts.sum(axis=1, keepdims=True)
    found = [kind_of(table) for table in (counts.astype(float), logs(counts), shares * 1e4)]
    assert found == ["counts", "log", "normalised"]
    assert set(KINDS) == {"counts", "log", "log2", "log10", "normalised"}


OTHER = {
    "normal": lambda rng: rng.standard_normal((80, 40)),
    "positive": lambda rng: rng.gamma(2, size=(80, 40)),
    "decimals": lambda rng: np.round(rng.gamma(2, size=(80, 40)), 1),
    "tenths": lambda rng: rng.integers(1, 40, (80, 40)) / 10,
    "proportions": lambda rng: rng.dirichlet(np.ones(40), 80),
    "quarters": lambda rng: rng.integers(0, 1200, (80, 40)) / 4,  # whose powers overflow
    "binary": lambda rng: (rng.random((80, 40)) < 0.3).astype(float),
    "logarithms of other values": lambda rng: np.log1p(rng.gamma(2, size=(80, 40))),
    "scaled": lambda rng: scipy.stats.zscore(logs(cells(80, 40, seed=3))),
    "square roots": lambda rng: np.sqrt(cells(80, 40, seed=3)),
    "missing": lambda rng: np.where(rng.random((80, 40)) < 0.1, np.nan, logs(cells(80, 40, seed=3))),
    "nothing": lambda rng: np.zeros((80, 40)),
    "few columns": lambda rng: cells(80, 5).astype(float),
}


@pytest.mark.parametrize("kind", OTHER)
def test_other_tables_have_no_depth(kind):
    rows = OTHER[kind](np.random.default_rng(1))
    assert kind_of(rows) is None
    assert totals_in(rows) is None


def test_units_are_those_of_the_oracle():
    rng = np.random.default_rng(5)
    rows = cells(50, 12, seed=5) * np.array([1, 2, 3, 5, 1.37])[np.arange(50) % 5][:, None]
    rows[::7] = rng.gamma(2, size=(8, 12))  # not counts
    stored = sp.csr_array(rows)
    found = molecule_values(stored.data, stored.indptr)
    expected = [oracles.depth_unit(row) if (row > 0).any() else np.nan for row in rows]
    np.testing.assert_allclose(found, expected, equal_nan=True)
    assert 0 < np.isnan(found).sum() < 15
    np.testing.assert_array_equal(smallest_counts(stored), [row[row > 0].min() for row in rows if (row > 0).any()])


def test_linear_is_the_inverse():
    x = np.linspace(0, 9, 50)
    for base, kind in ((np.e, "log"), (2, "log2"), (10, "log10")):
        np.testing.assert_allclose(linear(x, kind), np.power(base, x) - 1, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(linear(x, "counts"), x)


# ---------------------------------------------------------------- totals are matched


def test_equal_totals_are_spread_over_the_others():
    """Rows of one total become as different as the other group's, and do not all take its median."""
    rng = np.random.default_rng(0)
    other = rng.integers(200, 2000, 500).astype(float)
    found = matched_totals(np.full(500, 3000.0), other, rng)
    assert scipy.stats.ks_2samp(found, other).pvalue > 0.9


def test_thinning_keeps_molecules_and_expectations():
    counts, rng = sp.csr_array(cells(30, 20, seed=2)), np.random.default_rng(0)
    inside = counts.toarray().sum(axis=1)
    totals, share = inside + 100.0, np.linspace(0.1, 1, 30)
    tables, left = zip(*(thinned(counts, totals, share * totals, rng) for _ in range(400)), strict=True)
    dense = np.stack([table.toarray() for table in tables])
    assert np.all(dense <= counts.toarray())
    assert np.all(dense[:, -1] == counts.toarray()[-1])  # all of its molecules are kept
    error = 5 * np.sqrt(totals * share * (1 - share) / 400)
    assert np.all(np.abs(np.mean(left, axis=0) - share * totals) <= error + 1e-9)
    slow = np.mean([oracles.molecules_kept(counts.toarray()[3], share[3], rng) for _ in range(400)], axis=0)
    spread = np.sqrt(2 * counts.toarray()[3] * share[3] * (1 - share[3]) / 400)
    assert np.all(np.abs(dense[:, 3].mean(axis=0) - slow) <= 5 * spread + 1e-9)
    assert np.all(np.asarray(left) >= dense.sum(axis=2))  # what is not in the table is counted, too


def test_the_gap_is_that_of_mann_and_whitney():
    rng = np.random.default_rng(3)
    own, other = rng.poisson(30, 60).astype(float), rng.poisson(34, 90).astype(float)
    expected = scipy.stats.mannwhitneyu(own, other, method="asymptotic").pvalue
    assert depth_gap(own, other) == pytest.approx((np.median(own) / np.median(other), expected), rel=1e-9)
    assert depth_gap(np.ones(5), np.ones(6)) == (1.0, 1.0)


@pytest.mark.parametrize("kind", ["counts", "log", "normalised"])
def test_depths_are_equal_afterwards(kind):
    shape = {"counts": lambda c: c, "log": logs, "normalised": lambda c: c / c.sum(axis=1, keepdims=True)}[kind]
    deep, shallow = cells(200, seed=1), cells(150, depth=0.4, seed=2)
    X, Y, rows, others = match_depth(shape(shallow), background=shape(deep), random_state=0)
    assert X.shape == (rows.size, 80)
    assert Y.shape == (others.size, 80)
    totals = [np.expm1(table).sum(axis=1) for table in (X, Y)]
    assert np.allclose(np.concatenate(totals), totals[0][0])  # one total
    left = [totals_in(table) for table in (X, Y)]
    assert scipy.stats.ks_2samp(*left).pvalue > 0.01
    assert scipy.stats.ks_2samp(shallow.sum(axis=1), deep.sum(axis=1)).pvalue < 1e-6
    assert np.all(left[0] <= shallow.sum(axis=1)[rows])
    assert np.all(left[1] <= deep.sum(axis=1)[others])


def test_storage_does_not_matter(need):
    pandas = need("pandas")
    A, B = cells(60, 30, seed=1).astype(float), cells(70, 30, depth=0.5, seed=2).astype(float)
    X, Y, rows, _ = match_depth(A, background=B, random_state=7)
    again = match_depth(sp.csr_matrix(A), background=sp.csc_array(B), random_state=7)
    assert sp.issparse(again[0])
    np.testing.assert_array_equal(again[0].toarray(), X)
    np.testing.assert_array_equal(again[1].toarray(), Y)
    names = [f"g{j}" for j in range(30)]
    frames = pandas.DataFrame(A, columns=names), pandas.DataFrame(B, columns=names)
    frame, _, kept, _ = match_depth(frames[0], background={"ctrl": frames[1]}, random_state=7)
    assert list(frame.columns) == names
    assert frame.index.tolist() == kept.tolist() == rows.tolist()
    np.testing.assert_array_equal(frame.to_numpy(), X)
    single = match_depth(A.astype("float32"), background=B.astype("float32"), random_state=7)[0]
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, X, rtol=1e-6)
    assert not np.array_equal(match_depth(A, background=B, random_state=8)[0], X)


def test_rows_that_are_left_with_little_are_dropped():
    A, B = cells(60, seed=1), cells(60, seed=2)
    A[[3, 10]] = 0
    A[3, :4] = 2
    X, _, rows, others = match_depth(A, background=B, random_state=0)
    assert set(range(60)) - set(rows.tolist()) == {3, 10}
    assert len(X) == 58
    assert others.size >= 58  # the lowest of them are thinned as far


def test_totals_over_all_genes():
    """Of a few genes: the totals of all may be given, and decide which molecules are kept."""
    A, B = cells(100, seed=1), cells(100, depth=0.5, seed=2)
    few = np.arange(0, 80, 8)
    given = {"totals": A.sum(axis=1), "background_totals": B.sum(axis=1), "random_state": 0}
    X, Y, *_ = match_depth(A[:, few], background=B[:, few], **given)
    filled = [np.mean(table > 0) for table in (X, Y)]
    assert abs(filled[0] - filled[1]) < 0.05 < np.mean(A[:, few] > 0) - np.mean(B[:, few] > 0)
    spread = np.expm1(X).sum(axis=1)
    assert spread.std() > 0.1 * spread.mean()  # these genes are another part of every total
    with pytest.raises(ValueError, match=r"totals has shape \(3,\) for 100 rows: pass one total per row"):
        match_depth(A, background=B, totals=[1, 2, 3])
    with pytest.raises(ValueError, match=r"background_totals is missing or smaller than the sum of .* in 100 rows"):
        match_depth(A, background=B, background_totals=np.ones(100))
    with pytest.raises(ValueError, match=r"^totals is missing or smaller than the sum of the counts in 1 row:"):
        match_depth(A, background=B, totals=np.where(np.arange(100) == 3, np.inf, A.sum(axis=1)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X + 0.5, "No counts can be recovered from the foreground"),
        (lambda X: -X, "No counts can be recovered from the foreground"),
        (lambda X: np.where(np.arange(len(X))[:, None] == 1, -X, X), "No counts can be recovered from the foreground"),
        (lambda X: np.where(X == 3, np.nan, X), "match_depth needs complete rows"),
        (
            lambda X: np.minimum(X, 2 * (np.arange(80) < 3)),
            "At equal depths the foreground has 0 rows with at least 20 counts",
        ),
    ],
)
def test_what_cannot_be_matched(change, message):
    X = cells(200, seed=1).astype(float)
    with pytest.raises(GroupError, match=message):
        match_depth(change(X), background=X)


def test_rows_in_blocks_are_refused(need):
    array = need("dask.array")
    X = cells(50).astype(float)
    with pytest.raises(GroupError, match="match_depth needs rows in memory, but the background is read in blocks"):
        match_depth(X, background=array.from_array(X, chunks=(10, -1)))


# ---------------------------------------------------------------- the warning


def depth_of(X, Y):
    return [finding for finding in check_tables(X, background=Y) if finding.check == "depth"]


@pytest.mark.parametrize("form", [lambda c: c.astype(float), logs, lambda c: sp.csr_array(logs(c).astype("float32"))])
def test_unequal_depth_is_found(form):
    found = [len(depth_of(form(cells(120, depth=0.6, seed=k)), form(cells(120, seed=99 - k)))) for k in range(10)]
    none = [len(depth_of(form(cells(120, seed=k)), form(cells(120, seed=99 - k)))) for k in range(10)]
    assert sum(found) == 10
    assert sum(none) == 0


def test_the_sentence_has_figures():
    [finding] = depth_of(logs(cells(300, depth=0.5, seed=1)), logs(cells(300, seed=2)))
    low, high = (float(np.median(cells(300, depth=d, seed=s).sum(axis=1))) for d, s in ((0.5, 1), (1, 2)))
    assert f"add up to {low / high:.2g} times as much" in finding.sentence
    assert f"(medians {low:,.0f} and {high:,.0f})" in finding.sentence
    assert 'depth="match"' in finding.hint
    assert "--depth match" in finding.command


def test_the_typical_gene():
    A, B = cells(61, 40, depth=0.6, seed=1), cells(50, 40, seed=2)
    A[:, :10] *= 9  # a quarter of the genes
    found = typical_ratio(sp.csr_array(A), sp.csr_array(B))
    assert found == pytest.approx(oracles.typical_ratio(A, B))
    assert 0.5 < found < 0.85
    assert np.isnan(typical_ratio(sp.csr_array(A * 0), sp.csr_array(B * 0)))


@pytest.mark.parametrize("form", [lambda c: c.astype(float), logs])
def test_a_few_genes_are_no_depth(form):
    """Totals differ twice, and surely, but only because of a tenth of the genes; thinning changes all."""
    A, B = cells(150, seed=1), cells(150, seed=2)
    A[:, :8] += np.random.default_rng(0).poisson(B.sum(axis=1).mean() / 8, size=(150, 8))
    ratio, p = depth_gap(A.sum(axis=1), B.sum(axis=1))
    assert ratio > 1.5
    assert p < 1e-6
    assert depth_of(form(A), form(B)) == []
    assert len(depth_of(form(cells(150, depth=1 / ratio, seed=1)), form(B))) == 1


QUIET = {
    "ratings": lambda rng, more: np.minimum(rng.integers(0, 5, (150, 30)) + more, 4),
    "ages": lambda rng, more: rng.integers(20, 60, (150, 30)) + 25 * more,
    "ranks": lambda rng, more: np.argsort(rng.random((150, 30)), axis=0) * (1 + more),
    "prices": lambda rng, more: np.rint(np.exp(5 + more + rng.standard_normal((150, 30)))),
    "scaled": lambda rng, more: scipy.stats.zscore(logs(cells(150, 30, depth=1 - more / 2, seed=more))),
    "missing": lambda rng, more: np.where(rng.random((150, 30)) < 0.1, np.nan, cells(150, 30, depth=1 - more / 2)),
    "lognormal": lambda rng, more: np.exp(more + rng.standard_normal((150, 30))),
}


@pytest.mark.parametrize("kind", QUIET)
def test_other_numbers_are_no_depth(kind):
    rng = np.random.default_rng(4)
    assert depth_of(QUIET[kind](rng, 1).astype(float), QUIET[kind](rng, 0).astype(float)) == []


def test_equal_totals_are_rarely_called_unequal():
    """At most .001 of random splits: 3 of 3,000 would be expected of the p-value alone."""
    rng = np.random.default_rng(0)
    false = sum(
        len(depth_finding(*(rng.lognormal(7, spread, size) for size in (n, m))))
        for n, m in ((30, 30), (100, 300))
        for spread in (0.3, 0.8)
        for _ in range(750)
    )
    assert false <= scipy.stats.binom.ppf(0.999, 3000, 1e-3)
    true = [len(depth_finding(0.75 * rng.lognormal(7, 0.4, 100), rng.lognormal(7, 0.4, 100))) for _ in range(300)]
    assert np.mean(true) > 0.8


def test_values_without_logarithms_are_noticed():
    A, B = (1e4 * c / c.sum(axis=1, keepdims=True) for c in (cells(80, seed=1), cells(80, seed=2)))
    [finding] = check_tables(A, background=B)
    assert finding.check == "raw values"
    assert "counts divided by the total of their row, without logarithms" in finding.sentence
    assert check_tables(np.log1p(A), background=np.log1p(B)) == []


# ---------------------------------------------------------------- the test


def test_the_test_warns_matches_or_ignores():
    X, Y = logs(cells(150, depth=0.3, seed=1)), logs(cells(150, seed=2))
    with pytest.warns(TableWarning, match="unequal depth alone can look like a contrast"):
        warned = contrast_test(X, background=Y, max_components=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ignored = contrast_test(X, background=Y, max_components=2, random_state=0, depth="ignore")
        matched = contrast_test(X, background=Y, max_components=2, random_state=0, depth="match")
    np.testing.assert_array_equal(warned.p_values, ignored.p_values)
    assert matched.units.endswith("rows of equal depth")
    assert ignored.p_values[0] < 0.01 < matched.p_values[0]
    again = contrast_test(X, background=Y, max_components=2, random_state=0, depth="match")
    np.testing.assert_array_equal(matched.p_values, again.p_values)
    with pytest.raises(ValueError, match="depth='equal' is not valid"):
        contrast_test(X, background=Y, depth="equal")


@pytest.mark.parametrize("as_list", [False, True])
def test_blocks_and_covariates_follow_the_rows(as_list):
    """A row that is dropped takes its block and covariates with it."""
    A, B = cells(160, seed=1), cells(160, depth=0.5, seed=2)
    A[5] = 0
    donors = np.repeat(np.arange(8), 20)
    age = np.random.default_rng(0).standard_normal((160, 1))
    blocks = (donors.tolist(), (donors + 8).tolist()) if as_list else (donors, donors + 8)
    study = Study(A, background=B, blocks=blocks, covariates=(age, age))
    found = contrast_test(study, depth="match", max_components=1, random_state=3)
    rng = np.random.default_rng(3)
    X, Y, rows, others = match_depth(A, background=B, random_state=rng)
    assert 5 not in rows
    left = {"blocks": (donors[rows], donors[others] + 8), "covariates": (age[rows], age[others])}
    expected = contrast_test(Study(X, background=Y, **left), depth="ignore", max_components=1, random_state=rng)
    np.testing.assert_array_equal(found.p_values, expected.p_values)


def thinly(counts, how, seed):
    """Counts with a fraction of their molecules, or of half of the rows a quarter."""
    rng = np.random.default_rng(seed)
    share = np.where(rng.random(len(counts)) < 0.5, 1.0, 0.25) if how == "unevenly" else np.full(len(counts), how)
    return rng.binomial(counts, share[:, None])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("which", "how"),
    [("cases", 0.8), ("cases", 0.25), ("cases", "unevenly"), ("controls", 0.5), ("controls", "unevenly")],
)
def test_level_at_equal_depth(which, how):
    """One population, one side thinned: at most .05 and three standard errors, in 60 splits."""
    runs, found, ignored = 60, 0, 0
    for seed in range(runs):
        groups = [cells(100, 60, seed=2 * seed), cells(100, 60, seed=2 * seed + 1)]
        side = int(which == "controls")
        groups[side] = thinly(groups[side], how, seed)
        X, Y = map(logs, groups)
        settings = {"max_components": 1, "random_state": seed}
        found += contrast_test(X, background=Y, depth="match", **settings).n_components
        ignored += contrast_test(X, background=Y, depth="ignore", **settings).n_components
    assert found <= runs * 0.05 + 3 * np.sqrt(runs * 0.05 * 0.95)
    if which == "cases" and how != 0.8:  # the control: so much for tables as they are
        assert ignored > runs / 2


@pytest.mark.slow
def test_power_at_equal_depth():
    """A program that only the cases have is found in almost all tables, though they are half as deep."""
    found = 0
    for seed in range(20):
        X, Y = logs(cells(150, depth=0.5, seed=seed, extra=0.8)), logs(cells(150, seed=100 + seed))
        found += contrast_test(X, background=Y, depth="match", max_components=1, random_state=seed).n_components
    assert found >= 17


def test_the_report_judges_at_equal_depth(tmp_path, need):
    from contrapca import ContraPCA

    need("jinja2")
    X, Y = logs(cells(150, depth=0.3, seed=1)), logs(cells(150, seed=2))
    given = {"background": Y, "output": tmp_path / "a.html", "gammas": 3}
    plain = report(X, ContraPCA(2), **given)
    assert any("unequal depth alone can look like a contrast" in caution for caution in plain["cautions"])
    matched = report(X, ContraPCA(2), **given, depth="match")
    assert not any("unequal depth" in caution for caution in matched["cautions"])
    assert matched["test"]["units"].endswith("rows of equal depth")
    assert plain["test"]["p_values"][0] < 0.01 < matched["test"]["p_values"][0]
    assert "depth='match'" in matched["code"]["python"]
