"""Wrong arguments get an error that says what to do, and leave the AnnData as it was."""

import numpy as np
import pytest
import scipy.sparse as sp

from contrapca import get, pl, tl
from contrapca.exceptions import (
    ContrastWarning,
    GroupError,
    InfeasibleGammaError,
    ModelFileError,
    RankError,
    SingularGroupError,
)
from single_cell.conftest import PLAIN, dense, snapshot
from single_cell.test_matrices import chunked

pytestmark = pytest.mark.filterwarnings("ignore:The cases are all cells with")  # in "arm"

GOOD = {"groupby": "arm", "background": "ctrl"}


def one_level(adata):
    adata.obs["arm"] = "ctrl"


def no_level(adata):
    adata.obs["arm"] = np.nan


def missing_levels(adata):
    arm = adata.obs["arm"].astype("category")
    arm.iloc[:7] = np.nan
    adata.obs["arm"] = arm


def twins(adata):
    adata.var_names = ["twin", "twin", *adata.var_names[2:]]


def no_x(adata):
    adata.X = None


def empty_mask(adata):
    adata.var["none"] = False


def word_mask(adata):
    adata.var["words"] = "yes"


def holes_in_mask(adata):
    adata.var["holes"] = np.array([True, None] * 20, dtype=object)


def one_case(adata):
    adata.obs["arm"] = ["case", *["ctrl"] * 119]


def infinite(adata):
    adata.X = np.where(np.arange(40) == 3, np.inf, dense(adata))


def missing_donors(adata):
    donors = adata.obs["whose"].astype(str).to_numpy(dtype=object)
    donors[5] = None
    adata.obs["whose"] = donors


def one_donor(adata):
    adata.obs["whose"] = np.where(adata.obs["arm"] == "ctrl", "a", adata.obs["whose"].astype(str))


NOTHING = lambda adata: None  # noqa: E731
BAD = [
    (NOTHING, {"groupby": "arms"}, r"groupby='arms' is not a column of adata\.obs, only .*Did you mean 'arm'\?"),
    (NOTHING, {"groupby": "zzz"}, r"groupby='zzz' is not a column of adata\.obs, only 'condition', .*'arm'\.$"),
    (one_level, {}, r"All values of adata\.obs\['arm'\] are background, so no foreground is left"),
    (no_level, {}, r"does not occur in adata\.obs\['arm'\], which has no values"),
    (missing_levels, {}, r"7 of 120 samples have no value in adata\.obs\['arm'\]: .* foreground with foreground="),
    (NOTHING, {"background": "Ctrl"}, r"background='Ctrl' does not occur .* has .*'ctrl'.*Did you mean 'ctrl'\?"),
    (NOTHING, {"background": "contrl"}, r"background='contrl' .*Did you mean 'ctrl'\?"),
    (NOTHING, {"background": 0}, r"background=0 does not occur in .*, which has 'treated', 'case', 'ctrl'\.$"),
    (NOTHING, {"background": []}, r"background= names no value of"),
    (NOTHING, {"foreground": "cases"}, r"foreground='cases' .*Did you mean 'case'\?"),
    (NOTHING, {"foreground": []}, r"foreground= names no value: leave it out"),
    (NOTHING, {"foreground": ["case", "ctrl"]}, r"background and foreground both have 'ctrl'"),
    (NOTHING, {"background": ["ctrl", "case", "treated"]}, r"are background, so no foreground is left"),
    (one_case, {}, r"The foreground has 1 cell: each group needs at least 2"),
    (twins, {}, r"1 name of adata\.var_names occur more than once \('twin'\).*var_names_make_unique"),
    (NOTHING, {"layer": "count"}, r"layer='count' is not in .*, which has 'counts'\. Did you mean 'counts'\?"),
    (NOTHING, {"obsm": "X_pca"}, r"obsm='X_pca' is not in adata\.obsm, which has nothing"),
    (NOTHING, {"obsm": "X_pca", "layer": "counts"}, r"leave layer= and mask_var= out"),
    (no_x, {}, r"adata has no X: name a layer with layer="),
    (NOTHING, {"mask_var": "high"}, r"mask_var='high' is not a column of adata\.var, .*Did you mean 'highly'\?"),
    (empty_mask, {"mask_var": "none"}, r"adata\.var\['none'\] is False for all 40 genes"),
    (NOTHING, {"mask_var": np.zeros(40, dtype=bool)}, r"mask_var is False for all 40 genes"),
    (NOTHING, {"mask_var": np.ones(39, dtype=bool)}, r"mask_var has type bool and shape \(39,\): a mask is"),
    (NOTHING, {"mask_var": np.arange(40)}, r"mask_var has type int64 and shape \(40,\)"),
    (word_mask, {"mask_var": "words"}, r"adata\.var\['words'\] has type object.* each of the 40 genes"),
    (holes_in_mask, {"mask_var": "holes"}, r"adata\.var\['holes'\] has no value for 20 of the 40 genes.*fillna"),
    (NOTHING, {"groupby": np.array(["ctrl"])}, r"groupby is a ndarray: pass the name of a column of adata\.obs"),
    (NOTHING, {"blocks": ["donor"]}, r"blocks is a list: pass the name of a column of adata\.obs, not its values"),
    (NOTHING, {"blocks": "donors"}, r"blocks='donors' is not a column of adata\.obs"),
    (missing_donors, {"blocks": "whose"}, r"no label for 1 of \d+ rows"),
    (one_donor, {"blocks": "whose"}, r"The background has 1 block: .* needs at least"),
    (NOTHING, {"key_added": "a/b"}, r"key_added='a/b' cannot be a key: .*no '/'"),
    (NOTHING, {"key_added": ""}, r"key_added='' cannot be a key"),
    (infinite, {}, r"Input contains infinity.*'gene3'"),
]  # fmt: skip
FITS = [
    (NOTHING, {"n_comps": 40}, r"n_comps=40 must be a whole number from 1 to 39, less than the 40 genes"),
    (NOTHING, {"n_comps": 0}, r"n_comps=0 must be"),
    (NOTHING, {"n_comps": 2.0}, r"n_comps=2.0 must be"),
    (NOTHING, {"dtype": "int8"}, r"dtype='int8' is not valid"),
    (NOTHING, {"gamma": 5.0}, r"gamma=5 is too large: at or above the limit"),
    (NOTHING, {"gamma": "strong"}, r"gamma='strong' must be"),
    (NOTHING, {"scale": "both"}, r"scale='both' is not valid"),
    (NOTHING, {"random_state": np.random.default_rng(0)}, r"random_state=.* must be a whole number or None"),
]
CASES = [
    *((tl.contrapca, *case) for case in BAD + FITS),
    *((tool, *case) for tool in (tl.test, tl.compare) for case in BAD[::4]),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "change", "arguments", "message"), CASES)
def test_refused(unnamed, tool, change, arguments, message):
    change(unnamed)
    before = snapshot(unnamed)
    with pytest.raises((ValueError, TypeError), match=message):
        tool(unnamed, **GOOD | arguments)
    assert snapshot(unnamed) == before


def test_cells_without_a_value_may_be_of_neither_group(unnamed):
    expected = unnamed.copy()
    tl.contrapca(expected, **PLAIN, foreground="case")
    arm = unnamed.obs["arm"].astype("category")
    arm[arm == "treated"] = np.nan
    unnamed.obs["arm"] = arm
    tl.contrapca(unnamed, **PLAIN, foreground="case")
    assert np.array_equal(unnamed.obsm["X_contrapca"], expected.obsm["X_contrapca"])


def test_twins_outside_the_mask_do_no_harm(unnamed):
    twins(unnamed)
    unnamed.var["single"] = np.arange(40) > 1
    tl.contrapca(unnamed, **PLAIN, mask_var="single")


def test_no_anndata():
    with pytest.raises(TypeError, match="adata is a ndarray: pass an AnnData"):
        tl.contrapca(np.ones((4, 3)), **GOOD)


# ---------------------------------------------------------------- counts


def test_counts_are_warned_of(unnamed):
    with pytest.warns(ContrastWarning, match=r"look like counts .*sc\.pp\.log1p"):
        tl.contrapca(unnamed, **PLAIN, layer="counts")
    with pytest.warns(ContrastWarning, match="log1p"):
        tl.test(unnamed, **GOOD, layer="counts", mask_var="few")


@pytest.mark.parametrize("values", ["log", "binary", "negative", "half"])
def test_other_values_are_not(unnamed, values):
    counts = dense(unnamed, "counts")
    unnamed.X = {"log": np.log1p(counts), "binary": counts > 0, "negative": counts - 1, "half": counts / 2}[
        values
    ] * 1.0
    tl.contrapca(unnamed, **PLAIN)


# ---------------------------------------------------------------- where results cannot be stored


def test_backed_views_and_copies(unnamed, tmp_path, need):
    unnamed.write_h5ad(tmp_path / "cells.h5ad")
    backed = need("anndata").read_h5ad(tmp_path / "cells.h5ad", backed="r")
    for given, copy, what in ((backed, True, "copy=True"), (backed[:90], False, "This view")):
        with pytest.raises(ValueError, match=rf"{what} would need a new file.*adata\.to_memory\(\)"):
            tl.contrapca(given, **PLAIN, copy=copy)
    assert not backed.uns
    assert tl.contrapca(backed[:90].to_memory(), **PLAIN) is None
    backed.file.close()


# ---------------------------------------------------------------- stored results


def test_results_that_are_not_there(unnamed):
    tl.contrapca(unnamed, **PLAIN, key_added="mine")
    for call in (get.model, get.loadings, pl.embedding, pl.loadings, pl.variance, pl.gamma_path):
        with pytest.raises(ValueError, match=r"no such results in adata\.uns\['contrapca'\], only 'mine'"):
            call(unnamed)
        with pytest.raises(ValueError, match="Did you mean 'mine'"):
            call(unnamed, "mines")
    with pytest.raises(ValueError, match=r"adata\.uns\['contrapca_test'\], run contrapca\.tl\.test first"):
        pl.verdict(unnamed)


def test_damaged_models(unnamed):
    tl.contrapca(unnamed, **PLAIN)
    members = unnamed.uns["contrapca"]["model"]
    for change in ("header", "fit.components", "fit.model.W", "fit.scaling.foreground.scale"):
        unnamed.uns["contrapca"]["model"] = {name: value for name, value in members.items() if name != change}
        with pytest.raises(ModelFileError, match=r"adata\.uns\['contrapca'\]\['model'\]"):
            get.model(unnamed)
    unnamed.uns["contrapca"]["model"] = members | {"header": np.frombuffer(b"{}", dtype=np.uint8)}
    with pytest.raises(ModelFileError, match="not a readable contrapca file: 'format' is missing"):
        get.model(unnamed)


@pytest.mark.parametrize("component", [4, 0, -1, 1.5])
def test_components_that_are_not_there(unnamed, component):
    tl.contrapca(unnamed, **PLAIN)
    for call in (get.loadings, pl.loadings):
        with pytest.raises(ValueError, match=f"component={component}"):
            call(unnamed, component=component)


def test_groups_are_errors_of_groups(unnamed):
    with pytest.raises(GroupError):
        tl.contrapca(unnamed, **GOOD | {"background": "none"})


# ---------------------------------------------------------------- in scanpy's manner


def test_groups_may_be_positional_and_of_any_sequence(unnamed, need):
    pandas = need("pandas")
    tl.contrapca(unnamed, **PLAIN)
    expected = unnamed.obsm["X_contrapca"]
    rest = {name: value for name, value in PLAIN.items() if name not in ("groupby", "background")}
    tl.contrapca(unnamed, "arm", "ctrl", **rest)
    assert np.array_equal(unnamed.obsm["X_contrapca"], expected)
    for background in (
        pandas.Series(["ctrl"]),
        pandas.Index(["ctrl"]),
        {"background": pandas.Series(["ctrl"])},
        {"ctrl"},
    ):
        tl.contrapca(unnamed, **rest, groupby="arm", background=background)
        assert np.array_equal(unnamed.obsm["X_contrapca"], expected)


def test_groups_may_be_days(unnamed, need):
    pandas = need("pandas")
    tl.contrapca(unnamed, **PLAIN)
    expected = unnamed.obsm["X_contrapca"]
    unnamed.obs["day"] = pandas.to_datetime(np.where(unnamed.obs["arm"] == "ctrl", "2024-01-01", "2024-02-01"))
    for background in ("2024-01-01", pandas.Timestamp("2024-01-01"), np.datetime64("2024-01-01")):
        tl.contrapca(unnamed, **PLAIN | {"groupby": "day", "background": background})
        assert np.array_equal(unnamed.obsm["X_contrapca"], expected)
        assert unnamed.uns["contrapca"]["params"]["background"] == "2024-01-01"
    with pytest.raises(GroupError, match=r"which has .*'2024-01-01'.*Did you mean '2024-01-01'\?"):
        tl.contrapca(unnamed, **PLAIN | {"groupby": "day", "background": "2024-01-02"})


def test_no_background(unnamed):
    with pytest.raises(GroupError, match=r"background=None names no controls.*which has .*'ctrl'"):
        tl.contrapca(unnamed, **PLAIN | {"background": None})


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_nothing_but_zeros(unnamed, kind):
    unnamed.X = kind(np.zeros(unnamed.shape))
    for tool in (tl.contrapca, tl.test):
        with pytest.raises(GroupError, match="All values of the 40 genes that are used are 0"):
            tool(unnamed, **GOOD)


def test_errors_name_n_comps(unnamed):
    few = unnamed[np.r_[:3, 117:120]].copy()
    with pytest.raises(RankError, match=r"but n_comps=5 .*smaller n_comps"):
        tl.contrapca(few, **GOOD | {"n_comps": 5})
    with pytest.raises(InfeasibleGammaError, match="with n_comps=3") as found:
        tl.pcpca(unnamed, **PLAIN, gamma=0.9999)
    assert (found.value.parameter, found.value.size) == ("n_comps", 3)
    with pytest.raises(SingularGroupError, match=r"ridge='auto'"):  # says nothing of n_comps
        tl.ratiopca(few, **GOOD | {"n_comps": 1}, ridge=0)


def test_lack_of_memory_is_said_as_such(unnamed, need, monkeypatch):
    need("dask")

    def no_room(number):
        raise MemoryError

    unnamed.layers["lazy"] = chunked(dense(unnamed), [60, 60], need, no_room)
    with pytest.raises(MemoryError, match="ran out of memory"):
        tl.contrapca(unnamed, **PLAIN, layer="lazy")
    monkeypatch.setattr("contrapca.anndata._cells.available_memory", lambda: 1e4)
    with pytest.raises(MemoryError, match=r"Reading 40 genes of 120 cells takes about .* GB.*mask_var="):
        tl.contrapca(unnamed, **PLAIN, layer="lazy")
    monkeypatch.setattr("contrapca.anndata._cells.KEEP_BYTES", 0)
    monkeypatch.setattr("contrapca.anndata._cells.MOMENTS_AT_ONCE", 2)
    with pytest.raises(MemoryError, match=r"Reducing 40 genes to moments takes about .* GB.*mask_var="):
        tl.contrapca(unnamed, **PLAIN, layer="lazy")
    unnamed.X = sp.csr_matrix(dense(unnamed))
    tl.contrapca(unnamed, **PLAIN)
    with pytest.raises(MemoryError, match=r"without gaps, as within= and regress_out= need them"):
        tl.contrapca(unnamed, **PLAIN, within="cell_type")
