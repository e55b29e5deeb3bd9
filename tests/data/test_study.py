"""`Study`: what it is made of, what it refuses, and that functions take all that it holds."""

import numpy as np
import pytest
import scipy.sparse as sp

from conftest import make_groups
from contrapca import (
    CPCA,
    PCPCA,
    PPCA,
    ContraPCA,
    GammaSearch,
    Moments,
    SparseCPCA,
    Study,
    bootstrap,
    check_background,
    check_tables,
    compare,
    contrast_path,
    contrast_test,
    gamma_limits,
    held_out_contrast,
    match_depth,
    posterior,
    regress_out,
    stability_selection,
    within_pairs,
)
from contrapca.exceptions import GroupError, NonFiniteError, TableWarning

pytestmark = pytest.mark.filterwarnings("ignore:PCPCA still shows")

rng = np.random.default_rng(3)
X, Y = make_groups(40, 30, 5)
DONORS = np.repeat([f"d{k}" for k in range(10)], 4), np.repeat([f"c{k}" for k in range(10)], 3)
AGES = rng.uniform(20, 80, 40), rng.uniform(20, 80, 30)
CLASSES = np.repeat(["a", "b"], 20)
FULL = {"blocks": DONORS, "covariates": AGES, "labels": CLASSES}


@pytest.fixture
def frames(need):
    """The same as two frames of pandas, with names of samples."""
    pd = need("pandas")

    def frame(k, rows):
        beside = {"donor": DONORS[k], "age": AGES[k], "w": np.arange(1.0, len(rows) + 1)}
        table = pd.DataFrame(rows, columns=list("vwxyz")).rename(columns={"w": "u"})
        return table.assign(**beside, kind=(CLASSES, ["c"] * 30)[k]).set_axis([f"s{k}.{i}" for i in range(len(rows))])

    return frame(0, X), frame(1, Y)


def test_it_says_what_it_holds():
    study = Study(X, background=Y, **FULL, weights=(np.full(40, 2), None))
    assert repr(study) == (
        "Study of 40 foreground + 30 background samples x 5 features, 10 + 10 blocks, covariates 'covariate 1', "
        "weights, labels (2 different)"
    )
    assert len(study) == 70
    assert list(study.counts) == [40, 30]
    assert "<b>" not in Study(X, background={"<b>": Y})._repr_html_()
    with pytest.raises(AttributeError):
        study.paired = True


def test_columns_of_frames_are_no_features(frames):
    named = {"blocks": "donor", "covariates": "age", "weights": "w", "labels": "kind"}
    study = Study(frames[0], background=frames[1], **named)
    assert study.features == ("v", "u", "x", "y", "z")
    assert study.sample_names.foreground[0] == "s0.0"
    np.testing.assert_array_equal(study.rows["background"], Y)
    given = Study(X, background=Y, **FULL, weights=(np.arange(1.0, 41), np.arange(1.0, 31)))
    for one in (study, Study(frames[0], background=frames[1], **named | {"covariates": ["age"]})):
        model, expected = CPCA(2, gamma=1.0).fit(one), CPCA(2, gamma=1.0).fit(given)
        np.testing.assert_allclose(model.components_, expected.components_, atol=1e-12)
        assert list(model.covariate_names_) == ["age"]
    assert study.labels["background"].tolist() == ["c"] * 30


def test_from_a_frame(frames, need):
    pd, pl = need("pandas"), need("polars")
    both = pd.concat([table.assign(group=name) for table, name in zip(frames, ("case", "ctrl"), strict=True)])
    named = {"blocks": "donor", "covariates": ["age"], "weights": "w", "labels": "kind"}
    expected = Study(frames[0], background=frames[1], **named)
    for table in (both, both.sample(frac=1, random_state=0), pl.from_pandas(both)):
        study = Study.from_frame(table, groupby="group", background="ctrl", **named)
        assert repr(study) == repr(expected)
        found = held_out_contrast(
            CPCA(1, gamma=1.0), Study.from_frame(both, groupby="group", background="ctrl", **named)
        )
        assert found.mean == held_out_contrast(CPCA(1, gamma=1.0), expected).mean
    donors = {"groupby": "donor", "labels": "kind", "foreground": ["d0", "d1"]}
    several = Study.from_frame(both.drop(columns="group"), background={"a": "c0", "b": ["c1", "c2"]}, **donors)
    assert several.rows.names == ("foreground", "a", "b")
    assert list(several.counts) == [8, 3, 6]
    one = Study.from_frame(both.drop(columns="group"), background=["c0", "c1"], **donors)  # a list is one group
    assert one.rows.names == ("foreground", "background")
    assert list(one.counts) == [8, 6]


def test_from_anndata(need):
    anndata, pd = need("anndata"), need("pandas")
    obs = pd.DataFrame(
        {"group": ["case"] * 40 + ["ctrl"] * 30, "donor": np.concatenate(DONORS), "age": np.concatenate(AGES)},
        index=[f"s{i}" for i in range(70)],
    )
    adata = anndata.AnnData(sp.csr_matrix(np.vstack([X, Y])), obs=obs, layers={"twice": 2 * np.vstack([X, Y])})
    adata.var["highly_variable"] = np.array([True, True, False, True, True])
    adata.obsm["pca"] = np.vstack([X, Y])[:, :3]
    named = {"groupby": "group", "background": "ctrl", "blocks": "donor"}
    study = Study.from_anndata(adata, **named, covariates=["age"], layer="twice", mask_var=None)
    np.testing.assert_array_equal(study.rows.foreground, 2 * X)
    assert study.features == tuple(adata.var_names)
    assert study.sample_names["background"][0] == "s40"
    assert study.blocks.foreground == list(DONORS[0])
    assert Study.from_anndata(adata, **named).tables.n_features == 4
    assert Study.from_anndata(adata, **named, obsm="pca").features == ("pca_0", "pca_1", "pca_2")
    for bad, message in (
        ({"groupby": "grup"}, r"groupby='grup' is not a column of adata.obs.*Did you mean 'group'\?"),
        ({"background": "ctl"}, r"background='ctl' does not occur in adata.obs\['group'\].*Did you mean 'ctrl'\?"),
        ({"layer": "twic"}, "layer='twic' is not in adata.layers"),
        ({"blocks": "doner"}, "Did you mean 'donor'"),
        ({"obsm": "pca", "layer": "twice"}, "obsm= takes the place of genes"),
        ({"mask_var": np.zeros(5, dtype=bool)}, "mask_var is False for all 5 genes"),
    ):
        with pytest.raises(GroupError, match=message):
            Study.from_anndata(adata, **named | bad)


def test_names_of_samples(frames):
    names = [f"n{k}" for k in range(40)], [f"m{k}" for k in range(30)]
    assert list(Study(X, background=Y, names=names).sample_names) == list(names)
    study = Study(X, background=Y, names=(names[0], None))
    assert study.without(samples=["n3"]).sample_names.foreground == [*names[0][:3], *names[0][4:]]
    assert study.sample_names["background"] is None
    assert Study(frames[0], background=frames[1], names="kind", blocks="donor").sample_names.foreground[0] == "a"


def test_dicts_and_tuples_of_several_backgrounds():
    parts = {"first": Y[:15], "second": Y[15:]}
    own = DONORS[1][:15], DONORS[1][15:]
    ways = (DONORS[0], *own), (DONORS[0], dict(zip(parts, own, strict=True)))
    ways += ({"foreground": DONORS[0], "second": own[1], "first": own[0]},)
    for blocks in ways:
        assert [len(set(labels)) for labels in Study(X, background=parts, blocks=blocks).blocks] == [10, 5, 5]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"blocks": (DONORS[0][1:], DONORS[1])}, r"blocks of the foreground has shape \(39,\) for 40 rows"),
        ({"covariates": (AGES[0], AGES[1][1:])}, r"covariates of the background has shape \(29,\) for 30 rows"),
        ({"weights": (None, np.ones(3))}, r"weights of the background has shape \(3,\) for 30 rows"),
        ({"labels": CLASSES[1:]}, r"labels of the foreground has shape \(39,\) for 40 rows"),
        ({"blocks": DONORS[0]}, r"blocks is one ndarray, but there are 2 groups \('foreground', 'background'\)"),
        ({"blocks": (DONORS[0],)}, "blocks is a tuple of 1, but there are 2 groups"),
        ({"blocks": {"foregroun": DONORS[0]}}, r"no group 'foregroun'.*Did you mean 'foreground'\?"),
        ({"blocks": (DONORS[0], None)}, "The background has no blocks"),
        ({"covariates": (None, AGES[1])}, "The foreground has no covariates"),
        ({"blocks": "donor"}, "the foreground is of type ndarray, without column names"),
        ({"blocks": DONORS, "paired": True}, r"10 pairs of the foreground \('d0'.*have no row in the background"),
        ({"paired": True}, "pass blocks=, too"),
        ({"blocks": (np.arange(40) // 4, (np.arange(30) // 3).astype(str))}, "Blocks are text in some rows and numb"),
        ({"blocks": DONORS, "paired": "donor"}, "paired='donor' must be True or False"),
        ({"labels": Y}, r"labels of the foreground has shape \(30, 5\).* table of the controls is background="),
        ({"background": X}, "background is a table of another group, too"),
        ({"background": "ctrl"}, "The background of Study is the label 'ctrl', not a table.*from_frame"),
        ({"background": list(CLASSES)}, "background of Study is 40 labels, such as 'a', not a table.*background_label"),
    ],
)
def test_refuses_arrays(given, message):
    with pytest.raises(ValueError, match=message):
        Study(X, **{"background": Y} | given)


def test_refuses_frames(frames, need):
    pd = need("pandas")
    both = pd.concat([table.assign(group=name) for table, name in zip(frames, ("case", "ctrl"), strict=True)])
    cases, controls = (table[list("vuxyz")] for table in frames)
    for call, message in (
        (lambda: Study(frames[0], background=frames[1], blocks="doner"), r"'doner' is not a column.*mean 'donor'\?"),
        (lambda: Study(*frames[:1], background=frames[1], blocks="donor", labels="donor"), "'donor' is used twice"),
        (lambda: Study(cases, background=controls.rename(columns={"x": "q"})), r"1 only in the foreground .*'x'"),
        (lambda: Study(cases, background=controls[list("vxuyz")]), "different order, starting at column 1: 'u'"),
        (lambda: Study.from_frame(both, groupby="grp", background="ctrl"), "groupby='grp' is not a column"),
        (lambda: Study.from_frame(both, groupby="group", background="ctrl", labels="group"), "'group' is used twice"),
        (lambda: Study.from_frame(both, groupby="group", background="cntrl"), r"does not occur.*Did you mean 'ctrl'\?"),
        (lambda: Study.from_frame(both, groupby="group", background="ctrl", foreground="x"), "foreground='x' does not"),
        (
            lambda: Study.from_frame(both, groupby="group", background="ctrl", foreground=["case", "ctrl"]),
            "background and foreground both have 'ctrl'",
        ),
        (lambda: Study.from_frame(both, groupby="group", background=["case", "ctrl"]), "no foreground is left"),
        (
            lambda: Study.from_frame(both, groupby="group", background="ctrl", foreground={"A": ["case"], "B": "case"}),
            r"foreground: 'case' is in several conditions: name each value once",
        ),
    ):
        with pytest.raises(GroupError, match=message):
            call()
    both.loc["s0.3", "group"] = None
    with pytest.raises(GroupError, match="1 of 70 samples have no value"):
        Study.from_frame(both, groupby="group", background="ctrl")
    alike = both.assign(group=["Ctrl"] * 40 + ["ctrl"] * 30)
    with pytest.warns(TableWarning, match="only in case or blanks"):
        Study.from_frame(alike[[*"vuxyz", "group"]], groupby="group", background="ctrl")


def test_what_stands_beside_a_frame_is_in_the_order_of_its_names(frames, need):
    """Row names decide; where one side has only numbers, nobody knows which row is meant (D5)."""
    pd = need("pandas")
    cases, controls = (table[list("vuxyz")] for table in frames)
    expected = Study(cases, background=controls, **FULL)
    ages, donors = frames[0]["age"].sort_values(), frames[0]["donor"][::-1]
    found = Study(cases, background=controls, blocks=(donors, DONORS[1]), covariates=(ages, AGES[1]), labels=CLASSES)
    assert found.blocks.foreground == expected.blocks.foreground
    np.testing.assert_array_equal(found.covariates.foreground["age"], AGES[0])
    numbered = cases.reset_index(drop=True)
    shuffled = pd.Series(AGES[0]).sort_values()  # with the index 17, 3, ...
    for argument, values in (("covariates", shuffled), ("blocks", pd.Series(DONORS[0])[::-1]), ("labels", shuffled)):
        with pytest.raises(GroupError, match=f"{argument} of the foreground has other row names.*to_numpy"):
            Study(numbered, **{argument: values})
    with pytest.raises(GroupError, match="other row names"):
        Study(cases, covariates=ages.rename(index={"s0.0": "else"}))
    assert Study(numbered, blocks=pd.Series(DONORS[0])).blocks.foreground == list(DONORS[0])
    assert Study(cases, blocks=pd.Series(DONORS[0])).blocks.foreground == list(DONORS[0])  # no names to compare
    model = PPCA(1).fit(Study(numbered, covariates=pd.Series(AGES[0])))
    with pytest.raises(GroupError, match="other row names"):
        model.transform(numbered, covariates=shuffled)


def test_parts():
    study = Study(X, background=Y, **FULL, weights=(np.arange(40) % 3, None))
    assert list(study.counts) == [26, 30]  # those of weight 0 are left out
    study = Study(X, background=Y, **FULL)
    mask = np.arange(70) % 2 == 0
    for some in (study[mask], study[np.flatnonzero(mask)]):
        np.testing.assert_array_equal(some.rows.foreground, X[::2])
        np.testing.assert_array_equal(some.rows["background"], Y[::2])
        assert some.blocks.foreground == list(DONORS[0][::2])
        np.testing.assert_array_equal(some.labels.foreground, CLASSES[::2])
        expected = CPCA(1, gamma=1.0).fit(Study(X[::2], background=Y[::2], covariates=(AGES[0][::2], AGES[1][::2])))
        np.testing.assert_allclose(CPCA(1, gamma=1.0).fit(some).components_, expected.components_, atol=1e-12)
    assert len(study[:60]) == 60
    assert list(study.without(blocks=["d0", "c1"]).counts) == [36, 27]
    assert list(study.without(labels=["a"]).counts) == [20, 30]
    assert list(study.without(labels="a", blocks="c1").counts) == [20, 27]
    assert list(Study(X, background=Y, labels=np.arange(40)).without(labels=1).counts) == [39, 30]
    assert study.without(covariates="covariate 1").covariates is None
    sparse = Study(sp.csr_array(X), background=sp.csr_array(Y), blocks=DONORS)[mask]
    np.testing.assert_array_equal(sparse.rows.foreground.toarray(), X[::2])
    of_keys = Study(sp.dok_array(X), background=sp.dok_array(Y))[mask]  # a dict (D11)
    np.testing.assert_array_equal(of_keys.rows.foreground.toarray(), X[::2])
    for call, message in (
        (lambda: study[np.ones(3, dtype=bool)], "The mask has 3 values for 70 samples"),
        (lambda: study[[0, 1, 99]], "numbered from 0 to 69"),
        (lambda: study[:41], "1 sample of the background would be left"),
        (lambda: study.without(blocks=["d77"]), "blocks: the study has no 'd77'"),
        (lambda: study.without(covariates=["sex"]), "covariates: the study has no 'sex'"),
    ):
        with pytest.raises(GroupError, match=message):
            call()
    with pytest.raises(TypeError, match="subset by a mask"):
        study["foreground"]


def test_moments_have_no_samples():
    moments = Moments.from_rows(X), Moments.from_rows(Y)
    study = Study(moments[0], background=moments[1])
    assert repr(study) == "Study of moments (foreground 40 + background 30) of 5 features"
    expected = PCPCA(1, gamma=0.3).fit(X, background=Y)
    np.testing.assert_allclose(PCPCA(1, gamma=0.3).fit(study).components_, expected.components_, atol=1e-9)
    assert gamma_limits(study).pcpca == pytest.approx(gamma_limits(X, background=Y).pcpca)
    for call, message in (
        (lambda: Study(moments[0], background=Y), "Moments and the other as rows"),
        (lambda: Study(*moments[:1], background=moments[1], labels=CLASSES), "Moments have no rows, .*labels="),
        (lambda: contrast_test(study), "needs rows"),
        (lambda: held_out_contrast(PCPCA(1), study), "needs rows"),
        (lambda: study[:3], "needs rows"),
    ):
        with pytest.raises((GroupError, TypeError), match=message):
            call()


def test_functions_take_all_that_it_holds():
    """The table of weights, covariates, blocks and pairs: each is used, or refused with what to do."""
    effect = np.array([3.0, -2.0, 1.0, 0.0, 4.0])
    ages = tuple((own - 50) / 20 for own in AGES)
    plain = Study(X, background=Y, blocks=DONORS, covariates=ages, labels=CLASSES)
    study = Study(
        *(X + np.outer(ages[0], effect),), background=Y + np.outer(ages[1], effect), **FULL | {"covariates": ages}
    )
    quiet = {"progress": False}
    model, same = (CPCA(1, gamma=1.0).fit(one) for one in (study, plain))
    np.testing.assert_allclose(model.transform(study), same.transform(plain), rtol=1e-8)  # whatever the effect is
    np.testing.assert_allclose(
        model.transform(study, center="background"),
        model.transform(study.rows["background"], covariates=ages[1], center="background"),
    )
    for function in (
        lambda one: contrast_test(one, n_splits=3, **quiet).p_values,
        lambda one: held_out_contrast(CPCA(1, gamma=1.0), one).log_ratios,
        lambda one: [entry.score for entry in compare(one, n_components=1, **quiet).entries if entry.method == "PCA"],
        lambda one: check_background(one, n_splits=3, **quiet).ratio_background,
        lambda one: stability_selection(SparseCPCA(1, sparsity=2, gamma=1.0), one, n_splits=3, **quiet).frequencies,
        lambda one: gamma_limits(one).pcpca,
        lambda one: bootstrap(CPCA(1, gamma=1.0).fit(one), one, n_resamples=3, **quiet).W,
        lambda one: posterior(CPCA(1, gamma=1.0).fit(one), one, draws=200, **quiet).W,
        lambda one: contrast_path(CPCA(1), regress_out(one), gammas=3).eigenvalues,
        lambda one: GammaSearch(CPCA(1), gammas=[0.5, 1.0]).fit(regress_out(one)).scores_,
    ):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(function(study), function(plain), rtol=1e-6)
    weighted = Study(X, background=Y, weights=(np.full(40, 2), np.full(30, 2)))
    for call, message in (
        (lambda: contrast_test(weighted), r"contrast_test takes no weights"),
        (lambda: compare(weighted), "compare takes no weights"),
        (lambda: check_background(weighted), "check_background takes no weights"),
        (lambda: match_depth(weighted), "match_depth takes no weights"),
        (lambda: contrast_path(CPCA(1), study), r"contrast_path takes no covariates.*pass regress_out\(study\)"),
        (lambda: GammaSearch(CPCA(1)).fit(study), r"GammaSearch takes no covariates.*pass regress_out\(study\)"),
        (lambda: within_pairs(study), "needs a Study with pairs"),
        (lambda: contrast_test(study, background=Y), "leave background= out"),
        (lambda: PCPCA(1).fit(study, background=Y), "leave background= out"),
        (lambda: model.transform(study, covariates=ages[0]), "leave covariates= out"),
        (lambda: contrast_test(X), "was given one"),
        (lambda: contrast_test(Study(X)), "was given one"),
        (lambda: PCPCA(1).fit(Study(X)), "was given one"),
    ):
        with pytest.raises(GroupError, match=message):
            call()
    holes = Study(np.where(rng.random(X.shape) < 0.1, np.nan, X), background=Y)
    with pytest.raises(NonFiniteError, match="These rows must be complete"):
        SparseCPCA(1, gamma=1.0).fit(holes)
    with pytest.raises(GroupError, match="check_background needs complete rows"):
        check_background(holes)


def test_blocks_and_pairs_count_everywhere():
    pairs = np.arange(30)
    cases, animals = X[:30], np.repeat(np.arange(15), 2)
    rows, by_pairs = Study(cases, background=Y), Study(cases, background=Y, blocks=(pairs, pairs), paired=True)
    by_blocks = Study(cases, background=Y, blocks=(animals, animals + 15))
    model = CPCA(1, gamma=1.0).fit(cases, background=Y)
    for function in (
        lambda one: contrast_test(one, n_splits=3, progress=False).statistics,
        lambda one: held_out_contrast(CPCA(1, gamma=1.0), one).log_ratios,
        lambda one: check_background(one, n_splits=3, progress=False).p_background,
        lambda one: bootstrap(model, one, n_resamples=5, progress=False).W,
        lambda one: stability_selection(SparseCPCA(1, sparsity=2, gamma=1.0), one, n_splits=25, progress=False).in_any,
        lambda one: GammaSearch(CPCA(1), gammas=[0.5, 1.0]).fit(one).scores_,
    ):
        plain = function(rows)
        assert not np.array_equal(plain, function(by_blocks))
    assert contrast_test(by_pairs, n_splits=3, progress=False).units == "30 pairs"


def test_depths_of_a_study_are_matched():
    random = np.random.default_rng(0)
    cases, controls = random.poisson(2, size=(60, 50)), random.poisson(4, size=(50, 50))
    blocks = np.arange(60) // 3, 100 + np.arange(50) // 2
    study = match_depth(Study(cases, background=controls, blocks=blocks, labels=np.arange(60)), random_state=0)
    rows = study.labels.foreground  # those that are left
    assert study.blocks.foreground == (rows // 3).tolist()
    tables = match_depth(cases, background=controls, random_state=0)
    np.testing.assert_array_equal(study.rows.foreground, tables[0])
    np.testing.assert_array_equal(rows, tables[2])
    test = contrast_test(Study(cases, background=controls, blocks=blocks), depth="match", n_splits=3, progress=False)
    assert test.units.endswith("of equal depth")


def test_a_missing_label_in_a_list_is_not_the_text_nan():
    labels = Study(X, background=Y, labels=["a", np.nan] * 20).labels.foreground
    assert [label for label in labels.tolist() if label == label] == ["a"] * 20
    assert repr(Study(X, background=Y, labels=["a", None] * 20)).endswith("labels (1 different)")
    with pytest.raises(GroupError, match="blocks of the foreground has no label for 20 of 40 rows"):
        Study(X, background=Y, blocks=(["a", np.nan] * 20, DONORS[1]))


def test_checks_know_labels_and_blocks():
    names = {"labels": ["a", "A "] * 20}
    assert [finding.check for finding in check_tables(Study(X, background=Y, **names))] == ["spelling"]


@pytest.mark.filterwarnings("error")
def test_methods_of_a_model_take_a_study():
    """Without a warning about names that the study knows; a study of other features is refused, as a frame is."""
    rng = np.random.default_rng(0)
    cases, controls = rng.normal(size=(40, 4)), rng.normal(size=(30, 4))
    study = Study(cases, background=controls, features=list("abcd"))
    model = ContraPCA(2, shorten=False).fit(study)
    plain = ContraPCA(2, shorten=False).fit(cases, background=controls)
    own = plain.transform(controls, center="background")
    np.testing.assert_array_equal(model.transform(study, center="background"), own)
    for name in ("score_samples", "contrast_score", "impute"):
        np.testing.assert_array_equal(getattr(model, name)(study), getattr(plain, name)(cases))
    np.testing.assert_array_equal(model.latent_posterior(study)[0], model.transform(study))
    other = Study(cases, background=controls, features=list("wxyz"))
    with pytest.raises(ValueError, match="not the 4 fitted features"):
        model.transform(other)
    with pytest.raises(TypeError, match="is a Study: pass its rows"):
        ContraPCA(2).partial_fit(study, background=study)


def test_one_column_is_not_a_table():
    pandas = pytest.importorskip("pandas")
    column = pandas.Series(np.arange(9.0))
    with pytest.raises(ValueError, match="is one column of 9 values"):
        ContraPCA().fit(column, background=np.ones((4, 2)))
