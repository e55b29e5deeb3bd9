"""Saved files whose fields are, one after the other, impossible: each is refused, by a sentence that names the file."""

import os

import numpy as np
import pytest

from conftest import make_groups
from contrapca import (
    CLVM,
    CPCA,
    PCPCA,
    PPCA,
    BackgroundWhitener,
    ContraPCA,
    Moments,
    RatioPCA,
    Study,
    bootstrap,
    contrast_path,
    posterior,
)
from saved import accepted, changed, contents, places

X, Y = make_groups(60, 50, 8)
HOLES = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
THINGS = {
    "PPCA": lambda: PPCA(2).fit(X),
    "CPCA": lambda: CPCA(2, gamma=0.4).fit(X, background=Y),
    "PCPCA": lambda: PCPCA(2, scale="group").fit(X, background=Y),
    "PCPCA, missing values": lambda: PCPCA(2, gamma=0.2).fit(HOLES, background=Y),
    "CPCA, missing values": lambda: CPCA(2, gamma=0.4).fit(HOLES, background=Y),
    "ContraPCA": lambda: ContraPCA(2).fit(X, background=Y),
    "CLVM": lambda: CLVM(2, 2).fit(X, background=Y),
    "RatioPCA": lambda: RatioPCA(2).fit(X, background=Y),
    "BackgroundWhitener": lambda: BackgroundWhitener().fit(X, background=Y),
    "covariates": lambda: PPCA(2).fit(
        Study(X, covariates=np.array([[i / 7, "abc"[i % 3]] for i in range(60)], dtype=object))
    ),
    "two backgrounds": lambda: PCPCA(2).fit(X, background={"a": Y[:25], "b": Y[25:]}),
    "path": lambda: contrast_path(PCPCA(2), X, background=Y, gammas=[0.0, 0.3]),
    "path of ContraPCA": lambda: contrast_path(ContraPCA(2), X, background=Y, gammas=[0.0, 0.1]),
    "path of CPCA": lambda: contrast_path(CPCA(2), X, background=Y, gammas=[0.0, 0.3]),
    "bootstrap": lambda: bootstrap(ContraPCA(2).fit(X, background=Y), X, background=Y, n_resamples=20, random_state=0),
    "posterior": lambda: posterior(CPCA(1, gamma=0.4).fit(X, background=Y), X, background=Y, draws=300, random_state=0),
    "moments": lambda: Moments.from_rows(X),
}
ANYTHING_ELSE = ("x", [], {"x": 1})  # where a number is wanted
NEGATIVE, NOT_POSITIVE = (-1, -1e-3, np.nan, *ANYTHING_ELSE), (0, -1.0, np.inf, np.nan, *ANYTHING_ELSE)
WRONG = {  # values that a field of this name cannot have, beside those of another type
    "objective": (np.inf, -np.inf, np.nan),
    "bound": (np.inf, np.nan),
    "limit": NEGATIVE,
    "gamma_max": NEGATIVE,
    "auto_gamma": (-1, -1e-3),
    "sigma2": NOT_POSITIVE,
    "noise_variance_estimate": NOT_POSITIVE,
    "weight": NOT_POSITIVE,
    "power": NOT_POSITIVE,
    "n_shown": (99, 0.5, *NOT_POSITIVE),
    "inside": (np.inf, 1e9, *NEGATIVE),
    "axes": ("magic",),
    "kind": ("magic",),
    "dtype": ("int64", "object"),
    "plateau": ({"counts": [], "bound": 1.0}, {"counts": [1, 2, 3], "bound": 1.0}),
    "levels": ([], ["x"], ["x", 1, 2, 3]),
    "columns": ([], [3], [{}]),
    "estimator": ({"name": "magic", "parameters": {}}, {"name": "GammaSearch", "parameters": {}}, {"name": "PPCA"}),
}
COUNTS = ("n_iter", "solved", "divergences", "failures", "seed", "counts")
MAY_BE_NONE = {  # in some fits
    *("axis_ratios", "eigenvalues", "background_model", "limit", "covariates", "plateau", "shortened", "levels"),
    *("noise_variance", "noise_variance_estimate", "seed", "mix", "names", "model", "filling"),
}
FREE = {"method", "reason", "outcome", "name", "names", "levels"}  # any text
SIGNED = (  # arrays that may be negative, or of any size
    *("components", "eigenvalues", "history", "init_objectives", "objective", "coordinates", "loading_coordinates"),
    *("basis", "W", "W_estimate", "matrix", "mean", "reference", "coefficients", "factors"),
)
MAY_BE_NAN = {("path of CPCA", "noise_variance")}  # CPCA has none


def field_of(place):
    """The name of the field, also of the values of groups."""
    return [part for part in place.split(".") if not part.isdigit() and part not in ("foreground", "backgrounds")][-1]


def impossible_arrays(name, array, value):
    """Contents that no such array has."""
    field, numbers = field_of(array), value.dtype.kind == "f"
    for other in () if (name, field) in MAY_BE_NAN or not value.size or not numbers else (np.nan, np.inf):
        changed = value.copy()
        changed.flat[-1] = other
        yield changed
    yield value[..., None]
    yield value.astype(complex)
    yield value.astype(str)
    yield np.ones_like(value, dtype=int if numbers else float)
    if field not in SIGNED and (name, field) not in MAY_BE_NAN and value.size:
        yield -1 - np.abs(value)
    if field in ("components", "basis"):
        yield 3 * value
    if field == "gammas":
        yield value[::-1].copy()
    if field == "matrix":
        yield -value
        yield value + np.triu(np.ones_like(value), 1)
        yield value * (1 + 1e3 * (1 - np.eye(len(value))))
    if field == "scale":
        yield 0 * value


def impossible_values(place, value, arrays):
    """What cannot be in place of a value in the header; `...`: it is left out."""
    field = field_of(place)
    if ".parameters." in place:
        return (7,) if field == "n_components" else ()
    others = [other for other in WRONG.get(field, ()) if other != value]
    if isinstance(value, dict | list):
        others += [3, "magic", {"x": 1}]
    elif isinstance(value, bool):
        others += [1, *ANYTHING_ELSE]
    elif isinstance(value, int | float):
        others += [*ANYTHING_ELSE, *((0.5, *NEGATIVE) if field in COUNTS else () if field in WRONG else NEGATIVE)]
    elif isinstance(value, str):
        others += [3, [], *(() if field in FREE else ["magic"])]
    else:
        others += [{"x": 1}]
    if value is not None and (field not in MAY_BE_NONE or (isinstance(value, str) and value not in arrays)):
        others.append(None)
    if isinstance(value, list) and value[:1] == ["foreground"]:
        others += [[], [*value, "more"], [*value[:-1], 3], ["foreground"] * (len(value) + (len(value) == 1))]
    if not place.rpartition(".")[2].isdigit():  # not of a list, which is then shorter
        others.append(...)
    return others


def impossible_files(name, header, arrays):
    """(what, header, arrays): every field changed by itself."""
    for place, value in places(header["value"]):
        for other in impossible_values(place, value, arrays):
            yield f"{place} is {other!r}", changed(header, place, other), arrays
        if isinstance(value, dict) and place != "estimator.parameters":
            yield f"{place} has more", changed(header, f"{place}.more", 1), arrays
    yield (
        "an unknown parameter",
        changed(header, "estimator.parameters.magic", 1)
        if "estimator" in header["value"]
        else header | {"kind": "magic"},
        arrays,
    )
    for array, value in arrays.items():
        for other in impossible_arrays(name, array, value):
            yield f"{array} is changed to {other.ravel()[:3]}", header, arrays | {array: other}


QUICK = ("PCPCA", "moments")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in THINGS]
)
def test_every_impossible_field_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # hundreds of files
    path = tmp_path / "thing.npz"
    THINGS[name]().save(path)
    header, arrays = contents(path)
    files = list(impossible_files(name, header, arrays))
    assert len(files) > (25 if name == "moments" else 60)
    assert [what for what, *file in files if accepted(path, *file)] == []
    assert accepted(path, header, arrays)  # the control
