"""All methods on the same tables: what is found, what is said about it, and where nothing is."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from contrapca import CPCA, RatioPCA, Study, compare, held_out_contrast, plots
from contrapca.data._groups import Groups
from contrapca.data.checks._values import looks_like_counts
from contrapca.datasets import make_hidden_clusters
from contrapca.exceptions import GroupError, SolverError
from contrapca.moments._subsets import assign_folds
from oracle_split import reproducible

DATA = make_hidden_clusters(150, 150, 15, nuisance=8.0, random_state=0)
X, Y, LABELS = DATA.foreground, DATA.background, DATA.labels


@pytest.fixture(scope="module")
def found():
    return compare(Study(X, background=Y, labels=LABELS))


def test_every_method_with_both_scalings(found, need):
    table = found.table()
    methods = {"PCA", "PCPCA", "CPCA", "CPCA at gamma 2", "CPCA at gamma 4", "RatioPCA", "RatioPCA at ridge 1", "CLVM"}
    both = set(zip(table["method"], table["scale"], strict=True))
    assert {(method, scale) for method in methods for scale in ("none", "pooled")} < both
    assert sum(method == "ContraPCA" for method, _ in both) == 1
    assert np.all(np.diff(table["score"]) <= 0)
    for name in ("cases_share", "controls_share", "agreement"):
        assert np.all((table[name] >= 0) & (table[name] <= 1 + 1e-12)), name
    assert np.all(np.abs(table["contrast"]) <= 1)
    assert np.all(table["seconds"] > 0)
    assert np.all(np.abs(table["silhouette"]) <= 1)
    assert list(need("pandas").DataFrame(table).columns) == list(table)


def test_scores_are_agreement_times_contrast(found):
    """F43 word by word, from refits to explicit halves."""
    rng = np.random.default_rng(0)
    parts = assign_folds(Groups.of(np.arange(150), 150 + np.arange(150)), 10, rng)
    splits = np.argsort(rng.random((5, 10)), axis=1) < 5
    [entry] = [one for one in found.entries if one.name == "CPCA at gamma 2"]
    for first, score in zip(splits, entry.scores, strict=True):
        cases, controls, floors, unseen = [], [], [], []
        for half in (first, ~first):
            left, right = X[half[parts.foreground]], Y[half[parts.background]]
            V = CPCA(2, gamma=2.0).fit(left, background=right).components_.T
            V /= np.sqrt((left @ V).var(axis=0) + (right @ V).var(axis=0))
            within = (len(left) * left.var(axis=0) + len(right) * right.var(axis=0)) / (len(left) + len(right))
            cases.append(X @ V)
            controls.append(Y @ V)
            floors.append(np.mean(right.var(axis=0) / within) * np.sum(V**2 * within[:, None], axis=0))
            unseen.append([~half[own] for own in parts])
        expected = reproducible(cases, controls, *zip(*unseen, strict=True), floors)
        assert score == pytest.approx(expected, abs=1e-6)


def test_recommendation(found):
    assert found.recommended.method == "ContraPCA"
    assert found.recommendation.startswith("Use ContraPCA")
    assert "Clearly behind: " in found.recommendation
    behind = found.recommendation.split("Clearly behind: ")[1].rstrip(".").split("; ")
    assert "PCA" in behind
    assert found.recommendation in str(found)
    # What is recommended has the largest score, or is within error of it; what is behind has a smaller one.
    assert not found.is_behind(found.recommended)
    assert all(entry.score < found.recommended.score for entry in found.entries if entry.name in behind)


def test_nothing_is_recommended_where_the_test_finds_nothing(found):
    weak = replace(found, test=replace(found.test, n_components=0, p_values=np.array([0.3])))
    assert weak.recommended is None
    assert weak.recommendation.startswith("Nothing is recommended. Nothing found")
    few = compare(X[:3], background=Y[:3], n_components=1)
    assert few.test is None
    assert "not tested: one group has 3 rows" in few.recommendation


class Mine(CPCA):
    """A user's own."""


def test_directions_of_little_variance_do_not_win():
    """A ratio of a million in a direction that hardly varies, and a ratio of 4 in one that does."""
    rng = np.random.default_rng(0)
    cases, controls = rng.standard_normal((2, 200, 8))
    cases[:, 0] *= 2
    for rows, spread in ((cases, 1e-2), (controls, 1e-5)):  # two features that are nearly the same
        rows[:, 2] = rows[:, 1] + spread * rows[:, 2]
    left = CPCA(1).fit(cases, background=controls)
    assert left.gamma_ < 100
    assert abs(left.components_[0]).argmax() == 0
    assert abs(CPCA(1, gamma=1e5).fit(cases, background=controls).components_[0, 1:3]).min() > 0.5  # the control
    assert Mine(1).fit(cases, background=controls).gamma_ == left.gamma_
    assert held_out_contrast(Mine(1), cases, background=controls).log_ratios[0] > 0.5


@pytest.mark.slow
def test_noise_is_called_noise():
    said = [
        compare(*(noise[0],), background=noise[1], n_components=1).recommended
        for noise in (np.random.default_rng(seed).standard_normal((2, 60, 10)) for seed in range(5))
    ]
    assert sum(entry is None for entry in said) >= 4


def test_within_error_is_said():
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((2, 60, 8))
    left[:, 0] *= 4
    found = compare(left, background=right, n_components=1)
    assert found.recommended is not None
    assert "Not significantly different: " in found.recommendation


def test_blocks():
    rng = np.random.default_rng(1)
    animals = np.arange(200) // 10
    left, right = (2 * rng.standard_normal((20, 8))[animals] + rng.standard_normal((200, 8)) for _ in range(2))
    assert compare(left, background=right, n_components=1).recommended is not None  # the control
    blocks = compare(Study(left, background=right, blocks=(animals, animals + 20)), n_components=1)
    assert blocks.recommended is None
    assert "Nothing found" in blocks.recommendation


def test_failures_are_kept_and_said():
    """A foreground of rank 1 has no two components."""
    rng = np.random.default_rng(2)
    left, right = np.outer(rng.standard_normal(30), rng.standard_normal(5)), rng.standard_normal((30, 5))
    found = compare(left, background=right)
    failed = [entry for entry in found.entries if entry.failure]
    assert failed
    assert "could not be fitted" in str(found)


def test_a_solver_that_fails_is_a_failure_of_its_method(monkeypatch):
    def fails(*given, **options):
        raise SolverError("Lanczos did not converge.")

    monkeypatch.setattr(RatioPCA, "_solve", fails)
    found = compare(X, background=Y, n_components=1)
    failures = {entry.method: entry.failure for entry in found.entries if entry.failure}
    assert failures == {"RatioPCA": "Lanczos did not converge."}
    assert found.recommended is not None


@pytest.mark.slow
def test_sparse_tables_give_the_same():
    left, right = (np.where(np.abs(rows) > 1, rows, 0.0) for rows in (X, Y))
    dense = compare(left, background=right, n_components=1)
    sparse = compare(sp.csr_array(left), background=sp.csr_array(right), n_components=1)
    for one, other in zip(dense.entries, sparse.entries, strict=True):
        assert one.name == other.name
        assert one.score == pytest.approx(other.score, abs=1e-3)


def test_plot(found, need):
    plt = need("matplotlib.pyplot")
    figure, ax = plt.subplots()
    assert plots.comparison(found, ax=ax) is ax
    assert [label.get_text() for label in ax.get_yticklabels()] == [entry.name for entry in found.entries]
    ranges, scores = ([line.get_xdata() for line in ax.lines[k:-1:2]] for k in (0, 1))
    assert all(low < score < high for (low, high), [score] in zip(ranges, scores, strict=True))
    assert [score for [score] in scores] == [entry.score for entry in found.entries]
    colours = [line.get_color() for line in ax.lines[1:-1:2]]
    assert [colours.count(colour) == 1 for colour in colours].index(True) == found.entries.index(found.recommended)
    plt.close(figure)


def test_progress(capsys, watched):
    compare(X[:40], background=Y[:40], n_components=1)
    assert "compare:" in capsys.readouterr().err


def test_refuses():
    with pytest.raises(GroupError, match=r"shape \(5,\) for 150 rows"):
        compare(Study(X, background=Y, labels=LABELS[:5]))
    with pytest.raises(GroupError, match="two classes"):
        compare(Study(X, background=Y, labels=np.zeros(150)))


# ---------------------------------------------------------------------- raw values


RNG = np.random.default_rng(0)
DEPTH = RNG.lognormal(size=(300, 1)) * RNG.lognormal(1.0, 1.5, size=(1, 40))


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("cells", RNG.poisson(DEPTH), "counts"),
        ("log cells", np.log1p(RNG.poisson(DEPTH)), None),
        ("rare counts", RNG.poisson(0.1, size=(300, 40)), None),
        ("large counts", RNG.poisson(50.0, size=(300, 40)), None),
        ("binary", RNG.integers(0, 2, size=(300, 40)), None),
        ("answers", RNG.integers(1, 6, size=(300, 40)), None),
        ("pixels", RNG.integers(0, 256, size=(300, 40)), None),
        ("intensities", RNG.lognormal(5.0, 1.2, size=(300, 40)), "intensities"),
        ("log intensities", np.log(RNG.lognormal(5.0, 1.2, size=(300, 40))), None),
        ("normal", RNG.standard_normal((300, 40)), None),
        ("lengths", np.abs(RNG.standard_normal((300, 40))), None),
        ("nothing", np.zeros((300, 40)), None),
    ],
)
def test_raw_values_are_recognised(name, values, kind):
    assert looks_like_counts(values.astype(float)) == kind
    assert looks_like_counts(sp.csr_array(values.astype(float))) == kind


@pytest.mark.slow
def test_raw_values_are_mentioned():
    left, right = (RNG.poisson(DEPTH[:60, :8]).astype(float) for _ in range(2))
    assert "Take logarithms first" in str(compare(left, background=right, n_components=1))
    assert not compare(np.log1p(left), background=np.log1p(right), n_components=1).cautions
