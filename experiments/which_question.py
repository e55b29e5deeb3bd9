"""Which question is whose: methods side by side on what they were not fitted to, whoever wins.

Glioblastoma cells of five patients, with and without panobinostat: each patient is held out in turn. A shift of the
mean is judged by the area under the curve (AUC) of treated against untreated cells along the axis that tells them
apart best in the other patients, spread by the ratio of treated to untreated variance; both by cells of the patient
held out. Wells of BBBC021: compounds are held out by fifths. A held-out well asks for its most similar wells of other
compounds, and is judged by the mean average precision (mAP) of its mechanism.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import mannwhitneyu

from contrapca import CPCA, PCPCA, PPCA, ContraPCA, RatioPCA

from . import _common
from ._real_sets import _found, load_glioblastoma
from ._stages import Json, Row, Tick

TITLE = "Which question is whose?"
N_MARKERS = 20
Mapping = Callable[[Any], Any]  # rows to coordinates


def _contrast(make: Callable[[int], Any]) -> Callable[[Any, Any, int], Mapping]:
    """An estimator of cases and controls: projections onto its components."""

    def fit(X: Any, Y: Any, d: int) -> Mapping:
        components = make(d).fit(X, background=Y).components_
        return lambda rows: rows @ components.T

    return fit


def pca(X: Any, Y: Any, d: int) -> Mapping:
    """PCA of the cases alone."""
    components = PPCA(d).fit(X).components_
    return lambda rows: rows @ components.T


def pca_of_all(X: Any, Y: Any, d: int) -> Mapping:
    """PCA of cases and controls as one table, as single-cell workflows begin."""
    return pca(np.vstack([X, Y]), Y, d)


def markers(X: Any, Y: Any, d: int) -> Mapping:
    """The mean of the features with the largest t statistics of cases against controls, signed: a shift, one axis."""
    t = (X.mean(axis=0) - Y.mean(axis=0)) / np.sqrt(X.var(axis=0) / len(X) + Y.var(axis=0) / len(Y) + 1e-12)
    strongest = np.argsort(-abs(t))[:N_MARKERS]
    weights = np.zeros(len(t))
    weights[strongest] = np.sign(t[strongest]) / np.sqrt(X.var(axis=0) + Y.var(axis=0))[strongest]
    return lambda rows: (rows @ weights)[:, None]


def whitening(Y: Any, replicates: Any = None) -> tuple[Any, Any]:
    """Mean of the controls, and the matrix that whitens rows by them; Ledoit and Wolf's shrinkage of correlations.

    `replicates` are residuals of treated rows about their treatment's mean; they count as more controls.
    """
    mean = Y.mean(axis=0)
    rows = Y - mean if replicates is None else np.vstack([Y - mean, replicates])
    sd = np.sqrt((rows**2).mean(axis=0))
    rows = rows / np.where(sd > 0, sd, 1)
    S = rows.T @ rows / len(rows)
    t, squares = np.trace(S) / len(S), np.sum(S**2)
    delta = min(1.0, (np.mean(np.sum(rows**2, axis=1) ** 2) - squares) / len(rows) / (squares - len(S) * t**2))
    values, U = np.linalg.eigh((1 - delta) * S + delta * t * np.eye(len(S)))
    return mean, (U / np.sqrt(values)) @ U.T / np.where(sd > 0, sd, 1)[:, None]


def whitened(X: Any, Y: Any, d: int | None, replicates: Any = None) -> Mapping:
    """Rows whitened by the controls (spherized): all of them, or the first principal components of the cases."""
    mean, W = whitening(Y, replicates)
    if d is None:
        return lambda rows: (rows - mean) @ W
    components = PPCA(d).fit((X - mean) @ W).components_
    return lambda rows: (rows - mean) @ W @ components.T


CELLS: dict[str, Callable[[Any, Any, int], Mapping]] = {
    "PCA of all cells": pca_of_all,
    "PCA of the cases": pca,
    "marker score": markers,
    "whitened by controls, PCA": whitened,
    "ContraPCA": _contrast(lambda d: ContraPCA(d, progress=False)),
    "PCPCA": _contrast(lambda d: PCPCA(d, progress=False)),
    "CPCA": _contrast(CPCA),
    "RatioPCA": _contrast(RatioPCA),
}
WELLS: dict[str, tuple[str, int | None]] = {
    "in units of the controls": ("plain", None),
    "whitened by controls": ("whitened", None),
    "whitened by controls and replicates": ("replicates", None),
    "PCA of the cases, 20 components": ("PCA of the cases", 20),
    "ContraPCA, 5 components": ("ContraPCA", 5),
    "ContraPCA, 20 components": ("ContraPCA", 20),
    "CPCA, 20 components": ("CPCA", 20),
    "RatioPCA, 20 components": ("RatioPCA", 20),
}


def config(*, quick: bool) -> Json:
    """Which patients, folds of compounds and methods."""
    return {"patients": 1 if quick else 5, "folds": 1 if quick else 5, "cells": list(CELLS), "wells": list(WELLS)}


def run(config: Json, tick: Tick) -> Json:
    """For each method: AUC, ratio of variances and share of patients; precision of mechanisms."""
    return {"cells": _cells(config, tick), "wells": _wells(config, tick)}


def _cells(config: Json, tick: Tick) -> Json:
    cells = load_glioblastoma()
    X, treated, patient = cells.X.astype(float), cells.condition != "ctrl", cells.patient
    patients = np.unique(patient)[: config["patients"]]
    found: Json = {}
    for name in config["cells"]:
        tick(name)
        scores = [judge(CELLS[name], X, treated, patient, held_out) for held_out in patients]
        found[name] = {key: _common.plain([score[key] for score in scores]) for key in scores[0]}
    return found


def judge(fit: Callable[[Any, Any, int], Mapping], X: Any, treated: Any, patient: Any, held_out: Any) -> Json:
    """What two axes from the other patients say of the cells of one: AUC, ratio of variances, share of patients."""
    rest = patient != held_out
    mapping = fit(X[rest & treated], X[rest & ~treated], 2)
    Z = mapping(X)
    areas = [auc(z[rest & treated], z[rest & ~treated]) for z in Z.T]
    best = int(np.argmax(np.abs(np.array(areas) - 0.5)))
    area = auc(Z[~rest & treated, best], Z[~rest & ~treated, best])
    ratios = Z[~rest & treated].var(axis=0) / Z[~rest & ~treated].var(axis=0)
    shares = [eta_squared(z, patient[rest & treated]) for z in Z[rest & treated].T]
    return {
        "auc": area if areas[best] > 0.5 else 1 - area,
        "log_ratio": float(np.log(ratios).mean()),
        "patients": float(np.mean(shares)),
    }


def auc(a: Any, b: Any) -> float:
    """How often a value of `a` is larger than one of `b`."""
    return float(mannwhitneyu(a, b).statistic / (len(a) * len(b)))


def eta_squared(z: Any, labels: Any) -> float:
    """The share of the variance of z that lies between labels."""
    means = {label: z[labels == label].mean() for label in np.unique(labels)}
    return float(np.var([means[label] for label in labels]) / np.var(z))


def _wells(config: Json, tick: Tick) -> Json:
    with _found("bbbc021.csv").open(newline="", encoding="utf-8") as file:
        _, *lines = csv.reader(file)
    compound, dose, mechanism = (np.array([line[k] for line in lines]) for k in (2, 3, 4))
    values = np.array([line[5:] for line in lines], dtype=float)
    control = compound == "DMSO"
    Y, X = values[control], values[~control]
    compound, dose, mechanism = compound[~control], dose[~control], mechanism[~control]
    names = np.random.default_rng(0).permutation(np.unique(compound))
    found: Json = {name: [] for name in config["wells"]}
    for fold in range(config["folds"]):
        held_out = np.isin(compound, names[fold::5])
        treatments = np.array([f"{a} {b}" for a, b in zip(compound, dose, strict=True)])[~held_out]
        for name in config["wells"]:
            tick(f"{name}, fold {fold + 1}")
            Z = _wells_mapping(*WELLS[name], X[~held_out], Y, treatments)(X)
            found[name] += _common.plain(precisions(Z, compound, mechanism, held_out))
    return found


def _wells_mapping(method: str, d: int | None, X: Any, Y: Any, treatments: Any) -> Mapping:
    """Wells to coordinates about the controls, each component in units of the controls' standard deviation."""
    if method == "whitened":
        return whitened(X, Y, None)
    if method == "replicates":
        return whitened(X, Y, None, residuals(X, treatments))
    mapping: Mapping = (lambda rows: rows) if d is None else CELLS[method](X, Y, d)
    Z = mapping(Y)
    return lambda rows: (mapping(rows) - Z.mean(axis=0)) / np.maximum(Z.std(axis=0), 1e-12)


def residuals(X: Any, treatments: Any) -> Any:
    """Rows about the mean of their treatment, unbiased; treatments of one row say nothing."""
    parts = [X[treatments == name] for name in np.unique(treatments)]
    return np.vstack(
        [(rows - rows.mean(axis=0)) * np.sqrt(len(rows) / (len(rows) - 1)) for rows in parts if len(rows) > 1]
    )


def precisions(Z: Any, compound: Any, mechanism: Any, queries: Any) -> list[float]:
    """Average precision of each query's mechanism among wells of other compounds, ordered by cosine similarity."""
    units = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    found = []
    for k in np.flatnonzero(queries):
        others = compound != compound[k]
        hits = (mechanism == mechanism[k])[others][np.argsort(-(units[others] @ units[k]))]
        if hits.any():
            found.append(float(np.mean(np.cumsum(hits)[hits] / (np.flatnonzero(hits) + 1))))
    return found


def figure(results: Json) -> Any:
    """AUC against the ratio of variances, and precision; one dot for each method."""
    made, axes = _common.new_figure(2, 1, width=4.6, height=3.6)
    left, right = axes[0]
    for name, scores in results["cells"].items():
        x, y = np.mean(scores["auc"]), np.exp(np.mean(scores["log_ratio"]))
        left.plot([x], [y], "o")
        left.annotate(name, (x, y), fontsize=7, xytext=(4, 2), textcoords="offset points")
    left.set(xlabel="AUC, treated v untreated", ylabel="treated / untreated variance", title="held-out patients")
    names = list(results["wells"])
    right.barh(names[::-1], [np.mean(results["wells"][name]) for name in names[::-1]], color=_common.COLOURS[0])
    right.set(xlabel="mean average precision", title="held-out compounds")
    for ax in (left, right):
        _common.tidy(ax)
    return made


def rows(results: Json) -> list[Row]:
    """Both tables of docs/which_question.md; the paper has nothing like them."""
    found = []
    for name, scores in results["cells"].items():
        ratio = np.exp(np.mean(scores["log_ratio"]))
        ours = (
            f"AUC {np.mean(scores['auc']):.2f}; ratio {ratio:.2f}; between patients {np.mean(scores['patients']):.2f}"
        )
        found.append(Row(f"held-out patients, {name}", "n/a", ours, None))
    for name, values in results["wells"].items():
        found.append(Row(f"held-out compounds, {name}", "n/a", f"mAP {np.mean(values):.2f}", None))
    return found
