"""Saved files whose fields are, one after the other, impossible: each is refused, by a sentence that names the file."""

import dataclasses
import os

import numpy as np
import pytest

import contrapca
from conftest import make_groups
from contrapca import (
    CLVM,
    CPCA,
    PCPCA,
    PPCA,
    ContraPCA,
    KernelCPCA,
    Moments,
    RatioPCA,
    Study,
    bootstrap,
    contrast_path,
    posterior,
)
from contrapca._util.archive import read_archive, write_archive
from contrapca.exceptions import ModelFileError

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
    "covariates": lambda: PPCA(2).fit(
        Study(X, covariates=np.array([[i / 7, "abc"[i % 3]] for i in range(60)], dtype=object))
    ),
    "KernelCPCA": lambda: KernelCPCA(2, gamma=0.4).fit(X, background=Y),
    "KernelCPCA, precomputed": lambda: KernelCPCA(2, gamma=0.4, kernel="precomputed").fit(
        X @ np.vstack([X, Y]).T, background=Y @ np.vstack([X, Y]).T
    ),
    "two backgrounds": lambda: PCPCA(2).fit(X, background={"a": Y[:25], "b": Y[25:]}),
    "path": lambda: contrast_path(PCPCA(2), X, background=Y, gammas=[0.0, 0.3]),
    "path of ContraPCA": lambda: contrast_path(ContraPCA(2), X, background=Y, gammas=[0.0, 0.1]),
    "path of CPCA": lambda: contrast_path(CPCA(2), X, background=Y, gammas=[0.0, 0.3]),
    "bootstrap": lambda: bootstrap(ContraPCA(2).fit(X, background=Y), X, background=Y, n_resamples=20, random_state=0),
    "posterior": lambda: posterior(CPCA(1, gamma=0.4).fit(X, background=Y), X, background=Y, draws=300, random_state=0),
    "moments": lambda: Moments.from_rows(X),
}
KERNEL = {"name": "rbf", "bandwidth": 1.0, "degree": 3, "coef0": 1.0}
ANYTHING_ELSE = ("x", [], {}, None, np.nan)  # where a number is wanted
NEGATIVE, NOT_POSITIVE = (-1, -1e-3, *ANYTHING_ELSE), (0, -1.0, np.inf, *ANYTHING_ELSE)
MAY_BE_NONE = {
    "limit",
    "gamma_max",
    "auto_gamma",
    "noise_variance_estimate",
    "covariates",
    "seed",
}  # where there is none
FACTS = {
    "gamma": (np.inf, *NEGATIVE),
    "objective": (np.inf, -np.inf, *ANYTHING_ELSE),
    "n_iter": (2.5, *NEGATIVE),
    "limit": NEGATIVE,
    "gamma_max": NEGATIVE,
    "auto_gamma": NEGATIVE,
    "solved": (1.5, *NEGATIVE),
    "limit_is_bound": (1, *ANYTHING_ELSE),
    "at_limit": (1, *ANYTHING_ELSE),
    "gamma_max_is_bound": (1, *ANYTHING_ELSE),
    "model.sigma2": NOT_POSITIVE,
    "background_model.sigma2": NOT_POSITIVE,
    "noise_variance_estimate": NOT_POSITIVE,
    "weight": NOT_POSITIVE,
    "power": NOT_POSITIVE,
    "divergences": (0.5, *NEGATIVE),
    "failures": (0.5, *NEGATIVE),
    "n_shown": (99, *NOT_POSITIVE),
    "kind": ("magic", 3),
    "solver": (["magic", "because"], ["eigh", 3], ["eigh"], "eigh"),
    "gamma_search": ([{"gamma": -1.0, "outcome": "x"}], [{"gamma": np.nan, "outcome": "x"}], [{}], [3], 3),
    "parameters": ({"n_components": 7}, {"magic": 1}, 3),
    "axes": ("magic", 3),
    "plateau": (3, {}, {"counts": [], "bound": 1.0}, {"counts": [1, 2, 3], "bound": 1.0}, {"counts": 2, "bound": 1.0}),
    "shortened": (3, [3], [[0.5], [1]], [[-1], [0]], [[0]] * 9),
    "by_blocks": (1, *ANYTHING_ELSE),
    "seed": (0.5, *NEGATIVE),
    "estimator": ("PPCA", "magic", 3),
    "covariates": (
        *([], 3, "x", {}, np.nan, [3], [{}], [{"name": "age"}], [{"name": "age", "levels": None}]),
        *([{"name": 3, "levels": None}] * 3, [{"name": "a", "levels": 3}], [{"name": "a", "levels": ["x", 1, 2, 3]}]),
    ),
    "kernel": (
        *({**KERNEL, "name": name} for name in ("magic", "poly", 3)),
        *({**KERNEL, field: value} for field in ("bandwidth", "degree") for value in NOT_POSITIVE),
        *({**KERNEL, "coef0": value} for value in NEGATIVE),
        *(3, None, {}),
    ),
    "mix": ([2.0], [-1.0], [np.nan], [0.2] * 5, 3, "x"),
}
OF_A_GROUP = {
    "name": (3, None, []),
    "total": (np.inf, *NEGATIVE),
    "inside": (np.inf, 1e9, *NEGATIVE),
    "weight": NOT_POSITIVE,
    "dtype": ("int64", "object", 3),
}
FREE = {"method"}  # names of methods are not known to those who keep draws
SIGNED = (  # arrays that may be negative, or of any size
    *("components", "eigenvalues", "history", "init_objectives", "objective", "coordinates", "loading_coordinates"),
    *("basis", "W", "W_estimate", "scatter", "mean", "reference", "coefficients", "landmarks", "origin", "offset"),
    "factors",
)
MAY_BE_NAN = {("path of CPCA", "noise_variance")}  # CPCA has none


def impossible_arrays(name, array, value):
    """Contents that no such array has."""
    for other in () if (name, array) in MAY_BE_NAN or not value.size else (np.nan, np.inf):
        changed = value.copy()
        changed.flat[-1] = other
        yield changed
    yield value[..., None]
    yield value.astype(complex)
    yield value.astype(str)
    if array.rpartition(".")[2] not in SIGNED and (name, array) not in MAY_BE_NAN:
        yield -1 - np.abs(value)
    if array in ("components", "basis"):
        yield 3 * value
    if array == "gammas":
        yield value[::-1].copy()
    if array == "scatter":
        yield -value
        yield value + np.triu(np.ones_like(value), 1)
        yield value * (1 + 1e3 * (1 - np.eye(len(value))))
    if array.endswith("scale"):
        yield 0 * value
    if array == "landmarks" and value.shape[1] == 1:  # columns of a precomputed kernel
        yield value + 0.5
        yield value + 1000


def impossible_files(name, archive):
    """(what, archive): every field changed by itself."""
    for fact, value in archive.facts.items():
        if fact == "groups":
            for k, group in enumerate(value):
                for field in group:
                    for other in OF_A_GROUP[field]:
                        groups = [{**g, field: other} if j == k else g for j, g in enumerate(value)]
                        yield f"{field} of group {k} is {other!r}", {"facts": archive.facts | {"groups": groups}}
            for groups in ([], [*value, value[0]], [*value[:1], {**value[-1], "name": "foreground"}], 3, None):
                yield f"groups are {groups!r}", {"facts": archive.facts | {"groups": groups}}
        elif fact == "units":
            for field in value:
                for other in OF_A_GROUP[field]:
                    units = {**value, field: other}
                    yield f"{field} of the units is {other!r}", {"facts": archive.facts | {"units": units}}
        elif fact not in FREE:
            for other in FACTS[fact]:
                if other is not None or fact not in MAY_BE_NONE:
                    changed = {**value, **other} if fact == "parameters" and isinstance(other, dict) else other
                    yield f"{fact} is {other!r}", {"facts": archive.facts | {fact: changed}}
    for array, value in archive.arrays.items():
        for other in impossible_arrays(name, array, value):
            yield f"{array} is changed to {other.ravel()[:3]}", {"arrays": archive.arrays | {array: other}}


def accepted(path, archive, changes):
    """Whether a changed file is loaded; a refusal must name it."""
    changed = dataclasses.replace(archive, **changes)
    write_archive(path, changed.kind, changed.facts, changed.arrays, changed.names)
    try:
        with np.errstate(all="ignore"):
            contrapca.load(path)
    except ModelFileError as error:
        said = str(error)
    else:
        return True
    assert path.name in said
    return False


QUICK = ("PCPCA", "moments")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in THINGS]
)
def test_every_impossible_field_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # hundreds of files
    path = tmp_path / "thing.npz"
    THINGS[name]().save(path)
    archive = read_archive(path)
    files = list(impossible_files(name, archive))
    assert len(files) > (15 if name == "moments" else 60)
    assert [what for what, changes in files if accepted(path, archive, changes)] == []
    assert accepted(path, archive, {})  # the control
