"""Cells of unequal depth: where totals are found, the warning, and the test at equal depth (F46)."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from contrapca import contrast_test, match_depth, tl
from contrapca.datasets import make_cells
from contrapca.exceptions import TableWarning

GROUPS = {"groupby": "condition", "background": "ctrl"}


def logs(counts):
    totals = np.maximum(np.asarray(counts.sum(axis=1)).ravel(), 1)
    found = sp.csr_matrix(counts).astype(float)
    found.data = np.log1p(found.data * np.repeat(1e4 / totals, np.diff(found.indptr)))
    return found


@pytest.fixture(scope="module")
def shallow(need):
    """Cells without donors of which the cases have 30 % of the molecules; X is log-normalised."""
    need("anndata")
    data = make_cells(16, 20, 60, effect=0, donor_effect=0, random_state=1)
    del data.obs["donor"]
    counts = sp.csr_matrix(data.layers["counts"]).astype(int)
    case = (data.obs["condition"] != "ctrl").to_numpy()
    share = np.where(case, 0.3, 1.0)
    counts.data = np.random.default_rng(0).binomial(counts.data, np.repeat(share, np.diff(counts.indptr)))
    data.layers["counts"], data.X = counts.astype(float), logs(counts)
    data.var["few"] = np.arange(60) < 30
    return data


@pytest.fixture
def unequal(shallow):
    return shallow.copy()


def p_of(data):
    return data.uns["contrapca_test"]["p_values"][0]


def test_every_tool_warns(unequal):
    for call in (tl.test, tl.compare, lambda *given, **how: tl.contrapca(*given, **how, n_comps=2)):
        with pytest.warns(TableWarning, match=r"unequal depth alone can look .*depth=\"match\" tests at equal depth"):
            call(unequal, **GROUPS)


def test_equal_cells_are_silent(need):
    need("anndata")
    data = make_cells(16, 20, 60, effect=0, donor_effect=0, random_state=1)
    del data.obs["donor"]
    tl.test(data, **GROUPS, max_comps=1)
    assert data.uns["contrapca_test"]["params"]["depth"] == "warn"


@pytest.mark.parametrize("where", ["X", "counts", "X without the layer", "obs", "raw", "dense", "backed"])
def test_the_test_at_equal_depth(unequal, where, tmp_path, need):
    """It uses totals over all genes wherever they are, and is the test of tables that are matched by hand."""
    counts = unequal.layers["counts"]
    totals = np.asarray(counts.sum(axis=1)).ravel()
    layer, data = None, unequal
    if where == "counts":
        layer = "counts"
    elif where != "X":
        del data.layers["counts"]
    if where == "obs":
        data.obs["total_counts"] = totals
        data = data[:, data.var["few"]].copy()
    elif where == "raw":
        data.raw = data
        data = data[:, data.var["few"]].copy()
    elif where == "dense":
        data.X = data.X.toarray().astype("float32")
    elif where == "backed":
        data.obs["total_counts"] = totals
        data.write_h5ad(tmp_path / "a.h5ad")
        data = need("anndata").read_h5ad(tmp_path / "a.h5ad", backed="r")
    with warnings.catch_warnings():
        warnings.simplefilter("error", TableWarning)
        tl.test(data, **GROUPS, layer=layer, mask_var="few", max_comps=1, depth="match", random_state=3)
    found = data.uns["contrapca_test"]
    case = (unequal.obs["condition"] != "ctrl").to_numpy()
    few = np.flatnonzero(unequal.var["few"])
    X, Y = (counts[own][:, few] for own in (case, ~case))
    given = {"totals": totals[case], "background_totals": totals[~case], "random_state": 3}
    X, Y, *_ = match_depth(X, background=Y, **given)
    expected = contrast_test(X, background=Y, max_components=1, depth="ignore", random_state=3)
    assert found["p_values"][0] == pytest.approx(expected.p_values[0], rel=1e-3)
    assert found["units"] == f"{len(X.toarray())} + {len(Y.toarray())} rows of equal depth"
    assert found["p_values"][0] > 0.01


def test_without_matching_unequal_depth_is_a_finding(unequal):
    """The control."""
    tl.test(unequal, **GROUPS, max_comps=1, depth="ignore")
    assert p_of(unequal) < 0.01


def test_totals_that_are_something_else_are_not_used(unequal):
    """Sums of logarithms, as quality metrics give that are computed too late, and stale ones."""
    kept = unequal.copy()
    tl.test(kept, **GROUPS, max_comps=1, depth="match")
    for values in (np.asarray(unequal.X.sum(axis=1)).ravel(), np.ones(unequal.n_obs, dtype=int), ["a"] * unequal.n_obs):
        unequal.obs["total_counts"] = values
        tl.test(unequal, **GROUPS, max_comps=1, depth="match")
        assert p_of(unequal) == p_of(kept)


def test_donors_follow_the_cells(unequal):
    """Cells that are dropped leave their donors' labels behind."""
    unequal.obs["whose"] = np.repeat([f"d{k}" for k in range(16)], unequal.n_obs // 16)
    empty = sp.lil_matrix(unequal.layers["counts"])
    empty[[0, 25, 300]] = 0
    unequal.layers["counts"] = empty.tocsr()
    tl.test(unequal, **GROUPS, layer="counts", blocks="whose", max_comps=1, depth="match")
    assert "blocks" in unequal.uns["contrapca_test"]["units"]


def test_values_without_logarithms(unequal):
    unequal.X = np.expm1(unequal.X.toarray())
    with pytest.warns(UserWarning, match=r"divided by the total of their cell, without logarithms.*sc\.pp\.log1p"):
        tl.test(unequal, **GROUPS, max_comps=1, depth="ignore")


def test_arrays_of_obsm_have_no_depth(unequal):
    unequal.obsm["X_other"] = np.random.default_rng(0).standard_normal((unequal.n_obs, 12))
    tl.test(unequal, **GROUPS, obsm="X_other", max_comps=1)
    with pytest.raises(ValueError, match="No counts can be recovered from the foreground"):
        tl.test(unequal, **GROUPS, obsm="X_other", max_comps=1, depth="match")


def test_scaled_values_are_refused_but_noticed_by_totals(unequal):
    dense = unequal.X.toarray()
    unequal.X = (dense - dense.mean(axis=0)) / dense.std(axis=0)
    with pytest.warns(TableWarning, match="unequal depth"):
        tl.test(unequal, **GROUPS, max_comps=1)
    with pytest.raises(ValueError, match="Pass those, not scaled"):
        tl.test(unequal, **GROUPS, max_comps=1, depth="match")
    del unequal.layers["counts"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", TableWarning)
        tl.test(unequal, **GROUPS, max_comps=1)


def test_reports_know_the_totals_of_all_genes(unequal, tmp_path, need):
    need("jinja2")
    given = {"output": tmp_path / "a.html", "gammas": 3, "mask_var": "few"}
    page = tl.report(unequal, **GROUPS, **given, depth="match")
    tl.test(unequal, **GROUPS, mask_var="few", depth="match")
    assert page["test"]["p_values"] == unequal.uns["contrapca_test"]["p_values"].tolist()
    assert page["test"]["units"] == unequal.uns["contrapca_test"]["units"]
    assert tl.report(unequal, **GROUPS, **given, depth="match", test=False)["test"] is None
