"""Sums of moments are those of the rows together, however these are split."""

from functools import reduce
from operator import add

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from contrapca import Moments


@st.composite
def splits(draw):
    """A table, weights of its rows, and its parts of two rows or more, in any order."""
    D, sizes = draw(st.integers(1, 6)), draw(st.lists(st.integers(2, 9), min_size=2, max_size=6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = sum(sizes)
    table = rng.standard_normal((n, D)) * np.logspace(0, draw(st.sampled_from([0, 2])), D)
    table += draw(st.sampled_from([0.0, 5.0, 100.0])) * rng.standard_normal(D)
    if draw(st.booleans()):  # parts that are far apart
        table += np.repeat(10 * rng.standard_normal((len(sizes), D)), sizes, axis=0)
    weights = draw(st.sampled_from([np.ones(n), rng.integers(1, 5, n) * 1.0, rng.random(n) + 1e-3]))
    parts = np.split(np.arange(n), np.cumsum(sizes)[:-1])
    return table, weights, [parts[k] for k in draw(st.permutations(range(len(parts))))]


def close(found, weight, mean, scatter, table):
    assert abs(found.weight - weight) <= 1e-12 * weight
    np.testing.assert_allclose(found.mean, mean, rtol=0, atol=1e-12 * np.abs(table).max())
    np.testing.assert_allclose(found.scatter.dense(), scatter, rtol=0, atol=1e-12 * max(np.trace(scatter), 1e-300))


@given(splits())
@settings(max_examples=200)
def test_a_sum_is_exact(case):
    table, weights, parts = case
    moments = [Moments.from_rows(table[part], weights[part]) for part in parts]
    expected = weights.sum(), *oracles.weighted_moments(table, weights)
    for found in (
        reduce(add, moments),
        reduce(lambda right, left: left + right, moments),  # from the other side
        reduce(add, [moments[0] + moments[1], *moments[2:]]),
        Moments.from_rows(table, weights),
    ):
        close(found, *expected, table)


@given(splits())
@settings(max_examples=100)
def test_a_mean_of_the_parts_means_is_told_apart(case):
    """The control: without the term between the parts' means the scatter is too small by just that."""
    table, weights, parts = case
    moments = [Moments.from_rows(table[part], weights[part]) for part in parts]
    total = reduce(add, moments)
    lacking = np.trace(total.scatter.dense()) - sum(np.trace(part.scatter.dense()) for part in moments)
    between = sum(part.weight * np.sum((part.mean - total.mean) ** 2) for part in moments)
    assert lacking > 0
    np.testing.assert_allclose(lacking, between, rtol=0, atol=1e-10 * np.trace(total.scatter.dense()))
