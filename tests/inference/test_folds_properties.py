"""Moments by subtraction, what a fold adds, and folds that keep blocks together: for tables of awkward shapes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from contrapca import Moments
from contrapca.data import (
    study_of,
)
from contrapca.data._groups import Groups
from contrapca.moments._subsets import assign_folds, make_folds

seeds = st.integers(0, 2**32 - 1)


def table(rng, rows, D):
    return rng.standard_normal((rows, D)) * np.exp(rng.standard_normal(D)) + 5 * rng.standard_normal(D)


@given(seed=seeds, n=st.integers(2, 30), part=st.integers(1, 29), D=st.integers(1, 8))
def test_the_difference_is_the_rest(seed, n, part, D):
    rows = table(np.random.default_rng(seed), n + part, D)
    rest = Moments.from_rows(rows) - Moments.from_rows(np.vstack([rows[n:], rows[n:]]), np.repeat([1, 0], part))
    expected = Moments.from_rows(rows[:n])
    assert rest.weight == n
    size = np.abs(rows).max()
    np.testing.assert_allclose(rest.mean, expected.mean, atol=1e-11 * size * (n + part))
    np.testing.assert_allclose(rest.scatter.dense(), expected.scatter.dense(), atol=1e-10 * size**2 * (n + part))


@given(seed=seeds, n=st.integers(4, 25), m=st.integers(4, 25), D=st.integers(1, 30), K=st.integers(2, 6))
def test_folds_have_the_moments_of_their_rows(seed, n, m, D, K):
    rng = np.random.default_rng(seed)
    X, Y = table(rng, n, D), table(rng, m, D)
    tables = study_of(X, Y, "test").tables
    fold_of = assign_folds(Groups.of(np.arange(n), n + np.arange(m)), K, rng)
    folds = make_folds(tables, fold_of)
    assert len(folds) == min(K, n, m)
    V = rng.standard_normal((D, 2))
    for k, fold in enumerate(folds):
        unit = 0.0
        added = []
        for rows, own, left, held in zip((X, Y), fold_of, fold.left, fold.held, strict=True):
            train = rows[own != k]
            assert (left.weight, held.weight) == (len(train), np.sum(own == k))
            np.testing.assert_allclose(left.mean, train.mean(axis=0), atol=1e-10)
            expected = len(train) * np.cov(train.T, ddof=0).reshape(D, D)
            np.testing.assert_allclose(left.scatter.dense(), expected, atol=1e-9 * max(1, np.abs(expected).max()))
            unit = unit + np.var(train @ V, axis=0)
            added.append(len(rows) * np.var(rows @ V, axis=0) - len(train) * np.var(train @ V, axis=0))
        np.testing.assert_allclose(fold.squares(Groups.of(V, V)), np.array(added) / unit, rtol=1e-6, atol=1e-8)


@given(
    seed=seeds,
    left=st.lists(st.integers(0, 12), min_size=2, max_size=60),
    right=st.lists(st.integers(0, 12), min_size=2, max_size=60),
    apart=st.booleans(),
    K=st.integers(2, 6),
)
def test_blocks_stay_together_and_folds_have_rows_of_both_groups(seed, left, right, apart, K):
    units = Groups.of(np.array(left), np.array(right) + 13 * apart)
    try:
        folds = assign_folds(units, K, np.random.default_rng(seed))
    except ValueError:
        # Only where a group is one block, or where blocks of both groups leave no choice.
        assert min(len(set(left)), len(set(right))) < 2 or not apart
        return
    every = {}
    for own, of_row in zip(units, folds, strict=True):
        assert set(of_row.tolist()) == set(range(of_row.max() + 1))
        for unit, fold in zip(own.tolist(), of_row.tolist(), strict=True):
            assert every.setdefault(unit, fold) == fold
    assert folds.foreground.max() == folds.background.max()
    if apart:
        assert folds.foreground.max() + 1 == min(K, len(set(left)), len(set(right)))


def test_a_feature_that_almost_all_varies_in_one_fold():
    """Subtraction would leave rounding errors alone: the other folds are merged instead."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((2, 40, 3))
    X[0, 0] = 1e9
    tables = study_of(X, Y, "test").tables
    fold_of = Groups.of(np.arange(40) % 5, np.arange(40) % 5)
    left = make_folds(tables, fold_of)[0].left.foreground
    expected = Moments.from_rows(X[np.arange(40) % 5 != 0])
    np.testing.assert_allclose(left.scatter.dense(), expected.scatter.dense(), rtol=1e-9)
    total, part = Moments.from_rows(X), Moments.from_rows(X[::5])
    assert not np.allclose((total - part).scatter.dense(), expected.scatter.dense(), rtol=1e-3)  # the control
