"""Covariates and pairs: what is taken out leaves no trace, for tables of awkward shapes."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from contrapca import Study, regress_out, within_pairs

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(6, 25)


@settings(max_examples=15)
@given(seed=seeds, n=sizes, m=sizes, D=st.integers(1, 8), q=st.integers(1, 3), size=st.sampled_from([1e-3, 1.0, 1e4]))
def test_effects_of_covariates_leave_no_trace(seed, n, m, D, q, size):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n, D)), rng.normal(size=(m, D))
    ZX, ZY = size * rng.normal(size=(n, q)) + rng.normal(size=q), size * rng.normal(size=(m, q))
    beside = {"covariates": (ZX, ZY)}
    found = list(regress_out(Study(X, background=Y, **beside)).rows)
    (expected, _) = oracles.residuals([X, Y], [ZX, ZY])
    effect = rng.normal(size=(q, D)) / size
    shifted = regress_out(Study(X + ZX @ effect, background=Y + ZY @ effect, **beside)).rows
    twice = regress_out(Study(found[0], background=found[1], **beside)).rows
    mean = np.vstack([ZX, ZY]).mean(axis=0)
    for own, wanted, other, again in zip(found, expected, shifted, twice, strict=True):
        np.testing.assert_allclose(own, wanted, atol=1e-9)
        np.testing.assert_allclose(other - mean @ effect, own, atol=1e-9)
        np.testing.assert_allclose(again, own, atol=1e-9)
    # Nothing is left within groups, together; units and origin of covariates do not matter.
    inside = sum((Z - Z.mean(axis=0)).T @ own for Z, own in zip((ZX, ZY), found, strict=True))
    np.testing.assert_allclose(inside / size, 0, atol=1e-8)
    other = regress_out(Study(X, background=Y, covariates=(3 - 7 * ZX, 3 - 7 * ZY)))
    np.testing.assert_allclose(other.rows.foreground, found[0], atol=1e-9)


@settings(max_examples=15)
@given(
    seed=seeds,
    cases=st.lists(st.integers(1, 3), min_size=2, max_size=8),
    controls=st.lists(st.integers(2, 4), min_size=8, max_size=8),
    D=st.integers(1, 6),
)
def test_levels_of_donors_leave_no_trace(seed, cases, controls, D):
    rng = np.random.default_rng(seed)
    donors = np.arange(len(cases))
    own, other = np.repeat(donors, cases), rng.permutation(np.repeat(donors, controls[: len(cases)]))
    X, Y = rng.normal(size=(own.size, D)), rng.normal(size=(other.size, D))
    given = {"blocks": (own, other), "paired": True}
    found = list(within_pairs(Study(X, background=Y, **given)).rows)
    levels = 100 * rng.normal(size=(len(cases), D))
    shifted = within_pairs(Study(X + levels[own], background=Y + levels[other], **given)).rows
    for table, again, rows in zip(found, shifted, (X, Y), strict=True):
        np.testing.assert_allclose(table.mean(axis=0), rows.mean(axis=0), atol=1e-12)
        np.testing.assert_allclose(again - again.mean(axis=0), table - table.mean(axis=0), atol=1e-10)
    # Controls of each donor: the unbiased variance, so that their noise counts as often as there are rows.
    expected = sum(own.shape[0] * own.var(axis=0, ddof=1) for own in (Y[other == donor] for donor in donors))
    about = found[1] - Y.mean(axis=0)
    np.testing.assert_allclose((about**2).sum(axis=0), expected, atol=1e-9)
