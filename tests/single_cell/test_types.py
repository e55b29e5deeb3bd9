"""Cell types: another composition is no contrast within types, and each type has a contrast of its own."""

import warnings

import numpy as np
import pytest
import scipy.stats

from contrapca import ContraPCA, Study, contrast_test, get, held_out_contrast, pl, tl
from contrapca.datasets import make_cells
from contrapca.exceptions import ContrastWarning, GroupError
from single_cell.conftest import CHOICE, PLAIN, dense

GROUPS = {"groupby": "condition", "background": "ctrl"}


def composed(seed, effect=0.0):
    """Cells whose types are as variable in both groups, but of which the controls have few of one type."""
    adata = make_cells(24, 60, 60, effect=effect, random_state=seed)
    case, kind = (adata.obs["condition"] == "case").to_numpy(), adata.obs["cell_type"].astype(str).to_numpy()
    share = np.select([~case & (kind == "B"), case & (kind == "T")], [0.15, 0.6], 1.0)
    return adata[np.random.default_rng(seed).random(adata.n_obs) < share].copy()


@pytest.mark.parametrize("seed", range(2))
def test_composition_does_not_win_within_types(need, seed):
    need("anndata")
    adata = composed(seed)
    found = {}
    for within in (None, "cell_type"):
        tl.contrapca(adata, **CHOICE, within=within, n_comps=2)
        tl.test(adata, max_comps=1)
        found[within] = adata.uns["contrapca_test"]["n_components"], get.components(adata)["supported"].any()
        direct = tl.test(adata, **CHOICE, within=within, max_comps=1, copy=True).uns["contrapca_test"]
        assert direct["n_components"] == found[within][0]
    assert found == {None: (1, True), "cell_type": (0, False)}


@pytest.mark.filterwarnings("ignore:Counts add up")
def test_a_programme_is_found_within_types(need):
    need("anndata")
    adata = composed(0, effect=1.5)
    tl.contrapca(adata, **CHOICE, within="cell_type", n_comps=1)
    tl.test(adata, max_comps=1)
    assert adata.uns["contrapca_test"]["n_components"] == 1
    table = get.components(adata)
    assert table["supported"].tolist() == [True]
    assert adata.var["programme"][table["genes"][0].split(", ")].all()
    cases = (adata.obs["condition"] == "case").to_numpy()
    Z, on = adata.obsm["X_contrapca"][cases, 0], adata.obs["programme"].to_numpy()[cases]
    assert abs(np.corrcoef(Z, on)[0, 1]) > 0.85


def test_within_is_a_study_with_covariates_and_weights(adata):
    """In each group a type has the share that it has where it is rarest."""
    few = (adata.obs["condition"] == "ctrl") & (adata.obs["cell_type"] == "B") & (np.arange(120) % 3 > 0)
    adata = adata[~few].copy()
    cases, kind = (adata.obs["condition"] == "case").to_numpy(), adata.obs["cell_type"].astype(str).to_numpy()
    weights = []
    for own, other in ((cases, ~cases), (~cases, cases)):
        share = {name: (np.mean(kind[own] == name), np.mean(kind[other] == name)) for name in set(kind)}
        weights.append(np.array([min(1.0, share[name][1] / share[name][0]) for name in kind[own]]))
    of_b = [w[kind[own] == "B"].sum() / w.sum() for w, own in zip(weights, (cases, ~cases), strict=True)]
    assert of_b[0] == pytest.approx(of_b[1])
    assert min(weights[0]) < 0.6
    table = dense(adata)
    given = {"covariates": (kind[cases, None], kind[~cases, None]), "weights": tuple(weights)}
    model = ContraPCA(2, random_state=0).fit(Study(table[cases], background=table[~cases], **given))
    tl.contrapca(adata, **CHOICE, n_comps=2, within="cell_type", dtype="float64")
    assert np.allclose(adata.varm["ContraPCs"], model.loadings_, atol=1e-6)
    assert np.allclose(adata.obsm["X_contrapca"], model.transform(table, covariates=kind[:, None]), atol=1e-6)


def test_types_of_one_group_take_no_part(adata):
    kind = adata.obs["cell_type"].astype(str).to_numpy()
    kind[np.flatnonzero((adata.obs["condition"] == "case").to_numpy())[:5]] = "new"
    adata.obs["cell_type"] = kind
    with pytest.warns(ContrastWarning) as found:
        tl.contrapca(adata, **CHOICE, within="cell_type", n_comps=2)
    texts = " ".join(str(own.message) for own in found)
    assert "Cells with 'new' in adata.obs['cell_type'] do not take part" in texts
    assert "5 cells took no part" in texts
    assert np.array_equal(np.isnan(adata.obsm["X_contrapca"][:, 0]), kind == "new")
    pl.embedding(adata)


def test_what_within_cannot_compare(adata):
    kind = adata.obs["cell_type"].astype(object)
    adata.obs["gone"] = kind.where(np.arange(120) > 3)
    adata.obs["own"] = np.where(adata.obs["condition"] == "ctrl", "a", "b")
    with pytest.raises(GroupError, match=r"have no value in adata\.obs\['gone'\]"):
        tl.contrapca(adata, **CHOICE, within="gone", n_comps=2)
    with pytest.raises(GroupError, match=r"No value .* has 2 cells in every group"):
        tl.contrapca(adata, **CHOICE, within="own", n_comps=2)
    adata.obs["one"] = "a"
    tl.contrapca(adata, **CHOICE, n_comps=2, key_added="plain")
    tl.contrapca(adata, **CHOICE, within="one", n_comps=2, key_added="one")
    assert np.allclose(adata.obsm["plain"], adata.obsm["one"])


@pytest.mark.filterwarnings("ignore:Counts add up")
def test_plots_and_reports_of_fits_within_types(need, tmp_path):
    need("matplotlib").use("agg")
    need("jinja2")
    adata = composed(0, effect=1.5)
    tl.contrapca(adata, **CHOICE, within="cell_type", n_comps=2)
    path = pl.gamma_path(adata, n_gammas=3)
    assert any(np.allclose(line.get_xdata()[0], adata.uns["contrapca"]["gamma"]) for line in path.lines)
    summary = tl.report(adata, output=tmp_path / "report.html", progress=False, gammas=2)
    assert summary["verdict"].startswith("The cases vary more than chance allows")
    assert summary["verdict"].endswith("component 2 is not.")


# ---------------------------------------------------------------- other things that are known of cells


def test_regress_out_takes_numbers_and_categories(adata):
    adata.obs["age"] = np.random.default_rng(0).normal(50, 10, 120)
    table = dense(adata) + 0.1 * adata.obs["age"].to_numpy()[:, None]
    adata.X = table
    cases = (adata.obs["condition"] == "case").to_numpy()
    known = adata.obs[["age", "cell_type"]].astype({"cell_type": str}).reset_index(drop=True)
    study = Study(table[cases], background=table[~cases], covariates=(known[cases], known[~cases]))
    model = ContraPCA(2, random_state=0).fit(study)
    tl.contrapca(adata, **CHOICE, n_comps=2, regress_out=["age", "cell_type"], dtype="float64")
    assert np.allclose(adata.obsm["X_contrapca"], model.transform(table, covariates=known), atol=1e-7)
    for regress_out, least, most in (("age", 0.0, 0.2), (None, 0.8, 1.0)):
        tl.pcpca(adata, **CHOICE, n_comps=1, gamma=0.0, regress_out=regress_out)
        r = np.corrcoef(adata.obsm["X_pcpca"][cases, 0], known["age"][cases])[0, 1]
        assert least <= abs(r) <= most
    assert np.allclose(get.model(adata).transform(adata), adata.obsm["X_contrapca"], atol=1e-7)
    for wrong in (3, ["age", "agee"]):
        with pytest.raises(ValueError, match=r"regress_out=.* is not a column of adata\.obs"):
            tl.contrapca(adata, **CHOICE, n_comps=2, regress_out=wrong)
    adata.obs.loc[adata.obs_names[3], "age"] = np.nan
    with pytest.raises(GroupError, match=r"1 of 120 cells have no value in adata\.obs\['age'\]"):
        tl.contrapca(adata, **CHOICE, n_comps=2, regress_out="age")


def test_pairs_are_blocks_with_cells_in_both_groups(adata):
    adata.obs["pair"] = np.tile(np.repeat(np.arange(6), 10), 2)
    table, cases = dense(adata)[:, adata.var["few"]], (adata.obs["condition"] == "case").to_numpy()
    pair = adata.obs["pair"].to_numpy()
    study = Study(table[cases], background=table[~cases], blocks=(pair[cases], pair[~cases]), paired=True)
    wanted = contrast_test(study, max_components=1)
    adata.obs = adata.obs.rename(columns={"donor": "whose"})
    tl.test(adata, **GROUPS, pairs="pair", mask_var="few", max_comps=1)
    assert adata.uns["contrapca_test"]["units"] == wanted.units == "6 pairs"
    assert np.allclose(adata.uns["contrapca_test"]["p_values"], wanted.p_values)
    tl.contrapca(adata, **GROUPS, pairs="pair", mask_var="few", n_comps=1)
    held_out = held_out_contrast(ContraPCA(1), study)
    assert np.allclose(adata.uns["contrapca"]["held_out_ratio"], held_out.ratios, rtol=1e-4)
    with pytest.raises(ValueError, match="leave blocks= out"):
        tl.test(adata, **GROUPS, pairs="pair", blocks="whose")
    with pytest.raises(GroupError, match="6 pairs of the foreground"):
        tl.test(adata, **GROUPS, pairs="whose")


# ---------------------------------------------------------------- one contrast in each type


def test_by_group_is_a_contrast_of_each_type(need, tmp_path):
    need("anndata")
    adata = make_cells(24, 40, 40, effect=0.0, random_state=0)
    on = (adata.obs["condition"] == "case").to_numpy() & (adata.obs["cell_type"] == "T").to_numpy()
    X = dense(adata)
    X[on] += 1.5 * np.outer(np.random.default_rng(0).standard_normal(on.sum()), np.arange(40) < 6)
    adata.X = X
    kind = adata.obs["cell_type"].astype(str).to_numpy()
    rare = np.flatnonzero((adata.obs["condition"] == "ctrl").to_numpy())[:8]
    kind[rare] = "zz"
    adata.obs["kind"] = kind
    tl.by_group(adata, "kind", **GROUPS, blocks="donor", n_comps=2)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    table = need("anndata").read_h5ad(tmp_path / "cells.h5ad").uns["contrapca_by_group"]["table"]
    assert table["group"].tolist() == ["B", "B", "Mono", "Mono", "T", "T", "zz"]
    assert table["component"].tolist() == [1, 2, 1, 2, 1, 2, 0]
    assert table["supported"].tolist() == [False] * 4 + [True] + [False] * 2
    first = table.iloc[4]
    assert set(first["genes"].split(", ")) < {f"gene{k}" for k in range(6)}
    own = kind == "T"
    study = Study.from_anndata(adata[own], **GROUPS, blocks="donor")
    wanted = held_out_contrast(ContraPCA(2).fit(study), study)
    assert first["ratio"] == pytest.approx(wanted.ratios[0], rel=1e-6)
    assert [first["low"], first["high"]] == pytest.approx(wanted.intervals[0], rel=1e-6)
    assert first["p"] == pytest.approx(wanted.p_values[0], rel=1e-6)
    assert [first["n_cases"], first["n_controls"]] == [int(np.sum(own & on)), int(np.sum(own & ~on))]
    judged = np.isfinite(table["p"])
    assert np.all(table["low"][table["supported"]] > 1)  # as in get.components
    assert np.allclose(table["p_adjusted"][judged], scipy.stats.false_discovery_control(table["p"][judged]))
    assert table["note"].iloc[-1] == "0 cases and 8 controls: each group needs at least 2 cells"
    ax = pl.by_group(adata)
    assert [label.get_text().split("\n")[0] for label in ax.get_yticklabels()] == ["zz", "T", "Mono", "B"]
    assert len(ax.collections[0].get_offsets()) == 6


def test_by_group_leaves_the_cells_as_they_are(adata):
    adata.uns["contrapca_by_group"] = {"table": 1}
    assert "contrapca_by_group" in tl.by_group(adata, "cell_type", **CHOICE, n_comps=1, copy=True).uns
    assert adata.uns["contrapca_by_group"] == {"table": 1}
    assert not adata.obsm
    with pytest.raises(ValueError, match=r"split='cell' is not a column of adata\.obs"):
        tl.by_group(adata, "cell", **CHOICE)
    tl.contrapca(adata, **PLAIN | {"groupby": "condition"}, blocks="donor", key_added="mine")
    with pytest.raises(ValueError, match="key_added='mine' is the key of a fitted model"):
        tl.by_group(adata, "cell_type", **CHOICE, key_added="mine")


def test_donors_may_be_what_is_split_by(need):
    """Each donor by itself: its cells are no others', so there is no warning that donors are not used."""
    need("anndata")
    adata = make_cells(4, 60, 40, random_state=0)
    adata.obs["arm"] = np.where(np.arange(adata.n_obs) % 2, "case", "ctrl")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ContrastWarning)
        tl.by_group(adata, "donor", "arm", "ctrl", n_comps=1)
    assert len(adata.uns["contrapca_by_group"]["table"]) == 4
    with pytest.warns(ContrastWarning, match="blocks='donor'"):
        tl.by_group(adata, "cell_type", "arm", "ctrl", n_comps=1)


@pytest.mark.slow
@pytest.mark.parametrize(("donors", "cells"), [(8, 60), (24, 45)])
def test_by_group_keeps_its_level(donors, cells, need):
    """Donors differ, the groups do not: at most as many of 96 p-values are below .05 as chance allows."""
    need("anndata")
    most = scipy.stats.binom.ppf(0.999, 96, 0.05)
    below = {"donor": 0, None: 0}
    for seed in range(16):
        adata = make_cells(donors, cells, 60, effect=0.0, donor_effect=0.5, random_state=100 + seed)
        for blocks in below if seed < 2 else ["donor"]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ContrastWarning)
                tl.by_group(adata, "cell_type", **GROUPS, blocks=blocks, n_comps=2)
            below[blocks] += np.sum(adata.uns["contrapca_by_group"]["table"]["p"] < 0.05)
    assert below["donor"] <= most
    assert below[None] >= 6  # of 12, the control
