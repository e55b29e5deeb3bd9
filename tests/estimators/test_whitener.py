"""Whitening by the controls (F47): against explicit matrices, for every storage, and on a table of cell images."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.covariance import ledoit_wolf
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import oracle_designs as oracle
from conftest import make_groups
from contrapca import BackgroundWhitener, Moments, Study, load
from contrapca.exceptions import ContrastWarning, GroupError, NonFiniteError
from devices import back, is_there, there

X, Y = make_groups(60, 90, 8)
WIDE_X, WIDE_Y = make_groups(14, 20, 50)
TREATMENT = np.array([*np.repeat(np.arange(19), 3), 100, 101, 102])  # of X: three occur once


def reference(X, Y, ridge="auto", scale=True, treatment=None):
    """Whitened rows of X and the shrinkage, from the definition."""
    R = Y - Y.mean(axis=0)
    if treatment is not None:
        R = np.vstack([R, oracle.within_treatments(X, list(treatment))])
    sd = np.sqrt(np.mean(R**2, axis=0)) if scale else np.ones(R.shape[1])
    R = R / sd
    rules = {"auto": oracle.ledoit_wolf, "oas": oracle.oracle_approximating}
    delta = rules[ridge](R) if isinstance(ridge, str) else ridge / (1 + ridge)
    return (X - Y.mean(axis=0)) / sd @ oracle.whitener(R, delta), delta


@pytest.mark.parametrize("wide", [False, True], ids=["tall", "wide"])
@pytest.mark.parametrize("scale", ["background", None])
@pytest.mark.parametrize("ridge", ["auto", "oas", 0.3, 20])
def test_against_explicit_matrices(ridge, scale, wide):
    cases, controls = (WIDE_X, WIDE_Y) if wide else (X, Y)
    expected, delta = reference(cases, controls, ridge, scale is not None)
    model = BackgroundWhitener(ridge, scale).fit(cases, background=controls)
    assert model.shrinkage_ == pytest.approx(delta, rel=1e-10)
    assert model.ridge_ == pytest.approx(delta / (1 - delta), rel=1e-9)
    found = model.transform(cases)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(model.inverse_transform(found), cases, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("ridge", ["auto", 0.3])
def test_rows_of_treatments_are_used_like_controls(ridge):
    expected, delta = reference(X, Y, ridge, treatment=TREATMENT)
    model = BackgroundWhitener(ridge).fit(X, background=Y, replicates=TREATMENT)
    assert model.shrinkage_ == pytest.approx(delta, rel=1e-10)
    np.testing.assert_allclose(model.transform(X), expected, rtol=1e-9, atol=1e-10)
    without = BackgroundWhitener(ridge).fit(X, background=Y).transform(X)
    assert not np.allclose(without, expected, rtol=1e-3)


def test_ledoit_and_wolf_as_scikit_learn_has_it():
    for controls in (Y, WIDE_Y, np.random.default_rng(0).standard_t(3, size=(40, 30))):
        model = BackgroundWhitener().fit(controls, background=controls)
        R = (controls - controls.mean(axis=0)) / controls.std(axis=0)
        assert model.shrinkage_ == pytest.approx(ledoit_wolf(R, assume_centered=True)[1], rel=1e-10)


def test_without_a_ridge_controls_have_unit_covariance():
    Z = BackgroundWhitener(0).fit(X, background=Y).transform(Y)
    np.testing.assert_allclose(Z.T @ Z / len(Y), np.eye(8), atol=1e-12)
    shrunk = BackgroundWhitener().fit(X, background=Y).transform(Y)
    assert not np.allclose(shrunk.T @ shrunk / len(Y), np.eye(8), atol=0.01)


def test_an_infinite_ridge_scales_only():
    model = BackgroundWhitener(np.inf).fit(X, background=Y)
    np.testing.assert_allclose(model.transform(X), (X - Y.mean(axis=0)) / Y.std(axis=0), rtol=1e-12, atol=1e-12)
    assert model.ridge_ == np.inf
    assert model.shrinkage_ == 1


def test_several_backgrounds_are_centred_each():
    shifted = Y[50:] + 5
    model = BackgroundWhitener().fit(X, background={"a": Y[:50], "b": shifted})
    both = np.vstack([Y[:50] - Y[:50].mean(axis=0), shifted - shifted.mean(axis=0)])
    again = BackgroundWhitener().fit(X, background=both)
    assert model.ridge_ == pytest.approx(again.ridge_)
    np.testing.assert_allclose(model.mean_, np.vstack([Y[:50], shifted]).mean(axis=0))
    np.testing.assert_allclose(model.transform(X + model.mean_), again.transform(X + again.mean_), atol=1e-10)


def test_weights_are_the_same_as_repeated_rows():
    times = np.arange(len(Y)) % 3
    study = Study(X, background=Y, weights=(None, times.astype(float)))
    model = BackgroundWhitener().fit(study)
    again = BackgroundWhitener().fit(X, background=np.repeat(Y, times, axis=0))
    assert model.ridge_ == pytest.approx(again.ridge_, rel=1e-10)
    np.testing.assert_allclose(model.transform(study), again.transform(X), atol=1e-10)


# ---------------------------------------------------------------------- storages


@pytest.mark.parametrize("wide", [False, True], ids=["tall", "wide"])
def test_sparse_rows(wide):
    cases, controls = (np.where(rows > 0.5, rows, 0) for rows in ((WIDE_X, WIDE_Y) if wide else (X, Y)))
    model = BackgroundWhitener().fit(sp.csr_array(cases), background=sp.csr_array(controls))
    again = BackgroundWhitener().fit(cases, background=controls)
    assert model.ridge_ == pytest.approx(again.ridge_, rel=1e-9)
    for rows in (sp.csr_array(cases), sp.csc_array(cases), cases):
        np.testing.assert_allclose(model.transform(rows), again.transform(cases), atol=1e-9)


@pytest.mark.parametrize("wide", [False, True], ids=["tall", "wide"])
def test_dask_arrays_stay_lazy(wide):
    da = pytest.importorskip("dask.array")
    cases, controls = (WIDE_X, WIDE_Y) if wide else (X, Y)
    lazy = [da.from_array(rows, chunks=(9, rows.shape[1])) for rows in (cases, controls)]
    model = BackgroundWhitener().fit(lazy[0], background=lazy[1])
    again = BackgroundWhitener().fit(cases, background=controls)
    assert model.ridge_ == pytest.approx(again.ridge_, rel=1e-9)
    found = model.transform(lazy[0])
    assert hasattr(found, "compute")
    np.testing.assert_allclose(found.compute(), again.transform(cases), atol=1e-9)


def test_arrays_of_a_device_stay_there():
    pytest.importorskip("array_api_strict")
    model = BackgroundWhitener().fit(there(X), background=there(Y))
    again = BackgroundWhitener().fit(X, background=Y)
    found = model.transform(there(X))
    assert is_there(found)
    np.testing.assert_allclose(back(found), again.transform(X), atol=1e-10)
    np.testing.assert_allclose(back(model.inverse_transform(found)), X, atol=1e-10)


def test_moments_have_no_lengths_so_auto_takes_the_other_rule():
    model = BackgroundWhitener().fit(Moments.from_rows(X), background=Moments.from_rows(Y))
    again = BackgroundWhitener("oas").fit(X, background=Y)
    assert model.ridge_ == pytest.approx(again.ridge_, rel=1e-10)
    np.testing.assert_allclose(model.transform(X), again.transform(X), atol=1e-10)
    by_hand = BackgroundWhitener(0.3).fit(Moments.from_rows(X), background=Moments.from_rows(Y))
    np.testing.assert_allclose(by_hand.transform(X), BackgroundWhitener(0.3).fit(X, background=Y).transform(X))


def test_frames_and_pipelines():
    pd = pytest.importorskip("pandas")
    names = [f"gene {k}" for k in range(8)]
    stacked = pd.DataFrame(np.vstack([X, Y]), columns=names)
    y = np.repeat(["case", "control"], [len(X), len(Y)])
    model = make_pipeline(StandardScaler(), BackgroundWhitener(background_label="control"))
    model.set_output(transform="pandas")
    found = model.fit_transform(stacked, y)
    assert list(found.columns) == names
    scaled = StandardScaler().fit_transform(stacked)
    expected = BackgroundWhitener().fit(scaled[: len(X)], background=scaled[len(X) :]).transform(scaled)
    np.testing.assert_allclose(found.to_numpy(), expected, atol=1e-10)
    treatment = np.concatenate([TREATMENT, np.full(len(Y), -1)])
    by_label = BackgroundWhitener(background_label="control").fit(stacked, y, replicates=treatment)
    again = BackgroundWhitener().fit(X, background=Y, replicates=TREATMENT)
    np.testing.assert_allclose(by_label.transform(stacked)[: len(X)], again.transform(X), atol=1e-10)
    with pytest.raises(ValueError, match="feature names should match"):
        by_label.transform(stacked[names[::-1]])


def test_float32_in_and_out():
    model = BackgroundWhitener().fit(X.astype(np.float32), background=Y.astype(np.float32))
    found = model.transform(X.astype(np.float32))
    assert found.dtype == model.mean_.dtype == model.inverse_transform(found).dtype == np.float32
    np.testing.assert_allclose(found, BackgroundWhitener().fit(X, background=Y).transform(X), atol=1e-4)


@pytest.mark.parametrize("wide", [False, True], ids=["tall", "wide"])
@pytest.mark.parametrize("ridge", ["auto", np.inf])
def test_saved_and_loaded(tmp_path, ridge, wide):
    cases, controls = (WIDE_X, WIDE_Y) if wide else (X, Y)
    model = BackgroundWhitener(ridge, background_label="b").fit(Study(cases, background=controls))
    model.save(tmp_path / "model.npz")
    for again in (load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
        assert again.get_params() == model.get_params()
        assert again.ridge_ == model.ridge_
        np.testing.assert_array_equal(again.transform(cases), model.transform(cases))
    with pytest.raises(Exception, match="not fitted yet"):
        clone(model).save(tmp_path / "other.npz")


# ---------------------------------------------------------------------- what is refused, and warned of


def test_few_controls_that_a_few_rows_rule():
    rng = np.random.default_rng(0)
    controls = rng.normal(size=(30, 60))
    controls[:2] *= 15
    with pytest.warns(
        ContrastWarning, match=r"\(30 rows\) are fewer than their 60 features, and a few of them are far"
    ):
        BackgroundWhitener().fit(controls, background=controls)


@pytest.mark.filterwarnings("error")
def test_other_controls_are_not_warned_of():
    rng = np.random.default_rng(0)
    few, many = rng.normal(size=(30, 60)), rng.normal(size=(90, 60))
    many[:2] *= 15  # enough rows
    for controls in (few, many, WIDE_Y, rng.standard_t(4, size=(30, 60))):
        BackgroundWhitener().fit(controls, background=controls)


@pytest.mark.parametrize(
    ("parameters", "given", "says"),
    [
        ({"ridge": -1}, {}, "ridge=-1 must be 'auto', 'oas' or a number"),
        ({"ridge": "atuo"}, {}, "ridge='atuo' is not valid. Did you mean 'auto'"),
        ({"ridge": True}, {}, "ridge=True must be"),
        ({"scale": "pooled"}, {}, "scale='pooled' is not valid"),
        ({"ridge": 0}, {"X": WIDE_X, "background": WIDE_Y}, "ridge=0|do not vary at all in some directions"),
        ({"ridge": 0}, {"background": np.column_stack([Y[:, :7], Y[:, :1]])}, "do not vary at all in some directions"),
        ({}, {"background": np.ones((9, 8))}, "The controls do not vary at all"),
        ({}, {"background": None}, "BackgroundWhitener contrasts two groups but was given one"),
        (
            {},
            {"background": np.where(Y > 2, np.nan, Y)},
            "(?s)Input contains NaN .* In the background|Input contains NaN",
        ),
        ({}, {"replicates": TREATMENT[:5]}, r"replicates= has the shape \(5,\): pass the treatment of each of the 60"),
        ({}, {"replicates": np.arange(60)}, "Every label in replicates= occurs once"),
        ({}, {"replicates": np.where(TREATMENT == 3, np.nan, TREATMENT)}, "3 of the labels in replicates= are missing"),
        ({}, {"X": sp.csr_array(X), "replicates": TREATMENT}, "replicates= needs the cases as a NumPy array"),
        ({}, {"X": np.zeros((4, 9001)), "background": sp.csr_array((9001, 9001))}, "9001 features are too many"),
    ],
)
def test_bad_input_is_refused_by_a_sentence(parameters, given, says):
    given = {"X": X, "background": Y} | given
    with pytest.raises((ValueError, TypeError), match=says):
        BackgroundWhitener(**parameters).fit(given.pop("X"), **given)


@pytest.mark.parametrize("kind", ["numpy", "array_api_strict", "dask.array"])
def test_new_rows_without_a_value_are_refused_wherever_they_are(kind):
    library = pytest.importorskip(kind)
    model = BackgroundWhitener().fit(X, background=Y)
    holed = X.copy()
    holed[3, 2] = np.nan

    def whitened(table):
        found = model.transform(library.asarray(table))
        return back(found) if kind == "array_api_strict" else np.asarray(found)  # dask computes here

    assert np.isfinite(whitened(X)).all()
    with pytest.raises(NonFiniteError, match="Input contains NaN in 1 of 8 features"):
        whitened(holed)


def test_covariates_and_weights_of_the_cases():
    with pytest.raises(GroupError, match=r"pass regress_out\(study\)"):
        BackgroundWhitener().fit(Study(X, background=Y, covariates=(np.arange(60.0), np.arange(90.0))))
    with pytest.raises(GroupError, match="takes no weights of the cases"):
        BackgroundWhitener().fit(Study(X, background=Y, weights=(1.0 + np.arange(60), None)), replicates=TREATMENT)


def test_a_failed_fit_leaves_the_model_as_it_was():
    model = BackgroundWhitener().fit(X, background=Y)
    before = model.transform(X)
    with pytest.raises(GroupError):
        model.fit(X, background=np.ones((9, 8)))
    np.testing.assert_array_equal(model.transform(X), before)


# ---------------------------------------------------------------------- cells under compounds


def mean_average_precision(Z, label, group):
    """Of every row: rows of other groups by their cosine, and how early those of its label come."""
    U = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    found = []
    for u, mine, its in zip(U, label, group, strict=True):
        others = np.flatnonzero(group != its)
        hit = label[others][np.argsort(-(U[others] @ u), kind="stable")] == mine
        if hit.any():
            found.append(np.mean((np.cumsum(hit) / np.arange(1, hit.size + 1))[hit]))
    return np.mean(found)


def test_mechanisms_are_found_again_by_other_compounds(data_folder):
    pd = pytest.importorskip("pandas")
    frame = pd.read_csv(data_folder / "real_sets" / "bbbc021.csv")
    features, controls = list(frame.columns[5:]), frame["Metadata_moa"] == "DMSO"
    treated = frame[~controls]
    key = treated["Metadata_Compound"] + " " + treated["Metadata_Concentration"].astype(str)
    profiles = treated.groupby(key).agg({"Metadata_moa": "first", "Metadata_Compound": "first"})
    label, compound = profiles["Metadata_moa"].to_numpy(), profiles["Metadata_Compound"].to_numpy()

    def score(model):
        Z = treated[features] if model is None else model.transform(treated[features])
        means = pd.DataFrame(np.asarray(Z), index=treated.index).groupby(key).mean().loc[profiles.index]
        return mean_average_precision(means.to_numpy(), label, compound)

    fitted = {"background": frame.loc[controls, features]}
    alone = BackgroundWhitener().fit(treated[features], **fitted)
    both = BackgroundWhitener().fit(treated[features], **fitted, replicates=key.to_numpy())
    assert score(None) == pytest.approx(0.78, abs=0.01)
    assert score(alone) == pytest.approx(0.824, abs=0.005)
    assert score(both) == pytest.approx(0.871, abs=0.005)
