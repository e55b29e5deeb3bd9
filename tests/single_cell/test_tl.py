"""What the tools store, and where, against estimators on tables that are split by hand."""

import numpy as np
import pytest

import contrapca
from contrapca import CLVM, CPCA, PCPCA, ContraPCA, Study, compare, contrast_test, held_out_contrast, tl
from contrapca.exceptions import GroupError
from single_cell.conftest import CHOICE, PLAIN, by_hand, dense, snapshot

pytestmark = pytest.mark.filterwarnings("ignore:The cases are all cells with")  # in "arm"


def test_contrapca_is_the_estimator_on_split_tables(unnamed):
    model, Z = by_hand(unnamed, case=None)
    assert tl.contrapca(unnamed, **PLAIN) is None
    assert np.allclose(unnamed.obsm["X_contrapca"], Z, rtol=1e-8, atol=1e-8)
    assert np.allclose(unnamed.varm["ContraPCs"], model.loadings_, rtol=1e-8, atol=1e-8)
    found = unnamed.uns["contrapca"]
    assert np.allclose(found["variance"], model.explained_variance_)
    assert np.allclose(found["variance_ratio"], model.explained_variance_ratio_)
    assert np.allclose(found["background_variance"], model.background_variance_)
    assert found["gamma"] == pytest.approx(model.gamma_)
    assert found["gamma_max"] == pytest.approx(model.gamma_max_)
    given = {"groupby": "arm", "background": "ctrl", "n_comps": 3, "gamma": "auto", "scale": "auto"}
    given |= {"solver": "auto", "random_state": 0}
    assert found["params"] == given
    unseen = {"held_out_ratio", "held_out_interval", "held_out_p", "agreement", "largest_share", "found_again"}
    fitted = {"params", "variance", "variance_ratio", "background_variance", "gamma", "gamma_max", "embedding", "model"}
    fitted |= {"cases"}
    assert found["cases"].tolist() == ["treated", "case"]
    assert set(found) == fitted | unseen
    table, cases = dense(unnamed), (unnamed.obs["arm"] != "ctrl").to_numpy()
    wanted = held_out_contrast(model, table[cases], background=table[~cases])
    assert np.allclose(found["held_out_ratio"], wanted.ratios, rtol=1e-6)
    assert np.allclose(found["agreement"], wanted.agreement, atol=1e-6)


def test_cells_of_neither_group_get_latents(unnamed):
    _, Z = by_hand(unnamed, case="case")
    tl.contrapca(unnamed, **PLAIN, foreground="case")
    neither = unnamed.obs["arm"] == "treated"
    assert neither.any()
    assert np.allclose(unnamed.obsm["X_contrapca"], Z, rtol=1e-8, atol=1e-8)
    # They did not take part: other values of theirs change nothing else.
    other = unnamed.copy()
    other.X[np.flatnonzero(neither)] *= 2.0
    tl.contrapca(other, **PLAIN, foreground="case")
    assert np.array_equal(other.obsm["X_contrapca"][~neither], unnamed.obsm["X_contrapca"][~neither])
    assert not np.allclose(other.obsm["X_contrapca"][neither], unnamed.obsm["X_contrapca"][neither])


def test_several_labels_are_one_group(unnamed):
    expected = unnamed.copy()
    expected.obs["arm"] = np.where(expected.obs["arm"] == "case", "case", "ctrl")
    tl.contrapca(expected, **PLAIN)
    tl.contrapca(unnamed, **PLAIN | {"background": ["ctrl", "treated"]})
    assert np.array_equal(expected.obsm["X_contrapca"], unnamed.obsm["X_contrapca"])
    assert unnamed.uns["contrapca"]["params"]["background"].tolist() == ["ctrl", "treated"]


def test_a_dict_has_several_backgrounds(unnamed, tmp_path, need):
    """Each is centred by its own mean; all of it survives a file, and plots know the controls."""
    table, arm = dense(unnamed), unnamed.obs["arm"].to_numpy()
    backgrounds = {"old": table[arm == "ctrl"], "new": table[arm == "treated"]}
    model = ContraPCA(3, random_state=0).fit(table[arm == "case"], background=backgrounds)
    tl.contrapca(unnamed, **PLAIN | {"background": {"old": "ctrl", "new": ["treated"]}})
    unnamed.write_h5ad(tmp_path / "cells.h5ad")
    plt = need("matplotlib.pyplot")
    for adata in (unnamed, need("anndata").read_h5ad(tmp_path / "cells.h5ad")):
        np.testing.assert_allclose(adata.obsm["X_contrapca"], model.transform(table), atol=1e-8)
        found = adata.uns["contrapca"]
        for name in backgrounds:
            np.testing.assert_allclose(found["background_variance"][name], model.background_variance_[name])
        assert {"old_variance", "new_variance"} < set(contrapca.get.loadings(adata).columns)
        assert contrapca.get.model(adata).gamma_ == pytest.approx(model.gamma_)
        _, (left, middle, right) = plt.subplots(1, 3)
        assert len(contrapca.pl.variance(adata, ax=left).containers) == 3
        grey, _ = contrapca.pl.embedding(adata, ax=middle).collections
        assert len(grey.get_offsets()) == np.sum(arm != "case")
        contrapca.pl.gamma_path(adata, n_gammas=3, ax=right)
    tl.contrapca(unnamed, **PLAIN | {"background": {"old": "ctrl", "new": "treated"}}, blocks="whose", key_added="by")
    assert unnamed.uns["by"]["held_out_ratio"].shape == (3,)


@pytest.mark.parametrize(
    ("background", "message"),
    [
        ({}, "empty dict"),
        ({"old": "ctrl", "new": ["ctrl", "treated"]}, "'ctrl' is in several backgrounds"),
        ({"old": "ctrl", "a/b": "treated"}, "files take '/' for a folder"),
        ({"old": "ctrl", "foreground": "treated"}, "'foreground' cannot be the name of a background"),
        ({"old": "ctrl", "new": "treatd"}, "background='treatd' does not occur.*Did you mean 'treated'"),
        ({"old": "ctrl", "new": ["treated", "case"]}, "no foreground is left"),
    ],
)
def test_bad_dicts(unnamed, background, message):
    before = snapshot(unnamed)
    with pytest.raises(GroupError, match=message):
        tl.contrapca(unnamed, **PLAIN | {"background": background})
    assert snapshot(unnamed) == before


def test_two_groups_are_tested_and_compared(unnamed):
    several = {"groupby": "arm", "background": {"old": "ctrl", "new": "treated"}}
    for call in (tl.test, tl.compare, tl.report):
        with pytest.raises(GroupError, match="compares two groups, but there are 2 backgrounds"):
            call(unnamed, **several)


METHODS = {
    "contrapca": ("ContraPCs", ContraPCA(2, random_state=0), {}),
    "pcpca": ("PCPCs", PCPCA(2, gamma=0.3, random_state=0), {"gamma": 0.3}),
    "cpca": ("CPCs", CPCA(2), {}),
    "clvm": ("CLVs", CLVM(1, 2), {"n_shared": 1}),
}


@pytest.mark.parametrize("name", ["contrapca", "pcpca", "cpca", pytest.param("clvm", marks=pytest.mark.slow)])
def test_keys_are_named_after_the_function(adata, name):
    varm, estimator, settings = METHODS[name]
    adata = adata[:, adata.var["few"]].copy()
    table, cases = dense(adata), (adata.obs["condition"] == "case").to_numpy()
    blocks = adata.obs["donor"][cases], adata.obs["donor"][~cases]
    ratios = held_out_contrast(estimator, Study(table[cases], background=table[~cases], blocks=blocks))
    if name == "cpca":
        estimator = CPCA(2, gamma=ratios.gamma)  # chosen with whole donors held out
    model = estimator.fit(table[cases], background=table[~cases])
    getattr(tl, name)(adata, **CHOICE, n_comps=2, **settings)
    assert adata.obsm[f"X_{name}"].dtype == adata.varm[varm].dtype == np.float32
    assert np.allclose(adata.obsm[f"X_{name}"], model.transform(table), atol=1e-4)
    loadings = model.components_.T if name == "cpca" else model.loadings_
    assert np.allclose(adata.varm[varm], loadings, atol=1e-4)
    found = adata.uns[name]
    assert np.allclose(found["held_out_ratio"], ratios.ratios, rtol=1e-4)
    assert np.allclose(found["held_out_interval"], ratios.intervals, rtol=1e-4)
    assert ("gamma" in found) == (name != "clvm")
    assert np.isnan(found.get("gamma_max", np.nan)) == (
        name not in ("contrapca", "cpca")
    )  # only "auto" needs the limit
    assert repr(contrapca.get.model(adata, name)).startswith(type(estimator).__name__)


def test_key_added_names_all_three_places(unnamed):
    before = snapshot(unnamed)
    tl.contrapca(unnamed, **PLAIN, key_added="mine")
    after = snapshot(unnamed)
    for place in ("obsm", "varm", "uns"):
        assert after[place].keys() - before[place].keys() == {"mine"}
    tl.test(unnamed, groupby="arm", background="ctrl", mask_var="few", key_added="my test")
    assert snapshot(unnamed)["uns"].keys() == {"mine", "my test"}


def test_copy_leaves_the_original(unnamed):
    before = snapshot(unnamed)
    copy = tl.contrapca(unnamed, **PLAIN, copy=True)
    assert snapshot(unnamed) == before
    tl.contrapca(unnamed, **PLAIN)
    assert np.array_equal(copy.obsm["X_contrapca"], unnamed.obsm["X_contrapca"])
    assert "contrapca_test" in tl.test(unnamed, groupby="arm", background="ctrl", mask_var="few", copy=True).uns
    assert "contrapca_test" not in unnamed.uns


@pytest.mark.parametrize("by", ["name", "array", "highly_variable"])
def test_mask_leaves_zeros_outside(unnamed, by):
    mask = unnamed.var["highly"].to_numpy()
    model, Z = by_hand(unnamed, genes=mask, case=None)
    if by == "highly_variable":  # is used without being named
        unnamed.var["highly_variable"] = mask
    tl.contrapca(
        unnamed, **PLAIN, **{"highly_variable": {}, "name": {"mask_var": "highly"}, "array": {"mask_var": mask}}[by]
    )
    assert np.allclose(unnamed.obsm["X_contrapca"], Z, rtol=1e-8, atol=1e-8)
    assert unnamed.varm["ContraPCs"].shape == (40, 3)
    assert np.allclose(unnamed.varm["ContraPCs"][mask], model.loadings_, rtol=1e-8, atol=1e-8)
    assert np.all(unnamed.varm["ContraPCs"][~mask] == 0)
    stored = unnamed.uns["contrapca"]["params"]["mask_var"]
    assert (
        stored == {"highly_variable": "highly_variable", "name": "highly"}[by]
        if by != "array"
        else np.array_equal(stored, mask)
    )


def test_mask_none_is_all_genes(unnamed):
    unnamed.var["highly_variable"] = unnamed.var["highly"]
    tl.contrapca(unnamed, **PLAIN, mask_var=None)
    assert np.allclose(unnamed.obsm["X_contrapca"], by_hand(unnamed, case=None)[1], rtol=1e-8, atol=1e-8)


def test_layer(unnamed):
    expected = unnamed.copy()
    expected.X = expected.X * 2.0
    unnamed.layers["double"] = expected.X.copy()
    tl.contrapca(unnamed, **PLAIN, layer="double")
    assert np.allclose(unnamed.obsm["X_contrapca"], by_hand(expected, case=None)[1], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_obsm_takes_the_place_of_genes(unnamed, kind, need):
    model, Z = by_hand(unnamed, genes=slice(0, 12), case=None)
    table = dense(unnamed)[:, :12]
    frame = need("pandas").DataFrame(table, index=unnamed.obs_names, columns=[f"factor{j}" for j in range(12)])
    unnamed.obsm["X_other"] = table if kind == "array" else frame
    tl.contrapca(unnamed, **PLAIN, obsm="X_other")
    assert np.allclose(unnamed.obsm["X_contrapca"], Z, rtol=1e-8, atol=1e-8)
    assert not unnamed.varm
    assert np.allclose(unnamed.uns["contrapca"]["loadings"], model.loadings_, rtol=1e-8, atol=1e-8)
    names = contrapca.get.model(unnamed).feature_names_in_
    assert names[0] == {"array": "X_other_0", "frame": "factor0"}[kind]


def test_groups_may_be_numbers_or_truth_values(unnamed):
    tl.contrapca(unnamed, **PLAIN)
    expected = unnamed.obsm["X_contrapca"]
    unnamed.obs["number"] = np.where(unnamed.obs["arm"] == "ctrl", 0, 1)
    unnamed.obs["truth"] = unnamed.obs["arm"] != "ctrl"
    for column, label in (("number", 0), ("truth", False), ("truth", np.False_)):
        tl.contrapca(unnamed, **PLAIN | {"groupby": column, "background": label})
        assert np.array_equal(unnamed.obsm["X_contrapca"], expected)


def test_missing_values_are_taken_where_the_method_does(unnamed):
    table = dense(unnamed)
    table[np.random.default_rng(0).random(table.shape) < 0.05] = np.nan
    unnamed.X = table
    tl.pcpca(unnamed, **PLAIN | {"n_comps": 2}, gamma=0.2)
    arm = unnamed.obs["arm"].to_numpy()
    model = PCPCA(2, gamma=0.2, random_state=0).fit(table[arm != "ctrl"], background=table[arm == "ctrl"])
    assert np.allclose(unnamed.obsm["X_pcpca"], model.transform(table), atol=1e-6)


@pytest.mark.parametrize("scale", ["pooled", "group"])
def test_scale(unnamed, scale):
    table, arm = dense(unnamed), unnamed.obs["arm"].to_numpy()
    model = ContraPCA(3, scale=scale).fit(table[arm != "ctrl"], background=table[arm == "ctrl"])
    tl.contrapca(unnamed, **PLAIN, scale=scale)
    assert np.allclose(unnamed.obsm["X_contrapca"], model.transform(table), rtol=1e-7, atol=1e-7)


# ---------------------------------------------------------------- test and compare


@pytest.mark.parametrize("blocks", [None, "whose"])
def test_test(unnamed, blocks):
    table, cases = dense(unnamed), (unnamed.obs["condition"] == "case").to_numpy()
    whose = (unnamed.obs["whose"][cases], unnamed.obs["whose"][~cases]) if blocks else None
    table = table[:, unnamed.var["few"]]
    expected = contrast_test(Study(table[cases], background=table[~cases], blocks=whose), max_components=2)
    tl.test(unnamed, groupby="condition", background="ctrl", blocks=blocks, max_comps=2, mask_var="few")
    found = unnamed.uns["contrapca_test"]
    assert np.allclose(found["p_values"], expected.p_values, rtol=1e-4)
    assert found["verdict"] == expected.verdict()
    assert found["remarks"].tolist() == expected.remarks()
    assert found["n_components"] == expected.n_components
    assert found["units"] == ("60 + 60 rows" if blocks is None else "6 + 6 blocks")


def test_compare(unnamed, monkeypatch):
    """`compare` gets the tables split by hand, and what it says of them is stored, in the copy alone."""
    X, Y = np.random.default_rng(0).normal(size=(2, 30, 4))
    given = {"found": compare(X, background=Y, n_components=1)}

    def spy(study, **settings):
        given.update(study=study)
        return given["found"]

    monkeypatch.setattr("contrapca.anndata._evidence.compare_tables", spy)
    settings = {"labels": "cell_type", "mask_var": "few", "n_comps": 1, "blocks": "whose"}
    copy = tl.compare(unnamed, groupby="condition", background="ctrl", **settings, key_added="my table", copy=True)
    cases, few = (unnamed.obs["condition"] == "case").to_numpy(), unnamed.var["few"].to_numpy()
    study = given["study"]
    for name, chosen in (("foreground", cases), ("background", ~cases)):
        assert np.array_equal(study.rows[name].toarray(), dense(unnamed)[chosen][:, few])
        assert study.blocks[name] == unnamed.obs["whose"][chosen].tolist()
    assert study.labels.foreground.tolist() == unnamed.obs["cell_type"][cases].tolist()
    found = copy.uns["my table"]
    assert found["recommendation"] == given["found"].recommendation
    for name, values in given["found"].table().items():
        np.testing.assert_array_equal(found["table"][name].to_numpy(), values)
    assert not unnamed.uns


def test_a_mask_is_taken_by_the_names_of_genes(unnamed, need):
    pandas = need("pandas")
    tl.contrapca(unnamed, **PLAIN, mask_var="highly", key_added="right")
    mask = pandas.Series(unnamed.var["highly"].to_numpy(), index=unnamed.var_names)[::-1]
    tl.contrapca(unnamed, **PLAIN, mask_var=mask, key_added="other")
    assert np.array_equal(unnamed.varm["other"], unnamed.varm["right"])
    study = contrapca.Study.from_anndata(unnamed, groupby="arm", background="ctrl", mask_var=mask)
    assert list(study.features) == unnamed.var_names[unnamed.var["highly"]].tolist()
    with pytest.raises(GroupError, match="mask_var has other row names"):
        tl.contrapca(unnamed, **PLAIN, mask_var=mask.rename(index={"gene1": "gene_1"}))


def test_a_fit_to_another_embedding_leaves_no_loadings_of_genes(unnamed):
    tl.contrapca(unnamed, **PLAIN)
    unnamed.obsm["X_other"] = np.random.default_rng(0).normal(size=(120, 6))
    tl.contrapca(unnamed, **PLAIN, obsm="X_other")
    assert "ContraPCs" not in unnamed.varm
    assert unnamed.uns["contrapca"]["loadings"].shape == (6, 3)
