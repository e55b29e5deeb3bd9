"""Rows in batches, in files and in stores: equal to rows in memory, also after a fault."""

import os
import signal
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
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
    contrast_path,
    contrast_test,
    gamma_limits,
    held_out_contrast,
    load,
)
from contrapca import rows as rows_module
from contrapca.exceptions import ContrastWarning, GroupError, ModelFileError, TableFileError
from contrapca.rows import FileRows, _blocked, _numpy, opened

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
        RatioPCA(2),
    ],
    ids=str,
)
def test_every_estimator_takes_batches(model):
    whole = type(model)(**model.get_params()).fit(X, background=Y)
    found = halves(model)
    np.testing.assert_allclose(found.transform(X), whole.transform(X), rtol=1e-6, atol=1e-7)
    assert (found.n_samples_seen_, found.n_background_samples_seen_) == (150, 120)
    assert found.moments_["background"].weight == 120


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


# ---------------------------------------------------------------------- files and stores


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The same tables in every kind of file."""
    h5py, zarr, polars = (pytest.importorskip(name) for name in ("h5py", "zarr", "polars"))
    folder = tmp_path_factory.mktemp("tables")
    for name, rows in (("x", X), ("y", Y)):
        np.save(folder / f"{name}.npy", rows)
        with h5py.File(folder / f"{name}.h5", "w") as file:
            file.create_dataset("X", data=rows, chunks=(40, 6))
        store = zarr.open(str(folder / f"{name}.zarr"), mode="w", shape=rows.shape, dtype="f8", chunks=(40, 6))
        store[:] = rows
        columns = [f"gene{k}" for k in range(6)]
        polars.DataFrame(rows, schema=columns).write_parquet(folder / f"{name}.parquet", row_group_size=40)
        for k, part in enumerate(np.split(rows, [30, 30, 90])):  # one of them is empty
            np.save(folder / f"{name}{k}.npy", part)
        with h5py.File(folder / f"{name}_sparse.h5", "w") as file:
            group, matrix = file.create_group("X"), sparse_table(rows)
            group.attrs.update({"encoding-type": "csr_matrix", "shape": matrix.shape})
            for key in ("data", "indices", "indptr"):
                group[key] = getattr(matrix, key)
    return folder


def sparse_table(rows):
    return sp.csr_array(np.where(np.abs(rows) > 1, rows, 0))


KINDS = {
    "npy": lambda folder, name: folder / f"{name}.npy",
    "hdf5": lambda folder, name: str(folder / f"{name}.h5"),
    "zarr": lambda folder, name: folder / f"{name}.zarr",
    "parquet": lambda folder, name: folder / f"{name}.parquet",
    "files": lambda folder, name: [folder / f"{name}{k}.npy" for k in range(4)],
    "memory map": lambda folder, name: np.load(folder / f"{name}.npy", mmap_mode="r"),
    "zarr array": lambda folder, name: pytest.importorskip("zarr").open(str(folder / f"{name}.zarr"), mode="r"),
    "hdf5 dataset": lambda folder, name: pytest.importorskip("h5py").File(folder / f"{name}.h5")["X"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_stored_tables(stored, kind):
    left, right = (KINDS[kind](stored, name) for name in ("x", "y"))
    model = ContraPCA(2).fit(left, background=right, memory_limit="30 kB")
    whole = ContraPCA(2).fit(X, background=Y)
    np.testing.assert_allclose(model.components_, whole.components_, atol=1e-10)
    np.testing.assert_allclose(model.transform(left), whole.transform(X), atol=1e-10)
    np.testing.assert_allclose(model.score_samples(left), whole.score_samples(X), atol=1e-8)
    assert "read in blocks" in str(model.solver_)
    assert hasattr(model, "feature_names_in_") == (kind == "parquet")
    limits = gamma_limits(left, background=right)
    assert limits.pcpca == pytest.approx(gamma_limits(X, background=Y).pcpca, rel=1e-9)


def test_all_else_that_reads_rows(stored):
    left, right = ([stored / f"{name}{k}.npy" for k in range(4)] for name in ("x", "y"))
    path = contrast_path(PCPCA(2), left, background=right, gammas=4)
    np.testing.assert_allclose(
        path.eigenvalues, contrast_path(PCPCA(2), X, background=Y, gammas=4).eigenvalues, rtol=1e-8
    )
    np.testing.assert_allclose(path.latents(left), path.latents(X), atol=1e-9)
    found, expected = (held_out_contrast(PCPCA(1), a, background=b) for a, b in ((left, right), (X, Y)))
    np.testing.assert_allclose(found.log_ratios, expected.log_ratios, rtol=1e-8)
    found, expected = (contrast_test(a, background=b, random_state=0) for a, b in ((left, right), (X, Y)))
    np.testing.assert_allclose(found.p_values, expected.p_values, rtol=1e-8)
    model = PCPCA(1, gamma=0.2).fit(left, background=right)
    refits = model.bootstrap(left, background=right, n_resamples=20, random_state=0)
    plain = PCPCA(1, gamma=0.2).fit(X, background=Y).bootstrap(X, background=Y, n_resamples=20, random_state=0)
    np.testing.assert_allclose(refits.W, plain.W, atol=1e-8)
    y = np.arange(150) % 2
    stacked = PCPCA(2, gamma=0.2, background_label=1).fit(left, y)
    np.testing.assert_allclose(
        stacked.components_, PCPCA(2, gamma=0.2, background_label=1).fit(X, y).components_, atol=1e-9
    )
    weights = (np.arange(150) % 3).astype(float)
    weighted = PCPCA(2, gamma=0.2).fit(left, background=right, sample_weight=weights)
    plain = PCPCA(2, gamma=0.2).fit(X, background=Y, sample_weight=weights)
    np.testing.assert_allclose(weighted.components_, plain.components_, atol=1e-9)
    lanczos = PCPCA(2, gamma=0.2, solver="lanczos").fit(left, background=right)
    np.testing.assert_allclose(lanczos.components_, PCPCA(2, gamma=0.2).fit(X, background=Y).components_, atol=1e-7)
    with pytest.raises(ValueError, match="solver='dual' would read all rows into memory"):
        PCPCA(2, solver="dual").fit(left, background=right)


def test_sparse_blocks_stay_sparse(stored, monkeypatch):
    left, right = (str(stored / f"{name}_sparse.h5") for name in ("x", "y"))
    with monkeypatch.context() as patch:
        patch.setattr(_numpy, "scatter", None)  # that of dense blocks
        model = PCPCA(2, gamma=0.2).fit(left, background=right, memory_limit="20 kB")
    whole = PCPCA(2, gamma=0.2).fit(sparse_table(X), background=sparse_table(Y))
    np.testing.assert_allclose(model.components_, whole.components_, atol=1e-9)
    assert sp.issparse(opened(left)[:10])
    np.testing.assert_allclose(model.transform(left), whole.transform(sparse_table(X)), atol=1e-9)


HOLED_X, HOLED_Y = (np.where(np.random.default_rng(0).random(rows.shape) < 0.1, np.nan, rows) for rows in (X, Y))


@pytest.mark.parametrize("kind", ["npy", "h5", "zarr", "parquet"])
def test_missing_values_in_files(tmp_path, kind):
    path = tmp_path / f"x.{kind}"
    if kind == "npy":
        np.save(path, HOLED_X)
    elif kind == "parquet":
        pytest.importorskip("polars").DataFrame(HOLED_X).fill_nan(None).write_parquet(path)
    elif kind == "h5":
        with pytest.importorskip("h5py").File(path, "w") as file:
            file["X"] = HOLED_X
    else:
        store = pytest.importorskip("zarr").open(str(path), mode="w", shape=X.shape, dtype="f8", chunks=(40, 6))
        store[:] = HOLED_X
    model = PPCA(2, scale="group").fit(path)
    whole = PPCA(2, scale="group").fit(HOLED_X)
    np.testing.assert_allclose(model.get_covariance(), whole.get_covariance(), rtol=1e-8)
    np.testing.assert_allclose(model.score_samples(path), whole.score_samples(HOLED_X))
    np.testing.assert_allclose(model.impute(path), whole.impute(HOLED_X))
    with pytest.raises(GroupError, match="CPCA needs rows with missing values in memory: pass arrays"):
        CPCA(2, gamma=0.5).fit(path, background=Y)
    filling = CPCA(2, gamma=0.5).fit(HOLED_X, background=Y)
    np.testing.assert_allclose(filling.transform(path), filling.transform(HOLED_X), atol=1e-12)


@pytest.mark.parametrize("mean", ["observed", "gls"])
def test_missing_values_in_files_larger_than_memory(tmp_path, monkeypatch, mean):
    """Every step reads the blocks anew; nothing ever reads all rows at once."""
    np.save(tmp_path / "x.npy", HOLED_X)
    np.save(tmp_path / "y.npy", HOLED_Y)
    settings = {"n_components": 1, "gamma": 0.1, "mean": mean, "tol": 1e-7}
    with monkeypatch.context() as patch:
        patch.setattr(_blocked, "stacked", None)
        model = PCPCA(**settings).fit(tmp_path / "x.npy", background=tmp_path / "y.npy", memory_limit="12 kB")
        with pytest.raises(TypeError, match="NoneType"):  # the control: with more memory they are kept
            PCPCA(**settings).fit(tmp_path / "x.npy", background=tmp_path / "y.npy", memory_limit="1 MB")
    whole = PCPCA(**settings).fit(HOLED_X, background=HOLED_Y)
    np.testing.assert_allclose(model.get_covariance(), whole.get_covariance(), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(model.mean_, whole.mean_, atol=1e-5)


def test_memory_maps_larger_than_memory_are_read_once(stored, monkeypatch):
    left, right = (np.load(stored / f"{name}.npy", mmap_mode="r") for name in ("x", "y"))
    assert "read in blocks" not in str(ContraPCA(2).fit(left, background=right).solver_)
    read = []
    before = FileRows._read
    monkeypatch.setattr(rows_module, "available_memory", lambda: 4000)
    monkeypatch.setattr(rows_module, "MEMORY_LIMIT", 4000)
    monkeypatch.setattr(FileRows, "_read", lambda self, part, inside: read.append(inside) or before(self, part, inside))
    ContraPCA(2).fit(left, background=right)
    assert sum(inside.stop - inside.start for inside in read) <= 4 * (150 + 120)
    read.clear()
    model = ContraPCA(2, shorten=False).fit(left, background=right)
    assert sum(inside.stop - inside.start for inside in read) == 150 + 120
    assert len(read) > 4
    whole = ContraPCA(2, shorten=False).fit(X, background=Y)
    np.testing.assert_allclose(model.components_, whole.components_, atol=1e-10)
    assert "read in blocks" not in str(PPCA(2).fit(np.load(stored / "x.npy", mmap_mode="r").T).solver_)  # wide


def test_transform_of_files_multiplies_no_rows_with_each_other(stored, monkeypatch):
    model = PCPCA(2, gamma=0.2).fit(X, background=Y)
    monkeypatch.setattr(_blocked, "block_moments", None)
    np.testing.assert_allclose(model.transform(stored / "x.npy"), model.transform(X), atol=1e-10)


def test_half_precision_and_whole_numbers(tmp_path):
    for kind in (np.float16, np.int32):
        np.save(tmp_path / "x.npy", (10 * X).astype(kind))
        model = PPCA(2).fit(tmp_path / "x.npy")
        whole = PPCA(2).fit((10 * X).astype(kind).astype(np.float64))
        np.testing.assert_allclose(model.components_, whole.components_, atol=1e-9)


def test_damaged_files(stored, tmp_path):
    """A truncated file is an error, and the model stays as it was."""
    model = PPCA(2).fit(X)
    before = model.transform(X)
    cut = {}
    for name in ("x.npy", "x.h5", "x.parquet"):
        (tmp_path / name).write_bytes((stored / name).read_bytes()[:1000])
        cut[name] = tmp_path / name
    zarr = pytest.importorskip("zarr")
    checked = {}  # Blosc, the default of zarr 2, does not notice what is cut off
    if zarr.__version__.startswith("2."):
        checked["compressor"] = pytest.importorskip("numcodecs").Zstd()
    store = zarr.open(str(tmp_path / "x.zarr"), mode="w", shape=X.shape, dtype="f8", chunks=(40, 6), **checked)
    store[:] = X
    chunk = max((tmp_path / "x.zarr").rglob("*"), key=lambda file: file.stat().st_size if file.is_file() else 0)
    chunk.write_bytes(chunk.read_bytes()[:50])
    cut["x.zarr"] = tmp_path / "x.zarr"
    for name, path in cut.items():
        with pytest.raises(TableFileError, match="damaged or incomplete"):
            model.fit(path)
        np.testing.assert_array_equal(model.transform(X), before, err_msg=name)


def test_bad_sources(stored, tmp_path):
    polars, h5py = pytest.importorskip("polars"), pytest.importorskip("h5py")
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    np.save(tmp_path / "flat.npy", X[0])
    np.save(tmp_path / "narrow.npy", X[:, :3])
    polars.DataFrame({"a": ["x"] * 9, "b": range(9)}).write_parquet(tmp_path / "text.parquet")
    with h5py.File(tmp_path / "two.h5", "w") as file:
        file["a"], file["b"] = X, X
    for source, error, message in (
        (tmp_path / "none.npy", FileNotFoundError, "There is no file"),
        (tmp_path / "x.csv", TableFileError, "is not read in blocks: use .npy, .parquet"),
        (tmp_path / "flat.npy", TableFileError, "has 1 dimensions: a table has two"),
        (tmp_path / "two.h5", TableFileError, "has 2 tables at its top level"),
        (tmp_path / "text.parquet", TableFileError, "columns that are not numbers, the first is 'a'"),
        ([stored / "x.npy", tmp_path / "narrow.npy"], GroupError, "does not have the columns of"),
    ):
        with pytest.raises(error, match=message):
            PPCA(2).fit(source)
    with pytest.raises(GroupError, match="The foreground has 6 features and the background 3"):
        PCPCA(2).fit(stored / "x.npy", background=tmp_path / "narrow.npy")


@pytest.mark.parametrize("limit", ["5 kB", 100, "much", -1, True, "12 XB"])
def test_bad_limits(stored, limit):
    with pytest.raises(ValueError, match="memory_limit="):
        PPCA(2).fit(stored / "x.npy", memory_limit=limit if limit != "5 kB" else "2 kB")


# ---------------------------------------------------------------------- memory


def test_within_the_limit(tmp_path):
    """Of 24 MB of rows, 4 MB are allowed; what a fit in memory takes is the control."""
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal((60_000, 50)))
    PPCA(2).fit(tmp_path / "x.npy", memory_limit="4 MB")  # imports

    def peak(call):
        tracemalloc.start()
        call()
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(lambda: PPCA(2).fit(tmp_path / "x.npy", memory_limit="4 MB")) < 4e6
    assert peak(lambda: PPCA(2).fit(np.load(tmp_path / "x.npy"))) > 24e6
