"""Do the bootstrap's 90 % intervals cover (F19)?

What is to be covered is the value that the same estimator has in the population, from the true covariances of both
groups: at the gamma of the fit, given or chosen by "auto", and with as many latent dimensions as the fit has. Loadings
are turned towards the estimate, as refits are. Beside the intervals stand the plain quantiles of the refits, which they
replace. Data set k of a setting is drawn from the seed (k, the setting's name).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from contrapca import CPCA, PCPCA, ContraPCA, Moments, bootstrap
from contrapca.contrast._subspaces import align
from contrapca.moments._scatter import DenseScatter

from . import _common
from ._stages import Json, Row, Tick

TITLE = "Do the bootstrap's intervals cover?"
NOMINAL, WANTED = 0.9, (0.85, 0.95)
OWN, SHARED = (16.0, 9.0), (6.0, 4.0)  # variances of the foreground's directions and of both groups', over unit noise
LARGE = 0.5  # of the largest loading: those from there on are counted by themselves
POPULATION = 1e9  # rows that stand for all

Law = Callable[[np.random.Generator, int, int], Any]  # independent values of unit variance


def gauss(rng: np.random.Generator, n: int, D: int) -> Any:
    return rng.standard_normal((n, D))


def t6(rng: np.random.Generator, n: int, D: int) -> Any:
    """Heavier tails."""
    return rng.standard_t(6, size=(n, D)) / np.sqrt(1.5)


# Rows of both groups, features, law. The rule of the intervals was chosen on tables of this kind, four of these sizes
# among them, with other draws; 300+80x25 and t6 150+150x15 are new.
SETTINGS: dict[str, tuple[int, int, int, Law]] = {
    "200+200x20": (200, 200, 20, gauss),
    "60+60x30": (60, 60, 30, gauss),
    "100+100x10": (100, 100, 10, gauss),
    "300+80x25": (300, 80, 25, gauss),
    "t6 150+150x15": (150, 150, 15, t6),
    "wide 60+60x200": (60, 60, 200, gauss),
}
METHODS: dict[str, Any] = {
    "PCPCA": PCPCA(2, gamma=0.3),
    "ContraPCA": ContraPCA(2, gamma=0.15),
    "CPCA": CPCA(2, gamma=1.0),
    "PCPCA, auto": PCPCA(2),
    "ContraPCA, auto": ContraPCA(2),
}


def config(*, quick: bool) -> Json:
    """How many data sets of each setting, how many refits of each."""
    return {
        "settings": list(SETTINGS)[1:3] if quick else list(SETTINGS),
        "methods": list(METHODS),
        "datasets": 8 if quick else 60,
        "n_resamples": 60 if quick else 200,
    }


def run(config: Json, tick: Tick) -> Json:
    """Shares covered, of intervals and of quantiles: of all loadings, of the large ones, of noise variances."""
    found: Json = {"datasets": config["datasets"], "covered": {}}
    for setting in config["settings"]:
        found["covered"][setting] = {}
        for method in config["methods"]:
            every = []
            for k in range(config["datasets"]):
                tick(f"{setting}, {method}, data set {k}")
                every.append(_covered(METHODS[method], setting, k, config["n_resamples"]))
            found["covered"][setting][method] = {
                name: None if every[0][name] is None else float(np.mean([one[name] for one in every]))
                for name in every[0]
            }
    return found


def _covered(estimator: Any, setting: str, k: int, n_resamples: int) -> dict[str, float | None]:
    """What is covered in one data set."""
    n, m, D, law = SETTINGS[setting]
    rng = np.random.default_rng([k, zlib.crc32(setting.encode())])
    directions = np.linalg.qr(rng.standard_t(2.5, size=(D, 4)))[0]  # a few large loadings and many small ones
    roots = directions * np.sqrt([*OWN, *SHARED])
    X = law(rng, n, D) + law(rng, n, 4) @ roots.T
    Y = law(rng, m, D) + law(rng, m, 2) @ roots[:, 2:].T
    model = clone(estimator).fit(X, background=Y)
    refits = bootstrap(model, X, background=Y, n_resamples=n_resamples, random_state=rng, progress=False)
    target = clone(estimator).set_params(gamma=model.gamma_)
    if hasattr(model, "model_"):
        target.set_params(n_latent=model.model_.W.shape[1])
    covariances = np.eye(D) + roots @ roots.T, np.eye(D) + roots[:, 2:] @ roots[:, 2:].T
    groups = [Moments(POPULATION, np.zeros(D), DenseScatter(POPULATION * each)) for each in covariances]
    target.fit(groups[0], background=groups[1])
    axes = target.loadings_ if hasattr(target, "loadings_") else target.components_.T
    truth = align(axes[None], refits.estimate)[0]
    large = np.abs(truth) >= LARGE * np.abs(truth).max()
    tails = [(1 - NOMINAL) / 2, (1 + NOMINAL) / 2]
    inside = _inside(refits.interval(NOMINAL), truth)
    plain = _inside(np.quantile(refits.loadings[0], tails, axis=0), truth)
    shares: dict[str, float | None] = {
        "loadings": float(inside.mean()),
        "large": float(inside[large].mean()),
        "loadings, quantiles": float(plain.mean()),
        "large, quantiles": float(plain[large].mean()),
        "noise": None,
        "noise, quantiles": None,
    }
    if refits.noise_variance is not None:
        noise = target.noise_variance_
        shares["noise, quantiles"] = float(_inside(np.quantile(refits.noise_variance, tails), noise))
        if refits.W_estimate.shape[1] == refits.n_shown and refits.noise_variance_estimate is not None:
            shares["noise"] = float(_inside(refits.noise_interval(NOMINAL), noise))
    return shares


def _inside(ends: Any, value: Any) -> Any:
    return (ends[0] <= value) & (value <= ends[1])


def figure(results: Json) -> Any:
    """Shares covered by intervals and by quantiles."""
    figure, axes = _common.new_figure(1, width=8, height=5)
    axis = _common.tidy(axes[0][0])
    names = [f"{method}, {setting}" for setting, own in results["covered"].items() for method in own]
    place = np.arange(len(names))[::-1]
    marks = {"loadings": "o", "large": "D", "noise": "s"}
    for what, mark in marks.items():
        for suffix, colour in (("", _common.COLOURS[0]), (", quantiles", _common.COLOURS[1])):
            shares = [shares[what + suffix] for own in results["covered"].values() for shares in own.values()]
            axis.plot([np.nan if share is None else share for share in shares], place, mark, color=colour,
                      label=what + suffix, alpha=0.8)  # fmt: skip
    axis.axvspan(*WANTED, color="0.9", zorder=0)
    axis.set_yticks(place, names, fontsize=7)
    axis.set(xlabel=f"share covered by {NOMINAL:.0%} intervals", xlim=(0, 1))
    axis.legend(frameon=False, fontsize=8, loc="lower left")
    return figure


def rows(results: Json) -> list[Row]:
    """What was hoped for beside what was found."""
    found, wanted = [], f"{WANTED[0]} to {WANTED[1]}"
    for setting, own in results["covered"].items():
        for method, shares in own.items():
            for what in ("loadings", "large", "noise"):
                plain, share = shares[f"{what}, quantiles"], shares[what]
                if plain is None:
                    continue
                ours = "withheld" if share is None else f"{share:.3f}"
                same = None if share is None else WANTED[0] <= share <= WANTED[1]
                note = f"{results['datasets']} data sets"
                found.append(Row(f"{what}, {method}, {setting}", wanted, f"{ours}, quantiles {plain:.3f}", same, note))
    return found
