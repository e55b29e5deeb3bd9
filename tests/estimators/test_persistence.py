"""Saving and loading without pickle, damaged and hostile files, pickling and cloning."""

import copy
import dataclasses
import io
import json
import pickle
import subprocess
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest
from sklearn.base import clone

import contrapca
from conftest import make_groups
from contrapca import CLVM, CPCA, PCPCA, PPCA, ContraPCA, Moments, RatioPCA, bootstrap, contrast_path
from contrapca.exceptions import ModelFileError
from counting import calls, solves
from saved import accepted, changed, contents, places
from saved import rewrite as rewritten

X, Y = make_groups(60, 50, 8)
HOLES = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
MODELS = {
    "PPCA": lambda: PPCA(2).fit(X),
    "CPCA": lambda: CPCA(2, gamma=0.4).fit(X, background=Y),
    "ContraPCA": lambda: ContraPCA(2).fit(X, background=Y),
    "ContraPCA, ratio axes": lambda: ContraPCA(2, axes="ratio").fit(X, background=Y),
    "RatioPCA": lambda: RatioPCA(2).fit(X, background=Y),
    "RatioPCA, float32": lambda: both_ends().fit(X.astype(np.float32), background=Y.astype(np.float32)),
    "RatioPCA, infinite ridge": lambda: RatioPCA(1, ridge=np.inf).fit(X, background=Y),
    "CPCA, auto": lambda: CPCA(2).fit(X, background=Y),
    "CPCA, infinite limit": lambda: infinite_limit(),
    "PCPCA": lambda: PCPCA(2, scale="group").fit(X, background=Y),
    "PCPCA, label": lambda: PCPCA(2, background_label="b").fit(np.vstack([X, Y]), ["a"] * 60 + ["b"] * 50),
    "PCPCA, lanczos": lambda: PCPCA(2, solver="lanczos").fit(X, background=Y),
    "PCPCA, dual": lambda: PCPCA(2, solver="dual").fit(X[:5], background=Y[:5]),
    "PCPCA, alone": lambda: PCPCA(2, gamma=0).fit(X),
    "PCPCA, float32": lambda: PCPCA(2).fit(X.astype(np.float32), background=Y.astype(np.float32)),
    "PCPCA, flat background": lambda: PCPCA(2, gamma=0.1).fit(X, background=np.outer(np.arange(9.0), np.ones(8))),
    "PCPCA, missing values": lambda: PCPCA(2, scale="pooled").fit(HOLES, background=Y),
    "PCPCA, starts": lambda: PCPCA(2, n_init=2, random_state=3).fit(HOLES, background=Y),
    "PCPCA, moments": lambda: PCPCA(2).fit(Moments.from_rows(X), background=Moments.from_rows(Y)),
    "PCPCA of a path": lambda: contrast_path(PCPCA(2, scale="group"), X, background=Y, gammas=[0.0, 0.3]).model(0.3),
    "CLVM": lambda: CLVM(2, 2, scale="group").fit(X, background=Y),
    "CLVM, float32": lambda: CLVM(3, 2).fit(X.astype(np.float32), background=Y.astype(np.float32)),
    "CLVM, shared dimensions alone": lambda: CLVM(2, 0).fit(X, background=Y),
    "CLVM, label": lambda: CLVM(2, 1, background_label=1).fit(np.vstack([X, Y]), [0] * 60 + [1] * 50),
}


def both_ends():
    return RatioPCA(3, ridge=0.5, end="both", scale="pooled")


def infinite_limit():
    model = contrast_path(CPCA(2), X, background=Y[:4], gammas=[0.0, 0.4]).model(0.4)
    assert model.gamma_max_ == np.inf
    return model


def posterior():
    return bootstrap(PCPCA(2, gamma=0.1).fit(X, background=Y), X, background=Y, n_resamples=20, random_state=0)


def assert_equal(left, right, where):
    """The same types and numbers, to the bit, however nested."""
    assert type(left) is type(right), where
    if dataclasses.is_dataclass(left):
        for field in dataclasses.fields(left):
            assert_equal(getattr(left, field.name), getattr(right, field.name), f"{where}.{field.name}")
    elif isinstance(left, tuple | list):
        assert len(left) == len(right), where
        for k, (a, b) in enumerate(zip(left, right, strict=True)):
            assert_equal(a, b, f"{where}[{k}]")
    elif isinstance(left, np.ndarray):
        np.testing.assert_array_equal(left, right, err_msg=where)
        assert left.dtype == right.dtype, where
    else:
        assert left == right or (np.isnan(left) and np.isnan(right)), where


def assert_same(left, right):
    assert type(left) is type(right)
    assert left.get_params() == right.get_params()
    assert vars(left).keys() == vars(right).keys()
    for name in vars(left):
        assert_equal(getattr(left, name), getattr(right, name), name)
    for name in ("gamma_max_", "gamma_max_is_bound_", "background_model_"):  # there, or absent in both
        assert_equal(getattr(left, name, None), getattr(right, name, None), name)
    for method in ("transform", "transform_shared", "score_samples", "contrast_score"):
        if hasattr(left, method):
            try:
                expected = getattr(left, method)(X)
            except ValueError as error:  # no background, or a flat one: the same error then
                with pytest.raises(type(error), match=str(error)[:20]):
                    getattr(right, method)(X)
            else:
                np.testing.assert_array_equal(getattr(right, method)(X), expected)
    latents = np.arange(1, len(left.components_) + 1)[None]
    np.testing.assert_array_equal(left.inverse_transform(latents), right.inverse_transform(latents))
    assert left.objective_ == right.objective_
    assert str(left.feature_table()) == str(right.feature_table())
    if hasattr(left, "sample"):
        np.testing.assert_array_equal(left.sample(3, random_state=0), right.sample(3, random_state=0))


@pytest.mark.parametrize("name", MODELS)
def test_round_trip(name, tmp_path):
    model = MODELS[name]()
    model.save(tmp_path / "model.npz")
    assert_same(model, contrapca.load(tmp_path / "model.npz"))
    assert [path.name for path in tmp_path.iterdir()] == ["model.npz"]  # no temporary file is left


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("way", [lambda model: pickle.loads(pickle.dumps(model)), copy.deepcopy])
def test_pickle_and_copy(name, way):
    model = MODELS[name]()
    assert_same(model, way(model))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("way", ["pickle", "copy", "deepcopy", "save", "repr", "look"])
def test_nothing_is_solved_after_the_fit(name, way, tmp_path):
    """Copying, saving and looking at a fitted model computes nothing, and reads no rows."""
    with solves() as in_fit:
        model = MODELS[name]()
    assert in_fit.total() > 0  # the control: fits are seen
    with solves() as found, calls("column_sums", "scatter", "product", "observe") as read:
        if way == "look":
            for attribute in dir(model):
                getattr(model, attribute, None)
        elif way == "save":
            model.save(tmp_path / "model.npz")
            contrapca.load(tmp_path / "model.npz")
        else:
            {"pickle": lambda m: pickle.loads(pickle.dumps(m)), "repr": repr}.get(way, getattr(copy, way, None))(model)
    assert found.total() == read.total() == 0, (found, read)


@pytest.mark.slow
def test_a_path_posterior_and_moments_are_loaded_in_a_new_process(tmp_path):
    """`load` knows every kind of file, whatever was imported before."""
    saved = {
        "PCPCA": MODELS["PCPCA"](),
        "CLVM": MODELS["CLVM"](),
        "ContrastPath": contrast_path(PCPCA(2), X, background=Y),
        "ContrastPosterior": posterior(),
        "Moments": Moments.from_rows(X),
    }
    for name, thing in saved.items():
        thing.save(tmp_path / name)
    code = "import sys, contrapca\nprint([type(contrapca.load(path)).__name__ for path in sys.argv[1:]])"
    for names in (list(saved), list(saved)[::-1]):
        command = [sys.executable, "-c", code, *(str(tmp_path / name) for name in names)]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == str(names)


def test_saving_again_and_cloning(tmp_path):
    model = MODELS["PCPCA"]()
    model.save(tmp_path / "a.npz")
    contrapca.load(tmp_path / "a.npz").save(str(tmp_path / "b.npz"))
    assert_same(model, contrapca.load(tmp_path / "b.npz"))
    fresh = clone(contrapca.load(tmp_path / "b.npz"))
    assert fresh.get_params() == model.get_params()
    assert not hasattr(fresh, "components_")
    np.testing.assert_allclose(fresh.fit(X, background=Y).loadings_, model.loadings_)


def test_feature_names_survive(tmp_path, need):
    pd = need("pandas")
    names = [f"gène {j}" for j in range(8)]
    frame = pd.DataFrame(X, columns=names)
    PPCA(2).fit(frame).save(tmp_path / "model.npz")
    loaded = contrapca.load(tmp_path / "model.npz")
    assert list(loaded.feature_names_in_) == names
    assert sorted(loaded.feature_table()["feature"]) == sorted(names)
    with pytest.raises(ValueError, match="same order"):
        loaded.transform(frame[names[::-1]])


def test_only_our_own_classes_are_saved(tmp_path):
    for name in ("PCPCA", "Mine"):
        subclass = type(name, (PCPCA,), {})
        with pytest.raises(TypeError, match="contrapca's own"):
            subclass(2, gamma=0.1).fit(X, background=Y).save(tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())


def test_numbers_that_overflowed_are_not_saved(tmp_path):
    with pytest.warns(RuntimeWarning, match="overflow"):
        large = PCPCA(2, gamma=0.1).fit((X * 1e25).astype(np.float32), background=(Y * 1e25).astype(np.float32))
    with pytest.raises(ValueError, match="overflowed"):
        large.save(tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())


def test_parameters_that_json_cannot_hold(tmp_path):
    model = PCPCA(2, background_label={"a", "b"}, gamma=0.1).fit(X, background=Y)
    with pytest.raises(TypeError, match="background_label"):
        model.save(tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())
    numbers = PCPCA(np.int64(2), gamma=np.float64(0.1), background_label=np.str_("b")).fit(X, background=Y)
    numbers.save(tmp_path / "model.npz")
    assert contrapca.load(tmp_path / "model.npz").get_params() == numbers.get_params()


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.npz"
    model = MODELS["PPCA"]()
    model.save(path)
    before = path.read_bytes()
    monkeypatch.setattr(np, "savez", lambda file, **arrays: (file.write(b"half"), 1 / 0))
    with pytest.raises(ZeroDivisionError):
        model.save(path)
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


# ---------------------------------------------------------------- files that are not what they should be


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.npz"
    MODELS["PCPCA"]().save(path)
    return path


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path, changes, compression=zipfile.ZIP_STORED):
    content = {**members(path), **changes}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in content.items():
            if data is not None:
                archive.writestr(name, data)


def npy(array, **kwargs):
    buffer = io.BytesIO()
    np.save(buffer, array, **kwargs)
    return buffer.getvalue()


def header_with(path, **changes):
    header = json.loads(np.load(io.BytesIO(members(path)["header.npy"])).tobytes())
    return npy(np.frombuffer(json.dumps(header | changes).encode(), dtype=np.uint8))


class Bomb:
    def __reduce__(self):
        return (print, ("a pickle was executed",))


DAMAGE = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("a,b\n1,2\n"),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "flipped bytes": lambda path: path.write_bytes(
        path.read_bytes().replace(b'"format": "contrapca"', b'"format": "contrapcb"')
    ),
    "pickle": lambda path: path.write_bytes(pickle.dumps(Bomb())),
    "pickle inside": lambda path: rewrite(
        path, {"fit.scaling.foreground.mean.npy": npy(np.array([Bomb()]), allow_pickle=True)}
    ),
    "compressed": lambda path: rewrite(path, {}, zipfile.ZIP_DEFLATED),
    "no header": lambda path: rewrite(path, {"header.npy": None}),
    "header not JSON": lambda path: rewrite(path, {"header.npy": npy(np.frombuffer(b"{", dtype=np.uint8))}),
    "header a list": lambda path: rewrite(path, {"header.npy": npy(np.frombuffer(b"[]", dtype=np.uint8))}),
    "deep header": lambda path: rewrite(path, {"header.npy": npy(np.frombuffer(b"[" * 10**6, dtype=np.uint8))}),
    "another format": lambda path: rewrite(path, {"header.npy": header_with(path, format="other")}),
    "newer version": lambda path: rewrite(path, {"header.npy": header_with(path, version=99)}),
    "unknown kind": lambda path: rewrite(path, {"header.npy": header_with(path, kind="os.system")}),
    "kind a list": lambda path: rewrite(path, {"header.npy": header_with(path, kind=[])}),
    "another kind": lambda path: rewrite(path, {"header.npy": header_with(path, kind="CLVM")}),
    "no value": lambda path: rewrite(path, {"header.npy": header_with(path, value=None)}),
    "unknown parameter": lambda path: rewritten(path, {"estimator.parameters.x": 1}),
    "another estimator": lambda path: rewritten(path, {"estimator.name": "CPCA"}),
    "no estimator": lambda path: rewritten(path, {"estimator.name": "os.system"}),
    "number as text": lambda path: rewritten(path, {"fit.gamma": "1"}),
    "number NaN": lambda path: rewritten(path, {"fit.objective": np.nan}),
    "no groups": lambda path: rewritten(path, {"fit.scaling.names": []}),
    "groups a number": lambda path: rewritten(path, {"fit.scaling": 3}),
    "solver a number": lambda path: rewritten(path, {"fit.solver": 3}),
    "sigma2 negative": lambda path: rewritten(path, {"fit.model.sigma2": -1.0}),
    "no model": lambda path: rewritten(path, {"fit.model": None}),
    "too few names": lambda path: rewritten(path, {"fit.scaling.foreground.names": ["a", "b"]}),
    "names of one group": lambda path: rewritten(path, {"fit.scaling.foreground.names": list("abcdefgh")}),
    "array missing": lambda path: rewrite(path, {"fit.components.npy": None}),
    "half a model": lambda path: rewrite(path, {"fit.model.mean.npy": None}),
    "wrong shape": lambda path: rewrite(path, {"fit.scaling.foreground.mean.npy": npy(np.zeros(5))}),
    "components 1-D": lambda path: rewrite(path, {"fit.components.npy": npy(np.zeros(16))}),
    "NaN": lambda path: rewrite(path, {"fit.scaling.foreground.mean.npy": npy(np.full(8, np.nan))}),
    "wrong type": lambda path: rewrite(path, {"fit.scaling.foreground.mean.npy": npy(np.zeros(8, dtype=int))}),
    "scale zero": lambda path: rewrite(path, {"fit.scaling.foreground.scale.npy": npy(np.zeros(8))}),
    "not an array": lambda path: rewrite(path, {"fit.scaling.foreground.mean.npy": b"not an array"}),
    "claims to be huge": lambda path: rewrite(
        path, {"fit.scaling.foreground.mean.npy": npy(np.zeros(8)).replace(b"(8,), }        ", b"(800000000,), }")}
    ),
    "array header not closed": lambda path: rewrite(
        path, {"fit.scaling.foreground.mean.npy": npy(np.zeros(8)).replace(b"}", b" ")}
    ),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_and_hostile_files(name, saved, capsys):
    DAMAGE[name](saved)
    with pytest.raises(ModelFileError) as error:
        contrapca.load(saved)
    assert "model.npz" in str(error.value)
    assert capsys.readouterr().out == ""


def test_the_damage_is_what_breaks_it(saved):
    """The control: rewriting without a change loads."""
    rewrite(saved, {"header.npy": header_with(saved)})
    assert contrapca.load(saved).gamma_ > 0


def test_a_small_file_takes_little_memory(saved):
    """10^8 texts of length 0 are no bytes in a file, but gigabytes as a list."""
    whole = npy(np.zeros(8))
    start, stop = whole.index(b"{"), whole.index(b"\n")
    texts = b"{'descr': '<U0', 'fortran_order': False, 'shape': (100000000,), }"
    rewrite(saved, {"fit.scaling.foreground.mean.npy": whole[:start] + texts.ljust(stop - start) + b"\n"})
    tracemalloc.start()
    with pytest.raises(ModelFileError, match="holds <U0 instead of numbers"):
        contrapca.load(saved)
    assert tracemalloc.get_traced_memory()[1] < 1e6
    tracemalloc.stop()


THINGS = MODELS | {
    "path": lambda: contrast_path(PCPCA(2), X, background=Y, gammas=[0.0, 0.3]),
    "posterior": posterior,
    "moments": lambda: Moments.from_rows(X),
}


@pytest.mark.parametrize("name", ["PCPCA", "CLVM", "path", "posterior", "moments"])
def test_files_of_a_newer_version(name, tmp_path):
    path = tmp_path / "thing.npz"
    THINGS[name]().save(path)
    rewrite(path, {"header.npy": header_with(path, version=9)})
    with pytest.raises(ModelFileError, match=r"thing\.npz.*version 9.*Update contrapca"):
        contrapca.load(path)


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("CPCA", "CLVM", "posterior")]


@pytest.mark.parametrize("name", ["PCPCA", "path", "moments", *SLOW])
def test_whatever_is_wrong_is_a_model_file_error(name, tmp_path):
    """Everything left out or replaced by something else: a file loads, or says that it is damaged."""
    path = tmp_path / "thing.npz"
    THINGS[name]().save(path)
    header, arrays = contents(path)
    tried = refused = 0
    for place, _ in places(header["value"]):
        for other in (..., None, [], {}, "x", -1, 0, [3, 4], [{}], next(iter(arrays)), 1e400, 10**400):
            tried, refused = tried + 1, refused + (not accepted(path, changed(header, place, other), arrays))
    for array, value in arrays.items():
        full = np.full_like(value, np.inf if value.dtype.kind == "f" else -1)
        for other in (None, value[:-1], value[None], value.T[..., None], np.zeros(()), np.zeros((0, 0)), full):
            kept = {key: one for key, one in (arrays | {array: other}).items() if one is not None}
            tried, refused = tried + 1, refused + (not accepted(path, header, kept))
    assert accepted(path, header, arrays)  # the control
    assert refused > tried / 2


def test_missing_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no folder '.*nowhere' to write 'model.npz'"):
        MODELS["PPCA"]().save(tmp_path / "nowhere" / "model.npz")


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        contrapca.load(tmp_path / "none.npz")
