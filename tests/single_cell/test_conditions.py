"""Several conditions in `tl`: the same as of a `Study`."""

import numpy as np
import pytest
import scipy.sparse as sp

import contrapca
from contrapca import PCPCA, Study
from contrapca.exceptions import GroupError

anndata = pytest.importorskip("anndata")
pd = pytest.importorskip("pandas")

pytestmark = pytest.mark.filterwarnings("ignore:PCPCA still shows")
rng = np.random.default_rng(0)
DRUG = rng.permutation(np.repeat(["a", "b", "c", "DMSO", "other"], [40, 60, 30, 80, 20]))
X = np.abs(rng.normal(size=(230, 12)))
X[np.isin(DRUG, ["a", "b", "c"]), 0] *= 3
X[DRUG == "a", 1] += 5
CHOICE = {"groupby": "drug", "background": "DMSO", "foreground": {"A": "a", "BC": ["b", "c"]}}


def cells(matrix=X):
    obs = pd.DataFrame({"drug": DRUG, "plate": np.arange(230) % 23}, index=[f"cell{k}" for k in range(230)])
    return anndata.AnnData(matrix, obs=obs, var=pd.DataFrame(index=[f"g{j}" for j in range(12)]))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_conditions_of_cells_are_those_of_a_study(make):
    adata = cells(make(X))
    contrapca.tl.pcpca(adata, **CHOICE, blocks="plate", n_comps=1, dtype="float64")
    frame = pd.DataFrame(X, columns=list(adata.var_names)).assign(drug=DRUG)
    study = Study.from_frame(frame, **CHOICE)
    model = PCPCA(1).fit(study)
    np.testing.assert_allclose(np.ravel(adata.obsm["X_pcpca"]), np.ravel(model.transform(X)), atol=1e-8)
    entry = adata.uns["pcpca"]
    assert entry["conditions"].tolist() == ["A", "BC"]
    assert entry["condition_ratio"].shape == (2, 1)
    assert entry["condition_interval"].shape == (2, 1, 2)
    assert entry["condition_ratio"].min() > 2
    pooled = cells(make(X))  # the control: about one mean the shift of a looks like a contrast
    contrapca.tl.pcpca(pooled, groupby="drug", background="DMSO", foreground=["a", "b", "c"], n_comps=1, blocks="plate")
    loadings = np.abs(pooled.varm["PPCs" if "PPCs" in pooled.varm else next(iter(pooled.varm))][:, 0])
    assert np.argmax(loadings) == 1
    assert np.argmax(np.abs(model.components_[0])) == 0


def test_results_of_conditions_are_read_again(tmp_path):
    adata = cells()
    contrapca.tl.contrapca(adata, **CHOICE, blocks="plate", n_comps=2)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert contrapca.get.model(again).fit_.design == "several conditions ('A', 'BC')"
    contrapca.pl.embedding(again, "contrapca")
    assert len(contrapca.get.components(again)) > 0


def test_reports_have_each_condition(tmp_path):
    """From columns of the cells, or from stored results."""
    pytest.importorskip("jinja2")
    adata, file = cells(), tmp_path / "report.html"
    fresh = contrapca.tl.report(adata, **CHOICE, blocks="plate", output=file, test=False)
    contrapca.tl.contrapca(adata, **CHOICE, blocks="plate", n_comps=2)
    stored = contrapca.tl.report(adata, output=file, test=False)
    for summary in (fresh, stored):
        assert summary["design"]["kind"] == "conditions"
        first = summary["components"][0]
        assert [cell["name"] for cell in first["cells"]] == ["A", "BC"]
        assert first["support"] == "holds up"
    found = adata.uns["contrapca"]["condition_ratio"][:, 0]
    assert [cell["ratio"] for cell in stored["components"][0]["cells"]] == pytest.approx(found, rel=0.2)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"within": "plate"}, "within= is not possible"),
        ({"pairs": "plate", "blocks": None}, "pairs= is not possible"),
        ({"foreground": {"A": "a", "B": "x"}}, "foreground='x' does not occur"),
        ({"foreground": {"A": ["a", "b"], "B": ["b"]}}, "foreground: 'b' is in several conditions"),
        ({"foreground": {"A": "a", "background": "b"}}, "cannot be the name of a condition"),
        ({"foreground": {"A/B": "a"}}, "files take '/' for a folder"),
        ({"background": {"x": "DMSO", "y": "other"}}, "share one background"),
    ],
)
def test_bad_conditions_are_refused(change, sentence):
    with pytest.raises(GroupError, match=sentence):
        contrapca.tl.contrapca(cells(), **{"blocks": "plate"} | CHOICE | change)
