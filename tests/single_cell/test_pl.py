"""Plots show what is stored."""

import numpy as np
import pytest

from contrapca import get, pl, tl
from contrapca.plots import BACKGROUND_COLOUR
from single_cell.conftest import CHOICE

pytestmark = pytest.mark.filterwarnings("ignore:The cases are all cells with")  # in "arm"

CASES, CONTROLS = "cases (foreground)", "controls (background)"


@pytest.fixture(scope="module")
def results(made, need):
    need("matplotlib").use("agg")
    adata = made.copy()
    tl.contrapca(adata, **CHOICE, n_comps=3)
    tl.test(adata, **CHOICE, max_comps=2)
    return adata


@pytest.fixture
def ax(need):
    figure = need("matplotlib.pyplot").figure()
    yield figure.subplots()
    need("matplotlib.pyplot").close(figure)


def drawn(ax, need):
    """Label to (points, colour) of every scatter."""
    to_hex = need("matplotlib.colors").to_hex
    return {
        str(part.get_label()): (np.asarray(part.get_offsets()), to_hex(part.get_facecolor()[0]))
        for part in ax.collections
        if len(part.get_offsets())
    }


def test_embedding_has_controls_in_grey(results, ax, need):
    assert pl.embedding(results, components=(3, 1), ax=ax) is ax
    shown, cases = drawn(ax, need), (results.obs["condition"] == "case").to_numpy()
    Z = results.obsm["X_contrapca"][:, [2, 0]]
    assert set(shown) == {CASES, CONTROLS}
    assert np.allclose(shown[CONTROLS][0], Z[~cases])
    assert shown[CONTROLS][1] == BACKGROUND_COLOUR.lower()
    assert np.allclose(shown[CASES][0], Z[cases])
    assert ax.get_xlabel().startswith("contrapca3")


def test_many_cells_have_small_points_and_a_legend_to_read(ax, need):
    Z = np.random.default_rng(0).normal(size=(20_000, 2))
    ax = need("contrapca.plots").latents(Z, background=Z[:10_000], labels=np.arange(20_000) % 2, ax=ax)
    sizes = {float(part.get_sizes()[0]) for part in ax.collections if len(part.get_offsets())}
    assert max(sizes) < 1.5
    assert min(sizes) > 1.3
    handles, names = ax.get_legend_handles_labels()
    assert names == [CONTROLS, "0", "1"]
    assert {float(own.get_sizes()[0]) for own in handles} == {14.0}


@pytest.mark.parametrize("palette", [True, False])
def test_embedding_takes_the_colours_of_uns(results, ax, need, palette):
    adata = results.copy()
    given = dict(zip(adata.obs["cell_type"].cat.categories, ["#ff0000", "#00ff00", "#0000ff"], strict=True))
    if palette:
        adata.uns["cell_type_colors"] = list(given.values())
    pl.embedding(adata, color="cell_type", ax=ax)
    shown, cases = drawn(ax, need), (adata.obs["condition"] == "case").to_numpy()
    assert list(shown) == [CONTROLS, *given]
    for name, colour in given.items():
        own = cases & (adata.obs["cell_type"] == name).to_numpy()
        assert np.allclose(shown[name][0], adata.obsm["X_contrapca"][own, :2])
        assert (shown[name][1] == colour) == palette
    assert len({colour for _, colour in shown.values()}) == 4


@pytest.mark.parametrize("color", ["depth", "gene3", "arm", "programme"])
def test_embedding_colours_by_anything(results, ax, color):
    adata = results.copy()
    adata.obs["depth"] = np.arange(120.0)
    pl.embedding(adata, color=color, ax=ax)
    assert len(ax.figure.axes) == (2 if color in ("depth", "gene3") else 1)  # a colour bar


@pytest.mark.filterwarnings("ignore:Counts add up")
def test_cells_of_neither_group_have_a_colour_of_their_own(made, ax, need):
    adata = made.copy()
    tl.contrapca(adata, groupby="cell_type", background="T", foreground="B", blocks="donor", n_comps=2)
    pl.embedding(adata, ax=ax)
    counts = adata.obs["cell_type"].value_counts()
    shown = drawn(ax, need)
    assert len(shown[CASES][0]) == counts["B"]
    assert len(shown[CONTROLS][0]) == counts["T"]
    assert len(shown["neither group"][0]) == counts["Mono"]
    assert len({colour for _, colour in shown.values()}) == 3


def test_embedding_refuses_what_is_not_there(results, ax):
    with pytest.raises(ValueError, match=r"color='cell_typ' is neither .*Did you mean 'cell_type'\?"):
        pl.embedding(results, color="cell_typ", ax=ax)
    with pytest.raises(ValueError, match=r"components=\(1, 4\) must be two of the 3 components"):
        pl.embedding(results, components=(1, 4), ax=ax)


def test_loadings_are_ranked(results, ax):
    assert pl.loadings(results, component=2, n_genes=4, ax=ax) is ax
    W = results.varm["ContraPCs"][:, 1]
    order = np.argsort(-np.abs(W))[:4]
    assert [label.get_text() for label in ax.get_yticklabels()] == results.var_names[order].tolist()
    assert np.allclose([bar.get_width() for bar in ax.patches], W[order], atol=1e-6)


def test_variance_of_unseen_cells(results, ax):
    assert pl.held_out(results, ax=ax) is ax
    found = results.uns["contrapca"]
    lines, *points = ax.collections
    drawn = np.concatenate([np.asarray(part.get_offsets()) for part in points])
    assert np.allclose(sorted(drawn[:, 1]), sorted(found["held_out_ratio"]))
    assert np.allclose([segment[:, 1] for segment in lines.get_segments()], found["held_out_interval"])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "2", "3"]
    real = get.components(results)["supported"]
    kinds = {"supported": real.any(), "not supported": not real.all()}
    assert {text.get_text() for text in ax.get_legend().get_texts()} == {name for name, any_ in kinds.items() if any_}
    adata = results.copy()
    adata.uns["contrapca"] = {name: value for name, value in found.items() if name != "held_out_interval"}
    with pytest.raises(ValueError, match="says nothing of unseen cells"):
        pl.held_out(adata, ax=ax)


@pytest.mark.parametrize("why", ["not found again", "interval", "test"])
def test_what_is_not_supported_is_marked(results, need, why):
    """A component that is not found again, or whose interval reaches 1; all of them where a test finds nothing."""
    adata = results.copy()
    changed = {"found_again": np.array([True, why != "not found again", True])}
    changed["held_out_interval"] = np.array([[2.0, 4], [0.9 if why == "interval" else 1.1, 4], [2, 4]])
    changed["test_n_components"] = 0 if why == "test" else 2
    adata.uns["contrapca"] = adata.uns["contrapca"] | changed
    real = [why != "test", False, why != "test"]
    plt = need("matplotlib.pyplot")
    drawn = [plt.subplots()[1] for _ in range(4)]
    pl.embedding(adata, ax=drawn[0])
    named = [drawn[0].get_xlabel(), drawn[0].get_ylabel()]
    named += [pl.loadings(adata, component=k, ax=drawn[k]).get_xlabel() for k in (1, 2)]
    assert ["(not supported)" in name for name in named] == [not real[0], not real[1]] * 2
    cases, controls = pl.variance(adata, ax=drawn[3]).containers
    assert [bar.get_alpha() == 1 for bar in cases] == [bar.get_alpha() == 1 for bar in controls] == real
    assert np.allclose([bar.get_height() for bar in cases], adata.uns["contrapca"]["variance"])
    plt.close("all")


def test_gamma_path(results, ax, unnamed):
    assert pl.gamma_path(results, n_gammas=5, ax=ax) is ax
    marks = [line for line in ax.lines if np.ptp(line.get_xdata()) == 0]
    gammas = {round(float(line.get_xdata()[0]), 6) for line in marks}
    assert gammas == {round(results.uns["contrapca"][name], 6) for name in ("gamma", "gamma_max")}
    assert len(ax.lines[0].get_xdata()) >= 5
    tl.clvm(unnamed, groupby="arm", background="ctrl", n_comps=1, n_shared=1, mask_var="few")
    with pytest.raises(ValueError, match="CLVM, which has no gamma"):
        pl.gamma_path(unnamed, "clvm", ax=ax)


def test_verdict(results, ax):
    assert pl.verdict(results, ax=ax) is ax
    found = results.uns["contrapca_test"]
    assert found["verdict"].startswith(ax.get_title().replace("\n", " "))
    assert "direction" in ax.get_title()
    points = np.concatenate([np.asarray(part.get_offsets()) for part in ax.collections])
    assert np.allclose(points[:, 1], np.maximum(found["p_values"], 1e-6))
    assert ax.get_yscale() == "log"


def test_show(results, need, monkeypatch):
    pyplot, calls = need("matplotlib.pyplot"), []
    monkeypatch.setattr(pyplot, "show", lambda: calls.append(1))
    for draw in (pl.embedding, pl.loadings, pl.variance, pl.verdict):
        draw(results, show=True)
        draw(results)
        pyplot.close("all")
    assert len(calls) == 4


def test_embedding_draws_the_results_of_the_last_fit(results, ax, need):
    """Also if an older fit, or the user, has something of the same name in obsm."""
    adata = results.copy()
    adata.obsm["contrapca"] = np.zeros((120, 3))
    pl.embedding(adata, ax=ax)
    assert np.abs(np.vstack([places for places, _ in drawn(ax, need).values()])).max() > 0


def test_renamed_groups_are_refused(results, ax):
    """Renamed controls are no cases, and renamed cases are not in neither group."""
    for group, label in (("background", "ctrl"), ("foreground", "case")):
        adata = results.copy()
        adata.obs["condition"] = adata.obs["condition"].cat.rename_categories({label: "other"})
        with pytest.raises(ValueError, match=rf"no longer has '{label}', the {group} of these results"):
            pl.embedding(adata, ax=ax)


@pytest.mark.filterwarnings("ignore:Counts add up")
def test_a_renamed_part_of_the_controls_is_not_drawn_as_cases(made, ax, need):
    adata = made.copy()
    tl.contrapca(adata, groupby="cell_type", background=["T", "Mono"], blocks="donor", n_comps=2)
    counts = adata.obs["cell_type"].value_counts()
    adata.obs["cell_type"] = adata.obs["cell_type"].cat.rename_categories({"Mono": "monocytes"})
    pl.embedding(adata, ax=ax)
    sizes = {name: len(points) for name, (points, _) in drawn(ax, need).items()}
    assert sizes == {CASES: counts["B"], CONTROLS: counts["T"], "neither group": counts["Mono"]}


def test_one_component_is_no_scatter_plot(results, ax):
    adata = results.copy()
    tl.contrapca(adata, **CHOICE, n_comps=1, key_added="one")
    with pytest.raises(ValueError, match=r"needs two components, but adata\.uns\['one'\] has one"):
        pl.embedding(adata, "one", ax=ax)


@pytest.mark.parametrize("column", ["type", "depth"])
def test_cells_without_a_value_are_drawn(results, ax, need, column):
    adata = results.copy()
    cases = (adata.obs["condition"] == "case").to_numpy()
    own = np.arange(120.0) if column == "depth" else np.array([f"t{k % 3}" for k in range(120)], dtype=object)
    own[np.flatnonzero(cases)[:7]] = np.nan
    adata.obs[column] = own
    pl.embedding(adata, color=column, ax=ax)
    shown = drawn(ax, need)
    assert len(shown["no label"][0]) == 7
    assert sum(len(points) for points, _ in shown.values()) == 120
    on_scale = [part.get_array() for part in ax.collections if part.get_array() is not None]
    assert not any(np.ma.getmaskarray(own).any() for own in on_scale)


def test_gamma_path_refuses_other_genes(results, ax):
    adata = results.copy()
    adata.var["highly_variable"] = np.arange(adata.n_vars) % 2 == 0
    adata.uns["contrapca"]["params"] = {**adata.uns["contrapca"]["params"], "mask_var": "highly_variable"}
    with pytest.raises(ValueError, match="genes are not those of"):
        pl.gamma_path(adata, ax=ax)


# ---------------------------------------------------------------- as in scanpy


def test_several_colours_are_panels(results, need, tmp_path):
    axes = pl.embedding(results, color=["cell_type", "gene3"], components="1,3", save=tmp_path / "cells.png")
    assert [ax.get_ylabel().split()[0] for ax in axes] == ["contrapca3"] * 2
    assert axes[0].get_legend().get_title().get_text() == "cell_type"
    assert (tmp_path / "cells.png").stat().st_size > 10_000
    with pytest.raises(ValueError, match=r"color has 2 entries.*leave ax= out"):
        pl.embedding(results, color=["cell_type", "gene3"], ax=axes[0])
    need("matplotlib.pyplot").close("all")


@pytest.mark.parametrize("components", ["1", "1,2,3", "a,b", (1, 1.5), (0, 1), 3])
def test_components_that_are_no_pair(results, ax, components):
    with pytest.raises(ValueError, match="must be two of the 3 components"):
        pl.embedding(results, components=components, ax=ax)


@pytest.mark.parametrize("kind", ["list", "dict", "map"])
def test_palette(results, ax, need, kind):
    names, three = list(results.obs["cell_type"].cat.categories), ["red", "lime", "blue"]
    given = {"list": three, "dict": dict(zip(names, three, strict=True)), "map": "brg"}
    pl.embedding(results, color="cell_type", palette=given[kind], ax=ax)
    colours = [drawn(ax, need)[name][1] for name in names]
    wanted = [need("matplotlib.colors").to_hex(own) for own in three]
    assert colours == wanted if kind != "map" else len(set(colours)) == 3


def test_genes_of_a_layer(results, ax):
    adata = results.copy()
    adata.layers["double"] = adata.X * 2.0
    cases = (adata.obs["condition"] == "case").to_numpy()
    values = adata[:, "gene3"].X.toarray().ravel()[cases]
    for layer, wanted in ((None, values), ("double", 2 * values)):
        ax.clear()
        pl.embedding(adata, color="gene3", layer=layer, ax=ax)
        on_scale = [part.get_array() for part in ax.collections if part.get_array() is not None]
        assert np.allclose(on_scale[0], wanted)


def test_genes_of_lazy_cells(results, ax, need, tmp_path):
    experimental = need("anndata.experimental")
    if not hasattr(experimental, "read_lazy"):
        assert need("anndata").__version__.startswith("0.11")  # it is new in 0.12
        return
    results.write_h5ad(tmp_path / "cells.h5ad")
    lazy = experimental.read_lazy(need("h5py").File(tmp_path / "cells.h5ad"))
    pl.embedding(lazy, color="gene3", ax=ax)
    cases = (results.obs["condition"] == "case").to_numpy()
    on_scale = [part.get_array() for part in ax.collections if part.get_array() is not None]
    assert np.allclose(on_scale[0], results[:, "gene3"].X.toarray().ravel()[cases])


@pytest.mark.parametrize("name", ["embedding", "loadings", "held_out", "variance", "gamma_path", "verdict"])
def test_every_plot_saves(results, ax, tmp_path, name):
    getattr(pl, name)(results, ax=ax, save=tmp_path / f"{name}.pdf", **{"n_gammas": 3} if name == "gamma_path" else {})
    assert (tmp_path / f"{name}.pdf").read_bytes().startswith(b"%PDF")


def test_latents_that_are_gone(results, ax):
    adata = results.copy()
    del adata.obsm["X_contrapca"]
    with pytest.raises(ValueError, match=r"adata\.obsm\['X_contrapca'\].*is gone"):
        pl.embedding(adata, ax=ax)
