"""scikit-learn's own estimator checks, every one of them, their number asserted."""

from importlib.util import find_spec

import numpy as np
import pytest
import scipy
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator
from sklearn.utils.fixes import parse_version

from contrapca import CLVM, CPCA, PCPCA, PPCA, BackgroundWhitener, ContraPCA, GammaSearch, RatioPCA, SparseCPCA

# check_fit2d_1feature and the like use one to few features, so one component. Without a background (checks pass
# X and y only) gamma must be 0.
ESTIMATORS = [PPCA(n_components=1), CPCA(n_components=1, gamma=0), PCPCA(n_components=1, gamma=0)]

# Checks that may be skipped: they need SCIPY_ARRAY_API to be set before scipy is imported. test_devices.py runs them in
# a process of its own.
SKIPPED = {"check_array_api_input", "check_array_api_mixed_inputs", "check_array_api_same_namespace"}
if find_spec("pandas") is None:  # in a core environment
    SKIPPED.add("check_sample_weights_pandas_series")


def run_checks(estimator, expected_failures=None):
    """Names of the checks that passed; all others are those that may be skipped, or are expected to fail."""
    expected_failures = expected_failures or {}
    checks = [getattr(check, "func", check).__name__ for _, check in estimator_checks_generator(estimator)]
    if parse_version(scipy.__version__) < parse_version("1.14") and "check_array_api_input" in checks:
        expected_failures |= {"check_array_api_input": "scikit-learn needs SciPy 1.14 for it"}
    results = check_estimator(estimator, on_skip=None, on_fail="raise", expected_failed_checks=expected_failures)
    by_status = {status: [] for status in ("passed", "skipped", "xfail")}
    for result in results:
        by_status[result["status"]].append(result["check_name"])
    assert set(by_status["skipped"]) <= SKIPPED
    assert set(by_status["xfail"]) == set(expected_failures)
    assert len(results) == len(checks)
    return by_status["passed"]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
@pytest.mark.filterwarnings("ignore")  # the checks provoke warnings on purpose
def test_all_checks(estimator):
    passed = run_checks(estimator)
    # Of scikit-learn 1.9; other versions have a few more or less. Estimators that take NaN are spared one check.
    assert len(passed) >= 45


# ---------------------------------------------------------------------- with a background


SEED = {"of the backgrounds": 0}  # swept


def background_of(X):
    """A background for a check's table: its rows in another order, features shrunk differently; of bad ones themselves.

    So there is something to contrast: the groups have other directions.
    """
    rows = X if hasattr(X, "iloc") or sp.issparse(X) else np.asarray(X)
    if rows.ndim != 2 or (isinstance(rows, np.ndarray) and rows.dtype.kind not in "fiu"):
        return X
    rng = np.random.default_rng(SEED["of the backgrounds"])
    order, sizes = rng.permutation(rows.shape[0]), rng.uniform(0.2, 0.7, rows.shape[1])
    if hasattr(rows, "iloc"):
        return rows.iloc[order] * sizes
    if sp.issparse(rows):
        return sp.csr_array(rows.tocsr()[order] @ sp.diags_array(sizes))
    return (rows[order] * sizes).astype(np.result_type(rows.dtype, np.float32))


class CheckedCLVM(CLVM):
    def fit(self, X, y=None):
        return super().fit(X, y, background=background_of(X))


class CheckedPCPCA(PCPCA):
    def fit(self, X, y=None):
        return super().fit(X, y, background=background_of(X))


class CheckedContraPCA(ContraPCA):
    def fit(self, X, y=None):
        return super().fit(X, y, background=background_of(X))


class CheckedCPCA(CPCA):
    def fit(self, X, y=None):
        return super().fit(X, y, background=background_of(X))


class CheckedRatioPCA(RatioPCA):
    def fit(self, X, y=None):
        return super().fit(X, y, background=background_of(X))


class CheckedSparseCPCA(SparseCPCA):
    def fit(self, X, y=None):
        return super().fit(X, y, background=background_of(X))


class CheckedWhitener(BackgroundWhitener):
    def fit(self, X, y=None):
        return super().fit(X, y, background=background_of(X))


class CheckedGammaSearch(GammaSearch):
    def fit(self, X, y=None):
        return super().fit(X, y, background=background_of(X))


WITH_BACKGROUND = {
    "GammaSearch": (CheckedGammaSearch(PCPCA(1), n_folds=2), 45),
    "ContraPCA": (CheckedContraPCA(n_components=1), 45),
    "PCPCA": (CheckedPCPCA(n_components=1), 45),
    "PCPCA, fixed gamma": (CheckedPCPCA(n_components=1, gamma=0.3), 45),
    "CPCA": (CheckedCPCA(n_components=1), 45),
    "SparseCPCA": (CheckedSparseCPCA(n_components=1, sparsity=1, gamma=0.3), 46),
    "RatioPCA": (CheckedRatioPCA(n_components=1), 45),
    "RatioPCA, both ends": (CheckedRatioPCA(n_components=1, ridge=0.5, end="both", orthogonal=True), 45),
    "GammaSearch, CPCA": (CheckedGammaSearch(CPCA(1), n_folds=2), 45),
    "BackgroundWhitener": (CheckedWhitener(), 45),
}
# Expected failures, each with its reason.
INCOMPLETE = {
    "check_estimators_nan_inf": "fit takes complete rows only and transform also incomplete ones: scikit-learn's tag "
    "says the same of both"
}
TAKE_COMPLETE_ROWS = {
    "GammaSearch, likelihood": (CheckedGammaSearch(PCPCA(1), criterion="likelihood", n_folds=2), 45),
}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if "Search" in name else name for name in WITH_BACKGROUND],
)
@pytest.mark.filterwarnings("ignore")
def test_all_checks_with_a_background(name, seed, monkeypatch):
    monkeypatch.setitem(SEED, "of the backgrounds", seed)
    estimator, least = WITH_BACKGROUND[name]
    assert len(run_checks(estimator)) >= least


@pytest.mark.slow
@pytest.mark.parametrize("name", TAKE_COMPLETE_ROWS)
@pytest.mark.filterwarnings("ignore")
def test_all_checks_where_fit_takes_complete_rows_only(name):
    estimator, least = TAKE_COMPLETE_ROWS[name]
    assert len(run_checks(estimator, INCOMPLETE)) >= least


TWO_FEATURES = dict.fromkeys(
    (
        "check_estimators_overwrite_params",
        "check_estimators_fit_returns_self",
        "check_readonly_memmap_input",
        "check_fit_idempotent",
        "check_fit_check_is_fitted",
        "check_n_features_in",
    ),
    "the check's table has two features, and one dimension of each kind needs three",
)


@pytest.mark.filterwarnings("ignore")
def test_all_checks_of_clvm():
    """What one dimension of each kind cannot pass for want of features, one that is shared passes alone."""
    passed = run_checks(CheckedCLVM(1, 1), INCOMPLETE | TWO_FEATURES)
    assert len(passed) >= 45 - len(TWO_FEATURES)
    with_few_features = run_checks(CheckedCLVM(1, 0), INCOMPLETE)
    assert len(with_few_features) >= 45
    assert set(TWO_FEATURES) <= set(with_few_features)
    assert set(passed) <= set(with_few_features)


@pytest.mark.parametrize(
    "estimator", [CheckedCLVM(1, 1), CheckedGammaSearch(PCPCA(2), criterion="likelihood", n_folds=2)], ids=str
)
def test_what_the_expected_failure_leaves_open(estimator):
    """NaN is refused in fit, and infinity in fit and transform; transform takes NaN."""
    rows = np.random.default_rng(0).standard_normal((30, 5))
    for value, message in ((np.nan, "NaN"), (np.inf, "infinity")):
        bad = rows.copy()
        bad[3, 2] = value
        with pytest.raises(ValueError, match=message):
            clone(estimator).fit(bad)
        model = clone(estimator).fit(rows)
        if np.isnan(value):
            assert np.isfinite(model.transform(bad)).all()
        else:
            with pytest.raises(ValueError, match=message):
                model.transform(bad)


@pytest.mark.parametrize(
    "estimator", [CheckedCPCA(1), CheckedRatioPCA(1), CheckedGammaSearch(CPCA(1), n_folds=2)], ids=str
)
def test_what_estimators_that_take_nan_are_spared(estimator):
    """fit and transform take NaN, and refuse infinity."""
    rows = np.random.default_rng(0).standard_normal((60, 5))
    bad = rows.copy()
    bad[3, 2] = np.nan
    assert estimator.__sklearn_tags__().input_tags.allow_nan
    model = clone(estimator).fit(bad)
    assert np.isfinite(model.transform(bad)).all()
    bad[3, 2] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        clone(estimator).fit(bad)
    with pytest.raises(ValueError, match="infinity"):
        model.transform(bad)


class Subclass(PCPCA):
    """A user's subclass: fewer parameters, one of them a property."""

    def __init__(self, n_components=1, gamma=0.4):
        super().__init__(n_components, gamma=gamma)

    @property
    def gamma(self):
        return self._given

    @gamma.setter
    def gamma(self, value):
        self._given = value


def test_subclasses_of_users():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((60, 5)) * [3, 1, 1, 1, 1], rng.standard_normal((50, 5))
    model = clone(Subclass()).fit(X, background=Y)
    assert model.get_params() == {"n_components": 1, "gamma": 0.4}
    assert model.gamma_ == 0.4
    np.testing.assert_array_equal(model.components_, PCPCA(1, gamma=0.4).fit(X, background=Y).components_)


def test_the_html_of_an_estimator_links_to_its_page(monkeypatch):
    class Mine(ContraPCA):
        pass

    assert ContraPCA()._get_doc_link() == ""  # there is no address yet
    monkeypatch.setattr("contrapca.estimators._base.DOCUMENTATION", "https://docs.example")
    page = "https://docs.example/api/generated/contrapca.ContraPCA.html"
    assert ContraPCA()._get_doc_link() == page
    assert page in ContraPCA()._repr_html_()
    assert Mine()._get_doc_link() == ""
