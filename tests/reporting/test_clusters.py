"""Clusters of cases without labels: found where they are, and rarely where there are none."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import binom
from sklearn.metrics import adjusted_rand_score

from contrapca import ContraPCA, Study
from contrapca.datasets import make_hidden_clusters
from contrapca.reporting._clusters import cluster_names, find_clusters
from contrapca.reporting._report import summarize
from contrapca.reporting._subject import examine


def bent(along, *axes):
    """A curve through the values of functions."""
    return np.column_stack([axis(along) for axis in axes])


# Shapes of one piece: (n, 2) points each. Some are far from Gaussian.
ONE_PIECE = {
    "gaussian": lambda rng, n: rng.standard_normal((n, 2)),
    "t2": lambda rng, n: rng.standard_t(2, (n, 2)),
    "laplace": lambda rng, n: rng.laplace(size=(n, 2)),
    "lognormal": lambda rng, n: rng.lognormal(size=(n, 2)),
    "exponential": lambda rng, n: rng.exponential(size=(n, 2)),
    "one skewed axis": lambda rng, n: np.column_stack([rng.lognormal(sigma=1.5, size=n), rng.standard_normal(n)]),
    "square": lambda rng, n: rng.random((n, 2)),
    "gradient": lambda rng, n: np.column_stack([np.linspace(0, 1, n), 0.05 * rng.standard_normal(n)]),
    "ring": lambda rng, n: bent(2 * np.pi * rng.random(n), np.cos, np.sin) + 0.2 * rng.standard_normal((n, 2)),
    "banana": lambda rng, n: bent(rng.standard_normal(n), np.positive, np.square) + 0.3 * rng.standard_normal((n, 2)),
    "small core": lambda rng, n: rng.standard_normal((n, 2)) * np.where(np.arange(n) % 5, 1.0, 0.1)[:, None],
}


def apart(rng, n, distance, share=0.5):
    """Two Gaussians, so many standard deviations apart."""
    return rng.standard_normal((n, 2)) + distance * np.eye(2)[0] * (np.arange(n) < share * n)[:, None]


def times_found(draw, count):
    return sum(find_clusters(draw(np.random.default_rng(seed))) is not None for seed in range(count))


# ---------------------------------------------------------------------- finding


@pytest.mark.parametrize(
    "kind",
    [
        "gaussian",
        "lognormal",
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in ONE_PIECE if kind not in ("gaussian", "lognormal")),
    ],
)
def test_clusters_are_rarely_found_where_there_are_none(kind):
    """In at most 3 %, or 10 % of the most skewed shape; if so, the test fails once in 1,000 times."""
    bound = int(binom.ppf(0.999, 60, 0.1 if kind == "one skewed axis" else 0.03))
    assert times_found(lambda rng: ONE_PIECE[kind](rng, 200), 60) <= bound
    halves = 30.0 * (np.arange(200) % 2)[:, None]
    assert times_found(lambda rng: ONE_PIECE[kind](rng, 200) + halves, 12) == 12  # the control


@pytest.mark.slow
@pytest.mark.parametrize(("n", "dimensions"), [(60, 2), (1000, 2), (3000, 2), (200, 1), (200, 4), (600, 8)])
def test_clusters_are_rarely_found_at_other_sizes(n, dimensions):
    for kind in ("standard_normal", "exponential", "random"):
        found = times_found(lambda rng, kind=kind: getattr(rng, kind)(size=(n, dimensions)), 30)
        assert found <= int(binom.ppf(0.9999, 30, 0.03)), kind


@pytest.mark.slow
@pytest.mark.parametrize(("n", "share", "distance"), [(200, 0.5, 6), (600, 0.5, 5), (2000, 0.5, 5), (1000, 0.1, 8)])
def test_groups_that_stand_apart_are_found(n, share, distance):
    assert times_found(lambda rng: apart(rng, n, distance, share), 20) >= 19
    found = find_clusters(apart(np.random.default_rng(0), n, distance, share))
    assert adjusted_rand_score(found, np.arange(n) < share * n) > 0.9


def test_few_or_equal_rows_have_no_clusters():
    assert find_clusters(np.ones((50, 2))) is None
    assert find_clusters(np.random.default_rng(0).standard_normal((8, 1))) is None
    assert find_clusters(np.repeat([[0.0, 1.0], [5.0, 5.0]], 40, axis=0)) is not None  # the control: two places


def test_large_tables_are_clustered_like_small_ones():
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=5000)
    found = find_clusters(rng.standard_normal((5000, 2)) + 8 * np.eye(3, 2)[truth])
    assert adjusted_rand_score(found, truth) > 0.98
    sizes = np.bincount(found)
    assert np.all(np.diff(sizes) <= 0)


# ---------------------------------------------------------------------- in a report


def test_clusters_are_found_without_labels():
    data = make_hidden_clusters(120, 100, 12, random_state=0)
    model = ContraPCA(2).fit(data.foreground, background=data.background)
    subject = examine(Study(data.foreground, background=data.background), model, progress=False)
    assert subject.clustered
    assert adjusted_rand_score(subject.classes, data.labels) > 0.9
    names = list(dict.fromkeys(subject.classes))
    assert len(names) == 4
    assert all(re.fullmatch(r"cluster \d: (high|low) x\d+, (high|low) x\d+", name) for name in names)
    labelled = Study(data.foreground, background=data.background, labels=data.labels)
    given = examine(labelled, model, progress=False)
    assert not given.clustered
    assert (
        "labels="
        not in summarize(Study(data.foreground, background=data.background), model, gammas=2)["code"]["python"]
    )


def test_a_cluster_is_named_by_what_differs():
    rng = np.random.default_rng(0)
    rows, clusters = rng.standard_normal((300, 6)), np.arange(300) % 3
    rows[clusters == 1, 4] += 5
    rows[clusters == 2, 2] -= 5
    rows[5, 0] = np.nan
    for table in (rows, sp.csr_array(np.nan_to_num(rows))):
        names = cluster_names(table, clusters, list("abcdef"))
        assert names == ["cluster 1: low e, high c", "cluster 2: high e, high c", "cluster 3: low c, low e"]


def test_a_cluster_is_not_named_by_noise():
    rng = np.random.default_rng(0)
    features = [f"x{j}" for j in range(300)]
    for n, clusters in ((60, 2), (600, 3)):
        of_row = np.arange(n) % clusters
        rows = rng.standard_normal((n, 300)) * 10.0 ** rng.integers(-3, 3, 300)
        assert cluster_names(rows, of_row, features) == [f"cluster {k + 1}" for k in range(clusters)]
        rows[:, 7] = of_row == 1  # without any spread within clusters
        found = cluster_names(rows, of_row, features)
        assert found == [f"cluster {k + 1}: {'high' if k == 1 else 'low'} x7" for k in range(clusters)]
