"""Tables on a device: the same numbers as from NumPy, and nothing large leaves the device.

array-api-strict's "device1" stands for a GPU: whatever converts such an array to NumPy unasked raises.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

import contrapca
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
    bootstrap,
    contrast_path,
    gamma_limits,
)
from contrapca._util.arrays import put
from contrapca.contrast import _eigen as _spectral
from contrapca.data import _tables as groups_module
from contrapca.exceptions import GroupError, MissingExtraError, NonFiniteError
from devices import back, is_there, leaving, there


@pytest.fixture(scope="module", autouse=True)
def libraries(need):
    need("array_api_strict")
    need("array_api_compat")


def holes(table, fraction=0.3, seed=0):
    return np.where(np.random.default_rng(seed).random(table.shape) < fraction, np.nan, table)


TALL, WIDE = make_groups(150, 120, 12), make_groups(25, 20, 70)
INCOMPLETE = holes(TALL[0]), holes(TALL[1], seed=1)

CASES = {
    "PCPCA": (PCPCA(2, gamma=0.3), TALL),
    "PCPCA, auto": (PCPCA(2), TALL),
    "PCPCA, pooled": (PCPCA(2, scale="pooled"), TALL),
    "PCPCA, wide": (PCPCA(2, gamma=0.3), WIDE),
    "PCPCA, lanczos": (PCPCA(2, gamma=0.3, solver="lanczos"), TALL),
    "ContraPCA": (ContraPCA(2), TALL),
    "ContraPCA, group, wide": (ContraPCA(2, scale="group"), WIDE),
    "CPCA": (CPCA(2, gamma=2.0), TALL),
    "CPCA, auto": (CPCA(2), TALL),
    "CPCA, auto, wide": (CPCA(2), WIDE),
    "PPCA": (PPCA(2, scale="group"), (TALL[0], None)),
    "CLVM": (CLVM(2, 2), TALL),
    "RatioPCA": (RatioPCA(2), TALL),
    "RatioPCA, both ends, pooled": (RatioPCA(3, end="both", ridge=0, scale="pooled"), TALL),
    "RatioPCA, orthogonal": (RatioPCA(3, ridge=0.1, orthogonal=True), TALL),
    "RatioPCA, wide": (RatioPCA(2), WIDE),
    "RatioPCA, lanczos": (RatioPCA(2, solver="lanczos"), TALL),
    "RatioPCA, orthogonal, lanczos": (RatioPCA(2, orthogonal=True, solver="lanczos"), TALL),
}


def fitted(estimator, X, Y):
    return clone(estimator).fit(X) if Y is None else clone(estimator).fit(X, background=Y)


def check(found, expected, atol=1e-10, dtype=None):
    """Whether arrays on the device are the same as NumPy's, relative to the largest."""
    pairs = ((array if isinstance(array, tuple) else (array,)) for array in (found, expected))
    for one, other in zip(*pairs, strict=True):
        if not np.isscalar(other):
            assert is_there(one)
            assert str(one.dtype).endswith(str(other.dtype))
        np.testing.assert_allclose(back(one), other, rtol=0, atol=atol * max(1.0, np.nanmax(np.abs(other))))


@pytest.mark.parametrize("name", CASES)
def test_same_numbers(name):
    estimator, (X, Y) = CASES[name]
    here, away = fitted(estimator, X, Y), fitted(estimator, there(X), there(Y))
    arrays = {key: value for key, value in vars(here).items() if key.endswith("_") and isinstance(value, np.ndarray)}
    assert {"components_", "mean_", "explained_variance_"} <= arrays.keys()
    for key, value in arrays.items():
        if value.size:
            check(getattr(away, key), value)
    assert away.solver_ == here.solver_
    Z = here.transform(X)
    check(away.transform(there(X)), Z)
    check(away.inverse_transform(there(Z)), here.inverse_transform(Z))
    if Y is not None:
        check(away.transform(there(Y), center="background"), here.transform(Y, center="background"))
    if not hasattr(here, "score_samples"):
        return
    check(away.score_samples(there(X)), here.score_samples(X))
    check(away.score(there(X)), here.score(X))
    check(away.latent_posterior(there(X)), here.latent_posterior(X))
    if hasattr(here, "contrast_score") and Y is not None:
        check(away.contrast_score(there(X)), here.contrast_score(X))
    check(away.sample(4, random_state=0), here.sample(4, random_state=0))
    check(away.get_covariance(), here.get_covariance())
    check(away.get_precision(), here.get_precision())


OTHER = make_groups(80, 90, 12, seed=3)[1]
WEIGHTS = np.random.default_rng(0).integers(0, 3, 150).astype(float)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("PCPCA", {}),
        ("PCPCA", {"sample_weight": WEIGHTS}),
        ("PCPCA, wide", {"sample_weight": WEIGHTS[:25]}),
        ("PCPCA, lanczos", {"sample_weight": WEIGHTS}),
        ("CPCA, auto", {"sample_weight": WEIGHTS}),
    ],
)
def test_weights_and_several_backgrounds(name, options):
    estimator, (X, Y) = CASES[name]
    backgrounds = Y if options else {"batch": Y, "control": OTHER}
    there_too = there(Y) if options else {"batch": there(Y), "control": there(OTHER)}
    here = clone(estimator).fit(X, background=backgrounds, **options)
    away = clone(estimator).fit(there(X), background=there_too, **{key: there(value) for key, value in options.items()})
    check(away.components_, here.components_)
    check(away.transform(there(X)), here.transform(X))
    assert away.gamma_ == pytest.approx(here.gamma_, rel=1e-9)


def test_background_mean_of_several_groups_follows():
    X, Y = TALL
    model = PCPCA(2, gamma=0.3).fit(there(X), background={"batch": there(Y), "control": there(OTHER)})
    assert all(map(is_there, model.background_mean_.values()))


@pytest.mark.parametrize("name", ["PCPCA", "ContraPCA", "PCPCA, wide"])
def test_float32_stays_float32(name):
    estimator, (X, Y) = CASES[name]
    X, Y = X.astype(np.float32), Y.astype(np.float32)
    here, away = fitted(estimator, X, Y), fitted(estimator, there(X), there(Y))
    for found, expected in (
        (away.components_, here.components_),
        (away.transform(there(X)), here.transform(X)),
        (away.inverse_transform(away.transform(there(X))), here.inverse_transform(here.transform(X))),
        (away.score_samples(there(X)), here.score_samples(X)),
        (away.sample(3, random_state=0), here.sample(3, random_state=0)),
    ):
        check(found, expected, 1e-5)


def test_sums_of_float32_are_in_float64():
    """Mean 100, sd 1, float32: products that are centred afterwards lose digits, centred blocks do not (F8)."""
    X = (np.random.default_rng(0).standard_normal((20_000, 5)) + 100).astype(np.float32)
    moments, R = Moments.from_rows(there(X)), X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    np.testing.assert_allclose(back(moments.scatter.dense()), R.T @ R, rtol=0, atol=1e-9 * np.sum(R * R))


@pytest.mark.parametrize("data", [TALL, WIDE], ids=["tall", "wide"])
def test_limits(data):
    here, away = (gamma_limits(put(data[0]), background=put(data[1])) for put in (np.asarray, there))
    np.testing.assert_allclose(list(away.gamma.values()), list(here.gamma.values()), rtol=1e-9)


@pytest.mark.parametrize("data", [TALL, WIDE], ids=["tall", "wide"])
@pytest.mark.parametrize("estimator", [PCPCA(2), ContraPCA(2), CPCA(2), RatioPCA(2)], ids=str)
def test_path(estimator, data):
    X, Y = data
    here, away = (contrast_path(estimator, put(X), background=put(Y), gammas=9) for put in (np.asarray, there))
    for name in ("gammas", "eigenvalues", "objective"):
        np.testing.assert_allclose(getattr(away, name), getattr(here, name), rtol=1e-8)
    check(away.latents(there(X)), here.latents(X), 1e-7)  # residuals along a path are below 1e-9
    check(away.aligned(there(Y), center="background"), here.aligned(Y, center="background"), 1e-7)
    one = away.model(away.gammas[4])
    check(one.transform(there(X)), here.model(here.gammas[4]).transform(X), 1e-7)


# ---------------------------------------------------------------------- what leaves the device


LARGE = make_groups(900, 800, 30)


def assert_small(shapes):
    """D x k for vectors of a few gammas together, but neither D x D nor one value for each row of a fold of rows."""
    assert shapes  # what leaves is seen
    assert all(len(shape) <= 2 and max(shape, default=1) <= 60 and shape != (30, 30) for shape in shapes), shapes


def test_small_is_small():
    """The control."""
    for shape in ((30, 30), (160,), (900, 2), (800, 30)):
        with pytest.raises(AssertionError):
            assert_small([(30, 2), shape])


LEAVING = {
    "PCPCA": (PCPCA(2, gamma=0.3), LARGE),
    "ContraPCA": (ContraPCA(2, shorten=False), LARGE),
    "CPCA": (CPCA(2, gamma=1.0), LARGE),
    "RatioPCA": (RatioPCA(3, end="both", orthogonal=True), LARGE),
    "lanczos": (PCPCA(2, gamma=0.3, solver="lanczos"), LARGE),
}


@pytest.mark.parametrize("name", LEAVING)
def test_only_small_results_leave_the_device(name):
    estimator, data = LEAVING[name]
    X, Y = map(there, data)
    with leaving() as found:
        model = clone(estimator).fit(X, background=Y)
        results = [model.transform(X)]
        if hasattr(model, "score_samples"):
            results += [model.score_samples(X), model.contrast_score(X), model.latent_posterior(X)[1]]
            model.score(X)
        assert all(map(is_there, results))
    assert_small(found.shapes)


def test_of_rows_to_shorten_only_the_lengths_leave_the_device():
    X, Y = map(there, LARGE)
    with leaving() as found:
        ContraPCA(2).fit(X, background=Y)
    assert (900,) in found.shapes  # what leaves is seen
    assert_small([shape for shape in found.shapes if shape not in ((900,), (800,))])


def test_of_rows_in_halves_only_latents_leave_the_device():
    X, Y = map(there, LARGE)
    with leaving() as found:
        CPCA(2).fit(X, background=Y)
    latents = [shape for shape in found.shapes if len(shape) == 2 and shape[0] in (900, 800)]
    assert len(latents) == 2  # one product for each group, with the axes of all gammas and halves
    assert_small([shape for shape in found.shapes if shape not in latents])


def test_lanczos_with_products_there(monkeypatch):
    """For many features: of the matrix if there is one, of the rows if not; solved at once where it fails."""
    monkeypatch.setattr(_spectral, "MIN_ITERATED_ON_DEVICE", 20)
    monkeypatch.setattr(_spectral, "MAX_SHARE_ON_DEVICE", 1 / 30)
    monkeypatch.setattr(_spectral, "RESTARTS_PER_ORDER", 10)
    X, Y = LARGE
    expected = fitted(PCPCA(1, gamma=0.3), X, Y)
    with leaving() as found:
        model = fitted(PCPCA(1, gamma=0.3), there(X), there(Y))
    assert model.n_iter_ > 1
    assert_small(found.shapes)
    check(model.components_, expected.components_, 1e-9)

    def unconverged(*_):
        raise _spectral.Unconverged("on purpose")

    monkeypatch.setattr(_spectral, "largest", unconverged)
    for solver in ("eigh", "lanczos"):
        model = fitted(PCPCA(1, gamma=0.3, solver=solver), there(X), there(Y))
        assert model.n_iter_ == 1
        check(model.components_, expected.components_)


def test_limits_and_path_keep_rows_there():
    X, Y = map(there, LARGE)
    with leaving() as found:
        gamma_limits(X, background=Y, n_components=2)
        path = contrast_path(PCPCA(2), X, background=Y, gammas=30)
        assert is_there(path.latents(X))
    assert_small(found.shapes)


def test_nothing_reads_such_arrays_unasked():
    """The control: this device does refuse what a GPU refuses."""
    with pytest.raises(RuntimeError, match="device1"):
        np.asarray(there(TALL[0]))
    with pytest.raises((TypeError, RuntimeError)):
        there(TALL[0]) @ np.ones((12, 2))


# ---------------------------------------------------------------------- labels, files, other rows


@pytest.mark.parametrize(("shape", "axis"), [((3, 1), 1), ((1, 3), 0), ((4,), 0), ((2, 3), (0, 1))])
def test_no_negative_strides_go_there(shape, axis, monkeypatch):
    """torch refuses them, of axes of length 1, too."""
    seen = []
    strict = pytest.importorskip("array_api_strict")
    own = strict.asarray
    monkeypatch.setattr(strict, "asarray", lambda values, **options: seen.append(values) or own(values, **options))
    values = np.arange(np.prod(shape), dtype=float).reshape(shape)
    turned = np.flip(values, axis)
    check(put(turned, there(values)), turned)
    assert min(seen[-1].strides) > 0


def test_stacked_groups():
    rows, labels = np.vstack(TALL), np.repeat(["case", "control"], [150, 120])
    expected = PCPCA(2, gamma=0.3).fit(TALL[0], background=TALL[1])
    model = PCPCA(2, gamma=0.3, background_label="control").fit(there(rows), labels)
    check(model.components_, expected.components_)
    check(model.score(there(rows), labels), expected.score(TALL[0]))
    numbers = there((labels == "control").astype(int))
    again = PCPCA(2, gamma=0.3, background_label=1).fit(there(rows), numbers)
    check(again.components_, expected.components_)
    assert is_there(again.fit_transform(there(rows), numbers))


def test_a_model_serves_rows_anywhere(tmp_path):
    """The result follows the rows that are passed; a file or a pickle keeps no trace of the device."""
    X, Y = TALL
    here, away = fitted(PCPCA(2, gamma=0.3), X, Y), fitted(PCPCA(2, gamma=0.3), there(X), there(Y))
    np.testing.assert_allclose(away.transform(X), here.transform(X), atol=1e-10)
    check(here.transform(there(X)), here.transform(X))
    away.save(tmp_path / "model.npz")
    loaded = contrapca.load(tmp_path / "model.npz")
    np.testing.assert_allclose(loaded.sample(3, random_state=0), here.sample(3, random_state=0), atol=1e-10)
    check(loaded.transform(there(X)), here.transform(X))
    assert is_there(pickle.loads(pickle.dumps(away)).sample(2))
    assert away.feature_table()["component_1"].tolist() == pytest.approx(here.feature_table()["component_1"].tolist())
    again = away.fit(X, background=Y)  # on NumPy rows: nothing of the first fit is left
    assert isinstance(again.sample(2), np.ndarray)
    assert isinstance(again.components_, np.ndarray)


def test_moments(tmp_path):
    X, Y = TALL
    parts = Moments.from_rows(there(X[:70])) + Moments.from_rows(there(X[70:]))
    expected = fitted(PCPCA(2, gamma=0.3), X, Y)
    model = PCPCA(2, gamma=0.3).fit(parts, background=Moments.from_rows(there(Y)))
    np.testing.assert_allclose(model.components_, expected.components_, atol=1e-10)
    parts.save(tmp_path / "moments.npz")
    np.testing.assert_allclose(contrapca.load(tmp_path / "moments.npz").mean, X.mean(axis=0))


def test_batches(tmp_path):
    """They are reduced there, and a checkpoint of their moments is a plain file."""
    X, Y, path = *TALL, tmp_path / "checkpoint.npz"
    whole = PCPCA(2, gamma=0.2).fit(X, background=Y)
    parts = [(there(X[k::2]), there(Y[k::2])) for k in range(2)]
    model = PCPCA(2, gamma=0.2)
    for part, controls in parts:
        model.partial_fit(part, background=controls)
    for found in (model, PCPCA(2, gamma=0.2).fit_batches(parts, checkpoint=path)):
        np.testing.assert_allclose(back(found.transform(there(X))), whole.transform(X), atol=1e-9)
    again = PCPCA(2, gamma=0.2).fit_batches(parts, checkpoint=path)  # all are counted
    np.testing.assert_allclose(again.transform(X), whole.transform(X), atol=1e-9)


def test_what_works_from_folds_and_weights_works_there():
    X, Y = TALL
    here, away = (GammaSearch(CPCA(2)).fit(put(X), background=put(Y)) for put in (np.asarray, there))
    assert away.best_gamma_ == pytest.approx(here.best_gamma_, rel=1e-9)
    model = fitted(PCPCA(2, gamma=0.3), there(X), there(Y))
    refits = bootstrap(model, there(X), background=there(Y), n_resamples=4, random_state=0, progress=False)
    again = bootstrap(fitted(PCPCA(2, gamma=0.3), X, Y), X, background=Y, n_resamples=4, random_state=0, progress=False)
    np.testing.assert_allclose(refits.summary()["sd"], again.summary()["sd"], rtol=1e-8)


# ---------------------------------------------------------------------- refusals


def unchanged(model, call, error, match):
    """A refusal leaves the estimator as it was."""
    before = {key: value for key, value in vars(model).items() if not key.endswith("_")}
    with pytest.raises(error, match=match):
        call(model)
    after = vars(model)
    assert all(after[key] is value for key, value in before.items())


def test_two_places_are_refused(need):
    strict, (X, Y) = need("array_api_strict"), TALL
    model = fitted(PCPCA(2, gamma=0.3), there(X), there(Y))
    for foreground, background in ((there(X), Y), (X, there(Y)), (there(X), strict.asarray(Y))):
        message = r"The foreground is in .*, but the background is in .*Move one of them"
        unchanged(model, lambda m, X=foreground, Y=background: m.fit(X, background=Y), GroupError, message)


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda X: X.astype(complex), ValueError, "Complex data not supported"),
        (lambda X: X[0], ValueError, "needs a table, rows by features, but this array has 1 dimensions"),
        (lambda X: X[:1], ValueError, "1 sample"),
        (lambda X: X[:, :0], ValueError, "0 feature"),
        (lambda X: np.where(X > 3, np.inf, X), NonFiniteError, "infinity"),
        (lambda X: X[:, :7], GroupError, "7 features"),
        (lambda X: 1e200 * X, ValueError, "too large to be squared"),
    ],
)
def test_bad_tables(make, error, match):
    X, Y = TALL
    model = fitted(PCPCA(2, gamma=0.3), there(X), there(Y))
    unchanged(model, lambda m: m.fit(there(make(X)), background=there(Y)), error, match)


def test_whole_numbers_become_float64():
    X, Y = (np.round(10 * table).astype(int) for table in TALL)
    check(fitted(PCPCA(2), there(X), there(Y)).components_, fitted(PCPCA(2), X, Y).components_)


@pytest.mark.parametrize(
    ("dtype", "layout", "match"),
    [
        ("torch.float16", "torch.strided", "needs float32 or float64, but the table is float16"),
        ("torch.bfloat16", "torch.strided", "needs float32 or float64, but the table is bfloat16"),
        ("torch.float32", "torch.sparse_csr", r"dense tensors, .*torch.sparse_csr: pass X.to_dense\(\)"),
    ],
)
def test_half_precision_and_sparse_tensors(monkeypatch, dtype, layout, match):
    """array-api-strict has neither; what is checked has the names that torch gives them."""
    kind = type("Tensor", (), {"__module__": "torch", "ndim": 2, "shape": (5, 3), "dtype": dtype, "layout": layout})
    monkeypatch.setattr(groups_module, "namespace", lambda table: SimpleNamespace(isdtype=lambda *_: False))
    with pytest.raises(TypeError, match=match):
        PCPCA(2).fit(kind(), background=kind())


def test_missing_values_are_for_numpy():
    X, (_, Y) = there(INCOMPLETE[0]), map(there, TALL)
    model = fitted(PCPCA(2, gamma=0.3), *TALL)
    says = r"NaN in 12 of 12 features .*Missing values are for NumPy arrays: pass X\.cpu\(\)\.numpy\(\) \(torch\)"
    for call in (
        lambda: PPCA(2).fit(X),
        lambda: CPCA(2, gamma=1.0).fit(X, background=Y),
        lambda: gamma_limits(X, background=Y),
        lambda: contrast_path(PCPCA(1), X, background=Y),
        lambda: model.transform(X),
        lambda: model.score_samples(X),
        lambda: fitted(CPCA(2, gamma=1.0), INCOMPLETE[0], TALL[1]).transform(X),
    ):
        with pytest.raises(NonFiniteError, match=says):
            call()
    with pytest.raises(NonFiniteError, match="NaN in 12 of 12 features"):
        CLVM(1, 1).fit(X, background=Y)
    np.testing.assert_array_equal(model.transform(INCOMPLETE[0]), fitted(model, *TALL).transform(INCOMPLETE[0]))


def test_what_needs_numpy_says_so():
    X, Y = map(there, TALL)
    model = fitted(PCPCA(2, gamma=0.3), X, Y)
    for call in (
        lambda: contrapca.contrast_test(X, background=Y),
        lambda: contrapca.compare(X, background=Y),
        lambda: contrapca.report(X, model, background=Y),
        lambda: SparseCPCA(2).fit(X, background=Y),
        lambda: PCPCA(2, gamma=0.3, solver="lbfgs").fit(X, background=Y),
        lambda: model.impute(X),
    ):
        with pytest.raises(TypeError, match=r"computes with NumPy, but rows are in array_api_strict on the device"):
            call()


def test_without_array_api_compat(monkeypatch):
    """NumPy does not need it; others are told what to install."""
    X, Y = TALL
    rows = there(X), there(Y)
    monkeypatch.setitem(sys.modules, "array_api_compat", None)
    fitted(PCPCA(2, gamma=0.3), X, Y).score(X)
    with pytest.raises(MissingExtraError, match=r'pip install "contrapca\[array-api\]"'):
        fitted(PCPCA(2, gamma=0.3), *rows)


CHECK = """
from sklearn.utils.estimator_checks import check_estimator
from contrapca import PPCA, PCPCA, CPCA
passed = 0
for estimator in (PPCA(1), PCPCA(1, gamma=0), CPCA(1, gamma=0)):
    assert estimator.__sklearn_tags__().array_api_support
    for result in check_estimator(estimator, on_skip=None, on_fail="raise"):
        passed += result["status"] == "passed" and "array_api" in result["check_name"]
print(passed)
"""


def test_with_dispatch_other_places_are_refused(monkeypatch):
    """As scikit-learn's own estimators refuse them; without it, a model serves rows anywhere."""
    model = fitted(PCPCA(2, gamma=0.3), *map(there, TALL))
    # The setting itself needs SCIPY_ARRAY_API, see below.
    monkeypatch.setattr("contrapca.estimators._new_rows.get_config", lambda: {"array_api_dispatch": True})
    assert is_there(model.transform(there(TALL[0])))
    for call in (model.transform, model.score_samples, model.impute):
        with pytest.raises(ValueError, match=r"PCPCA.transform\(\) and other methods must use the same namespace"):
            call(TALL[0])
    with pytest.raises(ValueError, match="same namespace"):
        model.inverse_transform(np.ones((3, 2)))


@pytest.mark.slow
def test_scikit_learns_own_checks():
    """In a process of its own: SCIPY_ARRAY_API must be set before SciPy is imported."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHECK],
        env=os.environ | {"SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 3 * 2  # scikit-learn 1.9 has four for NumPy and array-api-strict


def test_a_method_that_tensors_have_does_not_make_them_moments(monkeypatch):
    kind = type(there(np.ones(1)))
    monkeypatch.setattr(kind, "scatter", lambda self, *given: None, raising=False)
    X, Y = TALL
    found = PCPCA(2, gamma=0.3).fit(there(X), background=there(Y))
    np.testing.assert_allclose(
        back(found.components_), PCPCA(2, gamma=0.3).fit(X, background=Y).components_, atol=1e-10
    )
