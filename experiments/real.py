"""How well the defaults separate labels that they are not shown, on real tables, beside other methods.

Two components are fitted to subsamples of the rows. Scores are the silhouette of the labels on unit-variance latents,
and the adjusted Rand index of k-means with the true number of groups.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from contrapca import CLVM, CPCA, PCPCA, PPCA, ContraPCA, RatioPCA

from . import _common
from ._real_sets import SETS, RealSet
from ._stages import Json, Row, Tick

TITLE = "Labels of real tables, by default"
SHARE = 0.8  # of the rows in a subsample
SILHOUETTE_ROWS = 2000  # more than these are sampled

METHODS: dict[str, Callable[[], Any]] = {
    "ContraPCA": lambda: ContraPCA(2, progress=False),
    "PCA": lambda: PPCA(2),
    "PCPCA": lambda: PCPCA(2, progress=False),
    "CPCA, auto": lambda: CPCA(2),
    "CPCA, gamma 2": lambda: CPCA(2, gamma=2.0),
    "CPCA, gamma 4": lambda: CPCA(2, gamma=4.0),
    "RatioPCA, auto": lambda: RatioPCA(2),
    "RatioPCA, ridge 1": lambda: RatioPCA(2, ridge=1.0),
    "CLVM": lambda: CLVM(n_foreground=2),
}


def config(*, quick: bool) -> Json:
    """Which sets and methods, and how many subsamples."""
    return {"sets": list(SETS)[:: 3 if quick else 1], "methods": list(METHODS), "subsamples": 1 if quick else 5}


def run(config: Json, tick: Tick) -> Json:
    """Mean silhouette and adjusted Rand index of every method on every set; None where it cannot be fitted."""
    results: Json = {}
    for name in config["sets"]:
        found = SETS[name]()
        results[name] = {}
        for method in config["methods"]:
            tick(f"{name}: {method}")
            results[name][method] = _scores(METHODS[method], found, config["subsamples"])
    return results


def _scores(make: Callable[[], Any], found: RealSet, repeats: int) -> list[float] | None:
    """Mean silhouette and adjusted Rand index over subsamples."""
    scores = []
    for seed in range(repeats):
        rng = np.random.default_rng([seed, 30])
        cases, controls = (
            np.sort(rng.permutation(len(rows))[: round(SHARE * len(rows))]) for rows in (found.cases, found.controls)
        )
        X, Y, labels = found.cases[cases], found.controls[controls], found.labels[cases]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they say is in the scores
            try:
                model = make()
                latents = (model.fit(X) if isinstance(model, PPCA) else model.fit(X, background=Y)).transform(X)
            except ValueError:
                return None
        scores.append(separation(latents, labels))
    return [round(float(value), 4) for value in np.mean(scores, axis=0)]


def separation(latents: Any, labels: Any) -> tuple[float, float]:
    """Silhouette, and adjusted Rand index of k-means, on unit-variance latents."""
    Z = _common.unit_variance(np.asarray(latents, dtype=float))
    clusters = KMeans(len(np.unique(labels)), n_init=10, random_state=0).fit_predict(Z)
    return _common.silhouette(Z, labels, rows=SILHOUETTE_ROWS), float(adjusted_rand_score(labels, clusters))


def figure(results: Json) -> Any:
    """Adjusted Rand index of every method on every set, one dot each, and a bar for the mean."""
    methods = list(next(iter(results.values())))
    made, axes = _common.new_figure(2, 1, width=4.2, height=3.8)
    for ax, number, name in zip(axes[0], (0, 1), ("silhouette", "adjusted Rand index"), strict=True):
        for j, method in enumerate(methods):
            scores = [found[method][number] for found in results.values() if found[method] is not None]
            ax.plot(
                scores,
                [-j] * len(scores),
                "o",
                markersize=4,
                alpha=0.6,
                color=_common.COLOURS[j % len(_common.COLOURS)],
            )
            ax.plot([np.mean(scores)], [-j], "|", markersize=18, markeredgewidth=2, color="black")
        ax.set_yticks([-j for j in range(len(methods))], methods if number == 0 else [])
        ax.set(xlabel=name)
        _common.tidy(ax)
    return made


def rows(results: Json) -> list[Row]:
    """Every set with every method; the paper has nothing like it."""
    found = []
    for name, scores in results.items():
        given = {method: score for method, score in scores.items() if score is not None}
        ours = "; ".join(f"{method} {score[0]:.2f} / {score[1]:.2f}" for method, score in given.items())
        missing = [method for method in scores if method not in given]
        note = f"not fitted: {', '.join(missing)}" if missing else ""
        found.append(Row(f"silhouette / adjusted Rand index, {name}", "n/a", ours, None, note))
    return found
