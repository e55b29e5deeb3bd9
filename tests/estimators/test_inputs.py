"""What may be given: frames, sparse, memmap, float32, stacked groups; and what comes back."""

import functools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import contrapca
import oracles
from conftest import make_groups
from contrapca import CPCA, PCPCA, PPCA, ContraPCA, contrast_test, exceptions, gamma_limits, held_out_contrast
from contrapca.data import _scaling
from contrapca.data.rows._storage import blocks

METHODS = ["transform", "score_samples", "contrast_score"]


@pytest.fixture
def sparse_groups():
    X = sp.random(80, 600, density=0.08, random_state=0, format="csr")
    Y = sp.random(60, 600, density=0.08, random_state=1, format="csr")
    return X, Y


MATRICES = [pytest.param(kind, marks=pytest.mark.slow) for kind in (sp.csr_matrix, sp.csc_matrix)]  # as the arrays


@pytest.mark.parametrize("convert", [sp.csr_array, sp.csc_array, *MATRICES])
@pytest.mark.parametrize("solver", ["auto", "eigh"])
@pytest.mark.parametrize("scale", [None, "group", "pooled"])
def test_sparse_equals_dense(sparse_groups, convert, solver, scale):
    X, Y = sparse_groups
    kind = {"n_components": 2, "gamma": 0.3, "scale": scale}
    dense = PCPCA(**kind).fit(X.toarray(), background=Y.toarray())
    sparse = PCPCA(**kind, solver=solver).fit(convert(X), background=convert(Y))
    np.testing.assert_allclose(sparse.loadings_, dense.loadings_, atol=1e-8)
    given = {"n_components": 2, "scale": scale}
    limits = [
        gamma_limits(convert(X), background=convert(Y), solver=solver, **given),
        gamma_limits(X.toarray(), background=Y.toarray(), **given),
    ]
    assert limits[0].pcpca == pytest.approx(limits[1].pcpca, rel=1e-8)
    for method in METHODS:
        found = getattr(sparse, method)(convert(X))
        np.testing.assert_allclose(found, getattr(dense, method)(X.toarray()), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("solver", ["auto", "lanczos", "eigh"])
def test_sparse_rows_are_never_densified(sparse_groups, solver, monkeypatch):
    X, Y = sparse_groups
    rows = {X.shape[0], Y.shape[0]}

    def guarded(original):
        def densify(self, *args, **kwargs):
            assert self.shape[0] not in rows or self.shape[1] != 600, "a table of rows was made dense"
            return original(self, *args, **kwargs)

        return densify

    for kind in (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix):
        for name in ("toarray", "todense"):
            monkeypatch.setattr(kind, name, guarded(getattr(kind, name)))
    model = PCPCA(n_components=2, solver=solver, scale="group").fit(X, background=Y)
    for method in METHODS:
        assert np.isfinite(getattr(model, method)(X)).all()
    with pytest.raises(AssertionError, match="made dense"):  # the guard works
        X.toarray()


def test_one_group_sparse(sparse_groups):
    X, Y = sparse_groups
    mixed = PCPCA(n_components=2, gamma=0.3).fit(X, background=Y.toarray())
    both = PCPCA(n_components=2, gamma=0.3).fit(X, background=Y)
    np.testing.assert_allclose(mixed.loadings_, both.loadings_, atol=1e-9)


@pytest.mark.parametrize("solver", ["eigh", "dual", "lanczos"])
@pytest.mark.parametrize("estimator", [PCPCA, CPCA])
def test_float32_in_float32_out(groups, solver, estimator):
    X, Y = (table.astype(np.float32) for table in groups)
    single = estimator(n_components=2, gamma=0.3, solver=solver).fit(X, background=Y)
    double = estimator(n_components=2, gamma=0.3, solver=solver).fit(*groups[:1], background=groups[1])
    diagnostics = {"objective_history_"}  # as precise as objective()
    arrays = [name for name, value in vars(single).items() if isinstance(value, np.ndarray) and name not in diagnostics]
    assert {getattr(single, name).dtype for name in arrays} == {np.dtype(np.float32)}
    np.testing.assert_allclose(single.components_, double.components_, atol=1e-5)
    Z = single.transform(X)
    assert Z.dtype == np.float32
    np.testing.assert_allclose(Z, double.transform(groups[0]), atol=1e-4)
    assert single.inverse_transform(Z).dtype == np.float32
    if estimator is PCPCA:
        assert single.sample(3, random_state=0).dtype == np.float32
        assert single.score_samples(X).dtype == np.float32
        np.testing.assert_allclose(single.score_samples(X), double.score_samples(groups[0]), rtol=1e-4)


def test_memmap(groups, tmp_path):
    X, Y = groups
    for name, table in (("x", X), ("y", Y)):
        np.save(tmp_path / f"{name}.npy", table)
    on_disk = [np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "xy"]
    model = PCPCA(n_components=2).fit(on_disk[0], background=on_disk[1])
    plain = PCPCA(n_components=2).fit(X, background=Y)
    np.testing.assert_array_equal(model.loadings_, plain.loadings_)
    np.testing.assert_array_equal(model.transform(on_disk[0]), plain.transform(X))


@pytest.mark.parametrize("solver", ["eigh", "lanczos"])
def test_a_mean_of_a_million_in_sparse_rows(groups, solver):
    X, Y = (table / table.std(axis=0) for table in groups)
    near = PCPCA(n_components=2, gamma=0.3).fit(X, background=Y)
    far = PCPCA(n_components=2, gamma=0.3, solver=solver)
    far.fit(sp.csr_array(X + 1e6), background=sp.csr_array(Y + 1e6))
    np.testing.assert_allclose(far.components_, near.components_, atol=1e-6)


@pytest.mark.parametrize("solver", ["eigh", "lanczos"])
def test_sparse_entries_stored_in_parts(sparse_groups, solver):
    """scipy allows an entry to be the sum of several stored ones."""
    X, Y = sparse_groups
    parts = X.tocoo()
    twice = sp.csr_array((X.shape[0], X.shape[1]))
    twice.indptr = 2 * X.indptr
    twice.indices = np.repeat(X.indices, 2)
    twice.data = np.column_stack([0.25 * X.data, 0.75 * X.data]).ravel()
    np.testing.assert_allclose(twice.toarray(), parts.toarray())
    whole = PCPCA(n_components=2, gamma=0.3, solver=solver).fit(X, background=Y)
    model = PCPCA(n_components=2, gamma=0.3, solver=solver).fit(twice, background=Y)
    assert model.noise_variance_ == pytest.approx(whole.noise_variance_, rel=1e-9)
    np.testing.assert_allclose(model.score_samples(twice), whole.score_samples(X), rtol=1e-8)
    assert twice.nnz == 2 * X.nnz  # the user's matrix is left as it was


@pytest.mark.parametrize("solver", ["eigh", "dual", "lanczos"])
@pytest.mark.parametrize("constant", [1.0, 0.1])
def test_constant_background(solver, constant, tmp_path):
    """No variance to contrast with: as without one; and it can be saved."""
    X, _ = make_groups(30, 5, 8)
    model = PCPCA(n_components=2, gamma=0.3, solver=solver).fit(X, background=np.full((10, 8), constant))
    oracles.same_subspace(model.components_.T, PPCA(n_components=2).fit(X).components_.T, 1e-8)
    np.testing.assert_array_equal(model.background_variance_ratio_, 0)
    assert gamma_limits(X, background=np.full((10, 8), constant), n_components=2, solver=solver).pcpca == 1
    model.save(tmp_path / "model.npz")
    assert contrapca.load(tmp_path / "model.npz").gamma_ == 0.3
    strongest = PCPCA(n_components=2, solver=solver).fit(X, background=np.full((10, 8), constant))
    assert strongest.gamma_max_ == 1


@pytest.mark.parametrize("solver", ["dual", "lanczos", "eigh"])
def test_directions_of_very_different_size(solver):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((30, 100)), rng.standard_normal((20, 100))
    X += 1e6 * np.outer(rng.standard_normal(30), np.eye(100)[7])
    model = CPCA(n_components=2, gamma=0.3, solver=solver).fit(X, background=Y)
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(2), atol=1e-12)
    oracles.same_subspace(model.components_.T, np.linalg.eigh(oracles.contrast_matrix(X, Y, 0.3))[1][:, -2:], 1e-5)


def test_groups_of_very_different_size():
    """A huge background does not take the foreground's digits, at gamma = 0 least of all."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((10, 100)), 1e8 * rng.standard_normal((9, 100))
    model = PCPCA(n_components=2, gamma=0, solver="dual").fit(X, background=Y)
    oracles.same_subspace(model.components_.T, PPCA(n_components=2).fit(X).components_.T, 1e-6)


@pytest.mark.parametrize("solver", ["eigh", "dual", "lanczos"])
@pytest.mark.parametrize("estimator", [PCPCA, CPCA, PPCA])
def test_a_mean_of_a_million_changes_nothing(groups, solver, estimator):
    X, Y = groups
    X, Y = X / X.std(axis=0), Y / Y.std(axis=0)
    given = {"background": Y} if estimator is not PPCA else {}
    far = {"background": Y + 1e6} if estimator is not PPCA else {}
    kind = {} if estimator is PPCA else {"gamma": 0.3}
    near = estimator(n_components=2, solver=solver, **kind).fit(X, **given)
    shifted = estimator(n_components=2, solver=solver, **kind).fit(X + 1e6, **far)
    np.testing.assert_allclose(shifted.components_, near.components_, atol=1e-6)
    np.testing.assert_allclose(shifted.transform(X + 1e6), near.transform(X), atol=1e-6)


def test_row_blocks_change_nothing(groups, monkeypatch):
    X, Y = groups
    model = PCPCA(n_components=2, gamma=0.3, scale="group").fit(X, background=Y)
    whole = [getattr(model, method)(X) for method in METHODS]
    monkeypatch.setattr(_scaling, "blocks", functools.partial(blocks, n_bytes=700))
    assert len(list(_scaling.blocks(X))) > 15
    for method, expected in zip(METHODS, whole, strict=True):
        np.testing.assert_allclose(getattr(model, method)(X), expected, rtol=1e-10, atol=1e-10)


# ---------------------------------------------------------------- stacked groups


def stacked(groups, seed=0):
    X, Y = groups
    order = np.random.default_rng(seed).permutation(len(X) + len(Y))
    return np.vstack([X, Y])[order], np.repeat(["case", "control"], [len(X), len(Y)])[order]


def test_background_label_equals_background(groups):
    X, Y = groups
    rows, labels = stacked(groups)
    left = PCPCA(n_components=2, gamma=0.3, background_label="control").fit(rows, labels)
    right = PCPCA(n_components=2, gamma=0.3).fit(X, background=Y)
    np.testing.assert_allclose(left.loadings_, right.loadings_, atol=1e-10)
    assert left.score(rows, labels) == pytest.approx(right.score(X), rel=1e-10)
    assert left.score(rows) == pytest.approx(right.score_samples(rows).mean(), rel=1e-10)


def test_fit_transform_of_stacked_rows_keeps_their_order(groups):
    rows, labels = stacked(groups)
    model = PCPCA(n_components=2, background_label="control")
    Z = model.fit_transform(rows, labels)
    assert Z.shape == (len(rows), 2)
    np.testing.assert_array_equal(Z, model.transform(rows))


@pytest.mark.parametrize("kind", ["list", "bool", "int", "series", "categorical"])
def test_kinds_of_labels(groups, kind, need):
    rows, labels = stacked(groups)
    is_control = labels == "control"
    label, y = {
        "list": lambda: ("control", list(labels)),
        "bool": lambda: (True, is_control),
        "int": lambda: (1, is_control.astype(int)),
        "series": lambda: ("control", need("pandas").Series(labels, index=np.arange(len(labels))[::-1])),
        "categorical": lambda: ("control", need("pandas").Categorical(labels)),
    }[kind]()
    model = CPCA(n_components=2, gamma=0.3, background_label=label).fit(rows, y)
    expected = CPCA(n_components=2, gamma=0.3).fit(rows[~is_control], background=rows[is_control])
    np.testing.assert_allclose(model.components_, expected.components_, atol=1e-12)


def test_in_a_pipeline_and_a_grid_search(groups):
    rows, labels = stacked(groups)
    pipeline = make_pipeline(StandardScaler(), PCPCA(n_components=2, background_label="control"))
    grouped = np.argsort(labels, kind="stable")  # cases first: only a stratified splitter mixes the groups
    search = GridSearchCV(pipeline, {"pcpca__gamma": [0.0, 0.2, 0.4]}, cv=StratifiedKFold(3))
    search.fit(rows[grouped], labels[grouped])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    best = search.best_estimator_
    scaled = StandardScaler().fit_transform(rows)
    direct = PCPCA(n_components=2, gamma=search.best_params_["pcpca__gamma"])
    direct.fit(scaled[labels == "case"], background=scaled[labels == "control"])
    np.testing.assert_allclose(best[-1].loadings_, direct.loadings_, atol=1e-9)
    assert best.transform(rows).shape == (len(rows), 2)
    on_training_rows = [
        PCPCA(2, gamma=g).fit(*groups[:1], background=groups[1]).score(groups[0]) for g in (0, 0.3, 0.6)
    ]
    assert np.all(np.diff(on_training_rows) < 0)  # so score cannot choose gamma


def test_a_background_that_bypasses_the_pipeline_is_noticed(groups):
    X, Y = groups
    pipeline = make_pipeline(StandardScaler(), PCPCA(n_components=1, gamma=0.001))
    for other in (100 + 0.1 * Y, 10 * (Y - Y.mean(axis=0))):
        with pytest.warns(exceptions.TableWarning, match=r"The cases are standardised .*background_label"):
            pipeline.fit(X, pcpca__background=other)
    # The controls: no warning of rows that went the same way, or that are standardised as well.
    pipeline.fit(X, pcpca__background=pipeline[0].transform(Y))
    pipeline.fit(X, pcpca__background=StandardScaler().fit_transform(Y))
    # Nor if long rows count less, so that means and variances are no longer 0 and 1.
    tails = np.random.default_rng(0).standard_t(3, size=(2, 200, 12))
    pipeline = make_pipeline(StandardScaler(), ContraPCA(n_components=1))
    with pytest.warns(exceptions.TableWarning, match=r"The cases are standardised .*background_label"):
        pipeline.fit(tails[0], contrapca__background=0.1 * tails[1])
    assert pipeline[-1].n_shortened_ > 0
    pipeline.fit(tails[0], contrapca__background=pipeline[0].transform(tails[1]))


def test_means_far_apart_are_noticed(groups):
    X, Y = groups
    with pytest.warns(exceptions.TableWarning, match=r"12 of 12 features"):
        PCPCA(n_components=1, gamma=0.1).fit(X, background=100 + 0.1 * Y)


@pytest.mark.parametrize("kind", ["array", "copy", "sparse", "missing"])
def test_one_table_as_both_groups_is_noticed(groups, kind):
    X = groups[0].copy()
    if kind == "missing":
        X[3, 4] = np.nan
    Y = X if kind == "array" else X.copy()
    X, Y = (sp.csr_array(X), sp.csr_array(Y)) if kind == "sparse" else (X, Y)
    with pytest.warns(exceptions.TableWarning, match="the same table, so nothing can vary more in the cases"):
        PCPCA(n_components=1, gamma=0.1).fit(X, background=Y)


@pytest.mark.parametrize("n_controls", [120, 50])  # in folds without cases; in one fold, so that fits fail
def test_grid_search_with_unmixed_folds_says_so_in_a_sentence(groups, n_controls):
    rows, labels = stacked([groups[0], groups[1][:n_controls]])
    grouped = np.argsort(labels, kind="stable")  # cases first, and folds in order
    search = GridSearchCV(PCPCA(1, background_label="control"), {"gamma": [0.0, 0.1]}, cv=KFold(3))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        search.fit(rows[grouped], labels[grouped])
    said = [str(warning.message) for warning in caught]
    assert any("use a splitter that mixes the groups, such as cv=StratifiedKFold(5)" in text for text in said)
    assert {warning.filename for warning in caught if warning.category is exceptions.ContrastWarning} == {__file__}
    assert any("Traceback" in text for text in said) == (n_controls == 50)  # scikit-learn's, of fits that fail


# ---------------------------------------------------------------- data frames


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_in_and_out(groups, library, need):
    frames = need(library)
    names = [f"gene{j}" for j in range(12)]
    X, Y = (frames.DataFrame(dict(zip(names, table.T, strict=True))) for table in groups)
    model = PCPCA(n_components=2, gamma=0.3).fit(X, background=Y)
    assert list(model.feature_names_in_) == names
    assert list(model.get_feature_names_out()) == ["pcpca0", "pcpca1"]
    assert sorted(model.feature_table()["feature"]) == sorted(names)
    plain = PCPCA(n_components=2, gamma=0.3).fit(groups[0], background=groups[1])
    np.testing.assert_allclose(model.loadings_, plain.loadings_, atol=1e-12)
    out = model.set_output(transform=library).transform(X)
    assert isinstance(out, frames.DataFrame)
    assert list(out.columns) == ["pcpca0", "pcpca1"]
    np.testing.assert_allclose(out.to_numpy(), plain.transform(groups[0]), atol=1e-12)
    both = clone(model).set_output(transform=library).fit_transform(X, background=Y)
    assert isinstance(both, frames.DataFrame)


def test_pyarrow_tables(groups, need):
    """Their `columns` are the values themselves."""
    arrow = need("pyarrow")
    names = [f"gene{j}" for j in range(12)]
    X, Y = (arrow.table(dict(zip(names, table.T, strict=True))) for table in groups)
    model = PCPCA(n_components=2, gamma=0.3).fit(X, background=Y)
    assert list(model.feature_names_in_) == names
    plain = PCPCA(n_components=2, gamma=0.3).fit(groups[0], background=groups[1])
    np.testing.assert_array_equal(model.transform(X), plain.transform(groups[0]))
    holes = arrow.table({"a": [1.0, None, 3.0, 4.0, 2.0], "b": [1.0, 2, 3, 5, 1], "c": [1.0, 3, 2, 1, 4]})
    filled = PPCA(1).fit(holes).impute(holes)
    assert filled.column_names == ["a", "b", "c"]
    assert filled["a"].null_count == 0
    with pytest.raises(exceptions.GroupError, match=r"'gene0', 'gene1', 'gene2'\) and 12 only in the background"):
        PCPCA().fit(X, background=Y.rename_columns([f"h{j}" for j in range(12)]))
    with pytest.raises(ValueError, match="not numbers: 'a'"):
        PCPCA().fit(arrow.table({"a": ["x", "y"], "b": [1, 2]}), background=Y)


def test_pandas_index_is_kept(groups, need):
    pd = need("pandas")
    X = pd.DataFrame(groups[0], index=[f"row{i}" for i in range(len(groups[0]))]).rename(columns=str)
    out = PPCA(n_components=2).set_output(transform="pandas").fit_transform(X)
    assert list(out.index) == list(X.index)


# ---------------------------------------------------------------- scale


@pytest.mark.parametrize("solver", ["eigh", "dual", "lanczos"])
def test_scale_group_equals_scaling_by_hand(groups, solver):
    X, Y = groups
    X, Y = X * np.linspace(1, 20, 12), Y * np.linspace(20, 1, 12)
    model = PCPCA(n_components=2, gamma=0.3, scale="group", solver=solver).fit(X, background=Y)
    sx, sy = X.std(axis=0), Y.std(axis=0)
    by_hand = PCPCA(n_components=2, gamma=0.3).fit(X / sx, background=Y / sy)
    np.testing.assert_allclose(model.loadings_, by_hand.loadings_, atol=1e-8)
    np.testing.assert_allclose(model.scale_, sx)
    np.testing.assert_allclose(model.background_scale_, sy)
    np.testing.assert_allclose(model.transform(X), by_hand.transform(X / sx), atol=1e-8)
    np.testing.assert_allclose(
        model.transform(Y, center="background"), by_hand.transform(Y / sy, center="background"), atol=1e-8
    )
    np.testing.assert_allclose(model.score_samples(X), by_hand.score_samples(X / sx) - np.log(sx).sum(), rtol=1e-8)
    np.testing.assert_allclose(model.get_covariance(), by_hand.get_covariance() * np.outer(sx, sx), rtol=1e-8)
    np.testing.assert_allclose(model.get_precision() @ model.get_covariance(), np.eye(12), atol=1e-8)
    np.testing.assert_allclose(model.inverse_transform([[1.0, 2.0]]), by_hand.inverse_transform([[1.0, 2.0]]) * sx)
    np.testing.assert_allclose(model.sample(4, random_state=0), by_hand.sample(4, random_state=0) * sx, atol=1e-6)
    expected = model.score_samples(Y) - (PPCA(n_components=2).fit(Y / sy).score_samples(Y / sy) - np.log(sy).sum())
    np.testing.assert_allclose(model.contrast_score(Y), expected, atol=1e-7)


def test_scale_pooled_divides_both_groups_alike(groups):
    X, Y = groups
    pooled = np.sqrt((X.var(axis=0) * len(X) + Y.var(axis=0) * len(Y)) / (len(X) + len(Y)))
    model = CPCA(n_components=2, gamma=0.3, scale="pooled").fit(X, background=Y)
    by_hand = CPCA(n_components=2, gamma=0.3).fit(X / pooled, background=Y / pooled)
    np.testing.assert_allclose(model.components_, by_hand.components_, atol=1e-10)
    np.testing.assert_allclose(model.scale_, pooled)
    np.testing.assert_allclose(model.background_scale_, pooled)


def test_constant_features_keep_their_units(groups):
    X, Y = (table.copy() for table in groups)
    X[:, 3] = Y[:, 3] = 7.7
    model = PCPCA(n_components=2, gamma=0.3, scale="group").fit(X, background=Y)
    assert model.scale_[3] == model.background_scale_[3] == 1
    assert np.isfinite(model.score_samples(X)).all()


def test_threads_change_neither_signs_nor_values():
    from threadpoolctl import threadpool_limits

    X, Y = make_groups(3000, 2500, 200)  # large enough for our own threads too
    results = []
    for limit in (1, 2):
        with threadpool_limits(limit):
            for solver in ("eigh", "lanczos"):
                results.append(PCPCA(n_components=3, gamma=0.3, solver=solver).fit(X, background=Y))
            results.append(PCPCA(n_components=3, gamma=0.3).fit(X[:40], background=Y[:40]))
    for left, right in zip(results[:3], results[3:], strict=True):
        np.testing.assert_array_equal(np.sign(left.components_), np.sign(right.components_))
        np.testing.assert_allclose(left.components_, right.components_, atol=1e-8)
        np.testing.assert_allclose(left.loadings_, right.loadings_, atol=1e-8)


def test_what_is_not_a_table_is_named(groups):
    X, Y = groups
    model = PCPCA(2, gamma=0.1).fit(X, background=Y)
    with pytest.raises(exceptions.GroupError, match=r"background of PCPCA is a list of 2 tables: stack them .* dict"):
        PCPCA(2).fit(X, background=[Y, Y])
    with pytest.raises(TypeError, match=r"foreground of PCPCA is a dict; .*pandas\.DataFrame"):
        PCPCA(2).fit({"a": [1.0, 2.0]}, background=Y)
    with pytest.raises(TypeError, match=r"foreground of contrast_test is a model, a PCPCA; a table"):
        contrast_test(model, background=Y)
    with pytest.raises(TypeError, match=r"such as ContraPCA\(n_components=2\), not the class PCPCA"):
        held_out_contrast(PCPCA, X, background=Y)


def test_another_order_of_features_says_what_to_do(groups, need):
    X, Y = (need("pandas").DataFrame(rows).add_prefix("x") for rows in groups)
    model = PCPCA(2, gamma=0.1).fit(X, background=Y)
    mixed = X[X.columns[::-1]]
    with pytest.raises(ValueError, match=r"same order as they were in fit\.\nUse X\[model\.feature_names_in_\]"):
        model.transform(mixed)
    np.testing.assert_array_equal(model.transform(mixed[model.feature_names_in_]), model.transform(X))


@pytest.mark.parametrize("unit", ["datetime64[ns]", "datetime64[D]", "timedelta64[s]"])
def test_dates_are_refused(groups, unit, need):
    """They were read as numbers: nanoseconds."""
    X, Y = groups
    dates = (1000 * np.abs(X)).astype(np.int64).astype(unit)
    model = PCPCA(2, gamma=0.1).fit(X, background=Y)
    for call in (lambda: PCPCA(2).fit(dates, background=Y), lambda: model.transform(dates)):
        with pytest.raises(TypeError, match=r"needs numbers, but .* has values that are dates or durations: drop them"):
            call()
    with pytest.raises(TypeError, match="but the background has values that are dates"):
        PCPCA(2).fit(X, background=dates)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_dates_are_named(groups, library, need):
    """A frame of numbers and dates failed with an error of NumPy's types."""
    X, Y = groups
    columns = {f"gene{k}": X[:, k] for k in range(3)} | {"born": np.arange(len(X)).astype("datetime64[ns]")}
    with pytest.raises(TypeError, match=r"the foreground has columns \('born'\) that are dates or durations"):
        PCPCA(2).fit(need(library).DataFrame(columns), background=Y[:, :4])


@pytest.mark.parametrize("kind", [sp.dok_array, sp.dok_matrix, sp.lil_array, sp.coo_matrix])
def test_sparse_formats(groups, kind):
    """SciPy's dok_array is a dict, too, but not one of several backgrounds."""
    X, Y = (np.where(np.abs(rows) > 1, rows, 0) for rows in groups)
    found, plain = PCPCA(2, gamma=0.1).fit(kind(X), background=kind(Y)), PCPCA(2, gamma=0.1).fit(X, background=Y)
    np.testing.assert_allclose(found.components_, plain.components_, atol=1e-9)
