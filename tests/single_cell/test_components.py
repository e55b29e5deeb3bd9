"""What is known of each stored component, and the components in other cells."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats

from contrapca import ContraPCA, SparseCPCA, Study, contrast_test, get, held_out_contrast, tl
from contrapca.anndata import _fit
from contrapca.datasets import make_cells
from contrapca.exceptions import GroupError
from contrapca.inference import held_out_of
from single_cell.conftest import CHOICE, PLAIN, dense

pytestmark = [
    pytest.mark.filterwarnings("ignore:Counts add up"),
    pytest.mark.filterwarnings("ignore:The cases are all cells with"),  # in "arm"
]
COLUMNS = ["component", "supported", "ratio", "low", "high", "p", "agreement", "found_again", "max_donor_share"]


@pytest.fixture(scope="module")
def many_donors(need):
    need("anndata")
    return make_cells(24, 20, 60, random_state=0)


@pytest.fixture
def patients(many_donors):
    """12 patients and 12 controls, with a programme that is found in unseen ones."""
    return many_donors.copy()


def test_the_test_judges_stored_components(patients):
    """By all cells of unseen donors, and by a test of the same cells and genes."""
    tl.contrapca(patients, **CHOICE, n_comps=2, key_added="mine")
    before = get.model(patients, "mine").components_
    study = Study.from_anndata(patients, **CHOICE)
    held_out = held_out_contrast(ContraPCA(2).fit(study), study)
    tested = contrast_test(study, max_components=10, scale=get.model(patients, "mine")._scaling)
    patients.uns["mine"] = patients.uns["mine"] | {"held_out_ratio": np.zeros(2)}  # to be replaced
    assert tl.test(patients, "mine") is None
    table = get.components(patients, "mine")
    assert list(table.columns) == [*COLUMNS, "genes"]
    for name, values in (
        ("ratio", held_out.ratios),
        ("low", held_out.intervals[:, 0]),
        ("high", held_out.intervals[:, 1]),
        ("p", held_out.p_values),
        ("agreement", held_out.agreement),
        ("max_donor_share", held_out.largest_share),
    ):
        assert np.allclose(table[name], values, rtol=1e-4), name
    found = patients.uns["contrapca_test"]
    assert np.allclose(found["p_values"], tested.p_values, rtol=1e-6)
    assert patients.uns["mine"]["test_n_components"] == found["n_components"] == tested.n_components == 1
    assert found["verdict"].startswith(f"{tested.verdict()} Component 1 (")
    assert table["supported"].tolist() == [True, False]
    assert np.array_equal(get.model(patients, "mine").components_, before)
    strongest = get.loadings(patients, "mine", n_genes=5).groupby("component")["gene"].apply(", ".join)
    assert table["genes"].tolist() == strongest.tolist()


def test_a_test_that_finds_nothing_supports_nothing(patients):
    tl.contrapca(patients, **CHOICE, n_comps=2)
    assert get.components(patients)["supported"].any()
    tl.test(patients, level=1e-9)
    assert patients.uns["contrapca_test"]["n_components"] == 0
    assert not get.components(patients)["supported"].any()
    assert "unseen" not in patients.uns["contrapca_test"]["verdict"]


def test_few_donors_cannot_be_tested_but_say_something(need):
    need("anndata")
    adata = make_cells(8, 40, 60, random_state=1)
    tl.contrapca(adata, **CHOICE, n_comps=2)
    tl.test(adata)
    assert "needs at least 6 in each group" in adata.uns["contrapca_test"]["verdict"]
    assert "test_n_components" not in adata.uns["contrapca"]
    assert get.components(adata)["supported"].tolist() == [True, False]
    with pytest.raises(GroupError, match="at least 6"):
        tl.test(adata, **CHOICE)


def test_what_a_test_of_stored_results_takes(adata):
    tl.contrapca(adata, **CHOICE, n_comps=2, mask_var="few")
    with pytest.raises(ValueError, match="use key= for stored results only"):
        tl.test(adata, "contrapca", groupby="condition", background="ctrl")
    with pytest.raises(ValueError, match="'background', 'blocks' need groupby="):
        tl.test(adata, background="ctrl", blocks="donor")
    with pytest.raises(ValueError, match=r"no such results in adata\.uns\['condition'\], only 'contrapca'"):
        tl.test(adata, "condition")
    with pytest.raises(ValueError, match="key_added='contrapca' is the key of a fitted model"):
        tl.test(adata, **CHOICE, key_added="contrapca")
    assert get.model(adata).n_components == 2


def test_components_that_nothing_is_known_of(unnamed):
    """Without donors the largest share is of a cell; where values are missing, unseen cells say nothing."""
    tl.contrapca(unnamed, **PLAIN)
    assert "max_cell_share" in get.components(unnamed)
    table = dense(unnamed)
    table[5, 3] = np.nan
    unnamed.X = table
    tl.pcpca(unnamed, **PLAIN, gamma=0.2)
    assert list(get.components(unnamed, "pcpca", n_genes=2)) == ["component", "genes"]
    assert get.components(unnamed, "pcpca", n_genes=2)["genes"].str.count(",").tolist() == [1, 1, 1]


@pytest.mark.parametrize(("name", "varm"), [("ratiopca", "RatioPCs"), ("sparse_cpca", "SparseCPCs")])
def test_ratio_and_sparse(adata, name, varm):
    tl_function = getattr(tl, name)
    tl_function(adata, **CHOICE, n_comps=2, **{"n_genes": 4, "gamma": 0.5} if name == "sparse_cpca" else {"ridge": 0.5})
    assert adata.obsm[f"X_{name}"].shape == (120, 2)
    model, entry = get.model(adata, name), adata.uns[name]
    assert np.allclose(adata.obsm[f"X_{name}"], model.transform(adata), atol=1e-5)
    study = Study.from_anndata(adata, **CHOICE)
    wanted = held_out_contrast(model, study)
    assert np.allclose(entry["held_out_ratio"], wanted.ratios, rtol=1e-3)
    if name == "sparse_cpca":
        assert np.count_nonzero(adata.varm[varm], axis=0).tolist() == [4, 4]
        assert entry["params"]["sparsity"] == 4
    else:
        assert entry["params"]["ridge"] == 0.5
    assert len(get.components(adata, name)) == 2


def test_evidence_is_of_the_number_of_genes_that_was_fitted(adata, monkeypatch):
    """Before, the cells that judge chose another."""
    judged = []

    def spied(model, *args, **kwargs):
        judged.append(model)
        return held_out_of(model, *args, **kwargs)

    monkeypatch.setattr(_fit, "held_out_of", spied)
    tl.sparse_cpca(adata, **CHOICE, n_comps=2, n_genes="auto")
    model, study = get.model(adata, "sparse_cpca"), Study.from_anndata(adata, **CHOICE)
    assert model.fit_.gamma == pytest.approx(held_out_contrast(SparseCPCA(2, sparsity="auto"), study).gamma)
    assert [(own.sparsity, own.gamma) for own in judged] == [(model.sparsity_, model.gamma_)]
    settled = SparseCPCA(2, sparsity=model.sparsity_, gamma=model.gamma_)
    assert np.allclose(adata.uns["sparse_cpca"]["held_out_ratio"], held_out_contrast(settled, study).ratios, rtol=1e-3)


# ---------------------------------------------------------------- other cells


@pytest.mark.parametrize("kind", ["dense", "csr", "csc", "backed", "dask"])
def test_new_cells_are_matched_by_names_of_genes(made, kind, tmp_path, need):
    reference = made.copy()
    tl.contrapca(reference, **CHOICE, n_comps=2, mask_var="highly", dtype="float64")
    order = np.random.default_rng(0).permutation(40)
    new = made[30:90, order].copy()
    table = dense(new)
    new.X = {"csr": sp.csr_matrix, "csc": sp.csc_matrix}.get(kind, np.asarray)(table)
    if kind == "backed":
        new.write_h5ad(tmp_path / "cells.h5ad")
        new = need("anndata").read_h5ad(tmp_path / "cells.h5ad", backed="r")
    if kind == "dask":
        new.X = need("dask.array").from_array(table, chunks=(20, -1))
    wanted = reference.obsm["X_contrapca"][30:90]
    assert np.allclose(get.model(reference).transform(new), wanted, atol=1e-6)
    assert tl.project(new, reference, dtype="float64") is None
    assert np.allclose(new.obsm["X_contrapca"], wanted, atol=1e-6)
    if kind == "backed":
        new.file.close()


def test_genes_that_are_not_there(made):
    reference, new = made.copy(), made[:, 1:].copy()
    tl.contrapca(reference, **CHOICE, n_comps=2)
    for call in (lambda: tl.project(new, reference), lambda: get.model(reference).transform(new)):
        with pytest.raises(GroupError, match=r"1 of the 40 genes of the fit are not in adata\.var_names \('gene0'\)"):
            call()
    tl.contrapca(reference, **CHOICE, n_comps=2, mask_var=np.arange(40) > 0)
    tl.project(new, reference, key_added="X_theirs")
    assert np.allclose(new.obsm["X_theirs"], reference.obsm["X_contrapca"], atol=1e-6)


def test_projection_takes_the_layer_and_covariates_of_the_fit(made):
    reference, new = made.copy(), made[::-1, ::-1].copy()
    reference.layers["log"] = reference.X * 2.0
    new.layers["log"] = new.X * 2.0
    tl.contrapca(reference, **CHOICE, n_comps=2, layer="log", within="cell_type")
    for found in (tl.project(new, reference, copy=True).obsm["X_contrapca"], get.model(reference).transform(new)):
        assert np.allclose(found[::-1], reference.obsm["X_contrapca"], atol=1e-5)
    with pytest.raises(GroupError, match=r"layer='log' is not in adata\.layers"):
        tl.project(made.copy(), reference)
    reference.obsm["X_own"] = dense(reference)[:, :6]
    tl.contrapca(reference, **CHOICE, n_comps=2, obsm="X_own", key_added="own")
    with pytest.raises(ValueError, match=r"fitted to obsm\['X_own'\], not to genes"):
        tl.project(new, reference, "own")


def test_loadings_as_a_matrix(made):
    """As enrichment analysis takes it: genes by components."""
    adata = made.copy()
    tl.contrapca(adata, **CHOICE, n_comps=2, mask_var="highly")
    table = get.loadings(adata, wide=True)
    assert table.columns.tolist() == ["contrapca1", "contrapca2"]
    assert table.index.tolist() == adata.var_names[adata.var["highly"]].tolist()
    assert np.allclose(table, adata.varm["ContraPCs"][adata.var["highly"]], atol=1e-6)
    assert get.loadings(adata, component=2, wide=True).columns.tolist() == ["contrapca2"]


@pytest.mark.slow
def test_shown_components_of_patients_by_a_slow_obvious_check(data_folder, need):
    """How much more a component varies in patients that its axis has not seen: all ten fits to two or three of five.

    `tl` and `held_out_contrast` must agree with it; units of the half, as the control, blow up a gene of one patient.
    """
    given = np.load(data_folder / "real_sets" / "glioblastoma.npz")
    frame = need("pandas").DataFrame({name: given[name].astype(str) for name in ("condition", "patient")})
    adata = need("anndata").AnnData(given["X"].astype(float), obs=frame.set_index("c" + frame.index.astype(str)))
    choice = {"groupby": "condition", "background": "ctrl", "blocks": "patient"}
    tl.contrapca(adata, **choice, n_comps=2)
    stored, model = get.components(adata), get.model(adata)
    case, patient = (adata.obs["condition"] != "ctrl").to_numpy(), adata.obs["patient"].to_numpy()
    rows, whole = adata.X / model.scale_, model.transform(adata[case])
    squares = np.zeros((2, 2))
    for seen in itertools.combinations(np.unique(patient), 3):
        for own in (np.isin(patient, seen), ~np.isin(patient, seen)):
            X, Y = rows[case & own], rows[~case & own]
            half = ContraPCA(2, scale=None, axes="ratio", shorten=False).fit(X, background=Y)
            P = half.components_.T / np.sqrt(half.explained_variance_ + half.background_variance_)
            r = np.abs(scipy.stats.spearmanr(whole, rows[case] @ P)[0][:2, 2:])
            P = P[:, ::-1] if r[0, 1] + r[1, 0] > r[0, 0] + r[1, 1] else P
            squares[0] += np.mean(((rows[case & ~own] - X.mean(axis=0)) @ P) ** 2, axis=0)
            squares[1] += np.mean(((rows[~case & ~own] - Y.mean(axis=0)) @ P) ** 2, axis=0)
    obvious = squares[0] / squares[1]
    study = Study.from_anndata(adata, **choice)
    found = held_out_contrast(ContraPCA(5), study)
    np.testing.assert_allclose(np.log(stored["ratio"]), np.log(obvious), atol=0.5)
    np.testing.assert_allclose(found.log_ratios[:2], np.log(obvious), atol=0.5)
    assert stored["low"][0] < 1 < stored["high"][0]
    assert found.intervals[0, 0] < 1 < found.intervals[0, 1]
    given = held_out_contrast(ContraPCA(5, scale="pooled", axes="ratio"), study)
    np.testing.assert_allclose(given.log_ratios[:2], np.log(obvious), atol=0.5)
    # The control: in the units of each half by itself, the gene of one patient is blown up.
    blown = []
    for seen in itertools.combinations(np.unique(patient), 3):
        for own in (np.isin(patient, seen), ~np.isin(patient, seen)):
            X, Y = adata.X[case & own], adata.X[~case & own]
            half = ContraPCA(2, scale="pooled", axes="ratio", shorten=False).fit(X, background=Y)
            lengths = np.sqrt(half.explained_variance_ + half.background_variance_)
            P = half.components_.T / half.scale_[:, None] / lengths
            cases, controls = adata.X[case & ~own] - X.mean(axis=0), adata.X[~case & ~own] - Y.mean(axis=0)
            blown.append([np.mean((rows @ P) ** 2, axis=0) for rows in (cases, controls)])
    cases, controls = np.sum(blown, axis=0)
    assert np.log(np.max(cases / controls)) - np.log(obvious[0]) > 0.9
