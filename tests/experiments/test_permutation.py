"""The permutation test of version 0.1, which ours is compared with: its level, its power, what it reports."""

import numpy as np
import pytest

from conftest import make_groups
from experiments import _other_tests


def by_permutation(left, *, background, **options):
    return _other_tests.permutation_test(left, background, **options)


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
    monkeypatch.setattr(_other_tests, "helmert_contrasts", lambda table: table - table.mean(axis=0))
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


def test_groups_of_the_fixture_have_two_dimensions():
    """Of their three planted directions one is a nuisance that both groups share."""
    left, right = make_groups(300, 250, 10, signal=4.0)
    assert by_permutation(left, background=right, random_state=0).n_components == 2
