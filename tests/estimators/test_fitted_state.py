"""What a fitted model is: a few small arrays, computed once in fit, and nothing that lies in wait."""

import copy
import dataclasses
import gc
import pickle
import types
import warnings
import weakref
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from conftest import make_groups
from contrapca import (
    CLVM,
    CPCA,
    PCPCA,
    PPCA,
    ContraPCA,
    GammaSearch,
    Moments,
    RatioPCA,
    SparseCPCA,
    Study,
    bootstrap,
    contrast_path,
    gamma_limits,
    load,
    posterior,
    report,
)
from contrapca.data.rows import _numpy as dense_rows
from contrapca.estimators import Decomposition
from contrapca.reporting._report import summarize
from counting import calls

LIMITS = ("pcpca_limit", "pcpca_limit_and_vectors")  # what it is called now, and what in 0.1.0
PASSES = ("scatter", "squares", "accumulate_dense", "accumulate_implicit")  # over rows that become moments

# That PCPCA's default shows what both groups share is said, and beside the point here.
pytestmark = pytest.mark.filterwarnings("ignore:PCPCA still shows")

X, Y = make_groups(150, 120, 12)
HOLES = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)


def fit(estimator, left, right):
    return estimator.fit(left) if isinstance(estimator, PPCA) else estimator.fit(left, background=right)


# ---------------------------------------------------------------------- size


def arrays_in(thing, seen=None):
    """All arrays that an object keeps alive: in its attributes, containers and closures, and behind views."""
    seen = {} if seen is None else seen
    if id(thing) in seen or isinstance(thing, str | bytes | int | float | type | types.ModuleType | None):
        return
    seen[id(thing)] = thing  # kept, so that no other object gets the same id
    if isinstance(thing, np.ndarray):
        while isinstance(thing.base, np.ndarray):
            thing = thing.base
        yield thing
        return
    parts = []
    if isinstance(thing, dict):
        parts = [*thing.keys(), *thing.values()]
    elif isinstance(thing, list | tuple | set | frozenset):
        parts = list(thing)
    elif isinstance(thing, types.FunctionType):
        parts = [cell.cell_contents for cell in thing.__closure__ or ()]
    elif isinstance(thing, types.MethodType):
        parts = [thing.__self__, thing.__func__]
    if dataclasses.is_dataclass(thing):
        parts += [getattr(thing, field.name) for field in dataclasses.fields(thing)]
    parts += list(getattr(thing, "__dict__", {}).values())
    for part in parts:
        yield from arrays_in(part, seen)


def test_the_walk_finds_what_is_hidden():
    """The control: behind a view, in a closure, in nested containers, in a dataclass."""
    table = np.zeros((40, 30))
    hidden = types.SimpleNamespace(
        view=np.zeros((50, 20))[:2, :3],
        late=lambda: table,
        nested={"a": [(np.zeros(70),)]},
        moments=Moments.from_rows(X),
    )
    assert sorted(found.size for found in arrays_in(hidden)) == [12, 70, 144, 1000, 1200]


SHAPES = {"tall": (4001, 3001, 40), "wide": (31, 29, 700)}
SOLVERS = {"tall": ["eigh", "lanczos"], "wide": ["eigh", "dual", "lanczos"]}
KINDS = [PPCA(2), CPCA(2), CPCA(2, gamma=0.1), PCPCA(2), PCPCA(2, gamma=0.1), PCPCA(2, scale="group")]
CASES = [(shape, solver, kind, False) for shape in SHAPES for solver in SOLVERS[shape] for kind in KINDS]
CASES += [(*case[:3], True) for case in CASES if case[1] != "dual"]  # which is for dense rows
CASES += [("tall", None, CLVM(2, 2), False), ("tall", None, CLVM(2, 2), True)]
CASES += [("tall", "lbfgs", PCPCA(2, gamma=0.1), False)]


@pytest.mark.parametrize(("shape", "solver", "kind", "sparse"), CASES, ids=str)
def test_nothing_of_the_size_of_the_data_is_kept(shape, solver, kind, sparse):
    """At most D x r numbers in any array, r latent dimensions, and a few such arrays in all."""
    n, m, D = SHAPES[shape]
    left, right = make_groups(n, m, D)
    if sparse:
        left, right = sp.csr_array(left), sp.csr_array(right)
    model = clone(kind) if solver is None else clone(kind).set_params(solver=solver)
    fit(model, left, right)
    r = model.n_shared + model.n_foreground if isinstance(model, CLVM) else 2
    found = list(arrays_in(model))
    assert found
    for array in found:
        assert array.size <= D * r, array.shape
        assert not {n, m} & set(array.shape)
    numbers = sum(array.size for array in {id(array): array for array in found}.values())
    assert numbers <= 12 * D * r
    assert len(pickle.dumps(model)) < 8 * 12 * D * r + 4000


@pytest.mark.parametrize("kind", [*KINDS, CLVM(2, 1)], ids=str)
def test_pickles_are_as_large_for_ten_times_the_rows(kind):
    sizes = [len(pickle.dumps(fit(clone(kind), *make_groups(n, n, 12)))) for n in (200, 2000)]
    assert sizes[1] <= sizes[0] + 300  # histories of iterations differ by a few numbers


@pytest.mark.parametrize("kind", [*KINDS, CLVM(2, 1), GammaSearch(PCPCA(2))], ids=str)
@pytest.mark.parametrize("solver", ["eigh", "lanczos", "dual"])
def test_the_users_tables_are_let_go(kind, solver):
    left, right = make_groups(30, 25, 40) if solver == "dual" else make_groups(300, 200, 12)
    alive = weakref.ref(left), weakref.ref(right)
    model = clone(kind)
    if "solver" in model.get_params():
        model.set_params(solver=solver)
    fit(model, left, right)
    del left, right
    gc.collect()
    assert [reference() for reference in alive] == [None, None]
    assert model.n_features_in_ in (12, 40)


def test_a_path_and_a_posterior_keep_no_rows():
    left, right = make_groups(4001, 3001, 12)
    path = contrast_path(PCPCA(2), left, background=right)
    refits = bootstrap(path.model(path.gammas[5]), left, background=right, n_resamples=20, random_state=0)
    for thing in (path, refits):
        assert all(not {4001, 3001} & set(array.shape) for array in arrays_in(thing))


# ---------------------------------------------------------------------- few classes


@pytest.mark.parametrize("kind", [PPCA, CPCA, PCPCA, CLVM])
def test_few_classes_between_ours_and_scikit_learns(kind):
    ours = [parent for parent in kind.__mro__[1:] if parent.__module__.partition(".")[0] == "contrapca"]
    assert len(ours) <= 5, ours
    assert Decomposition in ours


# ---------------------------------------------------------------------- computed once


def test_the_counts_count():
    """The control: nested counts each see their own, also of functions that were imported under other names."""
    with calls(*LIMITS) as limits, calls(*PASSES) as passes:
        for _ in range(3):
            gamma_limits(X, background=Y)
    assert limits.total() == 3
    assert passes["scatter"] == 6


@pytest.mark.parametrize("solver", ["eigh", "lanczos", "dual"])
def test_auto_computes_its_limit_once(solver):
    with calls(*LIMITS) as found:
        model = PCPCA(2, solver=solver).fit(X, background=Y)
        assert model.gamma_ < model.gamma_max_
        assert not model.gamma_max_is_bound_
        copy.deepcopy(model)
        pickle.loads(pickle.dumps(model)).gamma_max_  # noqa: B018
    assert found.total() == 1


def test_auto_computes_its_bound_once():
    with calls("masked_bound", "missing_limit", "observed_bound") as found:
        model = PCPCA(2).fit(HOLES, background=Y)
        assert model.gamma_ < model.gamma_max_
        assert model.gamma_max_is_bound_
    assert found["masked_bound"] == found.total() == 1


@pytest.mark.parametrize("kind", [CPCA(1), SparseCPCA(1, sparsity=3)], ids=["CPCA", "SparseCPCA"])
@pytest.mark.filterwarnings("ignore:.*leaves no contrast")
def test_a_limit_that_cpca_needs_is_kept(kind, tmp_path):
    with calls("cpca_limit") as found:
        model = clone(kind).fit(X, background=Y)
    assert found.total() == 1
    assert model.gamma_max_ == pytest.approx(gamma_limits(X, background=Y, n_components=1).cpca)
    assert not model.gamma_max_is_bound_
    model.save(tmp_path / "model.npz")
    assert load(tmp_path / "model.npz").gamma_max_ == model.gamma_max_


def test_a_fit_leaves_nothing_of_the_one_before():
    model = ContraPCA(2, gamma=0).fit(X)
    assert hasattr(model, "eigenvalues_")
    model.set_params(gamma="auto").fit(X, background=Y)
    fresh = ContraPCA(2).fit(X, background=Y)
    assert vars(model).keys() == vars(fresh).keys()


def test_no_limit_is_computed_where_none_is_needed():
    with calls(*LIMITS, "cpca_limit", "masked_bound") as found:
        for kind in (PCPCA, CPCA):
            model = kind(2, gamma=0.1).fit(X, background=Y)
            assert not hasattr(model, "gamma_max_")
    assert found.total() == 0


def test_a_fit_reads_the_rows_once():
    for kind in (
        PCPCA(2),
        PCPCA(2, gamma=0.1),
        CPCA(2, gamma=0.1),
        CLVM(2, 1),
    ):
        with calls(*PASSES) as found:
            clone(kind).fit(X, background=Y)
        assert found["scatter"] == found.total() == 2, kind  # one for each group


def test_a_search_computes_its_limit_once():
    with calls(*LIMITS, "masked_bound") as found:
        GammaSearch(PCPCA(2), criterion="likelihood").fit(X, background=Y)
    assert found.total() == 1
    with calls(*LIMITS, "masked_bound") as found:
        GammaSearch(PCPCA(2), criterion="silhouette").fit(Study(HOLES, background=Y, labels=np.arange(len(X)) % 2))
    assert found.total() == 1


def of_all_rows(arguments):
    """Whether a limit is that of the whole tables, and not of some rows while others are held out."""
    return "groups" not in arguments or arguments["groups"].foreground.weight == len(X)


@pytest.fixture
def whole_tables_read(monkeypatch):
    """How often each table became moments as a whole; folds of rows that are held out do not count."""
    real, found = dense_rows.scatter, Counter()

    def watched(rows, *arguments):
        found[len(rows)] += 1
        return real(rows, *arguments)

    monkeypatch.setattr(dense_rows, "scatter", watched)
    return lambda: {group: found[len(rows)] for group, rows in (("foreground", X), ("background", Y))}


@pytest.mark.parametrize("kind", [PCPCA(2), PCPCA(2, gamma=0.1), PCPCA(2, scale="group")], ids=str)
def test_a_report_of_an_unfitted_model_reads_once_and_solves_one_limit(kind, whole_tables_read, tmp_path, need):
    need("jinja2")
    with calls(*LIMITS, where=of_all_rows) as limits:
        summary = report(X, kind, background=Y, output=tmp_path / "report.html", test=False)
    assert limits.total() == 1
    assert whole_tables_read() == {"foreground": 1, "background": 1}
    assert (tmp_path / "report.html").stat().st_size > 50_000
    assert not kind.__sklearn_is_fitted__()  # the user's estimator is left alone
    again = summarize(Study(X, background=Y), clone(kind).fit(X, background=Y), test=False)
    assert again["path"] == summary["path"]


def test_a_fit_and_its_report_compute_one_limit(whole_tables_read, tmp_path, need):
    need("jinja2")
    with calls(*LIMITS, where=of_all_rows) as limits:
        model = PCPCA(2).fit(X, background=Y)
        report(X, model, background=Y, output=tmp_path / "report.html", test=False)
    assert limits.total() == 1
    assert whole_tables_read() == {"foreground": 2, "background": 2}  # they are given twice, and not kept in between


def test_a_report_with_missing_values_computes_one_bound(tmp_path, need):
    need("jinja2")
    with calls("masked_bound") as found:
        report(HOLES, PCPCA(2), background=Y, output=tmp_path / "report.html", gammas=3, test=False)
    assert found.total() == 1
    with calls("masked_bound") as found:
        model = PCPCA(2).fit(HOLES, background=Y)
        report(HOLES, model, background=Y, output=tmp_path / "report.html", gammas=3, test=False)
    assert found.total() == 1


# ---------------------------------------------------------------------- parameters


OTHER = {
    "n_components": 5,
    "gamma": 0.05,
    "scale": "group",
    "solver": "lanczos",
    "mean": "gls",
    "n_init": 3,
    "max_iter": 1,
    "tol": 0.5,
    "random_state": 7,
    "progress": False,
    "background_label": "nowhere",
    "n_shared": 5,
    "n_foreground": 3,
    "n_latent": 4,
    "axes": "contrast",
    "shorten": False,
    "ridge": 7.0,
    "end": "background",
    "orthogonal": True,
    "sparsity": 2,
}


def said(model):
    """All that a model says, of rows and of itself."""
    found = {}
    for name in ("transform", "score_samples", "score", "contrast_score", "transform_shared", "impute"):
        if hasattr(model, name):
            found[name] = getattr(model, name)(X)
    for name in ("get_covariance", "get_precision", "get_feature_names_out"):
        if hasattr(model, name):
            found[name] = getattr(model, name)()
    for name in ("objective_", "reconstruction_error_"):
        found[name] = getattr(model, name, None)
    found["centred"] = 0 if isinstance(model, PPCA) else model.transform(Y, center="background")
    found["inverse"] = model.inverse_transform(np.ones((1, len(model.components_))))
    found["table"] = str(model.feature_table())
    found["limit"] = getattr(model, "gamma_max_", None)
    if hasattr(model, "latent_posterior"):
        found["posterior mean"], found["posterior covariance"] = model.latent_posterior(X)
        found["sample"] = model.sample(3, random_state=0)
    if not isinstance(model, CLVM | SparseCPCA) and not (
        isinstance(model, PCPCA) and model.gamma_ > 0.5
    ):  # too near the limit
        given = {} if isinstance(model, PPCA) else {"background": Y}
        refits = bootstrap(model, X, **given, n_resamples=20, random_state=0)
        found |= {"refits": refits.loadings, "their scale": refits.scale, "their estimate": refits.estimate}
    if isinstance(model, CPCA):
        draws = posterior(model, X, background=Y, power=5.0, draws=400, tune=50, random_state=0)
        found |= {"draws": draws.loadings, "scale of the draws": draws.scale}
    return found


@pytest.mark.parametrize("scale", [pytest.param(None, marks=pytest.mark.slow), "pooled"])
@pytest.mark.parametrize(
    "kind",
    [
        PPCA(2),
        CPCA(2),
        PCPCA(2, gamma=0.1),
        PCPCA(2),
        CLVM(2, 2),
        ContraPCA(2),
        RatioPCA(2),
        SparseCPCA(2, sparsity=3, gamma=0.1),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:DO NOT TRUST")
def test_parameters_set_after_the_fit_change_nothing_fitted(kind, scale, tmp_path):
    model = fit(clone(kind).set_params(scale=scale), X, Y)
    before = said(model)
    parameters = model.get_params()
    for name in parameters:
        model.set_params(**{name: OTHER[name]})
    after = said(model)
    model.save(tmp_path / "model.npz")
    saved = load(tmp_path / "model.npz")
    assert saved.get_params() == parameters
    for name in ("components_", "ratios_", "ridge_"):
        np.testing.assert_array_equal(getattr(saved, name, None), getattr(model, name, None))
    assert after.keys() == before.keys()
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value, err_msg=name)
    fresh = clone(model)
    assert not fresh.__sklearn_is_fitted__()
    assert fresh.get_params() == model.get_params()


@pytest.mark.parametrize("kind", [PPCA(1), PCPCA(1, gamma=0.3)], ids=str)
@pytest.mark.filterwarnings("ignore:DO NOT TRUST")
def test_parameters_set_after_the_fit_do_not_move_the_posterior(kind, need):
    need("nutpie")
    given = {} if isinstance(kind, PPCA) else {"background": Y}
    options = {"draws": 100, "tune": 100, "chains": 2, "random_state": 0, "progress": False}
    model = fit(clone(kind).set_params(scale="group"), X, Y)
    before = posterior(model, X, **given, **options)
    after = posterior(model.set_params(scale=None, n_components=4, solver="lanczos"), X, **given, **options)
    np.testing.assert_array_equal(after.loadings, before.loadings)
    np.testing.assert_array_equal(after.scale, before.scale)
    np.testing.assert_allclose(after.scale, X.std(axis=0), rtol=1e-14)  # summed in another order


@pytest.mark.parametrize("kind", [PCPCA(2, gamma=0.1), PPCA(2), CPCA(2, gamma=0.1)], ids=str)
@pytest.mark.parametrize("missing", [False, True])
def test_parameters_set_after_the_fit_do_not_change_the_report(kind, missing):
    """It is about the fit: its components, its scaling, and the code that makes it again."""
    left = HOLES if missing and not isinstance(kind, CPCA) else X
    model = fit(clone(kind), left, Y)
    before = summarize(Study(left, background=Y), model, gammas=4, test=False)
    model.set_params(scale="group", n_components=4, solver="lanczos")
    assert summarize(Study(left, background=Y), model, gammas=4, test=False) == before


def test_parameters_set_after_the_fit_do_not_change_how_its_rows_are_read():
    rows, group = np.vstack([X, Y]), np.repeat([0, 1], [len(X), len(Y)])
    model = CPCA(2, gamma=0.1, background_label=1).fit(rows, group)
    before = bootstrap(model, X, background=Y, n_resamples=20)
    scored = model.score(rows, group) if hasattr(model, "score") else None
    after = bootstrap(model.set_params(background_label=0), X, background=Y, n_resamples=20)
    assert scored is None or model.score(rows, group) == scored
    np.testing.assert_array_equal(after.loadings, before.loadings)


# ---------------------------------------------------------------------- names


@pytest.mark.parametrize("kind", [PPCA(2), CPCA(2), PCPCA(2), CLVM(2, 1)], ids=str)
@pytest.mark.parametrize("holes", [False, True])
def test_named_tables_give_no_warning(kind, holes, need):
    """Rows are checked against the features of the fit once, with their names."""
    pd = need("pandas")
    left, right = (pd.DataFrame(table, columns=[f"g{j}" for j in range(12)]) for table in (X, Y))
    model = fit(clone(kind), left, right)
    rows = left.mask(left > 3) if holes and not isinstance(kind, CPCA) else left
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in (
            "transform", "latent_posterior", "score_samples", "score", "contrast_score", "impute", "transform_shared"
        ):  # fmt: skip
            if hasattr(model, name):
                getattr(model, name)(rows)
        if not isinstance(model, CLVM | SparseCPCA) and not holes:
            given = {} if isinstance(kind, PPCA) else {"background": right}
            bootstrap(model, left, **given, n_resamples=3, random_state=0)
    with pytest.warns(UserWarning, match="valid feature names"):  # the control: rows without names
        model.transform(X)
