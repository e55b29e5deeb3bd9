"""What people do next with scanpy works on the stored keys."""

import numpy as np
import pytest

from contrapca import tl
from contrapca.datasets import make_cells
from single_cell.conftest import CHOICE

pytestmark = pytest.mark.slow  # scanpy takes seconds to import, and compiles


@pytest.fixture(scope="module")
def sc(need):
    need("matplotlib").use("agg")
    return need("scanpy")


@pytest.fixture(scope="module")
def processed(sc):
    """From counts, with scanpy's own preparation, to clusters on the latents."""
    adata = make_cells(random_state=0)
    adata.X = adata.layers["counts"].copy()
    sc.pp.normalize_total(adata)
    sc.pp.log1p(adata)
    sc.pp.highly_variable_genes(adata, n_top_genes=60)
    tl.contrapca(adata, **CHOICE, n_comps=4)
    sc.pp.neighbors(adata, use_rep="X_contrapca")
    sc.tl.leiden(adata, flavor="igraph", n_iterations=2, directed=False, resolution=0.3)
    sc.tl.umap(adata)
    return adata


def test_neighbours_clusters_and_umap(processed):
    assert processed.uns["neighbors"]["params"]["use_rep"] == "X_contrapca"
    assert processed.obsm["X_umap"].shape == (600, 2)
    # The clusters found on the contrast are those of the programme, which plain PCA hides behind cell types.
    on = processed.obs["programme"].to_numpy()
    shares = [on[processed.obs["leiden"] == cluster].mean() for cluster in processed.obs["leiden"].cat.categories]
    assert max(shares) > 0.8


def test_highly_variable_genes_are_used(processed):
    mask = processed.var["highly_variable"].to_numpy()
    assert mask.sum() == 60
    assert np.all(processed.varm["ContraPCs"][~mask] == 0)
    assert np.all(np.any(processed.varm["ContraPCs"][mask] != 0, axis=1))
    assert processed.uns["contrapca"]["params"]["mask_var"] == "highly_variable"


@pytest.mark.parametrize("color", ["condition", "leiden", "gene0", None])
def test_scanpys_embedding(processed, sc, color):
    ax = sc.pl.embedding(processed, basis="contrapca", color=color, show=False)
    points = np.asarray(ax.collections[0].get_offsets())
    Z = processed.obsm["X_contrapca"][:, :2]
    assert np.allclose(points[np.lexsort(points.T)], Z[np.lexsort(Z.T)])


def test_rank_genes_groups_on_clusters(processed, sc):
    on = processed.obs["programme"].groupby(processed.obs["leiden"], observed=True).mean()
    sc.tl.rank_genes_groups(processed, "leiden", groups=[on.idxmax()], method="t-test")
    genes = processed.uns["rank_genes_groups"]["names"][on.idxmax()][:10]
    assert processed.var["programme"][genes].mean() > 0.8


def test_keys_are_like_those_of_scanpys_pca(processed, sc):
    adata = processed.copy()
    sc.pp.pca(adata, n_comps=4)
    for place, theirs, ours in (("obsm", "X_pca", "X_contrapca"), ("varm", "PCs", "ContraPCs")):
        left, right = getattr(adata, place)[theirs], getattr(adata, place)[ours]
        assert left.shape == right.shape
        assert np.array_equal(np.all(left == 0, axis=1), np.all(right == 0, axis=1))  # outside the mask
    assert adata.obsm["X_pca"].dtype == adata.obsm["X_contrapca"].dtype
    assert {"params", "variance", "variance_ratio"} <= set(adata.uns["pca"]) & set(adata.uns["contrapca"])


@pytest.mark.parametrize("form", ["h5ad", "zarr"])
def test_everything_together_goes_through_files(processed, form, tmp_path, need):
    getattr(processed, f"write_{form}")(tmp_path / f"cells.{form}")
    again = getattr(need("anndata"), f"read_{form}")(tmp_path / f"cells.{form}")
    assert set(again.uns) == set(processed.uns)
    assert np.array_equal(again.obsm["X_contrapca"], processed.obsm["X_contrapca"])
