"""All methods on the same tables: what is found, what is said about it, and where nothing is."""

import numpy as np
import pytest
import scipy.sparse as sp

from contrapca import compare, held_out_contrast, plots
from contrapca.datasets import make_hidden_clusters
from contrapca.exceptions import GroupError
from contrapca.selection import looks_like_counts

DATA = make_hidden_clusters(150, 150, 15, nuisance=8.0, random_state=0)
X, Y, LABELS = DATA.foreground, DATA.background, DATA.labels
METHODS = {"PCA", "PCPCA", "ContraPCA", "CPCA", "RatioPCA", "CLVM"}


@pytest.fixture(scope="module")
def found():
    return compare(X, background=Y, labels=LABELS)


def test_every_method_with_both_scalings(found, need):
    table = found.table()
    assert set(zip(table["method"], table["scale"], strict=True)) == {
        (method, scale) for method in METHODS for scale in ("none", "pooled")
    }
    assert np.all(np.diff(table["held_out_ratio"]) <= 0)
    for name in ("cases_share", "controls_share", "stability"):
        assert np.all((table[name] >= 0) & (table[name] <= 1 + 1e-12)), name
    assert np.all(table["seconds"] > 0)
    assert np.all(np.abs(table["silhouette"]) <= 1)
    assert list(need("pandas").DataFrame(table).columns) == list(table)


def test_figures_are_those_of_held_out_contrast(found):
    for entry in found.entries:
        if entry.method != "CLVM":  # which is only roughly fitted here
            alone = held_out_contrast(entry.estimator, X, background=Y)
            assert entry.mean == pytest.approx(alone.mean, abs=1e-6), entry.name
            assert entry.error == pytest.approx(alone.mean_error, abs=1e-6), entry.name


def test_recommendation(found):
    assert found.recommended.method == "ContraPCA"
    assert not found.recommended.estimator.scale
    assert found.recommendation.startswith("Use ContraPCA: unseen cases vary")
    assert "Clearly behind: " in found.recommendation
    assert "PCA" in found.recommendation.split("Clearly behind: ")[1]
    assert found.recommendation in str(found)
    # What is recommended has the largest ratio, or is within error of it.
    assert found.difference(found.recommended) is None
    worst = found.entries[-1]
    ahead, error = found.difference(worst)
    assert ahead == pytest.approx(found.entries[0].mean - worst.mean)
    assert ahead > 2 * error


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
    assert "Within error as good: " in found.recommendation


def test_blocks():
    rng = np.random.default_rng(1)
    animals = np.arange(200) // 10
    left, right = (2 * rng.standard_normal((20, 8))[animals] + rng.standard_normal((200, 8)) for _ in range(2))
    assert compare(left, background=right, n_components=1).recommended is not None  # the control
    blocks = compare(left, background=right, n_components=1, blocks=animals, background_blocks=animals + 20)
    assert blocks.recommended is None
    assert blocks.recommendation.startswith("Nothing found")


def test_failures_are_kept_and_said():
    """A foreground of rank 1 has no two components."""
    rng = np.random.default_rng(2)
    left, right = np.outer(rng.standard_normal(30), rng.standard_normal(5)), rng.standard_normal((30, 5))
    found = compare(left, background=right)
    failed = [entry for entry in found.entries if entry.failure]
    assert failed
    assert "could not be fitted" in str(found)


@pytest.mark.slow
def test_sparse_tables_give_the_same():
    left, right = (np.where(np.abs(rows) > 1, rows, 0.0) for rows in (X, Y))
    dense = compare(left, background=right, n_components=1)
    sparse = compare(sp.csr_array(left), background=sp.csr_array(right), n_components=1)
    for one, other in zip(dense.entries, sparse.entries, strict=True):
        assert one.name == other.name
        assert one.mean == pytest.approx(other.mean, abs=1e-3)


def test_plot(found, need):
    plt = need("matplotlib.pyplot")
    figure, ax = plt.subplots()
    assert plots.comparison(found, ax=ax) is ax
    data = plots.comparison_data(found)
    assert len(ax.get_yticklabels()) == len(data["names"]) == len(found.entries)
    assert sum(data["recommended"]) == 1
    assert np.all((data["ranges"][:, 0] < data["ratios"]) & (data["ratios"] < data["ranges"][:, 1]))
    plt.close(figure)


def test_progress(capsys, watched):
    compare(X[:40], background=Y[:40], n_components=1)
    assert "compare:" in capsys.readouterr().err


def test_refuses():
    with pytest.raises(GroupError, match="5 entries for 150"):
        compare(X, background=Y, labels=LABELS[:5])
    with pytest.raises(GroupError, match="two classes"):
        compare(X, background=Y, labels=np.zeros(150))


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
    assert "np.log1p" in str(compare(left, background=right, n_components=1))
    assert not compare(np.log1p(left), background=np.log1p(right), n_components=1).cautions
