"""Numbers that must not change: those of contrapca 0.1.0, as far as what they are of is still there.

golden.json has, for every case, kind of number and name, a vector; no rows are stored, only summaries. A number that
rows do not determine, such as components where eigenvalues meet, is computed but not in the file.
"""

from __future__ import annotations

import json
import math
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from contrapca import CLVM, CPCA, PCPCA, PPCA, GammaSearch, Study, bootstrap, contrast_path, gamma_limits
from contrapca.datasets import load_mouse_protein
from experiments._data import load_corrupted_mnist, load_zheng_bmmc

GOLDEN = json.loads(Path(__file__).with_name("golden.json").read_text(encoding="utf-8"))
# What a difference may be, relative to the largest number of its vector.
TOLERANCES = {
    "closed": 1e-10,  # closed forms, of direct solvers; limits
    "residual": 1e-7,  # first order in vectors of Lanczos or of a path, whose residuals are 1e-9 at most: 1e-9 / gap
    "single": 1e-5,  # float32 in, float32 out
    "iterative": 1e-5,  # gradient fits (missing values, CLVM) with tol = 1e-8
    "seeded": 1e-8,  # resampling and splitting with a seed: the same random numbers, then closed forms
}


# ---------------------------------------------------------------------- estimators, every setting given


def ppca(d, scale, solver="auto", mean="observed"):
    given = {"n_init": 1, "max_iter": 2000, "tol": 1e-8, "random_state": 0, "mean": mean}
    return PPCA(d, scale=scale, solver=solver, **given)


def pcpca(d, gamma, scale, solver="auto", mean="observed", n_init=1, seed=0):
    given = {"n_init": n_init, "max_iter": 2000, "tol": 1e-8, "random_state": seed, "mean": mean}
    return PCPCA(d, gamma=gamma, scale=scale, solver=solver, n_latent=None, axes="variance", **given)


def cpca(d, gamma, scale, solver="auto"):
    return CPCA(d, gamma=gamma, scale=scale, solver=solver)


# ---------------------------------------------------------------------- summaries


def probes(D):
    return np.random.default_rng(1000 + D).standard_normal((D, 3)) / math.sqrt(D)


def weighed(rows):
    """A weighted mean of rows that no symmetry hides."""
    return np.random.default_rng(2000 + len(rows)).uniform(-0.5, 1.5, len(rows)) / len(rows) @ rows


def settled_signs(V):
    """1 where the largest entry leaves no doubt about the sign; else the sign along the first probe."""
    magnitude = np.sort(np.abs(V), axis=1)
    clear = magnitude[:, -1] - magnitude[:, -2] > 1e-6 * magnitude[:, -1]
    return np.where(clear | (V @ probes(V.shape[1])[:, 0] >= 0), 1.0, -1.0)


def of_scores(scores):
    scores = np.asarray(scores, dtype=np.float64)
    return [weighed(scores), scores.mean(), scores.std()]


def of_model(model, X, Y=None):
    """The numbers of a fitted PPCA, PCPCA or CPCA, by name."""
    V = np.asarray(model.components_, dtype=np.float64)
    P, signs = probes(V.shape[1]), settled_signs(V)
    found = {name: getattr(model, f"{name}_") for name in ("eigenvalues", "objective", "explained_variance")}
    found |= {"components@probe": signs * (V @ P[:, 0]), "projector": np.sum((V @ P) ** 2, axis=0)}
    latents = {"latents": model.transform(X)}
    if hasattr(model, "gamma_"):
        found |= {"gamma": model.gamma_, "reconstruction_loss": model.reconstruction_error_}
    if Y is not None:
        found["background_variance"] = model.background_variance_
        latents["background_latents"] = model.transform(Y, center="background")
    for name, Z in latents.items():
        Z = np.asarray(Z, dtype=np.float64) * signs
        found[name] = [weighed(Z), Z.std(axis=0)]
    if hasattr(model, "noise_variance_"):
        W = np.asarray(model.loadings_, dtype=np.float64)
        found |= {"noise_variance": model.noise_variance_, "loadings@probe": signs * (P[:, 0] @ W)}
        found |= {
            "covariance.trace": np.trace(model.get_covariance()),
            "score_samples": of_scores(model.score_samples(X)),
        }
    if hasattr(model, "background_model_"):
        found |= {"contrast_score": of_scores(model.contrast_score(X))}
        found |= {"background_model.sigma2": model.background_model_.sigma2}
    return found


def of_imputed(model, table):
    filled, std = model.impute(table, return_std=True)
    w = np.random.default_rng(2000 + filled.size).uniform(-0.5, 1.5, filled.size).reshape(filled.shape)
    found = {"imputed": [np.sum(w * filled), np.std(filled[np.isnan(table)]), np.sum(filled)]}
    return found | {"imputed.std": [np.sum(w * std), np.sum(std), np.max(std)]}


def of_path(path):
    names = ("eigenvalues", "objective")
    found = {"limit": path.gamma_max, "sigma2": path.noise_variance} | {name: getattr(path, name) for name in names}
    return found | {"cos_angles": np.cos(path.angles())}


def prefixed(prefix, found):
    return {f"{prefix}.{name}": value for name, value in found.items()}


# ---------------------------------------------------------------------- cases


def simulated(kind, n, m, D, seed):
    """A foreground with planted directions, both groups with nuisance directions, spoilt according to `kind`."""
    rng = np.random.default_rng(seed)
    signals, nuisances = min(6, max(1, D // 2)), min(3, max(1, D // 4))
    Q = np.linalg.qr(rng.standard_normal((D, D)))[0]
    X, Y = rng.standard_normal((n, D)), rng.standard_normal((m, D))
    X += rng.standard_normal((n, signals)) * (4.0 * 0.8 ** np.arange(signals)) @ Q[:, :signals].T
    both = Q[:, -nuisances:] * 5.0 * 0.7 ** np.arange(nuisances)
    X += rng.standard_normal((n, nuisances)) @ both.T + rng.standard_normal(D)
    Y += rng.standard_normal((m, nuisances)) @ both.T + rng.standard_normal(D)
    match kind:
        case "units":
            s = np.logspace(-1.5, 1.5, D)[rng.permutation(D)]
            return X * s, Y * s
        case "low rank":
            basis = rng.standard_normal((max(8, D // 2), D))
            return X[:, : len(basis)] @ basis, Y[:, : len(basis)] @ basis
        case "poor background":  # of rank 3, and no noise
            return X, rng.standard_normal((m, 3)) @ Q[:, -3:].T * 4
        case "tied":  # covariances that are multiples of the identity on parts of the features
            E = np.vstack([np.eye(D), -np.eye(D)])
            tops = np.where(np.arange(D) < D // 2, 3.0, 1.0), np.where(np.arange(D) < D // 4, 2.0, 1.0)
            return np.vstack([E * tops[0]] * 2), E * tops[1]
        case "repeated column":
            X[:, -1], Y[:, -1] = X[:, 0], Y[:, 0]
        case "constant column":
            X[:, 1], Y[:, 1] = 2.5, 2.5
        case "far":
            return X + 300.0, Y + 300.0
        case "strong background":
            return X, 3.0 * Y
        case "heavy tails":
            return X * rng.chisquare(4, (n, 1)) ** -0.5, Y * rng.chisquare(4, (m, 1)) ** -0.5
        case "counts":
            return tuple(rng.poisson(np.exp(table / 4 - 1.5)).astype(float) for table in (X, Y))
    return X, Y


def contrasts(X, Y, d, gamma, strong, top, scale, solver, *, tag="", alone=True, along=pcpca):
    """Limits, PCPCA, CPCA (at `strong`; "auto" is 0.97 of the limit), PPCA and a path."""
    limits = gamma_limits(X, background=Y, n_components=d, scale=scale, solver=solver)
    found = {f"limits.d{d}.{name}": getattr(limits, name) for name in ("pcpca", "cpca")}
    strong = 0.97 * limits.pcpca if strong == "auto" else strong
    found |= prefixed(f"pcpca{tag}", of_model(pcpca(d, gamma, scale, solver).fit(X, background=Y), X, Y))
    found |= prefixed(f"cpca{tag}", of_model(cpca(d, strong, scale, solver).fit(X, background=Y), X, Y))
    if alone:
        found |= prefixed(f"ppca{tag}", of_model(ppca(d, scale, solver).fit(X), X))
    gammas = [0.0, round(0.45 * limits.pcpca, 3), round(0.9 * limits.pcpca, 3)] if top is None else [0.0, top / 2, top]
    return found | prefixed(
        f"path{tag}", of_path(contrast_path(along(d, 0.0, scale, solver), X, background=Y, gammas=gammas))
    )


# kind, n, m, D, d, scale, solver, gamma of PCPCA, top of the path, gamma of CPCA
SIMULATED = [
    ("plain", 200, 150, 8, 2, None, "eigh", 0.5, 0.9, 2.8),
    ("units", 20, 18, 60, 1, None, "dual", "auto", 0.9, 2.8),
    ("low rank", 400, 100, 12, 5, "group", "eigh", 0.341, 0.409, 2.31),
    ("plain", 15, 60, 30, 2, "group", "lanczos", 0.319, 0.573, 2.8),
    ("tied", 40, 20, 10, 1, None, "eigh", "auto", 0.9, "auto"),
    ("repeated column", 300, 250, 20, 2, "pooled", "eigh", 0.75, 0.9, 2.8),
    ("far", 30, 25, 3, 1, None, "eigh", 0.5, 0.9, 2.8),
    ("strong background", 30, 12, 90, 5, None, "dual", "auto", 0.0827, 2.8),
    ("heavy tails", 200, 150, 8, 2, "group", "eigh", 0.518, 0.621, 2.5),
    ("poor background", 60, 14, 25, 1, "group", "eigh", 0.438, 0.789, "auto"),
    ("constant column", 400, 100, 12, 2, "pooled", "lanczos", "auto", 0.9, 2.8),
    ("counts", 25, 40, 100, 1, "pooled", "eigh", 0.702, 0.843, 2.8),
    ("plain", 120, 300, 10, 4, None, "eigh", 0.435, 0.784, 2.8),
    ("units", 15, 60, 30, 2, None, "eigh", "auto", 0.518, 2.8),
    ("low rank", 300, 250, 20, 1, "group", "eigh", 0.632, 0.759, "auto"),
    ("plain", 200, 150, 8, 2, "group", "eigh", 0.343, 0.618, 2.29),
]


def of_simulated(index):
    kind, n, m, D, d, scale, solver, gamma, top, strong = SIMULATED[index]
    stored = {"constant column": np.float32, "counts": sp.csr_array}.get(kind, np.asarray)
    X, Y = map(stored, simulated(kind, n, m, D, 100 + index))
    return contrasts(
        X, Y, d, gamma, strong, top, scale, solver, alone=index % 2 == 1, along=pcpca if index % 4 else cpca
    )


def holed(X, share, seed):
    """Some values missing; the first two rows stay complete."""
    missing = np.random.default_rng(seed).random(X.shape) < share
    missing[:2] = False
    return np.where(missing, np.nan, X)


def with_holes(X, Y, d, gamma, scale, mean):
    models = {"pcpca": pcpca(d, gamma, scale, mean=mean).fit(X, background=Y), "ppca": ppca(d, scale, mean=mean).fit(X)}
    found = prefixed("pcpca", of_model(models["pcpca"], X, Y)) | prefixed("ppca", of_model(models["ppca"], X))
    for name, model in models.items():
        found |= prefixed(name, of_imputed(model, X[:30]))
    return found


def of_missing(scale, mean):
    X, Y = simulated("units" if scale else "plain", 120, 90, 8, 3)
    return with_holes(holed(X, 0.1, 5), holed(Y, 0.1, 6), 2, 0.35, scale, mean)


def of_missing_auto():
    X, Y = simulated("plain", 120, 90, 8, 3)
    return with_holes(holed(X, 0.1, 5), holed(Y, 0.1, 6), 1, "auto", None, "observed")


def of_missing_in_one():
    X, Y = simulated("plain", 90, 110, 6, 4)
    return with_holes(X, holed(Y, 0.2, 7), 2, 0.3, "pooled", "observed")


def of_lbfgs():
    X, Y = simulated("plain", 120, 90, 8, 3)
    return prefixed("lbfgs", of_model(pcpca(2, 0.35, None, "lbfgs", n_init=3, seed=11).fit(X, background=Y), X, Y))


def of_default_grid():
    X, Y = simulated("plain", 150, 120, 12, 1)
    found, every = {}, slice(0, 40, 6)
    for name, estimator in {"pcpca": pcpca(2, 0.0, "pooled", "eigh"), "cpca": cpca(2, 0.0, "pooled", "eigh")}.items():
        path = contrast_path(estimator, X, background=Y, gammas=40)
        found |= {f"{name}.{what}": getattr(path, what)[every] for what in ("gammas", "eigenvalues", "objective")}
        found |= {f"{name}.limit": path.gamma_max, f"{name}.cos_angles": np.cos(path.angles()[1][every])}
    return found


def of_clvm(scale):
    found = {}
    for k, d, D in ((2, 2, 10), (3, 1, 8), (2, 0, 6)):
        X, Y = simulated("plain" if scale is None else "units", 200, 150, D, 20 + D)
        model = CLVM(k, d, scale=scale, tol=1e-9, max_iter=3000).fit(X, background=Y)
        P, A = probes(D), model.get_covariance()
        own = {"objective": model.objective_, "noise_variance": model.noise_variance_}
        own |= {"own@probes": np.sum((P.T @ model.loadings_) ** 2, axis=1)}  # L L' is what is identified
        own |= {"shared@probes": np.sum((P.T @ model.shared_loadings_) ** 2, axis=1)}
        own |= {
            "covariance": [np.trace(A), *np.sum(P * (A @ P), axis=0)],
            "means": [model.mean_ @ P, model.background_mean_ @ P],
        }
        found |= prefixed(f"k{k}d{d}", own)
    return found


def of_search(estimator, criterion):
    X, Y = simulated("plain", 120, 100, 10, 30)
    labels = np.arange(120) % 3
    X = X + 4.0 * np.linalg.qr(np.random.default_rng(31).standard_normal((10, 3)))[0].T[labels]
    found = GammaSearch(estimator, criterion=criterion, n_folds=3, gammas=[0.0, 0.1, 0.2, 0.3, 0.4], random_state=5)
    found.fit(Study(X, background=Y, labels=labels if criterion == "silhouette" else None))
    return {"scores": found.scores_, "best": found.best_gamma_, "best score": found.best_score_}


def of_bootstrap():
    X, Y = simulated("plain", 90, 80, 6, 50)
    models = {
        "pcpca": pcpca(2, 0.35, "group", "eigh").fit(X, background=Y),
        "cpca": cpca(1, 1.1, None, "eigh").fit(X, background=Y),
    }
    found = {}
    for name, model in models.items():
        draws = bootstrap(model, X, background=Y, n_resamples=25, random_state=9)
        along = np.einsum("...Dd,Dk->...kd", draws.loadings, probes(6))
        found[f"{name}.loadings@probes"] = along.mean(axis=(0, 1))
        found[f"{name}.cos2"] = np.mean(np.cos(draws.angles()) ** 2, axis=(0, 1))
    return found


def of_mouse():
    data = load_mouse_protein()
    X, Y = (np.nan_to_num(table) for table in (data.foreground, data.background))
    X, Y = ((table - table.mean(axis=0)) / table.std(axis=0) for table in (X, Y))
    found = {}
    for d in (1, 2, 5):
        gamma = "auto" if d == 2 else 0.4
        found |= contrasts(X, Y, d, gamma, gamma, None, None, "eigh", tag=f".d{d}")
    return found


def of_mouse_missing():
    data = load_mouse_protein()
    return with_holes(data.foreground, data.background, 2, 0.4, "group", "observed")


def of_cells():
    data = load_zheng_bmmc(log=False)
    X, Y = sp.csr_array(data.foreground[::12, ::4]), sp.csr_array(data.background[::6, ::4])
    return contrasts(X, Y, 2, 0.3, 0.3, None, "pooled", "lanczos", tag=".d2")


def of_digits():
    data = load_corrupted_mnist(n=150, grass="grass700", random_state=0)
    return contrasts(data.foreground, data.background, 1, 0.1, 0.1, None, "group", "dual", tag=".d1")


CASES = {
    f"simulated {k:02d} {row[0]} {row[1]}+{row[2]}x{row[3]} d={row[4]}": partial(of_simulated, k)
    for k, row in enumerate(SIMULATED)
}
for _scale in (None, "group", "pooled"):
    CASES |= {f"missing scale={_scale} mean={mean}": partial(of_missing, _scale, mean) for mean in ("observed", "gls")}
    CASES |= {f"clvm scale={_scale}": partial(of_clvm, _scale)}
for _criterion in ("silhouette", "likelihood"):
    CASES[f"search pcpca {_criterion}"] = partial(of_search, pcpca(2, "auto", "pooled"), _criterion)
CASES |= {"missing auto": of_missing_auto, "missing only in one group": of_missing_in_one}
CASES |= {"gradient solver of complete rows": of_lbfgs, "path with the default grid": of_default_grid}
CASES |= {"bootstrap": of_bootstrap}
REAL = {"mouse filled": of_mouse, "mouse missing": of_mouse_missing, "cells": of_cells, "digits on grass": of_digits}


# ---------------------------------------------------------------------- the comparison


def differences(name, found):
    """What differs by more than its tolerance, or is not there."""
    for kind, vectors in GOLDEN[name].items():
        for key, stored in vectors.items():
            new, old = (np.array(flat(value), dtype=np.float64) for value in (found.get(key, []), stored))
            scale = max((np.abs(value[np.isfinite(value)]).max(initial=0.0) for value in (old, new)), default=0.0)
            if new.shape != old.shape or not np.allclose(
                new, old, rtol=0, atol=TOLERANCES[kind] * scale, equal_nan=True
            ):
                yield f"{key} ({kind}): {old[:4]} became {new[:4]}"


def flat(value):
    return np.concatenate([np.ravel(part) for part in value]) if isinstance(value, list) and value else np.ravel(value)


@pytest.mark.parametrize("name", [*CASES, *REAL])
def test_same_numbers(name, request):
    if name in REAL:
        request.getfixturevalue("data_folder")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = (CASES | REAL)[name]()
    assert list(differences(name, found)) == []


def test_the_file_has_the_cases():
    assert list(GOLDEN) == [*CASES, *REAL]
    assert min(sum(map(len, kinds.values())) for kinds in GOLDEN.values()) >= 3


@pytest.mark.parametrize("kind", TOLERANCES)
def test_a_changed_number_is_caught(kind):
    """The control: a number twice its tolerance away, and a lost one."""
    name, key = next((name, key) for name, kinds in GOLDEN.items() for key in kinds.get(kind, ()))
    found = {key: value for vectors in GOLDEN[name].values() for key, value in vectors.items()}
    assert list(differences(name, found)) == []
    changed = np.array(flat(found[key]), dtype=np.float64)
    changed[0] += 2 * TOLERANCES[kind] * np.abs(changed).max()
    for other in (found | {key: changed}, {one: value for one, value in found.items() if one != key}):
        assert [line.startswith(key) for line in differences(name, other)] == [True]
