"""Simulated cells have the structure that their description promises."""

import numpy as np
import pytest
import scipy.sparse as sp

from contrapca.datasets import make_cells


@pytest.fixture(scope="module")
def cells(need):
    need("anndata")
    return make_cells(20, 60, 50, effect=1.5, donor_effect=0.3, random_state=1)


def test_sizes_and_columns(cells):
    assert cells.shape == (1200, 50)
    assert sp.issparse(cells.X)
    assert cells.obs.groupby("donor", observed=True).size().tolist() == [60] * 20
    assert cells.obs.groupby("donor", observed=True)["condition"].nunique().max() == 1
    assert set(cells.obs["cell_type"]) == {"B", "Mono", "T"}
    assert cells.var["programme"].sum() == 15


def test_values_are_those_of_the_counts(cells):
    counts = cells.layers["counts"].toarray()
    assert np.array_equal(counts, np.rint(counts))
    totals = counts.sum(axis=1, keepdims=True)
    assert np.allclose(cells.X.toarray(), np.log1p(counts * np.median(totals) / totals), rtol=1e-5)


def test_the_programme_is_in_cases_only_and_has_its_effect(cells):
    on, genes = cells.obs["programme"].to_numpy(), cells.var["programme"].to_numpy()
    case = (cells.obs["condition"] == "case").to_numpy()
    assert not on[~case].any()
    # 600 cells of the cases, each with probability 0.4: within 4 standard deviations.
    assert abs(on[case].mean() - 0.4) < 4 * np.sqrt(0.4 * 0.6 / 600)
    counts = cells.layers["counts"].toarray()
    ratio = counts[case & on].mean(axis=0) / counts[case & ~on].mean(axis=0)
    assert abs(np.log(ratio[genes]).mean() - 1.5) < 0.15
    assert abs(np.log(ratio[~genes]).mean()) < 0.15


def test_donors_differ_by_as_much_as_they_should(need):
    need("anndata")
    spread = {}
    for effect in (0.0, 0.6):
        cells = make_cells(30, 60, 40, effect=0.0, donor_effect=effect, random_state=0)
        donors = cells.X.toarray().reshape(30, 60, 40)
        spread[effect] = donors.mean(axis=1).std(axis=0).mean()
    assert spread[0.6] > 2 * spread[0.0]


def test_seeds(cells):
    same, other = (make_cells(20, 60, 50, effect=1.5, donor_effect=0.3, random_state=seed) for seed in (1, 2))
    assert np.array_equal(cells.X.toarray(), same.X.toarray())
    assert not np.array_equal(cells.X.toarray(), other.X.toarray())


@pytest.mark.parametrize(("name", "value"), [("n_donors", 3), ("n_cells", 0), ("n_genes", 39), ("n_cells", 2.5)])
def test_refused(name, value):
    with pytest.raises(ValueError, match=f"{name}={value} must be a whole number"):
        make_cells(**{name: value})
