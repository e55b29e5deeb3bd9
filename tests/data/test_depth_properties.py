"""Unequal depth of counts (F46): counts are recovered and totals matched, whatever the table."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from contrapca.data._depth import counts_in, kind_of, matched_totals, totals_in
from data.test_depth import cells, logs


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    base=st.sampled_from([None, 2, 10]),
    dtype=st.sampled_from(["float32", "float64"]),
    sparse=st.booleans(),
    deep=st.sampled_from([0.5, 1.0, 20.0]),
)
def test_counts_are_recovered_exactly(seed, base, dtype, sparse, deep):
    """From logarithms of counts per 10,000, in single precision as well."""
    counts = (cells(40, 60, seed=seed) * deep).astype(int)
    counts[:, 0] = 1  # as among many genes
    given = logs(counts.astype(dtype), base=base).astype(dtype)
    kind = {None: "log", 2: "log2", 10: "log10"}[base]
    assert kind_of(given) == kind
    found = counts_in(sp.csr_array(given) if sparse else given, kind)
    np.testing.assert_array_equal(found.toarray(), counts)
    np.testing.assert_array_equal(totals_in(given), counts.sum(axis=1))


@settings(max_examples=60, deadline=None)
@given(n=st.integers(2, 40), m=st.integers(2, 40), seed=st.integers(0, 10**6))
def test_targets(n, m, seed):
    rng = np.random.default_rng(seed)
    own, other = (rng.permutation(5000)[:k] + 1.0 for k in (n, m))
    found = matched_totals(own, other, rng)
    np.testing.assert_array_equal(found, oracles.depth_targets(own.tolist(), other.tolist()))
    assert np.all((found <= own) & (found >= 1))
