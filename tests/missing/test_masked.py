"""Groups with holes: what is kept of them."""

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from contrapca import PCPCA, Study, contrast_path
from contrapca.data._groups import Groups
from contrapca.data._tables import column_means
from contrapca.data.rows._storage import storage
from contrapca.exceptions import NonFiniteError
from contrapca.missing._likelihood import masked_log_likelihood
from contrapca.missing._rows import counted_terms, observe
from contrapca.reporting._report import summarize


def holes(rows, D, fraction=0.3, complete=0):
    rng = np.random.default_rng(100 * rows + D)
    table = rng.standard_normal((rows, D)) * np.linspace(1, 3, D) + 5
    mask = rng.random((rows, D)) < fraction
    mask[:complete] = False
    return np.where(mask, np.nan, table)


@pytest.mark.parametrize("complete", [0, 3, 30])
def test_observe(complete):
    table = holes(40, 6, complete=complete)
    table[-1] = np.nan
    group, empty = observe(table)
    assert empty == 1
    assert group.weight == 39
    np.testing.assert_allclose(group.mean, np.nanmean(table, axis=0))
    np.testing.assert_allclose(group.variance, np.nanvar(table, axis=0))
    np.testing.assert_array_equal(group.feature_counts, (~np.isnan(table)).sum(axis=0))
    full = np.count_nonzero(~np.isnan(table).any(axis=1))
    assert (group.complete is None) == (full <= 6)  # moments pay once the rows outnumber the features
    counts = (~np.isnan(table)).sum(axis=1)
    assert group.counted(6) == group.cells == counts.sum()
    assert group.counted(2) == np.minimum(counts, 2).sum()


def test_patterns_are_shared():
    rng = np.random.default_rng(0)
    table = holes(60, 5)[rng.integers(0, 4, 60)] + rng.standard_normal((60, 5))
    group, _ = observe(table)
    assert group.rows.masks.shape[0] <= 4
    assert group.rows.row_counts.sum() == 60


@pytest.mark.parametrize("complete", [0, 30])
def test_scaled_and_about_another_mean(complete):
    """Against rows that were scaled and shifted by hand, through the objective."""
    rng = np.random.default_rng(0)
    table, divisor, mean = holes(50, 4, complete=complete), np.array([1.0, 2, 3, 4]), np.array([1.0, 0, 2, 1])
    W, sigma2 = rng.standard_normal((4, 2)), 0.7
    group = observe(table)[0].scaled(divisor).about(mean)
    found = masked_log_likelihood([(1.0, group)], W, sigma2).value
    expected = oracles.observed_log_likelihood(table / divisor, None, 0, W, sigma2, mean_x=mean)
    assert found == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(group.squares, np.nansum((table / divisor - mean) ** 2, axis=0))


def test_groups_that_do_not_count_are_left_out():
    X, Y = observe(holes(30, 4))[0], observe(holes(60, 4))[0]
    groups = Groups.of(X, Y)
    assert [c for c, _ in counted_terms(groups, 0.5)] == [1.0, -0.25]
    assert len(counted_terms(groups, 0.0)) == 1
    assert len(counted_terms(Groups.of(X), 0.0)) == 1


def test_infinity_is_refused():
    table = holes(10, 3)
    table[1, 2] = np.inf
    with pytest.raises(NonFiniteError, match="column 2"):
        column_means(table, allow_missing=True)


def test_columns_far_from_zero():
    """Means and deviations of what is observed, also over several blocks; sparse rows alike."""
    rng = np.random.default_rng(0)
    rows = 1e6 + rng.standard_normal((2500, 4))
    rows[rng.random(rows.shape) < 0.3] = np.nan
    group, _ = observe(rows)
    np.testing.assert_allclose(group.mean, np.nanmean(rows, axis=0), rtol=1e-12)
    np.testing.assert_allclose(np.sqrt(group.variance), np.nanstd(rows, axis=0), rtol=1e-6)
    sparse = sp.random_array((300, 5), density=0.3, random_state=rng, format="csr")
    mean = column_means(sparse)
    np.testing.assert_allclose(mean, sparse.toarray().mean(axis=0))
    np.testing.assert_allclose(np.sqrt(storage(sparse).squares(sparse, mean) / 300), sparse.toarray().std(axis=0))


def test_a_report_about_a_path_refuses_other_tables_with_holes():
    """What is observed tells them apart, though every column lacks values."""
    X, Y = holes(60, 5, 0.2), holes(50, 5, 0.2) / 3
    path = contrast_path(PCPCA(2), X, background=Y, gammas=3)
    summarize(Study(X, background=Y), path)
    for tables in ((X + 1, Y), (X, Y + 1)):
        with pytest.raises(ValueError, match="is not the table of the fit: the means of 5 columns differ"):
            summarize(Study(tables[0], background=tables[1]), path)
