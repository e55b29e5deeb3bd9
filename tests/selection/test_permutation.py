"""How many components, by the permutation test of 0.1, and a foreground without the background's directions."""

import numpy as np
import pytest

from conftest import make_groups
from contrapca import contrast_test
from contrapca.datasets import make_hidden_clusters
from contrapca.selection import _permutation

DATA = make_hidden_clusters(200, 200, 15, random_state=0)
X, Y = DATA.foreground, DATA.background


def permuted(foreground, background, **options):
    return contrast_test(foreground, background=background, method="permutation", **options)


def by_permutation(left, *, background, **options):
    return contrast_test(left, background=background, method="permutation", **options)


def planted(k, seed, n=120, m=100, D=10, signal=2.0):
    """k foreground-only directions of variance 4, and a shared one of variance 9."""
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(rng.standard_normal((D, 4)))[0]
    left, right = rng.standard_normal((n, D)), rng.standard_normal((m, D))
    left += 3 * np.outer(rng.standard_normal(n), U[:, 3])
    right += 3 * np.outer(rng.standard_normal(m), U[:, 3])
    return left + signal * rng.standard_normal((n, k)) @ U[:, :k].T, right, U[:, :k]


def count(k, seed, **options):
    left, right, _ = planted(k, seed)
    return by_permutation(left, background=right, n_permutations=59, random_state=seed, **options)


def test_no_dimension_where_there_is_none():
    """At most 21 false positives in 200: the 99.9 % quantile of a binomial with 5 %."""
    assert sum(count(0, seed).n_components > 0 for seed in range(200)) <= 21


def test_nothing_left_is_no_finding_whatever_rounding_says():
    """The foreground varies more along one direction and less along all others: then no labelling has less excess."""
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((80, 3)) * [9, 1, 1], rng.standard_normal((60, 3)) * [1, 3, 3]
    found = by_permutation(left, background=right, n_permutations=49, random_state=0)
    assert found.p_values.tolist() == [0.02, 1.0]


def false_positives(n, m, D, repeats=400):
    """In how many of the repeats a dimension is found where there is none, at level 5 %."""
    found = 0
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        left, right = rng.standard_normal((n, D)), rng.standard_normal((m, D))
        options = {"n_permutations": 39, "max_components": 1, "random_state": seed}
        found += by_permutation(left, background=right, **options).n_components
    return found


AT_MOST = 35  # of 400: the 99.9 % quantile of a binomial with 5 %


@pytest.mark.parametrize(("n", "m", "D"), [(100, 6, 8), pytest.param(20, 12, 50, marks=pytest.mark.slow)])
def test_few_rows_and_wide_tables_keep_the_level(n, m, D):
    assert false_positives(n, m, D) <= AT_MOST


def test_rows_about_their_means_do_not_keep_the_level(monkeypatch):
    """The control: without contrasts of the rows the test finds a dimension in more than 10 % of the repeats."""
    monkeypatch.setattr(_permutation, "helmert_contrasts", lambda table: table - table.mean(axis=0))
    assert false_positives(100, 6, 8) > AT_MOST + 5


@pytest.mark.parametrize("k", [1, 2, 3])
def test_planted_dimensions_are_counted(k):
    found = [count(k, seed).n_components for seed in range(30)]
    assert np.mean(np.array(found) >= k) > 0.9
    assert np.median(found) == k


def test_what_the_test_reports():
    left, right, U = planted(2, 0)
    found = by_permutation(left, background=right, random_state=0)
    assert found.n_components == 2
    assert found.p_values.shape == (3,)
    assert np.all(found.p_values[:2] <= 0.05)
    assert found.p_values[2] > 0.05
    cosines = np.linalg.svd(U.T @ np.linalg.qr(found.directions.T)[0], compute_uv=False)
    assert cosines.min() > 0.85
    assert str(found).startswith("The cases vary more than chance allows in 2 directions (p = 0.005).")
    assert found.table()["found"].tolist() == [True, True, False]
    assert str(count(0, 1)).startswith("Nothing found: the cases do not vary")
    same = by_permutation(left, background=right, random_state=0)
    np.testing.assert_array_equal(same.p_values, found.p_values)
    assert by_permutation(left, background=right, max_components=1, random_state=0).n_components == 1
    assert by_permutation(right, background=left, random_state=0).n_components == 0


def test_wide_and_scaled_tables():
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((40, 100)), rng.standard_normal((35, 100))
    left[:, :5] += 4 * rng.standard_normal((40, 1))
    found = by_permutation(left, background=right, n_permutations=59, random_state=0)
    assert found.n_components == 1
    assert np.argsort(-np.abs(found.directions[0]))[:5].max() < 5
    units = np.linspace(1, 100, 100)
    for scale in ("group", "pooled"):
        options = {"scale": scale, "n_permutations": 59, "random_state": 0}
        assert by_permutation(left * units, background=right * units, **options).directions.shape[1] == 100


def test_components_refused(capsys, watched):
    with pytest.raises(ValueError, match=r"level=0\.001"):
        by_permutation(X, background=Y, level=0.001)
    with pytest.raises(ValueError, match="n_permutations=0"):
        by_permutation(X, background=Y, n_permutations=0)
    with pytest.raises(ValueError, match='values are missing: use method="split"'):
        by_permutation(np.where(X > 2, np.nan, X), background=Y)
    by_permutation(X, background=Y, n_permutations=19, max_components=1, random_state=0)
    assert "permutations" in capsys.readouterr().err


def test_groups_of_the_fixture_have_two_dimensions():
    """Of their three planted directions one is a nuisance that both groups share."""
    left, right = make_groups(300, 250, 10, signal=4.0)
    assert by_permutation(left, background=right, random_state=0).n_components == 2


def test_whole_blocks_move():
    """Donors without contrast: by rows a dimension is found, by blocks not."""
    rng = np.random.default_rng(1)
    left, right = (
        np.repeat(rng.standard_normal((10, 10)), 20, axis=0) + rng.standard_normal((200, 10)) for _ in range(2)
    )
    options = {"max_components": 1, "n_permutations": 39, "random_state": 0}
    blocks = np.repeat(np.arange(10), 20)
    assert permuted(left, right, **options).n_components == 1
    assert permuted(left, right, blocks=blocks, background_blocks=blocks + 10, **options).n_components == 0
