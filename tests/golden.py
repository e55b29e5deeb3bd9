"""Numbers that must not change between versions: cases, what is computed of each, and their comparison.

    python golden.py write FILE     # numbers of the installed version, as JSON
    python golden.py compare FILE   # every difference beyond its tolerance, and the worst of each kind

No rows are stored: only summaries. Every argument of every call is given, so that defaults may change.
All calls of the library are in the first section; where signatures of a later version are foreseeable, both are known.
Attributes of results are read in `summarise`, `summarise_path`, `summarise_clvm` and `summarise_draws` only.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import math
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

# ====================================================================== the library: adapt here, and only here


# Whether this is version 0.2 or later, whose API was settled once.
LATER_NAMES = {"objective": "objective_", "reconstruction_loss": "reconstruction_error_"}
LATER = importlib.util.find_spec("contrapca.theory") is not None


def accepted(function: Any, **arguments: Any) -> dict[str, Any]:
    """Those of the arguments that this version's function has."""
    known = inspect.signature(function).parameters
    return {name: value for name, value in arguments.items() if name in known}


def ppca(d, *, scale, solver, mean="observed", tol=1e-8, n_init=1, max_iter=2000, seed=0):
    from contrapca import PPCA

    return PPCA(
        d,
        scale=bool(scale) if LATER else scale,
        solver=solver,
        mean=mean,
        n_init=n_init,
        max_iter=max_iter,
        tol=tol,
        random_state=seed,
    )


def pcpca(
    d, *, gamma, scale, solver, mean="observed", tol=1e-8, n_init=1, max_iter=2000, seed=0, background_label=None
):
    from contrapca import PCPCA

    given = {"n_init": n_init, "max_iter": max_iter, "tol": tol, "random_state": seed, "mean": mean}
    # A version that knows latent dimensions and axes besides components: PCPCA's own.
    given |= accepted(PCPCA, n_latent=None, axes="variance")
    return PCPCA(d, gamma=gamma, background_label=background_label, scale=scaling(scale), solver=solver, **given)


def cpca(d, *, gamma, scale, solver, background_label=None):
    from contrapca import CPCA

    return CPCA(d, gamma=gamma, background_label=background_label, scale=scaling(scale), solver=solver)


def clvm(k, d, *, scale, tol=1e-9, max_iter=3000, background_label=None):
    from contrapca import CLVM

    return CLVM(k, d, background_label=background_label, scale=scaling(scale), tol=tol, max_iter=max_iter)


def scaling(scale):
    """False stands for no scaling here; later versions say None."""
    return (scale or None) if LATER else scale


def names_of(model, X):
    """Names of the features as `feature_table` has them."""
    return list(getattr(model, "feature_names_in_", [f"x{j}" for j in range(X.shape[1])]))


def noise_of(draws):
    """Draws of the noise variance."""
    return draws.noise_variance if LATER else draws.sigma2


def fit(estimator, X, Y=None, y=None):
    if type(estimator).__name__ == "CPCA" and estimator.gamma == "auto":  # what "auto" was when the file was written
        settings = {"scale": estimator.scale, "solver": estimator.solver}
        estimator.set_params(gamma=0.97 * limits(X, Y, estimator.n_components, **settings)[0]["pcpca"])
        estimator.asked_for = "auto"
    return estimator.fit(X, y, background=Y) if Y is not None else estimator.fit(X, y)


def value(model, name):
    """`objective` and `reconstruction_loss`: methods of version 0.1, attributes since."""
    return float(getattr(model, LATER_NAMES[name]) if LATER else getattr(model, name)())


def fitted_limit(model):
    """The limit that fit computed; only with gamma="auto" does it exist in every version."""
    return model.gamma_max_


def score_of_stacked(model, X, y):
    return model.score(X, y)


def transform(model, X, center="foreground"):
    return model.transform(X, **accepted(model.transform, center=center))


def limits(X, Y, d, scale, solver):
    """(numbers by name, whether `pcpca` is a bound only)."""
    from contrapca import gamma_limits

    found = gamma_limits(X, background=Y, n_components=d, scale=scaling(scale), solver=solver)
    names = ("pcpca", "cpca", "positive_definite", "leading_positive", "noise_positive", "noise_positive_sharp")
    return {name: getattr(found, name) for name in names} | {"ratio": found.ratio}, bool(found.is_bound)


def path(X, Y, d, gammas, method, scale, solver):
    from contrapca import contrast_path

    if "method" not in inspect.signature(contrast_path).parameters:  # a later version may take an estimator
        estimator = (pcpca if method == "pcpca" else cpca)(d, gamma=0.0, scale=scale, solver=solver)
        return contrast_path(estimator, X, background=Y, gammas=gammas)
    return contrast_path(
        X, background=Y, n_components=d, gammas=gammas, method=method, scale=scale, solver=solver,
        **accepted(contrast_path, progress=False),
    )  # fmt: skip


def model_on_path(found, gamma, X, Y):
    """The estimator at one gamma of a path; later versions may want the data again."""
    return found.model(gamma, *((X,) if "X" in inspect.signature(found.model).parameters else ()),
                       **accepted(found.model, background=Y))  # fmt: skip


def search(criterion, method, d, gammas, scale, n_splits, seed, X, Y, labels):
    from contrapca import GammaSearch, Study

    given = {"gammas": gammas, "random_state": seed}
    if not LATER:
        given |= {"n_splits": n_splits, "method": method, "n_components": d, "scale": scale}
        estimator = GammaSearch(criterion, background_label=None, **given)
    else:
        model = (pcpca if method == "pcpca" else cpca)(d, gamma="auto", scale=scale, solver="auto")
        name = "likelihood" if criterion == "heldout" else criterion
        estimator = GammaSearch(model, criterion=name, n_folds=n_splits, **given)
    return estimator.fit(Study(X, background=Y, labels=labels))


def component_test(X, Y, *, max_components, level, n_permutations, scale, seed):
    """p-values, excess and directions of the permutation test, whatever it is called."""
    import contrapca

    old = getattr(contrapca, "choose_components", None)
    call = old or contrapca.contrast_test
    found = call(
        X, background=Y, max_components=max_components, level=level, n_permutations=n_permutations,
        scale=scaling(scale), random_state=seed, **accepted(call, progress=False, method="permutation"),
    )  # fmt: skip
    return found, found.excess if old else found.statistics[0]


def without_background(X, Y, n_directions):
    from contrapca import remove_background

    return remove_background(X, background=Y, n_directions=n_directions)


def posterior(model, X, Y, *, draws, tune, chains, learning_rate, seed, sigma2_min=None):
    given = {"draws": draws, "tune": tune, "chains": chains, "random_state": seed, "power": learning_rate}
    given |= {} if sigma2_min is None else {"sigma2_min": sigma2_min}
    import contrapca

    return contrapca.posterior(model, X, background=Y, progress=False, **given)


def bootstrap(model, X, Y, n, seed):
    import contrapca

    return contrapca.bootstrap(model, X, background=Y, n_resamples=n, random_state=seed, progress=False)


def losses(X, Y, components, gamma, max_components):
    from contrapca.theory import loss_by_components, reconstruction_loss

    return (
        reconstruction_loss(X, components, background=Y, gamma=gamma),
        loss_by_components(X, background=Y, gamma=gamma, max_components=max_components),
    )


def theory(W, sigma2, foreground, background, d, beta, gamma):
    """(risk, divergence, sigma2 of the minimiser, its W W')."""
    from contrapca.theory import divergence, risk, risk_minimizer

    best, noise = risk_minimizer(foreground, background, d, beta=beta, gamma=gamma)
    given = {"beta": beta, "gamma": gamma}
    return (
        float(risk(W, sigma2, foreground, background, **given)),
        float(divergence(W, sigma2, foreground, background, **given)),
        noise,
        best @ best.T,
    )


def saved_and_loaded(model):
    from contrapca import load

    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.npz")
        return load(Path(folder) / "model.npz")


def mouse_protein():
    from contrapca.datasets import load_mouse_protein

    data = load_mouse_protein()
    return data.foreground, data.background, data.labels


def zheng(log):
    from contrapca.datasets import load_zheng_bmmc

    data = load_zheng_bmmc(log=log)
    return data.foreground, data.background, data.labels


def digits(n):
    from contrapca.datasets import load_corrupted_mnist

    data = load_corrupted_mnist(n=n, grass="grass700", random_state=0)
    return data.foreground, data.background, data.labels


# ====================================================================== kinds of numbers

# What a difference may be, relative to the largest number of its vector (its "scale"):
TOLERANCES = {
    "exact": 0.0,  # counts, ranks, choices
    "closed": 1e-10,  # closed forms, of direct solvers; limits (Newton's last step is below rounding)
    "residual": 1e-7,  # first order in vectors of Lanczos or of a path, whose residuals are 1e-9 at most: 1e-9 / gap
    "single": 1e-5,  # float32 in, float32 out
    "iterative": 1e-5,  # gradient fits (missing values, CLVM) with tol = 1e-8
    "seeded": 1e-8,  # resampling and splitting with a seed: the same random numbers, then closed forms
    "sampled": 5.0,  # means of draws: standard errors of the difference
}
# Significant digits that are stored: some more than the tolerance asks for.
DIGITS = {"exact": 15, "closed": 15, "residual": 9, "single": 7, "iterative": 8, "seeded": 12, "sampled": 8}
# Vectors are compared where eigenvalues are this far apart, relative to the largest: else they are not determined.
GAP = 1e-3


@dataclass
class Numbers:
    """What a case yields: name to (kind, vector); draws have (kind, means, standard errors)."""

    found: dict[str, tuple[Any, ...]] = field(default_factory=dict)

    def add(self, kind: str, name: str, numbers: Any) -> None:
        vector = [_plain(number, DIGITS[kind]) for number in np.ravel(np.asarray(numbers)).tolist()]
        assert name not in self.found, name
        self.found[name] = (kind, vector)

    def add_draws(self, name: str, draws: Any) -> None:
        """Draws (chains, draws, ...): their mean, and its standard error from means of batches."""
        draws = np.asarray(draws, dtype=np.float64)
        chains, n = draws.shape[:2]
        batches = draws[:, : n // 10 * 10].reshape(chains * 10, n // 10, -1).mean(axis=1)
        error = batches.std(axis=0, ddof=1) / math.sqrt(len(batches))
        mean = draws.reshape(chains * n, -1).mean(axis=0)
        self.found[name] = (
            "sampled",
            [_plain(x, DIGITS["sampled"]) for x in mean.tolist()],
            [_plain(x, 3) for x in error.tolist()],
        )


def _plain(number: Any, digits: int) -> Any:
    if isinstance(number, float):
        return float(f"{number:.{digits}g}") if math.isfinite(number) else str(number)
    return number


# ====================================================================== summaries of models


def probes(D: int, count: int = 3) -> np.ndarray:
    return np.random.default_rng(1000 + D).standard_normal((D, count)) / math.sqrt(D)


def weights(n: int) -> np.ndarray:
    return np.random.default_rng(2000 + n).uniform(-0.5, 1.5, n) / n


def quadratic(C: np.ndarray, P: np.ndarray) -> np.ndarray:
    """p'C p of every probe."""
    return np.sum(P * (C @ P), axis=0)


def dense(table: Any) -> np.ndarray:
    return np.asarray(table.toarray() if sp.issparse(table) else table, dtype=np.float64)


def level_of(X: Any, Y: Any, gamma: float, d: int, scale: Any) -> int:
    """What is determined: 2 every component, 1 their subspace, 0 eigenvalues only. By plain NumPy."""
    groups = [dense(X)] if Y is None else [dense(X), dense(Y)]
    groups = [group - group.mean(axis=0) for group in groups]
    own = [group.std(axis=0) for group in groups]
    rows = [len(group) for group in groups]
    pooled = np.sqrt(sum(n * s**2 for n, s in zip(rows, own, strict=True)) / sum(rows))
    divisors = own if scale == "group" else [pooled if scale == "pooled" else np.ones_like(pooled)] * len(groups)
    groups = [group / np.where(s > 1e-12, s, 1.0) for group, s in zip(groups, divisors, strict=True)]
    C = groups[0].T @ groups[0] / rows[0]
    if Y is not None:
        C -= gamma * groups[1].T @ groups[1] / rows[1]
    values = np.linalg.eigvalsh(C)[::-1]
    gaps = -np.diff(values[: d + 1]) / np.abs(values).max()
    return 2 if gaps.min() > GAP else int(gaps[-1] > GAP)


def settled_signs(components: np.ndarray) -> np.ndarray:
    """1 where the largest entry leaves no doubt about the sign; else the sign along the first probe."""
    magnitude = np.sort(np.abs(components), axis=1)
    clear = magnitude[:, -1] - magnitude[:, -2] > 1e-6 * magnitude[:, -1]
    along = components @ probes(components.shape[1])[:, 0]
    return np.where(clear, 1.0, np.where(along < 0, -1.0, 1.0))


def summarise(
    numbers: Numbers,
    prefix: str,
    model: Any,
    X: Any,
    Y: Any,
    *,
    values: str = "closed",
    vectors: str = "closed",
    rows: str | None = None,
    level: int = 2,
    brief: bool = False,
    holes: bool = True,
) -> None:
    """The numbers of a fitted PPCA, PCPCA or CPCA.

    `values` is the kind of what is of second order in the vectors, `vectors` of what is of first order, `rows` of what
    is computed of rows (default as vectors). `brief` leaves out most of what follows from other numbers.
    """
    rows = rows or vectors

    def add(kind: str, name: str, what: Any) -> None:
        numbers.add(kind, f"{prefix}.{name}", what)

    V = np.asarray(model.components_, dtype=np.float64)
    D = V.shape[1]
    P, signs = probes(D), settled_signs(V)
    likelihood = hasattr(model, "noise_variance_")
    contrast = getattr(model, "background_mean_", None) is not None
    add(values, "eigenvalues", model.eigenvalues_)
    add(values, "objective", value(model, "objective"))
    if not brief:
        add(values, "n_effective", model.n_effective_)
    if hasattr(model, "gamma_"):
        if not brief or "auto" in (model.gamma, getattr(model, "asked_for", None)):
            add(values, "gamma", [model.gamma_, model.gamma_raw_])
        add(values, "reconstruction_loss", value(model, "reconstruction_loss"))
    if likelihood:
        add(values, "noise_variance", model.noise_variance_)
    means = [model.mean_, model.feature_variance_]
    if contrast:
        means += [model.background_mean_, model.background_feature_variance_]
    float32 = V.dtype != np.asarray(model.components_).dtype
    first_order = "single" if float32 else vectors
    observed = "iterative" if values == "iterative" else "single" if float32 else "closed"
    for name, what in zip(("mean", "variance", "background_mean", "background_variances"), means, strict=False):
        if not brief:
            spread = math.sqrt(float(means[1].mean(dtype=np.float64)))  # what means are small or large against
            add(observed, f"{name}@probes", [*(what.astype(np.float64) @ P), spread])
    scales = [model.scale_] + ([model.background_scale_] if contrast else [])
    if not brief:
        add(observed, "scale@probes", np.asarray(scales, dtype=np.float64) @ P)
    if level == 2:
        if contrast or not brief:  # else they are the eigenvalues
            add(first_order, "explained_variance", model.explained_variance_)
        if contrast:
            add(first_order, "background_variance", model.background_variance_)
        if not brief:
            add(first_order, "explained_variance_ratio", model.explained_variance_ratio_)
            if contrast:
                add(first_order, "background_variance_ratio", model.background_variance_ratio_)
        add(first_order, "components@probes", signs[:, None] * (V @ P[:, :1] if brief else V @ P))
        if likelihood:
            W = np.asarray(model.loadings_, dtype=np.float64)
            add(first_order, "loadings@probe", signs * (P[:, 0] @ W))
        strength = np.sort(np.sum((model.loadings_ if likelihood else V.T) ** 2, axis=1))
        if not brief and np.min(np.diff(strength)) > 1e-5 * strength[-1]:
            table = model.feature_table()  # in version 0.1 in the order of the columns
            ranks = dict(zip(table["feature"], table["rank"], strict=True))
            add("exact", "ranks", [int(ranks[name]) for name in names_of(model, X)[:6]])
        Z = np.asarray(transform(model, X), dtype=np.float64) * signs
        w = weights(len(Z))
        add(rows, "latents", [w @ Z, Z.std(axis=0)])
        if contrast and not (brief and likelihood):
            Z = np.asarray(transform(model, Y, center="background"), dtype=np.float64) * signs
            add(rows, "background_latents", [weights(len(Z)) @ Z, Z.std(axis=0)])
    if level == 1:
        add(first_order, "projector", np.sum((V @ P) ** 2, axis=0))
    if level >= 1 and (level == 1 or not brief):
        back = model.inverse_transform(transform(model, X))
        add(rows, "inverse_transform@probe", weights(len(back)) @ np.asarray(back, dtype=np.float64) @ P)
    if not likelihood:
        return
    covariance = model.get_covariance()
    add(values if values == "iterative" else observed, "covariance.trace", np.trace(covariance))
    if level == 0:
        return
    if not brief:
        add(first_order, "covariance@probes", quadratic(covariance, P))
    scores = np.asarray(model.score_samples(X), dtype=np.float64)
    add(rows, "score_samples", [weights(len(scores)) @ scores, scores.mean(), scores.std()])
    if contrast and hasattr(model, "contrast_score"):
        try:
            ratio = np.asarray(model.contrast_score(X), dtype=np.float64)
        except (ValueError, AttributeError):  # the background's rank is too low
            add("exact", "contrast_score.refused", 1)
        else:
            add(rows, "contrast_score", [weights(len(ratio)) @ ratio, ratio.mean(), ratio.std()])
            add(values, "background_model.sigma2", model.background_model_.sigma2)
    if brief:
        return
    add(first_order, "precision.trace", np.trace(model.get_precision()))
    head = X[:4]
    add(
        rows, "latent_covariance", np.asarray(model.latent_posterior(head)[1], dtype=np.float64).trace(axis1=1, axis2=2)
    )
    if level == 2:
        drawn = model.sample(5, random_state=7)
        kind = first_order if first_order in ("single", "iterative", "residual") else "seeded"
        if np.all(signs == 1):
            add(kind, "sample@probe", drawn @ P[:, 0])
    if holes:
        table = dense(X)[:20].astype(X.dtype)
        missing = np.random.default_rng(D).random(table.shape) < 0.15
        missing[:, 0] = False
        imputed(numbers, prefix, model, np.where(missing, np.nan, table), rows)


def imputed(numbers: Numbers, prefix: str, model: Any, table: np.ndarray, kind: str) -> None:
    filled, std = model.impute(table, return_std=True)
    w = weights(filled.size).reshape(filled.shape) * filled.size
    numbers.add(kind, f"{prefix}.imputed", [np.sum(w * filled), np.std(filled[np.isnan(table)]), np.sum(filled)])
    numbers.add(kind, f"{prefix}.imputed.std", [np.sum(w * std), np.sum(std), np.max(std)])
    scores = model.score_samples(table)
    numbers.add(kind, f"{prefix}.scores_with_holes", [np.mean(scores), np.std(scores)])
    Z = np.asarray(transform(model, table), dtype=np.float64)
    numbers.add(kind, f"{prefix}.latents_with_holes", np.sqrt(np.mean(Z**2, axis=0)))


def summarise_limits(numbers: Numbers, X: Any, Y: Any, d: int, scale: Any, solver: str) -> dict[str, float]:
    found, is_bound = limits(X, Y, d, scale, solver)
    assert not is_bound
    for name in ("pcpca", "cpca"):
        numbers.add("closed", f"limits.d{d}.{name}", found[name])
    # The sufficient bounds together: the smallest eigenvalue in one of them is exact relative to the largest only.
    numbers.add("closed", f"limits.d{d}.bounds", list(found.values())[2:])
    return found


def summarise_path(
    numbers: Numbers,
    prefix: str,
    found: Any,
    X: Any,
    Y: Any,
    *,
    values="closed",
    vectors="residual",
    level=2,
    brief=False,
) -> None:
    def add(kind: str, name: str, what: Any) -> None:
        numbers.add(kind, f"{prefix}.{name}", what)

    add(values, "limit", found.gamma_max if LATER else found.limit)
    add(values, "eigenvalues", found.eigenvalues)
    add(values, "objective", found.objective)
    noise = found.noise_variance if LATER else found.sigma2
    if np.isfinite(noise).all():
        add(values, "sigma2", noise)
    if not brief:
        add("exact", "limit_is_bound", int(found.gamma_max_is_bound if LATER else found.limit_is_bound))
    if level < 1:
        return
    previous, first = found.angles()
    add(vectors, "cos_angles", [np.cos(previous), np.cos(first)])
    if not brief:
        add(vectors, "affinity", found.affinity()[0])
        add(vectors, "shares", [share.sum(axis=1) for share in found.shares()])
    if level == 2:
        add(vectors, "variances", [found.explained_variance, found.background_variance])
        for center, table in (("foreground", X), ("background", Y))[: 1 if brief else 2]:
            Z = np.asarray(found.latents(table, center=center), dtype=np.float64)
            add(vectors, f"{center}_latents", np.linalg.norm(Z, axis=1) / math.sqrt(Z.shape[1]))
        middle = len(found.gammas) // 2
        middle = found.gammas[middle] if LATER else middle
        V, P = np.asarray(found.components(middle)), probes(X.shape[1])
        signs = settled_signs(V)
        add(vectors, "components@probe", signs * (V @ P[:, 0]))
        add(vectors, "loadings@probe", signs * (P[:, 0] @ found.loadings(middle)))


# ====================================================================== cases


@dataclass(frozen=True)
class Case:
    name: str
    compute: Callable[[Numbers], None]
    needs: tuple[str, ...] = ()  # "data", or libraries beyond the core


CASES: dict[str, Case] = {}


def case(name: str, *needs: str) -> Callable[[Callable[[Numbers], None]], Callable[[Numbers], None]]:
    def register(compute: Callable[[Numbers], None]) -> Callable[[Numbers], None]:
        CASES[name] = Case(name, compute, needs)
        return compute

    return register


def simulated(kind: str, n: int, m: int, D: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A foreground with planted directions, both groups with nuisance directions, spoilt according to `kind`."""
    rng = np.random.default_rng(seed)
    signals, nuisances = min(6, max(1, D // 2)), min(3, max(1, D // 4))
    Q = np.linalg.qr(rng.standard_normal((D, D)))[0]
    X, Y = rng.standard_normal((n, D)), rng.standard_normal((m, D))
    strength = 4.0 * 0.8 ** np.arange(signals)
    X += rng.standard_normal((n, signals)) * strength @ Q[:, :signals].T
    both = Q[:, -nuisances:] * 5.0 * 0.7 ** np.arange(nuisances)
    X += rng.standard_normal((n, nuisances)) @ both.T + rng.standard_normal(D)
    Y += rng.standard_normal((m, nuisances)) @ both.T + rng.standard_normal(D)
    if kind == "units":
        s = np.logspace(-1.5, 1.5, D)[rng.permutation(D)]
        X, Y = X * s, Y * s
    elif kind == "low rank":
        basis = rng.standard_normal((max(8, D // 2), D))
        X, Y = X[:, : len(basis)] @ basis, Y[:, : len(basis)] @ basis
    elif kind == "poor background":  # of rank 3, and no noise
        Y = rng.standard_normal((m, 3)) @ Q[:, -3:].T * 4
    elif kind == "tied":  # covariances that are multiples of the identity on parts of the features
        E = np.vstack([np.eye(D), -np.eye(D)])
        X = np.vstack([E * np.where(np.arange(D) < D // 2, 3.0, 1.0)] * 2)
        Y = E * np.where(np.arange(D) < D // 4, 2.0, 1.0)
    elif kind == "repeated column":
        X[:, -1], Y[:, -1] = X[:, 0], Y[:, 0]
    elif kind == "constant column":
        X[:, 1], Y[:, 1] = 2.5, 2.5
    elif kind == "far":
        X, Y = X + 300.0, Y + 300.0
    elif kind == "strong background":
        Y = 3.0 * Y
    elif kind == "heavy tails":
        X, Y = X * rng.chisquare(4, (n, 1)) ** -0.5, Y * rng.chisquare(4, (m, 1)) ** -0.5
    elif kind == "counts":
        X, Y = (rng.poisson(np.exp(table / 4 - 1.5)).astype(float) for table in (X, Y))
    else:
        assert kind == "plain", kind
    return X, Y


# kind, n, m, D, d, scale, solver, dtype, stored as, gamma (of PCPCA and PPCA's sibling), top of the path, gamma of CPCA
SIMULATED: list[tuple[Any, ...]] = [
    ("plain", 200, 150, 8, 2, False, "eigh", "float64", "dense", 0.5, 0.9, 2.8),
    ("units", 20, 18, 60, 1, False, "dual", "float64", "dense", "auto", 0.9, 2.8),
    ("low rank", 400, 100, 12, 5, "group", "eigh", "float64", "dense", 0.341, 0.409, 2.31),
    ("plain", 15, 60, 30, 2, "group", "lanczos", "float64", "dense", 0.319, 0.573, 2.8),
    ("tied", 40, 20, 10, 1, False, "eigh", "float64", "dense", "auto", 0.9, "auto"),
    ("repeated column", 300, 250, 20, 2, "pooled", "eigh", "float64", "dense", 0.75, 0.9, 2.8),
    ("far", 30, 25, 3, 1, False, "eigh", "float64", "dense", 0.5, 0.9, 2.8),
    ("strong background", 30, 12, 90, 5, False, "dual", "float64", "dense", "auto", 0.0827, 2.8),
    ("heavy tails", 200, 150, 8, 2, "group", "eigh", "float64", "dense", 0.518, 0.621, 2.5),
    ("poor background", 60, 14, 25, 1, "group", "eigh", "float64", "dense", 0.438, 0.789, "auto"),
    ("constant column", 400, 100, 12, 2, "pooled", "lanczos", "float32", "dense", "auto", 0.9, 2.8),
    ("counts", 25, 40, 100, 1, "pooled", "eigh", "float64", "csr", 0.702, 0.843, 2.8),
    ("plain", 120, 300, 10, 4, False, "eigh", "float64", "dense", 0.435, 0.784, 2.8),
    ("units", 15, 60, 30, 2, False, "eigh", "float64", "dense", "auto", 0.518, 2.8),
    ("low rank", 300, 250, 20, 1, "group", "eigh", "float64", "dense", 0.632, 0.759, "auto"),
    ("plain", 200, 150, 8, 2, "group", "eigh", "float64", "dense", 0.343, 0.618, 2.29),
    ("tied", 48, 24, 12, 1, False, "eigh", "float64", "dense", "auto", 0.9, 2.8),
    ("repeated column", 20, 18, 60, 5, "pooled", "lanczos", "float64", "dense", 0.424, 0.509, 2.8),
    ("far", 120, 300, 10, 2, False, "eigh", "float64", "dense", 0.5, 0.9, 2.8),
    ("strong background", 60, 14, 25, 1, False, "eigh", "float64", "dense", "auto", 0.237, "auto"),
    ("heavy tails", 300, 250, 20, 2, "group", "eigh", "float64", "dense", 0.534, 0.641, 2.8),
    ("poor background", 30, 12, 90, 1, "group", "dual", "float64", "dense", 0.438, 0.788, 2.8),
    ("constant column", 200, 150, 8, 3, "pooled", "eigh", "float32", "dense", "auto", 0.9, 2.8),
    ("counts", 15, 60, 30, 2, "pooled", "lanczos", "float64", "csr", 0.513, 0.615, 2.8),
    ("plain", 400, 100, 12, 1, False, "lanczos", "float64", "dense", 0.5, 0.9, "auto"),
    ("units", 120, 300, 10, 2, False, "eigh", "float64", "dense", "auto", 0.782, 2.8),
    ("low rank", 300, 250, 20, 1, "group", "eigh", "float64", "dense", 0.577, 0.693, 2.8),
    ("plain", 25, 40, 100, 5, "group", "dual", "float64", "dense", 0.275, 0.494, 2.8),
    ("tied", 32, 16, 8, 2, False, "eigh", "float64", "dense", "auto", 0.9, 2.8),
    ("repeated column", 60, 14, 25, 1, "pooled", "eigh", "float64", "dense", 0.75, 0.9, "auto"),
    ("far", 400, 100, 12, 2, False, "eigh", "float64", "dense", 0.5, 0.9, 2.8),
    ("strong background", 20, 18, 60, 1, False, "lanczos", "float64", "dense", "auto", 0.135, 2.8),
    ("heavy tails", 120, 300, 10, 4, "group", "eigh", "float64", "dense", 0.356, 0.427, 1.32),
    ("poor background", 15, 60, 30, 2, "group", "eigh", "float64", "dense", 0.322, 0.58, 2.8),
    ("constant column", 300, 250, 20, 1, "pooled", "eigh", "float32", "dense", "auto", 0.9, "auto"),
    ("counts", 200, 150, 8, 2, "pooled", "eigh", "float64", "csr", 0.75, 0.9, 2.65),
    ("plain", 40, 30, 2, 1, False, "eigh", "float64", "dense", 0.218, 0.393, 2.8),
    ("units", 30, 12, 90, 5, False, "dual", "float64", "dense", "auto", 0.486, 2.8),
    ("low rank", 400, 100, 12, 2, "group", "lanczos", "float64", "dense", 0.584, 0.701, 2.8),
    ("plain", 60, 14, 25, 1, "group", "eigh", "float64", "dense", 0.419, 0.755, "auto"),
    ("tied", 40, 20, 10, 2, False, "eigh", "float64", "dense", "auto", 0.9, 2.8),
    ("repeated column", 25, 40, 100, 1, "pooled", "dual", "float64", "dense", 0.75, 0.9, 2.8),
    ("far", 300, 250, 20, 5, False, "eigh", "float64", "dense", 0.5, 0.9, 2.8),
    ("strong background", 15, 60, 30, 2, False, "eigh", "float64", "dense", "auto", 0.122, 1.95),
    ("heavy tails", 200, 150, 8, 1, "group", "eigh", "float64", "dense", 0.567, 0.681, "auto"),
    ("poor background", 400, 100, 12, 2, "group", "lanczos", "float64", "dense", 0.34, 0.613, 2.8),
    ("constant column", 120, 300, 10, 1, "pooled", "eigh", "float32", "dense", "auto", 0.9, 2.8),
    ("counts", 20, 18, 60, 5, "pooled", "lanczos", "float64", "csr", 0.389, 0.467, 2.8),
    ("plain", 300, 250, 20, 2, False, "eigh", "float64", "dense", 0.5, 0.9, 2.8),
    ("units", 60, 14, 25, 1, False, "eigh", "float64", "dense", "auto", 0.9, "auto"),
]


def simulated_case(index: int) -> Callable[[Numbers], None]:
    kind, n, m, D, d, scale, solver, dtype, storage, gamma, top, strong = SIMULATED[index]

    def compute(numbers: Numbers) -> None:
        X, Y = (table.astype(dtype) for table in simulated(kind, n, m, D, 100 + index))
        if storage == "csr":
            X, Y = sp.csr_array(X), sp.csr_array(Y)
        summarise_limits(numbers, X, Y, d, scale, solver)
        vectors = "single" if dtype == "float32" else "residual" if solver == "lanczos" else "closed"
        kinds = {"vectors": vectors, "brief": index % 3 != 0, "holes": storage == "dense"}

        model = fit(pcpca(d, gamma=gamma, scale=scale, solver=solver), X, Y)
        if gamma == "auto":
            numbers.add("closed", "pcpca.gamma_max", fitted_limit(model))
        summarise(numbers, "pcpca", model, X, Y, level=level_of(X, Y, model.gamma_, d, scale), **kinds)
        model = fit(cpca(d, gamma=strong, scale=scale, solver=solver), X, Y)
        summarise(numbers, "cpca", model, X, Y, level=level_of(X, Y, model.gamma_, d, scale), **kinds | {"brief": True})
        if index % 2:
            model = fit(ppca(d, scale=scale, solver=solver), X)
            summarise(
                numbers, "ppca", model, X, None, level=level_of(X, None, 0.0, d, scale), **kinds | {"brief": True}
            )
        gammas = [0.0, top / 2, top]
        level = min(level_of(X, Y, g, d, scale) for g in gammas)
        found = path(X, Y, d, gammas, "pcpca" if index % 4 else "cpca", scale, solver)
        single = dtype == "float32"
        kinds = {"vectors": "single" if single else "residual", "brief": index % 3 != 0}
        summarise_path(numbers, "path", found, X, Y, level=level, **kinds)

    return compute


for _index, _row in enumerate(SIMULATED):
    case(f"simulated {_index:02d} {_row[0]} {_row[1]}+{_row[2]}x{_row[3]} d={_row[4]}")(simulated_case(_index))


def ordinary() -> tuple[np.ndarray, np.ndarray]:
    return simulated("plain", 150, 120, 12, 1)


def holed(X: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Some values missing; the first two rows stay complete."""
    missing = np.random.default_rng(seed).random(X.shape) < share
    missing[:2] = False
    return np.where(missing, np.nan, X)


def with_holes(numbers: Numbers, X: Any, Y: Any, d: int, gamma: Any, scale: Any, mean: str) -> None:
    kinds: dict[str, Any] = {"values": "iterative", "vectors": "iterative", "holes": False}
    model = fit(pcpca(d, gamma=gamma, scale=scale, solver="auto", mean=mean), X, Y)
    summarise(numbers, "pcpca", model, X, Y, **kinds)
    imputed(numbers, "pcpca", model, X[:30], "iterative")
    if gamma == "auto":
        numbers.add("iterative", "pcpca.gamma_max", fitted_limit(model))
    model = fit(ppca(d, scale=scale, solver="auto", mean=mean), X)
    summarise(numbers, "ppca", model, X, None, **kinds | {"brief": True})
    imputed(numbers, "ppca", model, X[:30], "iterative")


for _scale in (False, "group", "pooled"):
    for _mean in ("observed", "gls"):

        @case(f"missing scale={_scale} mean={_mean}")
        def _(numbers: Numbers, scale: Any = _scale, mean: str = _mean) -> None:
            X, Y = simulated("units" if scale else "plain", 120, 90, 8, 3)
            with_holes(numbers, holed(X, 0.1, 5), holed(Y, 0.1, 6), 2, 0.35, scale, mean)


@case("missing auto and limits")
def _(numbers: Numbers) -> None:
    X, Y = simulated("plain", 120, 90, 8, 3)
    X, Y = holed(X, 0.1, 5), holed(Y, 0.1, 6)
    with_holes(numbers, X, Y, 1, "auto", False, "observed")
    for d in (1, 2):
        for scale in (False, "group"):
            found, is_bound = limits(X, Y, d, scale, "auto")
            numbers.add("iterative", f"limits.d{d}.{scale}.pcpca", found["pcpca"])
            numbers.add("exact", f"limits.d{d}.{scale}.is_bound", int(is_bound))
    found = path(X, Y, 2, [0.0, 0.2, 0.4], "pcpca", False, "auto")
    summarise_path(numbers, "path", found, X, Y, values="iterative", vectors="iterative")


@case("missing only in one group")
def _(numbers: Numbers) -> None:
    X, Y = simulated("plain", 90, 110, 6, 4)
    with_holes(numbers, X, holed(Y, 0.2, 7), 2, 0.3, "pooled", "observed")


@case("gradient solver of complete rows")
def _(numbers: Numbers) -> None:
    X, Y = simulated("plain", 120, 90, 8, 3)
    model = fit(pcpca(2, gamma=0.35, scale=False, solver="lbfgs", n_init=3, seed=11), X, Y)
    summarise(numbers, "lbfgs", model, X, Y, values="iterative", vectors="iterative")
    numbers.add("iterative", "best start", np.max(model.init_objectives_))


@case("stacked rows with a label")
def _(numbers: Numbers) -> None:
    X, Y = ordinary()
    order = np.random.default_rng(8).permutation(len(X) + len(Y))
    rows = np.vstack([X, Y])[order]
    y = np.array(["case"] * len(X) + ["control"] * len(Y))[order]
    for name, model in {
        "pcpca": pcpca(2, gamma=0.5, scale="group", solver="eigh", background_label="control"),
        "cpca": cpca(1, gamma=1.3, scale=False, solver="eigh", background_label="control"),
    }.items():
        fit(model, rows, y=y)
        summarise(numbers, name, model, X, Y)
        Z = model.fit_transform(rows, y)
        numbers.add("closed", f"{name}.fit_transform", [weights(len(Z)) @ Z, Z.std(axis=0)])
        if name == "pcpca":
            numbers.add("closed", "pcpca.score", score_of_stacked(model, rows, y))
    model = fit(clvm(2, 1, scale="group", background_label="control"), rows, y=y)
    numbers.add("iterative", "clvm.objective", value(model, "objective"))


@case("without a background")
def _(numbers: Numbers) -> None:
    X, _ = ordinary()
    summarise(numbers, "pcpca", fit(pcpca(2, gamma=0.0, scale="group", solver="eigh"), X), X, None)
    summarise(numbers, "cpca", fit(cpca(2, gamma=0.0, scale=False, solver="eigh"), X), X, None)


@case("solvers agree")
def _(numbers: Numbers) -> None:
    X, Y = simulated("plain", 40, 35, 120, 9)
    for solver in ("eigh", "dual", "lanczos"):
        vectors = "residual" if solver == "lanczos" else "closed"
        model = fit(pcpca(2, gamma=0.2, scale="pooled", solver=solver), X, Y)
        summarise(numbers, solver, model, X, Y, vectors=vectors, brief=True)
        numbers.add("closed", f"{solver}.limits", list(limits(X, Y, 2, "pooled", solver)[0].values()))


@case("path with the default grid")
def _(numbers: Numbers) -> None:
    X, Y = ordinary()
    for method in ("pcpca", "cpca"):
        found = path(X, Y, 2, 40, method, "pooled", "eigh")
        every = slice(0, 40, 6)
        numbers.add("closed", f"{method}.gammas", found.gammas[every])
        numbers.add("closed", f"{method}.eigenvalues", found.eigenvalues[every])
        numbers.add("closed", f"{method}.objective", found.objective[every])
        numbers.add("residual", f"{method}.cos_angles", np.cos(found.angles()[1][every]))
        numbers.add("closed", f"{method}.limit", found.gamma_max if LATER else found.limit)
        numbers.add("residual", f"{method}.turns", found.turns(start=5)[every, 0, 0])
        model = model_on_path(found, float(found.gammas[20]), X, Y)
        summarise(numbers, f"{method}.model", model, X, Y, brief=True)
    numbers.add("residual", "representatives", path(X, Y, 2, 40, "pcpca", "pooled", "eigh").representatives(4))


@case("losses and theory")
def _(numbers: Numbers) -> None:
    X, Y = ordinary()
    V = np.linalg.qr(probes(12, 2))[0].T
    loss, curve = losses(X, Y, V, 0.7, 5)
    numbers.add("closed", "loss", loss)
    numbers.add("closed", "curve", curve)
    F, B = np.cov(X.T), np.cov(Y.T)
    risk, divergence, noise, WW = theory(probes(12, 2), 0.8, F, B, 2, 0.6, 0.5)
    numbers.add("closed", "risk", [risk, divergence, noise])
    numbers.add("closed", "minimiser", quadratic(WW, probes(12)))


@case("saved and loaded")
def _(numbers: Numbers) -> None:
    X, Y = ordinary()
    for name, model in {
        "pcpca": pcpca(2, gamma=0.4, scale="group", solver="eigh"),
        "cpca": cpca(2, gamma=0.4, scale="group", solver="eigh"),
    }.items():
        summarise(numbers, name, saved_and_loaded(fit(model, X, Y)), X, Y, brief=True)


for _scale in (False, "group", "pooled"):

    @case(f"clvm scale={_scale}")
    def _(numbers: Numbers, scale: Any = _scale) -> None:
        for k, d, D in ((2, 2, 10), (3, 1, 8), (2, 0, 6)):
            X, Y = simulated("plain" if scale is False else "units", 200, 150, D, 20 + D)
            model = fit(clvm(k, d, scale=scale), X, Y)
            summarise_clvm(numbers, f"k{k}d{d}", model, X, Y)


def summarise_clvm(numbers: Numbers, prefix: str, model: Any, X: Any, Y: Any) -> None:
    def add(name: str, what: Any) -> None:
        numbers.add("iterative", f"{prefix}.{name}", what)

    P = probes(X.shape[1])
    add("objective", value(model, "objective"))
    add("noise_variance", model.noise_variance_)
    for name, L in (("own", model.loadings_), ("shared", model.shared_loadings_)):
        if L.size:
            add(f"{name}.norms", np.linalg.norm(L, axis=0))
            add(f"{name}@probes", np.sum((P.T @ L) ** 2, axis=1))  # L L' is what is identified
    add("covariance", [np.trace(model.get_covariance()), *quadratic(model.get_covariance(), P)])
    scores = np.asarray(model.score_samples(X), dtype=np.float64)
    add("score_samples", [scores.mean(), scores.std(), weights(len(scores)) @ scores])
    if model.loadings_.size:
        back = np.asarray(model.inverse_transform(transform(model, X)), dtype=np.float64)
        add("inverse_transform@probes", weights(len(X)) @ back @ P)
    for center, table in (("foreground", X), ("background", Y)):
        Z = np.asarray(model.transform_shared(table, center=center), dtype=np.float64)
        add(f"shared.{center}", np.sum(Z**2) / len(Z))
    numbers.add("closed", f"{prefix}.means", [model.mean_ @ P, model.background_mean_ @ P])
    numbers.add("closed", f"{prefix}.scales", [model.scale_ @ P, model.background_scale_ @ P])


def clusters() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three clusters of the foreground, hidden by nuisance."""
    X, Y = simulated("plain", 120, 100, 10, 30)
    labels = np.arange(120) % 3
    X = X + 4.0 * np.linalg.qr(np.random.default_rng(31).standard_normal((10, 3)))[0].T[labels]
    return X, Y, labels


# Stability, clusters that were looked for, and a part of the limit are no longer offered: they mislead.
for _method, _criterion in (("pcpca", "silhouette"), ("pcpca", "heldout"), ("cpca", "silhouette")):

    @case(f"search {_method} {_criterion}")
    def _(numbers: Numbers, method: str = _method, what: str = _criterion) -> None:
        X, Y, labels = clusters()
        gammas = [0.0, 0.1, 0.2, 0.3, 0.4]
        found = search(what, method, 2, gammas, "pooled", 3, 5, X, Y, labels if what == "silhouette" else None)
        kind = "residual" if what == "silhouette" else "seeded"
        numbers.add(kind, "scores", found.scores_)
        numbers.add("closed", "best", [found.best_gamma_])
        numbers.add(kind, "best score", found.best_score_)
        if method == "pcpca":
            summarise(numbers, "best", found.best_estimator_, X, Y, brief=True)


@case("number of components")
def _(numbers: Numbers) -> None:
    for index, (kind, n, m, D) in enumerate((("plain", 120, 100, 8), ("units", 80, 60, 5), ("plain", 25, 20, 60))):
        X, Y = simulated(kind, n, m, D, 40 + index)
        for scale in (False, "group", "pooled"):
            test, excess = component_test(X, Y, max_components=4, level=0.1, n_permutations=49, scale=scale, seed=6)
            name = f"{kind} {n}+{m}x{D} {scale}"
            numbers.add("exact", f"{name}.n_components", test.n_components)
            # Where nothing is left, version 0.1 compared rounding errors.
            numbers.add("seeded", f"{name}.p_values", test.p_values[excess[: test.p_values.size] > 1e-12])
            numbers.add("closed", f"{name}.excess", excess[: test.n_components + 1])
            numbers.add("closed", f"{name}.directions", np.sum((test.directions @ probes(D)) ** 2, axis=1))


@case("background removed")
def _(numbers: Numbers) -> None:
    X, Y = ordinary()
    for n_directions in (1, 2, 3):
        left = without_background(X, Y, n_directions)
        numbers.add("closed", f"{n_directions}", [left.sum(), left.var(), *(weights(len(X)) @ left @ probes(12))])


@case("bootstrap")
def _(numbers: Numbers) -> None:
    X, Y = simulated("plain", 90, 80, 6, 50)
    models = {
        "pcpca": (pcpca(2, gamma=0.35, scale="group", solver="eigh"), Y),
        "cpca": (cpca(1, gamma=1.1, scale=False, solver="eigh"), Y),
        "ppca": (ppca(2, scale="pooled", solver="eigh"), None),
    }
    for name, (model, background) in models.items():
        refits = bootstrap(fit(model, X, background), X, background, 25, 9)
        summarise_draws(numbers, name, refits, seeded=True)
    wide = simulated("plain", 20, 18, 50, 51)
    refits = bootstrap(fit(pcpca(1, gamma=0.1, scale=False, solver="dual"), *wide), *wide, 20, 9)
    summarise_draws(numbers, "wide", refits, seeded=True)


@case("bootstrap with missing values")
def _(numbers: Numbers) -> None:
    X, Y = simulated("plain", 90, 80, 6, 50)
    X, Y = holed(X, 0.05, 1), holed(Y, 0.05, 2)
    refits = bootstrap(fit(pcpca(1, gamma=0.3, scale=False, solver="auto"), X, Y), X, Y, 10, 9)
    flat = refits.loadings.reshape(-1, *refits.estimate.shape)
    numbers.add("iterative", "mean", flat.mean(axis=0))
    numbers.add("iterative", "sigma2", noise_of(refits).mean())
    numbers.add("exact", "failures", refits.failures)


def summarise_draws(numbers: Numbers, prefix: str, found: Any, *, seeded: bool) -> None:
    """Means over the draws: of identified quantities, and of aligned loadings along probes."""
    P = probes(found.estimate.shape[0])
    along = np.einsum("...Dd,Dk->...kd", found.loadings, P)
    B = np.asarray(found.bases())
    quantities = {
        "loadings@probes": along,
        "spread@probes": along**2,
        "projector": np.sum(np.einsum("...Dd,Dk->...kd", B, P) ** 2, axis=-1),
        "cos2": np.cos(found.angles()) ** 2,
    }
    if noise_of(found) is not None:
        quantities["log sigma2"] = np.log(noise_of(found))[..., None]
        quantities["covariance"] = np.sum(along**2, axis=-1) + noise_of(found)[..., None]
    for name, draws in quantities.items():
        if seeded:
            numbers.add("seeded", f"{prefix}.{name}", draws.mean(axis=(0, 1)))
        else:
            numbers.add_draws(f"{prefix}.{name}", draws)
    if seeded:
        numbers.add("seeded", f"{prefix}.sd", np.asarray(found.summary(0.9)["sd"]).mean())
        numbers.add("exact", f"{prefix}.failures", found.failures)


@case("posterior of directions")
def _(numbers: Numbers) -> None:
    for d, learning_rate in ((1, 0.5), (2, 0.2)):
        X, Y = simulated("plain", 100, 90, 6, 60 + d)
        model = fit(cpca(d, gamma=0.8, scale=False, solver="eigh"), X, Y)
        draws = posterior(model, X, Y, draws=1500, tune=200, chains=2, learning_rate=learning_rate, seed=3)
        summarise_draws(numbers, f"d{d}", draws, seeded=False)


@case("posterior of a density", "nutpie", "numba")
def _(numbers: Numbers) -> None:
    for name, d, gamma, scale, rate in (("plain", 1, 0.3, False, 1.0), ("scaled", 2, 0.35, "group", 0.8)):
        X, Y = simulated("plain", 200, 150, 6, 70 + d)
        model = fit(pcpca(d, gamma=gamma, scale=scale, solver="eigh"), X, Y)
        given = {"draws": 1500, "tune": 500, "chains": 2, "learning_rate": rate, "seed": 3, "sigma2_min": 0.0}
        summarise_draws(numbers, name, posterior(model, X, Y, **given), seeded=False)
    model = fit(ppca(2, scale=False, solver="eigh"), X)
    summarise_draws(numbers, "ppca", posterior(model, X, None, **given), seeded=False)


# ---------------------------------------------------------------------- real data


def standardised(table: np.ndarray) -> np.ndarray:
    table = np.nan_to_num(table)
    return (table - table.mean(axis=0)) / table.std(axis=0)


def all_of(
    numbers: Numbers, X: Any, Y: Any, d: int, gamma: Any, scale: Any, solver: str, vectors: str, brief: bool = False
) -> None:
    """Limits, PCPCA, CPCA, PPCA and a path."""
    tag = f"d{d}"
    top = 0.9 * summarise_limits(numbers, X, Y, d, scale, solver)["pcpca"]
    kinds: dict[str, Any] = {"vectors": vectors, "holes": not sp.issparse(X), "brief": brief}
    model = fit(pcpca(d, gamma=gamma, scale=scale, solver=solver), X, Y)
    summarise(numbers, f"pcpca.{tag}", model, X, Y, level=level_of(X, Y, model.gamma_, d, scale), **kinds)
    if gamma == "auto":
        numbers.add("closed", f"pcpca.{tag}.gamma_max", fitted_limit(model))
    model = fit(cpca(d, gamma=gamma, scale=scale, solver=solver), X, Y)
    level = level_of(X, Y, model.gamma_, d, scale)
    summarise(numbers, f"cpca.{tag}", model, X, Y, level=level, **kinds)
    model = fit(ppca(d, scale=scale, solver=solver), X)
    summarise(numbers, f"ppca.{tag}", model, X, None, level=level_of(X, None, 0.0, d, scale), **kinds | {"brief": True})
    gammas = [0.0, round(top / 2, 3), round(top, 3)]
    level = min(level_of(X, Y, g, d, scale) for g in gammas)
    kind = "single" if vectors == "single" else "residual"
    summarise_path(
        numbers, f"path.{tag}", path(X, Y, d, gammas, "pcpca", scale, solver), X, Y, level=level, vectors=kind
    )


@case("mouse filled", "data")
def _(numbers: Numbers) -> None:
    X, Y, labels = mouse_protein()
    X, Y = standardised(X), standardised(Y)
    for d in (1, 2, 5):
        all_of(numbers, X, Y, d, "auto" if d == 2 else 0.4, False, "eigh", "closed", brief=d != 2)
    found = search("silhouette", "pcpca", 2, [0.0, 0.3, 0.5, 0.6], False, 3, 5, X, Y, labels)
    numbers.add("residual", "search.scores", found.scores_)


@case("mouse filled clvm", "data")
def _(numbers: Numbers) -> None:
    X, Y, _ = mouse_protein()
    model = fit(clvm(3, 2, scale="pooled"), np.nan_to_num(X), np.nan_to_num(Y))
    summarise_clvm(numbers, "k3d2", model, np.nan_to_num(X), np.nan_to_num(Y))


@case("mouse missing", "data")
def _(numbers: Numbers) -> None:
    X, Y, _ = mouse_protein()
    found, is_bound = limits(X, Y, 2, "group", "auto")
    numbers.add("iterative", "limits.pcpca", found["pcpca"])
    numbers.add("exact", "limits.is_bound", int(is_bound))
    with_holes(numbers, X, Y, 2, 0.4, "group", "observed")


@case("mouse missing gls", "data")
def _(numbers: Numbers) -> None:
    X, Y, _ = mouse_protein()
    model = fit(pcpca(2, gamma=0.3, scale="pooled", solver="auto", mean="gls"), X, Y)
    summarise(numbers, "pcpca", model, X, Y, values="iterative", vectors="iterative", holes=False)
    imputed(numbers, "pcpca", model, X[:30], "iterative")


@case("cells stand-in", "data")
def _(numbers: Numbers) -> None:
    X, Y, _ = zheng(log=True)
    all_of(numbers, X, Y, 2, "auto", "group", "eigh", "residual")
    summarise_limits(numbers, X, Y, 10, "group", "eigh")


@case("cells stand-in sparse counts", "data")
def _(numbers: Numbers) -> None:
    X, Y, _ = zheng(log=False)
    X, Y = sp.csr_array(X[::12, ::4]), sp.csr_array(Y[::6, ::4])
    all_of(numbers, X, Y, 2, 0.3, "pooled", "lanczos", "residual")


@case("cells stand-in single precision, more genes than cells", "data")
def _(numbers: Numbers) -> None:
    X, Y, _ = zheng(log=True)
    all_of(numbers, X[::40].astype(np.float32), Y[::15].astype(np.float32), 2, 0.1, "pooled", "dual", "single")


@case("digits on grass", "data")
def _(numbers: Numbers) -> None:
    X, Y, _ = digits(1500)
    all_of(numbers, X, Y, 2, "auto", False, "eigh", "residual")


@case("digits on grass, more pixels than images", "data")
def _(numbers: Numbers) -> None:
    X, Y, _ = digits(150)
    all_of(numbers, X, Y, 1, 0.1, "group", "dual", "closed")


# ====================================================================== write and compare


def compute(name: str) -> dict[str, tuple[Any, ...]]:
    """The numbers of one case by the installed version."""
    numbers = Numbers()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        CASES[name].compute(numbers)
    return numbers.found


def read(file: Any) -> dict[str, dict[str, tuple[Any, ...]]]:
    """Case to name to (kind, vector[, standard errors])."""

    def vector(stored: Any) -> list[Any]:
        return stored if isinstance(stored, list) else [stored]

    cases = json.loads(Path(file).read_text(encoding="utf-8"))["cases"]
    return {
        case: {
            name: ("sampled", *stored) if kind == "sampled" else (kind, vector(stored))
            for kind, group in kinds.items()
            for name, stored in group.items()
        }
        for case, kinds in cases.items()
    }


def write(file: Any, names: list[str] | None = None) -> None:
    import contrapca

    cases: dict[str, Any] = {}
    for name in names or CASES:
        kinds = cases[name] = {}
        for key, (kind, *vectors) in compute(name).items():
            single = len(vectors[0]) == 1 and kind != "sampled"
            kinds.setdefault(kind, {})[key] = vectors if kind == "sampled" else vectors[0][0] if single else vectors[0]
    head = {"written_by": f"contrapca {contrapca.__version__}", "numpy": np.__version__, "cases": cases}
    Path(file).write_text(json.dumps(head, separators=(",", ":")).replace('},"', '},\n"') + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Comparison:
    case: str
    name: str
    old: list[Any] | None
    new: list[Any] | None
    kind: str
    error: float  # relative to the vector's scale; for draws in standard errors of the difference
    tolerance: float

    @property
    def met(self) -> bool:
        return self.error <= self.tolerance

    def __str__(self) -> str:
        what = "standard errors" if self.kind == "sampled" else "of its scale"
        return (
            f"{self.case}: {self.name} ({self.kind}) differs by {self.error:.2g} {what}, {self.tolerance:g} allowed: "
            f"{_short(self.old)} became {_short(self.new)}"
        )


def _short(vector: list[Any] | None) -> str:
    return "nothing" if vector is None else ", ".join(f"{x}" for x in vector[:4]) + (", ..." if len(vector) > 4 else "")


def compare_case(name: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[Comparison]:
    """Every number of a case, by name; one that only one version has is not met."""
    for key in dict.fromkeys([*old, *new]):
        if key not in old or key not in new:
            one = old.get(key) or new[key]
            pair = (one[1], None) if key in old else (None, one[1])
            yield Comparison(name, key, *pair, one[0], math.inf, TOLERANCES[one[0]])
            continue
        (kind, before, *errors), (_, after, *new_errors) = old[key], new[key]
        error = _distance(before, after, *(errors + new_errors if kind == "sampled" else ()))
        yield Comparison(name, key, before, after, kind, error, TOLERANCES[kind])


def _distance(old: list[Any], new: list[Any], old_errors: Any = None, new_errors: Any = None) -> float:
    if len(old) != len(new):
        return math.inf
    if not old:
        return 0.0
    a, b = np.array([float(x) for x in old]), np.array([float(x) for x in new])
    if not np.array_equal(np.isfinite(a), np.isfinite(b)) or [str(x) for x in a[~np.isfinite(a)]] != [
        str(x) for x in b[~np.isfinite(b)]
    ]:
        return math.inf
    finite = np.isfinite(a)
    difference = np.abs(a[finite] - b[finite])
    if not difference.size:
        return 0.0
    if old_errors is not None:
        error = np.hypot(np.array(old_errors), np.array(new_errors))[finite]
        rounding = 1e-9 * np.abs(a[finite]).max()  # where draws do not vary
        return float(np.max(difference / np.maximum(error, max(rounding, 1e-300))))
    scale = max(np.abs(a[finite]).max(), np.abs(b[finite]).max())
    return float(difference.max() / scale) if scale > 0 else 0.0


def compare(file: Any, names: list[str] | None = None) -> Iterator[Comparison]:
    """The numbers of the file and those of the installed version."""
    old = read(file)
    for name in names or old:
        yield from compare_case(name, old[name], compute(name))


def available(case: Case) -> bool:
    if "data" in case.needs and not Path(os.environ.get("CONTRAPCA_DATA", "/nowhere")).is_dir():
        return False
    return all(need == "data" or __import__("importlib.util").util.find_spec(need) for need in case.needs)


def main(arguments: list[str]) -> int:
    if len(arguments) < 2 or arguments[0] not in ("write", "compare"):
        print(__doc__)
        return 2
    command, file, *names = arguments
    if command == "write":
        write(file, names or None)
        return 0
    worst: dict[str, Comparison] = {}
    failures = 0
    for found in compare(file, names or [name for name in read(file) if name in CASES and available(CASES[name])]):
        failures += not found.met
        if not found.met:
            print(found)
        if found.kind not in worst or found.error > worst[found.kind].error:
            worst[found.kind] = found
    print(*(f"worst of {kind}: {found}" for kind, found in worst.items()), f"{failures} not met", sep="\n")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
