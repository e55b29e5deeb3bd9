"""Saving and loading without pickle, damaged and hostile files, pickling and cloning."""

import copy
import io
import json
import pickle
import zipfile

import numpy as np
import pytest
from sklearn.base import clone

import contrapca
from conftest import make_groups
from contrapca import CPCA, PCPCA, PPCA
from contrapca.exceptions import ModelFileError

X, Y = make_groups(60, 50, 8)
MODELS = {
    "PPCA": lambda: PPCA(2).fit(X),
    "CPCA": lambda: CPCA(2, gamma=0.4).fit(X, background=Y),
    "CPCA, infinite limit": lambda: CPCA(2, gamma=0.4).fit(X, background=Y[:4]),
    "PCPCA": lambda: PCPCA(2, scale="group").fit(X, background=Y),
    "PCPCA, label": lambda: PCPCA(2, background_label="b").fit(np.vstack([X, Y]), ["a"] * 60 + ["b"] * 50),
    "PCPCA, lanczos": lambda: PCPCA(2, solver="lanczos").fit(X, background=Y),
    "PCPCA, dual": lambda: PCPCA(2, solver="dual").fit(X[:5], background=Y[:5]),
    "PCPCA, alone": lambda: PCPCA(2, gamma=0).fit(X),
    "PCPCA, float32": lambda: PCPCA(2).fit(X.astype(np.float32), background=Y.astype(np.float32)),
    "PCPCA, flat background": lambda: PCPCA(2, gamma=0.1).fit(X, background=np.outer(np.arange(9.0), np.ones(8))),
}


def assert_same(left, right):
    assert type(left) is type(right)
    assert left.get_params() == right.get_params()
    skipped = {"_source", "model_", "_background_model"}
    assert vars(left).keys() == vars(right).keys()
    for name in vars(left).keys() - skipped:
        a, b = getattr(left, name), getattr(right, name)
        if isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b, err_msg=name)
            assert a.dtype == b.dtype, name
        else:
            assert a == b or (np.isnan(a) and np.isnan(b)), name
    for method in ("transform", "score_samples", "contrast_score"):
        if hasattr(left, method):
            try:
                expected = getattr(left, method)(X)
            except ValueError as error:  # no background, or a flat one: the same error then
                with pytest.raises(type(error), match=str(error)[:20]):
                    getattr(right, method)(X)
            else:
                np.testing.assert_array_equal(getattr(right, method)(X), expected)
    np.testing.assert_array_equal(left.inverse_transform([[1, 2]]), right.inverse_transform([[1, 2]]))
    assert left.objective() == right.objective()
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
def test_pickles_do_not_carry_the_rows(name):
    assert len(pickle.dumps(MODELS[name]())) < 9000


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
    assert list(loaded.feature_table()["feature"]) == names
    with pytest.raises(ValueError, match="same order"):
        loaded.transform(frame[names[::-1]])


def test_only_our_own_classes_are_saved(tmp_path):
    subclass = type("PCPCA", (PCPCA,), {})
    with pytest.raises(TypeError, match="contrapca's own"):
        subclass(2, gamma=0.1).fit(X, background=Y).save(tmp_path / "model.npz")
    with pytest.warns(RuntimeWarning, match="overflow"):
        large = PCPCA(2, gamma=0.1).fit((X * 1e25).astype(np.float32), background=(Y * 1e25).astype(np.float32))
    with pytest.raises(ValueError, match="overflowed"):
        large.save(tmp_path / "model.npz")


def test_parameters_that_json_cannot_hold(tmp_path):
    model = PCPCA(2, background_label=("a", "b"), gamma=0.1).fit(X, background=Y)
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
    for key, value in changes.items():
        header[key] = {**header[key], **value} if isinstance(value, dict) else value
    return npy(np.frombuffer(json.dumps(header).encode(), dtype=np.uint8))


class Bomb:
    def __reduce__(self):
        return (print, ("a pickle was executed",))


DAMAGE = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("a,b\n1,2\n"),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "flipped bytes": lambda path: path.write_bytes(path.read_bytes().replace(b"contrapca-model", b"contrapca-modem")),
    "pickle": lambda path: path.write_bytes(pickle.dumps(Bomb())),
    "pickle inside": lambda path: rewrite(path, {"mean_.npy": npy(np.array([Bomb()]), allow_pickle=True)}),
    "compressed": lambda path: rewrite(path, {}, zipfile.ZIP_DEFLATED),
    "no header": lambda path: rewrite(path, {"header.npy": None}),
    "header not JSON": lambda path: rewrite(path, {"header.npy": npy(np.frombuffer(b"{", dtype=np.uint8))}),
    "header a list": lambda path: rewrite(path, {"header.npy": npy(np.frombuffer(b"[]", dtype=np.uint8))}),
    "deep header": lambda path: rewrite(path, {"header.npy": npy(np.frombuffer(b"[" * 10**6, dtype=np.uint8))}),
    "another format": lambda path: rewrite(path, {"header.npy": header_with(path, format="other")}),
    "newer version": lambda path: rewrite(path, {"header.npy": header_with(path, version=99)}),
    "unknown estimator": lambda path: rewrite(path, {"header.npy": header_with(path, estimator="os.system")}),
    "estimator a list": lambda path: rewrite(path, {"header.npy": header_with(path, estimator=[])}),
    "unknown parameter": lambda path: rewrite(path, {"header.npy": header_with(path, parameters={"x": 1})}),
    "number as text": lambda path: rewrite(path, {"header.npy": header_with(path, numbers={"gamma_": "1"})}),
    "no numbers": lambda path: rewrite(path, {"header.npy": header_with(path, numbers=3)}),
    "solver a number": lambda path: rewrite(path, {"header.npy": header_with(path, solver=3)}),
    "sigma2 negative": lambda path: rewrite(path, {"header.npy": header_with(path, numbers={"model_.sigma2": -1.0})}),
    "array missing": lambda path: rewrite(path, {"loadings_.npy": None}),
    "wrong shape": lambda path: rewrite(path, {"mean_.npy": npy(np.zeros(5))}),
    "components 1-D": lambda path: rewrite(path, {"components_.npy": npy(np.zeros(16))}),
    "NaN": lambda path: rewrite(path, {"mean_.npy": npy(np.full(8, np.nan))}),
    "wrong type": lambda path: rewrite(path, {"mean_.npy": npy(np.zeros(8, dtype=int))}),
    "scale zero": lambda path: rewrite(path, {"scale_.npy": npy(np.zeros(8))}),
    "names of numbers": lambda path: rewrite(path, {"feature_names_in_.npy": npy(np.zeros(8))}),
    "not an array": lambda path: rewrite(path, {"mean_.npy": b"not an array"}),
    "claims to be huge": lambda path: rewrite(
        path, {"mean_.npy": npy(np.zeros(8)).replace(b"(8,), }        ", b"(800000000,), }")}
    ),
    "array header not closed": lambda path: rewrite(path, {"mean_.npy": npy(np.zeros(8)).replace(b"}", b" ")}),
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


def test_missing_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no folder '.*nowhere' to write 'model.npz'"):
        MODELS["PPCA"]().save(tmp_path / "nowhere" / "model.npz")


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        contrapca.load(tmp_path / "none.npz")
