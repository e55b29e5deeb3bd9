"""All methods of the field on all data sets: one table, and the same picture for each.

Every method has its defaults. Held-out ratios, on rows that the axes were not fitted to,
need no labels; silhouettes of known labels on unit-variance latents do, and judge something else.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from contrapca import CLVM, CPCA, PCPCA, ContraPCA, RatioPCA, SparseCPCA, held_out_contrast
from contrapca.datasets import make_hidden_clusters
from contrapca.exceptions import SolverError

from . import _common
from ._data import load_corrupted_mnist, load_zheng_bmmc
from ._stages import Json, Row, Tick

TITLE = "The methods of the field"
SPARSITY = 20
ROWS = 1500  # of a large table that are held out, shown and judged: evenly spread
PICTURE = "hidden clusters"  # the data set of the figure


def methods(n_features: int) -> dict[str, Any]:
    """Every method with its defaults, two components and features scaled within groups."""
    common: dict[str, Any] = {"scale": "pooled"}
    return {
        "PCA": CPCA(2, gamma=0.0, **common),
        "PCPCA": PCPCA(2, **common),
        "ContraPCA": ContraPCA(2, **common),
        "CPCA, gamma auto": CPCA(2, **common),
        "CPCA, gamma 2": CPCA(2, gamma=2.0, **common),
        "RatioPCA, ridge auto": RatioPCA(2, **common),
        "RatioPCA, no ridge (rhoPCA, cPCA++, gcPCA)": RatioPCA(2, ridge=0, **common),
        f"SparseCPCA, {SPARSITY} features": SparseCPCA(2, sparsity=min(SPARSITY, n_features), **common),
        "CLVM, 5 shared": CLVM(5, 2, **common),
    }


def config(*, quick: bool) -> Json:
    """Which data sets: the quick run has simulated ones only."""
    return {"data": [PICTURE] if quick else [PICTURE, "mouse proteins", "bone-marrow cells", "digits on grass"]}


def run(config: Json, tick: Tick) -> Json:
    """Held-out ratio, silhouette and seconds of every method on every data set, and latents for the figure."""
    results: Json = {"methods": list(methods(10)), "data": {}, "latents": {}}
    for name, X, Y, labels in _tables(config["data"]):
        found = {}
        for method, model in methods(X.shape[1]).items():
            tick(f"{name}: {method}")
            found[method], latents = _judged(model, X, Y, labels)
            if name == PICTURE and latents is not None:
                results["latents"][method] = _common.plain(_common.unit_variance(latents), 3)
        results["data"][name] = found
        if name == PICTURE:
            results["labels"] = np.asarray(labels).tolist()
    return results


def _tables(names: list[str]) -> Iterator[tuple[str, Any, Any, Any]]:
    """Name, foreground, background and labels of each data set."""
    data = make_hidden_clusters(random_state=0)
    yield PICTURE, data.foreground, data.background, data.labels
    if "mouse proteins" in names:
        yield ("mouse proteins", *_common.mouse())
    if "bone-marrow cells" in names:
        cells = load_zheng_bmmc()
        some = _evenly(len(cells.foreground))
        yield "bone-marrow cells", cells.foreground[some], cells.background, np.asarray(cells.labels)[some]
    if "digits on grass" in names:
        digits = load_corrupted_mnist(grass="grass700", random_state=0)
        some = _evenly(len(digits.foreground))
        yield "digits on grass", digits.foreground[some], digits.background, np.asarray(digits.labels)[some]


def _evenly(count: int) -> Any:
    return np.unique(np.linspace(0, count - 1, min(count, ROWS)).astype(int))


def _judged(model: Any, X: Any, Y: Any, labels: Any) -> tuple[Json, Any]:
    """The figures of one method, and its latents; a method that refuses the table says why."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        try:
            latents = model.fit(X, background=Y).transform(X)
            seconds = time.perf_counter() - start
            ratio = float(np.exp(held_out_contrast(model, X, background=Y).mean))
        except (SolverError, ValueError) as error:
            return {"failure": str(error).partition(".")[0]}, None
    return {"ratio": ratio, "silhouette": _common.silhouette(latents, labels), "seconds": round(seconds, 3)}, latents


def figure(results: Json) -> Any:
    """Unit-variance latents of the same cases by every method."""
    shown = list(results["latents"])
    columns = 5
    made, axes = _common.new_figure(columns, -(-len(shown) // columns), width=2.6, height=2.6)
    labels = np.array(results["labels"])
    for ax, method in zip(axes.ravel(), shown, strict=False):
        Z, numbers = np.array(results["latents"][method]), results["data"][PICTURE][method]
        for k, label in enumerate(np.unique(labels)):
            ax.plot(*Z[labels == label].T, "o", markersize=2, alpha=0.6, color=_common.COLOURS[k])
        ax.set_title(method.replace(" (", "\n("), fontsize=8)
        ax.set_xlabel(f"silhouette {numbers['silhouette']:.2f}", fontsize=8)
        ax.set_xticks([])
        ax.set_yticks([])
        _common.tidy(ax)
    for ax in axes.ravel()[len(shown) :]:
        ax.set_axis_off()
    return made


def rows(results: Json) -> list[Row]:
    """One row for each data set and method."""
    found = []
    for name, table in results["data"].items():
        for method, numbers in table.items():
            if "failure" in numbers:
                found.append(Row(f"{name}, {method}", "n/a", "refused", None, numbers["failure"]))
                continue
            ours = f"held-out ratio {numbers['ratio']:.3g}, silhouette {numbers['silhouette']:.3f}"
            found.append(Row(f"{name}, {method}", "n/a", ours, None, f"{numbers['seconds']} s"))
    return found
