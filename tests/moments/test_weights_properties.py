"""Weights equal repeated rows, in every storage of the scatter matrices and in the likelihood of observed values."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import oracles
from contrapca import Study
from contrapca.data._groups import Groups
from contrapca.missing._collect import collect
from contrapca.missing._estimates import expected_covariance, expected_total_variance, gls_mean
from contrapca.missing._likelihood import masked_log_likelihood
from contrapca.missing._rows import counted_terms, observe
from contrapca.moments._contrast import contrast, factors
from strategies import masked_tables, tables

pytestmark = pytest.mark.filterwarnings("ignore::contrapca.exceptions.ContrastWarning")


@st.composite
def counts(draw, n):
    """Whole numbers for n rows, of which at least two count."""
    found = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    assume(np.count_nonzero(found) >= 2)
    return found


@settings(max_examples=25)
@given(st.data(), tables(), st.sampled_from(["eigh", "dual", "lanczos", "sparse"]))
def test_contrasts(data, case, solver):
    """Of two backgrounds, against the matrix of repeated rows."""
    w, v = data.draw(counts(len(case.X))), data.draw(counts(len(case.Y)))
    other = case.Y[::-1] + 2.0
    kind = sp.csr_array if solver == "sparse" else np.asarray
    tables = Study(kind(case.X), background={"a": kind(case.Y), "b": kind(other)}, weights=(w, {"a": v})).tables
    found = collect(
        tables,
        1,
        None,
        "lanczos" if solver == "sparse" else solver,
    )
    rows = [oracles.repeated(case.X, w), oracles.repeated(case.Y, v), other]
    gamma = 0.3
    parts = [gamma * len(Y) / (len(rows[1]) + len(rows[2])) for Y in rows[1:]]
    C = contrast(found.groups, gamma)
    expected = oracles.mixed_contrast(rows[0], rows[1:], parts)
    size = max(np.abs(expected).max(), *(np.trace(oracles.scatter(one)) for one in rows), 1e-3)
    np.testing.assert_allclose(found.feature_matrix(C), expected, atol=1e-9 * size)
    np.testing.assert_allclose(-factors(found.groups, gamma)[1:], parts)
    np.testing.assert_allclose(C.N, len(rows[0]) * (1 - gamma), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(C.trace, np.trace(expected), atol=1e-9 * size)


@settings(max_examples=25)
@given(st.data(), masked_tables())
def test_likelihood_of_observed_values(data, case):
    w, v = data.draw(counts(len(case.X))), data.draw(counts(len(case.Y)))
    w[0], v[0] = max(w[0], 1), max(v[0], 1)  # in which every feature is observed
    weighted = Groups.of(observe(case.X, w.astype(float))[0], observe(case.Y, v.astype(float))[0])
    repeated = Groups.of(observe(oracles.repeated(case.X, w))[0], observe(oracles.repeated(case.Y, v))[0])
    for name in ("weight", "mean", "feature_counts", "squares"):
        np.testing.assert_allclose(getattr(weighted.foreground, name), getattr(repeated.foreground, name), atol=1e-9)
    left, right = (masked_log_likelihood(counted_terms(one, 0.3), case.W, case.sigma2) for one in (weighted, repeated))
    np.testing.assert_allclose(left.value, right.value, rtol=1e-9)
    np.testing.assert_allclose(left.gradient_W, right.gradient_W, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(left.gradient_sigma2, right.gradient_sigma2, rtol=1e-8, atol=1e-8)
    for group, again in zip(weighted, repeated, strict=True):
        for function in (
            lambda one: gls_mean(one, case.W, case.sigma2),
            lambda one: expected_total_variance(one, case.W, case.sigma2),
            lambda one: expected_covariance(one, np.linalg.qr(case.W)[0], case.W, case.sigma2),
            lambda one: one.about(one.mean + 1).squares,
            lambda one: gls_mean(one.about(one.mean + 1), case.W, case.sigma2),
        ):
            np.testing.assert_allclose(function(group), function(again), rtol=1e-6, atol=1e-7)
