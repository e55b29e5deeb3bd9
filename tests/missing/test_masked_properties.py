"""Incomplete rows in chunks: the same as of one table (F9)."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from contrapca.data._groups import Groups
from contrapca.data.rows._dask import DaskRows
from contrapca.missing._estimates import expected_covariance, expected_total_variance, gls_mean
from contrapca.missing._likelihood import masked_log_likelihood
from contrapca.missing._rows import observe
from strategies import masked_tables


@settings(max_examples=40)
@given(masked_tables(), st.booleans())
def test_incomplete_rows_in_chunks(need, case, determinants):
    """Value, gradient, expectations and means: the same as of one table, whose own oracles are tested elsewhere."""
    da = need("dask.array")

    def chunked(table):
        return DaskRows(da.from_array(table, chunks=(2, -1)))

    with need("dask").config.set(scheduler="synchronous"):
        here, away = (Groups.of(*(observe(put(one))[0] for one in (case.X, case.Y))) for put in (np.asarray, chunked))
        compare(here, away, case, determinants)


def compare(here, away, case, determinants):
    terms = [[(1.0, groups.foreground), (-case.gamma_raw, groups.background)] for groups in (here, away)]
    expected, found = (masked_log_likelihood(t, case.W, case.sigma2, determinants=determinants) for t in terms)
    close = {"rtol": 1e-10, "atol": 1e-10 * (1 + abs(expected.value))}
    np.testing.assert_allclose(found.value, expected.value, **close)
    np.testing.assert_allclose(found.gradient_W, expected.gradient_W, **close)
    np.testing.assert_allclose(found.gradient_sigma2, expected.gradient_sigma2, **close)
    U = np.linalg.qr(case.W)[0]
    for left, right in zip(away, here, strict=True):
        np.testing.assert_allclose(left.counted(1), right.counted(1))
        np.testing.assert_allclose(left.feature_counts, right.feature_counts)
        for function in (expected_total_variance, gls_mean):
            np.testing.assert_allclose(
                function(left, case.W, case.sigma2), function(right, case.W, case.sigma2), rtol=1e-8, atol=1e-9
            )
        np.testing.assert_allclose(
            expected_covariance(left, U, case.W, case.sigma2),
            expected_covariance(right, U, case.W, case.sigma2),
            rtol=1e-9,
            atol=1e-10,
        )
        moved = [group.about(group.mean + 0.5).scaled(np.full(group.mean.size, 2.0)) for group in (left, right)]
        np.testing.assert_allclose(moved[0].squares, moved[1].squares, rtol=1e-10, atol=1e-12)
