"""Rows in batches and in files: equal to rows in memory, also after a fault."""

import os
import signal
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from conftest import make_groups
from contrapca import (
    CLVM,
    CPCA,
    PCPCA,
    PPCA,
    ContraPCA,
    Moments,
    RatioPCA,
    load,
)
from contrapca.exceptions import ContrastWarning, GroupError, ModelFileError

pytestmark = pytest.mark.filterwarnings("ignore:PCPCA still shows")

X, Y = make_groups(150, 120, 6)


def halves(model, left=X, right=Y):
    """A model fitted by four batches."""
    model.partial_fit(left[:70], background=right[:5]).partial_fit(left[70:71])
    return model.partial_fit(None, background=right[5:]).partial_fit(left[71:])


# ---------------------------------------------------------------------- batches


@pytest.mark.parametrize(
    "model",
    [
        ContraPCA(2, shorten=False),
        PCPCA(2),
        CPCA(2, gamma=1.2),
        CLVM(2, 1, tol=1e-10),
        ContraPCA(2, scale="group", shorten=False),
        RatioPCA(2, ridge="oas"),
    ],
    ids=str,
)
def test_every_estimator_takes_batches(model):
    whole = type(model)(**model.get_params()).fit(X, background=Y)
    found = halves(model)
    np.testing.assert_allclose(found.transform(X), whole.transform(X), rtol=1e-6, atol=1e-7)
    assert (found.n_samples_seen_, found.n_background_samples_seen_) == (150, 120)
    assert found.moments_["background"].weight == 120


def test_the_automatic_ridge_of_batches_is_that_of_moments():
    """Ledoit and Wolf's rule needs fourth powers of the rows, which moments do not have."""
    found = halves(RatioPCA(2)).ridge_
    assert found == pytest.approx(RatioPCA(2, ridge="oas").fit(X, background=Y).ridge_, rel=1e-9)
    assert found != pytest.approx(RatioPCA(2).fit(X, background=Y).ridge_, rel=1e-3)


def test_ppca_and_float32():
    rows = X.astype(np.float32)
    model = PPCA(2).partial_fit(rows[:100]).partial_fit(rows[100:])
    whole = PPCA(2).fit(rows)
    assert model.components_.dtype == np.float32
    np.testing.assert_allclose(model.components_, whole.components_, atol=1e-6)
    assert PPCA(2).fit_batches([X[:80], {"X": X[80:]}]).n_samples_seen_ == 150


def test_several_backgrounds_and_labels():
    both = {"first": Y[:40], "second": Y[40:]}
    whole = PCPCA(2, gamma=0.3).fit(X, background=both)
    model = PCPCA(2, gamma=0.3)
    model.partial_fit(X, background={"first": Y[:40]})
    assert model.n_background_samples_seen_ == 40
    model.partial_fit(None, background={"second": Y[40:]})
    np.testing.assert_allclose(model.components_, whole.components_, atol=1e-10)
    assert model.n_background_samples_seen_ == {"first": 40, "second": 80}
    rows, y = np.vstack([X, Y]), np.repeat(["case", "control"], [150, 120])
    stacked = PCPCA(2, gamma=0.2, background_label="control")
    stacked.fit_batches((rows[k::9], y[k::9]) for k in range(9))
    np.testing.assert_allclose(stacked.components_, PCPCA(2, gamma=0.2).fit(X, background=Y).components_, atol=1e-10)


def test_weights_of_a_stacked_batch():
    rows, y = np.vstack([X, Y]), np.repeat(["case", "control"], [150, 120])
    model = PCPCA(2, gamma=0.2, background_label="control")
    with pytest.raises(ValueError, match=r"sample_weight has shape \(5,\) for 270 rows"):
        model.partial_fit(rows, y, sample_weight=np.ones(5))
    model.partial_fit(rows, y)
    whole = model.components_
    model.partial_fit(rows, y, sample_weight=np.zeros(270))  # no row of this batch counts
    np.testing.assert_allclose(model.components_, whole, atol=1e-12)


def test_it_waits_until_there_are_rows_enough():
    model = PCPCA(3, gamma=0.1).partial_fit(X[:2], background=Y[:2])
    assert not model.__sklearn_is_fitted__()
    assert model.n_samples_seen_ == 2
    assert model.partial_fit(X[2:], background=Y[2:]).transform(X).shape == (150, 3)


def test_batches_of_moments():
    """Sites send moments, one after the other."""
    model = PCPCA(2, gamma=0.2).partial_fit(Moments.from_rows(X[:50]), background=Moments.from_rows(Y))
    model.partial_fit(X[50:])
    np.testing.assert_allclose(model.components_, PCPCA(2, gamma=0.2).fit(X, background=Y).components_, atol=1e-10)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ({"X": X[:, 1:]}, "X has 5 features, but PCPCA is expecting 6 features"),
        ({"X": None, "background": Y[:, 1:]}, "This batch has 5 features, but the earlier ones 6"),
        ({"X": np.where(X > 3, np.nan, X)}, "Input contains NaN"),
        ({"X": np.where(X > 3, np.inf, X)}, "Input contains infinity"),
        ({"X": X[:0]}, "0 sample"),
        ({"X": None}, "The batch is empty"),
        ({"X": X, "sample_weight": -np.ones(150)}, "sample_weight must contain finite numbers"),
        ({"X": X, "sample_weight": np.ones(3)}, r"sample_weight has shape \(3,\) for 150 rows"),
        (
            {"X": X, "background": Y, "background_weight": np.ones(3)},
            r"background_weight has shape \(3,\) for 120 rows",
        ),
        ({"X": X + 1j}, "Complex data not supported"),
        ({"X": np.full((9, 6), 1e200)}, "too large to be squared"),
    ],
)
def test_a_bad_batch_leaves_the_model_as_it_was(batch, message):
    model = halves(PCPCA(2, gamma=0.2))
    before, seen = model.transform(X), model.n_samples_seen_
    with pytest.raises(ValueError, match=message):
        model.partial_fit(**batch)
    np.testing.assert_array_equal(model.transform(X), before)
    assert model.n_samples_seen_ == seen


def test_gamma_may_be_too_large_for_the_first_batches():
    """The order of batches must not matter: they are counted, and the model is fitted once there is one."""
    model = PCPCA(2, gamma=0.2)
    with pytest.warns(ContrastWarning, match="counted, but the model is not fitted .* gamma=0.2 is too large"):
        model.partial_fit(0.1 * X[:20], background=Y)
    assert not model.__sklearn_is_fitted__()
    model.partial_fit(X)
    whole = PCPCA(2, gamma=0.2).fit(np.vstack([0.1 * X[:20], X]), background=Y)
    np.testing.assert_allclose(model.components_, whole.components_, atol=1e-10)
    with pytest.warns(ContrastWarning, match="gamma=1 is too large"):
        model.set_params(gamma=1.0).partial_fit(X)
    with pytest.raises(NotFittedError):
        model.transform(X)


def test_fit_keeps_no_moments():
    model = PCPCA(2, gamma=0.2).fit(X, background=Y)
    with pytest.raises(AttributeError, match="it was not fitted by partial_fit or fit_batches"):
        _ = model.n_samples_seen_
    with pytest.warns(ContrastWarning, match="partial_fit starts anew, without those rows"):
        model.partial_fit(X)
    assert not model.__sklearn_is_fitted__()
    assert model.n_samples_seen_ == 150
    assert halves(PCPCA(2, gamma=0.2)).fit(X[:20], background=Y)._stream is None


def attributes(model):
    """Of a fit; the number of features and their names are those of the batches."""
    return {name for name in vars(model) if name.endswith("_")} - {"n_features_in_", "feature_names_in_"}


def test_a_model_without_a_fit_keeps_nothing_of_the_one_before():
    model = PCPCA(2, gamma=0.2).fit(X, background=Y)
    with pytest.warns(ContrastWarning, match="partial_fit starts anew"):
        model.partial_fit(X)
    assert attributes(model) == set()
    model = PCPCA(2, gamma=0.5).partial_fit(X, background=Y)
    with pytest.warns(ContrastWarning, match="is not fitted to the rows so far"):
        model.partial_fit(None, background=1e4 * Y)
    assert attributes(model) == set()
    assert model.n_background_samples_seen_ == 240


def test_a_fit_that_the_rank_forbids_is_not_kept():
    model = PCPCA(2, gamma=0.2).partial_fit(X, background=Y).set_params(n_components=5)
    line = np.linspace(-1e9, 1e9, 50)[:, None] * np.ones((1, X.shape[1]))  # beside it, rounding hides the other rows
    with pytest.warns(ContrastWarning, match="is not fitted to the rows so far"):
        model.partial_fit(line)
    assert attributes(model) == set()
    assert model.n_samples_seen_ == 200


def test_files_keep_no_moments(tmp_path):
    """What is said of a loaded model is true: it was fitted by batches, but its file has no moments."""
    halves(PCPCA(2, gamma=0.2)).save(tmp_path / "model.npz")
    model = load(tmp_path / "model.npz")
    says = r"or it was loaded from a file, which does not keep them \(save moments_ with Moments\.save\)"
    with pytest.raises(AttributeError, match=says):
        _ = model.moments_
    with pytest.warns(ContrastWarning, match=f"{says}. partial_fit starts anew"):
        model.partial_fit(X, background=Y)
    assert model.n_samples_seen_ == 150


def test_bad_streams(tmp_path):
    with pytest.raises(
        GroupError, match="after 0 batches: each group needs at least 2, and 'foreground', 'background'"
    ):
        PCPCA(2).fit_batches([])
    with pytest.raises(GroupError, match="each group needs at least 2, and 'background' had fewer"):
        PCPCA(2).fit_batches([X[:50], X[50:]])  # a background that occurs in no batch
    with pytest.raises(GroupError, match="A batch has 'Z': as a dict, it may have 'X', 'y'"):
        PCPCA(2).fit_batches([{"Z": X}])
    with pytest.raises(GroupError, match="A batch is a tuple of 3"):
        PCPCA(2).fit_batches([(X, Y, X)])
    with pytest.raises(ValueError, match="CPCA's gamma='auto' holds rows out, and moments have none"):
        CPCA(2).fit_batches([(X, Y)])
    Moments.from_rows(X).save(tmp_path / "moments.npz")
    with pytest.raises(ModelFileError, match="contains a Moments, not a checkpoint of fit_batches"):
        PCPCA(2).fit_batches([(X, Y)], checkpoint=tmp_path / "moments.npz")
    (tmp_path / "cut.npz").write_bytes((tmp_path / "moments.npz").read_bytes()[:100])
    with pytest.raises(ModelFileError, match="is not a readable contrapca file"):
        PCPCA(2).fit_batches([(X, Y)], checkpoint=tmp_path / "cut.npz")


# ---------------------------------------------------------------------- checkpoints

RUN = """
import sys, time
import numpy as np
from contrapca import PCPCA

def batches():
    rng = np.random.default_rng(0)
    for k in range(30):
        batch = rng.standard_normal((2, 50, 6)) * np.array([[3, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]])[:, None]
        yield tuple(batch)
        print(k, flush=True)
        time.sleep(float(sys.argv[2]))

model = PCPCA(2, gamma=0.2).fit_batches(batches(), checkpoint=sys.argv[1])
np.save(sys.argv[3], model.components_)
"""


@pytest.mark.slow
def test_killed_in_the_middle(tmp_path):
    """By its own process id, with the signal that nothing can catch; the next run goes on, alike to the bit."""
    command = [sys.executable, "-c", RUN, tmp_path / "checkpoint.npz"]
    first = subprocess.Popen([*command, "0.05", tmp_path / "never.npy"], stdout=subprocess.PIPE)
    for _ in range(5):
        first.stdout.readline()
    os.kill(first.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
    first.wait()
    assert not (tmp_path / "never.npy").exists()
    assert (tmp_path / "checkpoint.npz").exists()
    subprocess.run([*command, "0", tmp_path / "resumed.npy"], check=True, stdout=subprocess.DEVNULL)
    command[3] = tmp_path / "another.npz"
    subprocess.run([*command, "0", tmp_path / "whole.npy"], check=True, stdout=subprocess.DEVNULL)
    np.testing.assert_array_equal(np.load(tmp_path / "resumed.npy"), np.load(tmp_path / "whole.npy"))


def test_a_checkpoint_skips_what_it_has_seen(tmp_path):
    seen = []

    def some(count):
        for k in range(count):
            seen.append(k)
            yield X[k::4], Y[k::4]

    path = tmp_path / "checkpoint.npz"
    PCPCA(2, gamma=0.2).fit_batches(some(2), checkpoint=path)
    model = PCPCA(2, gamma=0.2).fit_batches(some(4), checkpoint=path)
    assert model.n_samples_seen_ == 150
    np.testing.assert_allclose(model.components_, PCPCA(2, gamma=0.2).fit(X, background=Y).components_, atol=1e-10)


# ---------------------------------------------------------------------- files


def memory_map(folder, rows):
    np.save(folder / "rows.npy", rows)
    return np.load(folder / "rows.npy", mmap_mode="r")


def hdf5(folder, rows):
    h5py, da = pytest.importorskip("h5py"), pytest.importorskip("dask.array")
    with h5py.File(folder / "rows.h5", "w") as file:
        file["X"] = rows
    return da.from_array(h5py.File(folder / "rows.h5")["X"], chunks=(40, -1))


def zarr(folder, rows):
    da = pytest.importorskip("dask.array")
    da.from_array(rows, chunks=(40, -1)).to_zarr(str(folder / "rows.zarr"))
    return da.from_zarr(str(folder / "rows.zarr"))


def parquet(folder, rows):
    pandas, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    frame = pandas.DataFrame(rows, columns=[f"gene{k}" for k in range(rows.shape[1])])
    frame.to_parquet(folder / "rows.parquet", row_group_size=40)
    return dd.read_parquet(folder / "rows.parquet", split_row_groups=True).to_dask_array(lengths=True)


HOLED_X = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)


@pytest.mark.parametrize("kind", [memory_map, hdf5, zarr, parquet])
def test_tables_in_files(tmp_path, kind):
    (tmp_path / "y").mkdir()
    left, right = kind(tmp_path, X), kind(tmp_path / "y", Y)
    model, whole = ContraPCA(2).fit(left, background=right), ContraPCA(2).fit(X, background=Y)
    np.testing.assert_allclose(model.components_, whole.components_, atol=1e-10)
    np.testing.assert_allclose(model.transform(left), whole.transform(X), atol=1e-10)
    np.testing.assert_allclose(model.score_samples(left), whole.score_samples(X), atol=1e-8)


@pytest.mark.parametrize("kind", [memory_map, hdf5])
def test_missing_values_in_files(tmp_path, kind):
    table = kind(tmp_path, HOLED_X)
    model, whole = PPCA(2, scale="group").fit(table), PPCA(2, scale="group").fit(HOLED_X)
    np.testing.assert_allclose(model.get_covariance(), whole.get_covariance(), rtol=1e-6)
    np.testing.assert_allclose(model.score_samples(table), model.score_samples(HOLED_X))
    np.testing.assert_allclose(model.impute(table), model.impute(HOLED_X))


def test_half_precision_and_whole_numbers(tmp_path):
    for kind in (np.float16, np.int32):
        model = PPCA(2).fit(memory_map(tmp_path, (10 * X).astype(kind)))
        whole = PPCA(2).fit((10 * X).astype(kind).astype(np.float64))
        np.testing.assert_allclose(model.components_, whole.components_, atol=1e-9)


@pytest.mark.parametrize("given", [list, str, lambda path: path], ids=["parts of a table", "text", "path"])
def test_paths_are_refused(tmp_path, given):
    path = given([str(tmp_path / "rows.npy")] if given is list else tmp_path / "rows.npy")
    model = PPCA(2).fit(X)
    for call in (model.fit, model.transform, PCPCA(2, background_label=1).fit):
        with pytest.raises(TypeError, match=r"rows\.npy' is a path, not a table: open it first.*mmap_mode"):
            call(path)
    with pytest.raises(TypeError, match="is a path, not a table"):
        PCPCA(2).fit(X, background=path)
    np.testing.assert_array_equal(model.transform(X), PPCA(2).fit(X).transform(X))


def test_arrays_in_files_are_not_read_at_once_unasked(tmp_path):
    hdf5(tmp_path, X)
    with pytest.importorskip("h5py").File(tmp_path / "rows.h5") as file:
        with pytest.raises(TypeError, match=r"Dataset of h5py is in a file: pass dask\.array\.from_array\(X"):
            PPCA(2).fit(file["X"])
        assert PPCA(2).fit(file["X"][:]).n_effective_ == 150
    zarr(tmp_path, X)
    stored = pytest.importorskip("zarr").open(str(tmp_path / "rows.zarr"), mode="r")
    with pytest.raises(TypeError, match="Array of zarr is in a file"):
        PCPCA(2).fit(X, background=stored)


def test_memory_maps_are_not_loaded(tmp_path):
    """What a fit takes besides 24 MB of rows; rows that were loaded are the control."""
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal((60_000, 50)))
    PPCA(2).fit(np.load(tmp_path / "x.npy", mmap_mode="r"))  # imports

    def peak(**how):
        tracemalloc.start()
        PPCA(2).fit(np.load(tmp_path / "x.npy", **how))
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(mmap_mode="r") < 4e6
    assert peak() > 24e6
