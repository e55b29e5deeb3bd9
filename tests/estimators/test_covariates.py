"""Covariates: a fit with them is a fit to residuals made by hand, and new rows are treated alike."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import oracles
from conftest import make_groups
from contrapca import (
    CLVM,
    CPCA,
    PCPCA,
    PPCA,
    ContraPCA,
    Moments,
    RatioPCA,
    SparseCPCA,
    Study,
    bootstrap,
    load,
    regress_out,
    report,
)
from contrapca.exceptions import GroupError
from saved import accepted, changed, contents

pytestmark = pytest.mark.filterwarnings("ignore:PCPCA still shows")

rng = np.random.default_rng(5)
X, Y = make_groups(60, 50, 7)
ZX, ZY = rng.normal(size=(60, 2)) * [10, 1] + [50, 0], rng.normal(size=(50, 2)) * [10, 1] + [55, 0.5]
EFFECT = rng.normal(size=(2, 7)) * [[0.2], [2.0]]
X, Y = X + ZX @ EFFECT, Y + ZY @ EFFECT
GIVEN = {"covariates": (ZX, ZY)}
(RX, RY), B = oracles.residuals([X, Y], [ZX, ZY])
CLOSE = {"rtol": 1e-10, "atol": 1e-10}
WITH_HOLES = np.where(rng.random(X.shape) < 0.1, np.nan, X)


@pytest.mark.parametrize(
    "model",
    [
        PCPCA(2),
        PCPCA(2, gamma=0.3, scale="pooled"),
        ContraPCA(2),
        CPCA(2, gamma=1.5, scale="group"),
        RatioPCA(2),
        SparseCPCA(2, sparsity=3, gamma=1.0),
        CLVM(1, 2),
    ],
    ids=str,
)
def test_fit_is_that_of_residuals(model):
    found = clone(model).fit(Study(X, background=Y, **GIVEN))
    expected = clone(model).fit(RX, background=RY)
    for name in ("components_", "mean_", "background_mean_", "explained_variance_", "objective_", "n_effective_"):
        if hasattr(expected, name):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), err_msg=name, **CLOSE)
    np.testing.assert_allclose(found.covariate_coefficients_, B, **CLOSE)
    np.testing.assert_allclose(found.transform(X, covariates=ZX), expected.transform(RX), **CLOSE)
    np.testing.assert_allclose(
        found.transform(Y, center="background", covariates=ZY), expected.transform(RY, center="background"), **CLOSE
    )
    plain = clone(model).fit(X, background=Y)  # the control: the covariates do matter
    assert np.abs(plain.components_ - expected.components_).max() > 1e-3


def test_every_method_of_new_rows_adjusts_them():
    model, expected = (
        PCPCA(2, gamma=0.3).fit(Study(X, background=Y, **GIVEN)),
        PCPCA(2, gamma=0.3).fit(RX, background=RY),
    )
    some = slice(3, 9)
    for name in ("score_samples", "score", "contrast_score"):
        found = getattr(model, name)(X[some], covariates=ZX[some])
        np.testing.assert_allclose(found, getattr(expected, name)(RX[some]), err_msg=name, **CLOSE)
    for found, wanted in zip(
        model.latent_posterior(X[some], covariates=ZX[some]), expected.latent_posterior(RX[some]), strict=True
    ):
        np.testing.assert_allclose(found, wanted, **CLOSE)
    shared, wanted = CLVM(1, 2).fit(Study(X, background=Y, **GIVEN)), CLVM(1, 2).fit(RX, background=RY)
    np.testing.assert_allclose(shared.transform_shared(X, covariates=ZX), wanted.transform_shared(RX), **CLOSE)
    np.testing.assert_allclose(
        clone(model).fit_transform(Study(X, background=Y, **GIVEN)), expected.transform(RX), **CLOSE
    )
    again = {"random_state": 0, "n_resamples": 3, "progress": False}
    found, wanted = (
        bootstrap(model, Study(X, background=Y, **GIVEN), **again),
        bootstrap(expected, RX, background=RY, **again),
    )
    np.testing.assert_allclose(found.W, wanted.W, **CLOSE)


def test_one_group():
    (residuals,), _ = oracles.residuals([X], [ZX])
    model = PPCA(2).fit(Study(X, covariates=ZX))
    np.testing.assert_allclose(model.transform(X, covariates=ZX), PPCA(2).fit(residuals).transform(residuals), **CLOSE)
    np.testing.assert_allclose(regress_out(Study(X, covariates=ZX)).rows.foreground, residuals, **CLOSE)


def test_several_backgrounds():
    parts, covariates = {"a": Y[:30], "b": Y[30:]}, {"a": ZY[:30], "b": ZY[30:]}
    residuals, _ = oracles.residuals([X, Y[:30], Y[30:]], [ZX, ZY[:30], ZY[30:]])
    found = PCPCA(2, gamma=0.3).fit(Study(X, background=parts, covariates=(ZX, covariates)))
    expected = PCPCA(2, gamma=0.3).fit(residuals[0], background=dict(zip("ab", residuals[1:], strict=True)))
    np.testing.assert_allclose(found.components_, expected.components_, **CLOSE)
    both = regress_out(Study(X, background=parts, covariates=(ZX, covariates)))
    np.testing.assert_allclose(both.rows["b"], residuals[2], **CLOSE)


def test_weights_are_repeated_rows():
    wx, wy = rng.integers(0, 4, 60), rng.integers(0, 4, 50)
    found = PCPCA(2, gamma=0.3).fit(Study(X, background=Y, weights=(wx, wy), **GIVEN))
    again = [oracles.repeated(table, w) for table, w in ((X, wx), (Y, wy), (ZX, wx), (ZY, wy))]
    expected = PCPCA(2, gamma=0.3).fit(Study(again[0], background=again[1], covariates=(again[2], again[3])))
    np.testing.assert_allclose(found.covariate_coefficients_, expected.covariate_coefficients_, **CLOSE)
    np.testing.assert_allclose(found.transform(X, covariates=ZX), expected.transform(X, covariates=ZX), rtol=1e-8)


def test_missing_values_are_regressed_where_observed():
    (residuals, controls), _ = oracles.residuals([WITH_HOLES, Y], [ZX, ZY])
    model = PCPCA(2, gamma=0.3).fit(Study(WITH_HOLES, background=Y, **GIVEN))
    expected = PCPCA(2, gamma=0.3).fit(residuals, background=controls)
    np.testing.assert_allclose(model.transform(WITH_HOLES, covariates=ZX), expected.transform(residuals), rtol=1e-8)
    filled, std = model.impute(WITH_HOLES, covariates=ZX, return_std=True)
    wanted, wanted_std = expected.impute(residuals, return_std=True)
    observed = ~np.isnan(WITH_HOLES)
    np.testing.assert_array_equal(filled[observed], WITH_HOLES[observed])
    effect = (ZX - np.vstack([ZX, ZY]).mean(axis=0)) @ model.covariate_coefficients_
    np.testing.assert_allclose(filled, wanted + effect, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(std, wanted_std, rtol=1e-8, atol=1e-12)
    draws = model.impute(WITH_HOLES, covariates=ZX, n_draws=2, random_state=0)
    np.testing.assert_allclose(draws[0], expected.impute(residuals, n_draws=2, random_state=0)[0] + effect, rtol=1e-7)
    sparse_feature = WITH_HOLES.copy()
    sparse_feature[3:, 0] = np.nan
    few = Y.copy()
    few[1:, 0] = np.nan
    with pytest.raises(GroupError, match="column 0 is observed in too few rows"):
        PCPCA(2, gamma=0.3).fit(Study(sparse_feature, background=few, **GIVEN))


def test_text_is_categorical_and_remembered(need, tmp_path):
    pd = need("pandas")
    sex, other = rng.choice(["M", "F"], 60), rng.choice(["M", "F"], 50)
    site, elsewhere = rng.choice([3, 1, 2], 60), rng.choice([1, 2, 3], 50)
    frame = pd.DataFrame({"age": ZX[:, 0], "sex": sex, "site": pd.Categorical(site)})
    controls = pd.DataFrame({"age": ZY[:, 0], "sex": other, "site": pd.Categorical(elsewhere)})

    def dummies(age, sexes, sites):
        return np.column_stack([age, sexes == "M", sites == 2, sites == 3]).astype(float)

    codes = dummies(ZX[:, 0], sex, site), dummies(ZY[:, 0], other, elsewhere)
    model = PCPCA(2).fit(Study(X, background=Y, covariates=(frame, controls)))
    expected = PCPCA(2).fit(Study(X, background=Y, covariates=(codes[0], codes[1])))
    assert model.covariate_names_.tolist() == ["age", "sex=M", "site=2", "site=3"]
    np.testing.assert_allclose(model.covariate_coefficients_, expected.covariate_coefficients_, **CLOSE)
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    some = frame[4:9]  # one level may be missing among new rows
    found = again.transform(X[4:9], covariates=some)
    np.testing.assert_array_equal(found, model.transform(X[4:9], covariates=some))
    np.testing.assert_allclose(found, expected.transform(X[4:9], covariates=codes[0][4:9]), **CLOSE)
    pl = need("polars")
    np.testing.assert_array_equal(found, again.transform(X[4:9], covariates=pl.DataFrame(some.astype({"site": str}))))
    for bad, message in (
        (some.assign(sex="X"), r"'sex' is 'X' in some rows, but the fit had only 'F', 'M'"),
        (some[["sex", "age", "site"]], r"columns 'sex', 'age', 'site', but .* are 'age', 'sex', 'site'"),
        (some[["age"]], "pass the same"),
        (some.assign(age="old"), "'age' was a column of numbers in the fit, and is text here"),
        (None, r"fitted with covariates \('age', 'sex', 'site'\): pass covariates="),
    ):
        with pytest.raises(GroupError, match=message):
            again.transform(X[4:9], covariates=bad)


@pytest.mark.parametrize(
    ("covariates", "controls", "message"),
    [
        (ZX, None, "The background has no covariates"),
        (None, ZY, "The foreground has no covariates"),
        (ZX[:-1], ZY, r"covariates of the foreground has shape \(59, 2\) for 60 rows"),
        (ZX, ZY[:, :1], "covariates of the background has the columns 'covariate 1', but"),
        (np.where(ZX > 60, np.nan, ZX), ZY, r"covariates of the foreground: 'covariate 1' is missing in \d+ rows"),
        (ZX, np.where(ZY > 60, np.inf, ZY), "covariates of the background: 'covariate 1' is infinite in row"),
        (np.hstack([ZX, ZX[:, :1]]), np.hstack([ZY, ZY[:, :1]]), "'covariate 3' is a combination of those before"),
        (np.ones(60), np.zeros(50), "'covariate 1' is the same in all rows of each group"),
        (["a"] * 60, ["a"] * 50, "'covariate 1' is the same in all rows of each group"),
        ([f"d{i}" for i in range(60)], [f"d{i}" for i in range(50)], "explain the foreground entirely: 59 columns"),
        (rng.normal(size=(60, 49)), rng.normal(size=(50, 49)), "explain the background entirely: 49 columns"),
        ([str(i) for i in range(60)], ["1"] * 50, "numbers written as text, such as '0'"),
        ([object()] * 60, [object()] * 50, "covariates of the foreground: 'covariate 1' has values of type object"),
        (["a", ""] * 30, ["a", "b"] * 25, "missing in 30 rows"),
        ([None, "b"] * 30, ["a", "b"] * 25, "missing in 30 rows"),
    ],
)
def test_bad_covariates_raise(covariates, controls, message):
    with pytest.raises(GroupError, match=message):
        PCPCA(2).fit(Study(X, background=Y, covariates=(covariates, controls)))


def test_a_group_that_covariates_explain_raises():
    flat = ZX @ EFFECT
    with pytest.raises(GroupError, match="explain the foreground entirely: nothing is left"):
        PCPCA(2).fit(Study(flat, background=ZY @ EFFECT, **GIVEN))


def test_other_tables_are_refused_with_a_way_out(need):
    da, strict = need("dask.array"), need("array_api_strict")
    for table, message in (
        (sp.csr_array(X), "foreground is sparse: pass X.toarray()"),
        (da.from_array(X), "foreground is read in blocks: pass it as an array in memory"),
        (Moments.from_rows(X), "Moments have no rows"),
        (strict.asarray(X), "foreground is on a device: pass it as a NumPy array"),
    ):
        background = Moments.from_rows(Y) if isinstance(table, Moments) else Y
        background = strict.asarray(Y) if hasattr(table, "device") and not isinstance(table, np.ndarray) else background
        error = GroupError if isinstance(table, Moments) else TypeError
        with pytest.raises(error, match=message.replace("(", r"\(").replace(")", r"\)")):
            PCPCA(2).fit(Study(table, background=background, **GIVEN))
    model = PCPCA(2).fit(Study(X, background=Y, **GIVEN))
    for table, message in ((sp.csr_array(X), "sparse"), (da.from_array(X), "read in blocks")):
        with pytest.raises(TypeError, match=message):
            model.transform(table, covariates=ZX)
    with pytest.raises(TypeError, match="NumPy array or a data frame"):
        model.transform(X, covariates=sp.csr_array(ZX))


def test_models_without_covariates_take_none():
    model = PCPCA(2).fit(Study(X, background=Y, **GIVEN))
    assert hasattr(model, "covariate_names_")
    assert "without the effect of 'covariate 1', 'covariate 2'" in str(model.summary())
    model.fit(X, background=Y)  # a new fit forgets them
    assert not hasattr(model, "covariate_names_")
    for call in (
        lambda: model.transform(X, covariates=ZX),
        lambda: bootstrap(model, Study(X, background=Y, **GIVEN), n_resamples=2),
    ):
        with pytest.raises(GroupError, match="this model was fitted without"):
            call()
    model.fit(Study(X, background=Y, **GIVEN))
    with pytest.warns(UserWarning, match="starts anew"):
        model.partial_fit(X, background=Y)
    assert not hasattr(model, "covariate_names_")
    model.fit(Study(X, background=Y, **GIVEN))
    with pytest.raises(GroupError, match="fitted with covariates"):
        bootstrap(model, X, background=Y, n_resamples=2)
    with pytest.raises(GroupError, match="those of the fit were"):
        bootstrap(model, Study(X, background=Y, covariates=(ZX[:, :1], ZY[:, :1])))


def test_a_report_takes_no_covariates(need):
    need("jinja2")
    model = PCPCA(2).fit(Study(X, background=Y, **GIVEN))
    with pytest.raises(ValueError, match="fitted with covariates"):
        report(X, model, background=Y)


def test_damaged_covariates_in_a_file_raise(tmp_path):
    model = PCPCA(2).fit(Study(X, background=Y, **GIVEN))
    model.fit_.covariates.coefficients[0, 0] = np.nan
    with pytest.raises(ValueError, match=r"covariates\.coefficients overflowed"):
        model.save(tmp_path / "model.npz")
    PCPCA(2).fit(Study(X, background=Y, **GIVEN)).save(tmp_path / "model.npz")
    header, arrays = contents(tmp_path / "model.npz")
    place = "fit.covariates.coefficients"
    assert accepted(tmp_path / "model.npz", header, arrays)  # the control
    for columns in ([], header["value"]["fit"]["covariates"]["columns"][:1]):
        assert not accepted(tmp_path / "model.npz", changed(header, "fit.covariates.columns", columns), arrays)
    assert not accepted(tmp_path / "model.npz", header, arrays | {place: arrays[place][:, :-1]})


def test_float32_stays_float32():
    model = PCPCA(2).fit(Study(X.astype(np.float32), background=Y.astype(np.float32), **GIVEN))
    assert model.covariate_coefficients_.dtype == np.float32
    found = model.transform(X.astype(np.float32), covariates=ZX)
    assert found.dtype == np.float32
    np.testing.assert_allclose(
        found, PCPCA(2).fit(Study(X, background=Y, **GIVEN)).transform(X, covariates=ZX), atol=1e-4
    )


def test_frames_come_back_as_frames(need):
    pd = need("pandas")
    frame = pd.DataFrame(X, columns=list("abcdefg"), index=[f"r{i}" for i in range(60)])
    cases, controls = regress_out(Study(frame, background=Y, **GIVEN)).rows
    assert list(cases.columns) == list("abcdefg")
    assert list(cases.index) == list(frame.index)
    np.testing.assert_allclose(cases, RX, **CLOSE)
    np.testing.assert_allclose(controls, RY, **CLOSE)
    beside = pd.DataFrame(ZX, index=frame.index)
    for same in (beside, beside[::-1]):  # in the order of the rows' names
        np.testing.assert_allclose(
            regress_out(Study(frame, background=Y, covariates=(same, ZY))).rows.foreground, cases
        )
    model = PPCA(2).fit(Study(frame, covariates=beside))
    expected = model.transform(frame[:9], covariates=beside[:9])
    np.testing.assert_array_equal(model.transform(frame[:9], covariates=beside[8::-1]), expected)
    with pytest.raises(GroupError, match=r"other row names than its table.*\.loc\[X\.index\]"):
        model.transform(frame[:9], covariates=beside[9:0:-1])
    with pytest.raises(GroupError, match="needs a Study with covariates"):
        regress_out(Study(X, covariates=None))
