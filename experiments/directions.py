"""How well the defaults find planted directions, beside the paper's PCPCA, CPCA and CLVM.

Every setting plants directions that only the foreground has (`_directions_settings`). A method's score is the R^2 of
the planted latents on unseen rows, as a share of what the true directions reach; regret is the best method's score less
its own. The random settings chose nothing: they were drawn once, after the rules were fixed. On real tables the score
is the silhouette of known labels on unit-variance latents.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from contrapca import CLVM, CPCA, PCPCA, ContraPCA

from . import _common
from ._data import load_corrupted_mnist, load_zheng_bmmc
from ._directions_settings import STANDARD, Setting, random_setting, share
from ._stages import Json, Row, Tick

TITLE = "Directions found by default"
GRID = (0.0, 0.25, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 15.0, 30.0, 100.0)
BEST = "CPCA, best gamma by the truth"

Fit = Callable[[Any, Any, Setting], Any]


def _fitted(model: Any, X: Any, Y: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what they say is in the scores
        return model.fit(X, background=Y).components_.T


METHODS: dict[str, Fit] = {
    "ContraPCA": lambda X, Y, s: _fitted(ContraPCA(s.k), X, Y),
    "PCPCA (the paper's axes)": lambda X, Y, s: _fitted(PCPCA(s.k), X, Y),
    "CPCA, gamma 2": lambda X, Y, s: _eigenvectors(X, Y, 2.0, s.k),
    "CLVM, told how many are shared": lambda X, Y, s: _fitted(CLVM(max(s.shared, 1), s.k), X, Y),
}
MAX_CLVM_FEATURES = 300  # an iterative fit: wider tables would take most of the time


def config(*, quick: bool) -> Json:
    """How many data sets of each setting, and which random settings by their seeds."""
    return {
        "standard": [setting.name for setting in STANDARD][:: 6 if quick else 1],
        "random_seeds": list(range(2 if quick else 40)),
        "repeats": 2 if quick else 8,
        "random_repeats": 1 if quick else 4,
        "real": not quick,
        "grass_draws": 5,
    }


def run(config: Json, tick: Tick) -> Json:
    """Mean scores of every method in every setting."""
    chosen = [setting for setting in STANDARD if setting.name in config["standard"]]
    drawn = [random_setting(seed) for seed in config["random_seeds"]]
    results: Json = {"methods": [*METHODS, BEST]}
    for name, settings, repeats in (
        ("standard", chosen, config["repeats"]),
        ("random", drawn, config["random_repeats"]),
    ):
        table = {}
        for setting in settings:
            tick(f"{name}: {setting.name}")
            table[setting.name] = _scores(setting, repeats)
        results[name] = table
    results["real"] = {}
    for name, X, Y, labels in _real(config) if config["real"] else ():
        tick(name)
        results["real"][name] = _silhouettes(X, Y, labels)
    return results


def _scores(setting: Setting, repeats: int) -> list[float | None]:
    """Mean shares of METHODS and of CPCA with the gamma that the truth likes best; None where one was not run."""
    found = []
    for seed in range(repeats):
        data = setting.draw([seed, 13])
        X, Y, truth = data.foreground, data.background, data.population
        row: list[float] = []
        for name, fit in METHODS.items():
            skipped = name.startswith("CLVM") and setting.D > MAX_CLVM_FEATURES
            row.append(np.nan if skipped else share(fit(X, Y, setting), truth, setting.k))
        row.append(max(share(_eigenvectors(X, Y, gamma, setting.k), truth, setting.k) for gamma in GRID))
        found.append(row)
    return [None if np.isnan(value) else round(float(value), 4) for value in np.mean(found, axis=0)]


def _eigenvectors(X: Any, Y: Any, gamma: float, k: int) -> Any:
    """CPCA's directions at any gamma, also where fewer than k eigenvalues are positive, which CPCA refuses."""
    C = np.cov(X.T, ddof=0) - gamma * np.cov(Y.T, ddof=0)
    return np.linalg.eigh(C)[1][:, -k:]


def _real(config: Json) -> Iterator[tuple[str, Any, Any, Any]]:
    """Name, foreground, background and labels of the real tables."""
    yield ("mouse proteins", *_common.mouse())
    cells = load_zheng_bmmc()
    yield "bone-marrow cells (stand-in foreground)", cells.foreground, cells.background, cells.labels
    for seed in range(config["grass_draws"]):
        digits = load_corrupted_mnist(grass="grass700", random_state=seed)
        yield f"digits on grass, draw {seed}", digits.foreground, digits.background, digits.labels


def _silhouettes(X: Any, Y: Any, labels: Any) -> dict[str, float]:
    models = {"ContraPCA": ContraPCA(2, scale="group"), "PCPCA": PCPCA(2, scale="group")}
    models |= {f"CPCA, gamma {gamma:g}": CPCA(2, gamma=gamma, scale="group") for gamma in (1.0, 2.0, 5.0)}
    scores = {}
    for name, model in models.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores[name] = round(_common.silhouette(model.fit(X, background=Y).transform(X), labels), 4)
    return scores


def summary(table: dict[str, list[float | None]]) -> dict[str, Any]:
    """Mean and worst score, and mean and largest regret, of every method over the settings it was run in."""
    values = np.array([[np.nan if v is None else v for v in row] for row in table.values()], dtype=float)
    regret = np.nanmax(values, axis=1, keepdims=True) - values
    return {
        "mean": np.nanmean(values, axis=0),
        "worst": np.nanmin(values, axis=0),
        "mean regret": np.nanmean(regret, axis=0),
        "largest regret": np.nanmax(regret, axis=0),
    }


def figure(results: Json) -> Any:
    """Scores of all settings, one dot each, method by method."""
    made, axes = _common.new_figure(2, 1, width=5.4, height=3.8)
    for ax, name in zip(axes[0], ("standard", "random"), strict=True):
        for j in range(len(results["methods"])):
            scores = [row[j] for row in results[name].values() if row[j] is not None]
            spread = np.random.default_rng(0).uniform(-0.12, 0.12, len(scores))
            ax.plot(scores, -j + spread, "o", markersize=4, alpha=0.6, color=_common.COLOURS[j % len(_common.COLOURS)])
            ax.plot([np.mean(scores)], [-j], "|", markersize=22, markeredgewidth=2, color="black")
        ax.set_yticks([-j for j in range(len(results["methods"]))], results["methods"])
        ax.set(xlim=(-0.02, 1.02), xlabel="share of what the true directions reach", title=f"{name} settings")
        _common.tidy(ax)
    return made


def rows(results: Json) -> list[Row]:
    """The summary; the paper has nothing like it."""
    found = []
    for name in ("standard", "random"):
        numbers = summary(results[name])
        for j, method in enumerate(results["methods"]):
            ours = f"mean {numbers['mean'][j]:.3f}, worst {numbers['worst'][j]:.3f}"
            regret = f"regret {numbers['mean regret'][j]:.3f} in the mean, {numbers['largest regret'][j]:.3f} at most"
            found.append(Row(f"{name} settings, {method}", "n/a", ours, None, regret))
    for name, scores in results["real"].items():
        ours = ", ".join(f"{method} {value:.3f}" for method, value in scores.items())
        found.append(Row(f"silhouette, {name}", "n/a", ours, None))
    return found
