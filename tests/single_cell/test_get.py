"""Stored results come back from memory and from files: models, loadings, every key."""

import numpy as np
import pytest

import contrapca
from contrapca import get, tl
from single_cell.conftest import CHOICE, PLAIN, by_hand, dense

pytestmark = pytest.mark.filterwarnings("ignore:The cases are all cells with")  # in "arm"


def same(left, right):
    """Compare nested dicts of arrays, frames, numbers and texts; texts may come back in other types of arrays."""
    if isinstance(left, dict):
        assert left.keys() == right.keys()
        for name in left:
            same(left[name], right[name])
    elif hasattr(left, "columns"):
        np.testing.assert_equal(left.to_dict("list"), right.to_dict("list"))
    else:
        np.testing.assert_equal(np.asarray(left).tolist(), np.asarray(right).tolist())  # nan is nan


@pytest.fixture(scope="module")
def full(made):
    """Results of every kind: of fits with and without a mask, of other features, of a test and a comparison."""
    adata = made[:, made.var["highly"] | made.var["few"]].copy()
    adata.obsm["X_own"] = dense(adata)[:, :8]
    tl.contrapca(adata, **CHOICE, n_comps=2)
    tl.pcpca(adata, **CHOICE, n_comps=1, gamma=0.2, mask_var="few", foreground="case", key_added="masked")
    tl.cpca(adata, **CHOICE, n_comps=1, gamma=1.5, obsm="X_own")
    tl.clvm(adata, **CHOICE, n_comps=1, n_shared=1, mask_var=adata.var["few"].to_numpy())
    tl.test(adata, **CHOICE, max_comps=2)
    return adata


KEYS = ("contrapca", "masked", "cpca", "clvm")


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.slow
@pytest.mark.parametrize("form", ["h5ad", "zarr"])
def test_files_keep_every_key(full, form, tmp_path, need):
    need("zarr") if form == "zarr" else None
    full = full.copy()
    tl.compare(full, **CHOICE, n_comps=1, mask_var="few")
    getattr(full, f"write_{form}")(tmp_path / f"cells.{form}")
    again = getattr(need("anndata"), f"read_{form}")(tmp_path / f"cells.{form}")
    assert set(again.uns) == {*KEYS, "contrapca_test", "contrapca_compare"}
    same(dict(full.uns), dict(again.uns))
    for place in ("obsm", "varm"):
        assert set(getattr(again, place)) == set(getattr(full, place))
        for name, value in getattr(full, place).items():
            assert np.array_equal(getattr(again, place)[name], value)
    for key in KEYS:
        left, right = get.model(full, key), get.model(again, key)
        assert left.get_params() == right.get_params()
        table = np.random.default_rng(0).random((4, left.n_features_in_))
        assert np.array_equal(left.set_output(transform="default").transform(table), right.transform(table))
    # A second generation, from what was read.
    again.write_h5ad(tmp_path / "second.h5ad")
    same(dict(full.uns), dict(need("anndata").read_h5ad(tmp_path / "second.h5ad").uns))


def test_a_file_keeps_what_fits_and_tests_store(full, tmp_path, need):
    full.write_h5ad(tmp_path / "cells.h5ad")
    again = need("anndata").read_h5ad(tmp_path / "cells.h5ad")
    same(dict(full.uns), dict(again.uns))
    for key in KEYS:
        same(get.loadings(full, key), get.loadings(again, key))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_model_is_the_fitted_one(unnamed, tmp_path):
    model, _ = by_hand(unnamed, case=None)
    tl.contrapca(unnamed, **PLAIN)
    found, table = get.model(unnamed), dense(unnamed)
    assert found.feature_names_in_.tolist() == unnamed.var_names.tolist()
    assert np.allclose(found.transform(table), unnamed.obsm["X_contrapca"], rtol=1e-8, atol=1e-8)
    assert np.allclose(found.score_samples(table), model.score_samples(table))
    assert np.allclose(found.contrast_score(table), model.contrast_score(table))
    assert found.sample(3, random_state=0).shape == (3, 40)
    # It is what a file would hold.
    found.save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as archive:
        assert set(archive.files) == set(unnamed.uns["contrapca"]["model"])
    assert np.array_equal(contrapca.load(tmp_path / "model.npz").transform(table), found.transform(table))


def test_loadings_are_tidy(full, need):
    table = get.loadings(full)
    assert isinstance(table, need("pandas").DataFrame)
    assert list(table.columns) == ["component", "rank", "gene", "loading", "foreground_variance", "background_variance"]
    assert len(table) == 2 * full.n_vars
    assert set(table["component"]) == {1, 2}
    for k, part in table.groupby("component"):
        assert part["rank"].tolist() == list(range(1, full.n_vars + 1))
        assert np.all(np.diff(np.abs(part["loading"])) <= 0)
        by_gene = part.set_index("gene").loc[full.var_names]
        assert np.allclose(by_gene["loading"], full.varm["ContraPCs"][:, k - 1], atol=1e-6)
        cases = (full.obs["condition"] == "case").to_numpy()
        assert np.allclose(by_gene["foreground_variance"], dense(full)[cases].var(axis=0))
        assert np.allclose(by_gene["background_variance"], dense(full)[~cases].var(axis=0))


def test_loadings_of_one_component_and_of_a_mask(full):
    few = get.loadings(full, component=2, n_genes=3)
    every = get.loadings(full)
    assert few.to_dict("list") == every[every["component"] == 2].head(3).to_dict("list")
    assert set(get.loadings(full, "masked")["gene"]) == set(full.var_names[full.var["few"]])
    assert get.loadings(full, "cpca")["gene"].str.startswith("X_own_").all()
    assert len(get.loadings(full, "cpca", n_genes=1000)) == 8
