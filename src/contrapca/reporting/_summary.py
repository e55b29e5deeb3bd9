"""The summary: everything in a report as JSON-compatible values."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from importlib.metadata import version
from typing import Any

import numpy as np

from .._util.text import Words, natural_order
from .._version import __version__
from ..contrast import share_of
from ..data import adjusted_tables, encoded_of, refuse_designs, units_of
from ..data.checks import Finding, Given, check_groups, shows_replicates, warn_of_replicates
from ..estimators import Contrastive, Likelihood
from ..exceptions import InfeasibleGammaError, RankError
from ..inference import ContrastPosterior, ContrastTest, HeldOutContrast, Verdict, held_out_of, prepared, verdict_on
from ..missing import usable
from ..plots import NO_LABEL
from ._answers import carriers, remarks, separations, support_of
from ._cautions import cautions
from ._code import python_code
from ._design import shortly, similarity_of, words_for
from ._methods_text import SOURCES, methods_paragraph
from ._subject import TOP_FEATURES, Subject, shown_name

LIBRARIES = ("numpy", "scipy", "scikit-learn")
MIN_ROWS = 10  # minimum rows per group for ratios on unseen rows
TOP_NAMES = 3  # features that name a component in the verdict
UNSEEN: dict[str, Callable[[HeldOutContrast, int], Any]] = {  # what other halves of the rows say of a component
    "held_out_ratio": lambda own, k: _finite(own.ratios[k]),
    "held_out_interval": lambda own, k: [_finite(end) for end in own.intervals[k]],
    "agreement": lambda own, k: _finite(own.agreement[k]),
    "largest_share": lambda own, k: float(own.largest_share[k]),
    "found_again": lambda own, k: bool(own.found_again[k]),
}
NAMED, LONG_NAME, CARD_NAMES = 4, 40, 100  # features that a card names; characters of a long name, and of all names
PROBABILITY = 0.9  # probability of the intervals


@dataclass(frozen=True)
class Origin:
    """The command that a report is made by."""

    command: str  # in one line; the ways out of the cautions are in its words
    findings: Sequence[Finding] | None = None  # what it has found in its tables
    sources: Sequence[str] = ()  # the files that were read
    study: str = ""  # Python code that reads them, as one expression


def summary_of(
    subject: Subject,
    *,
    test: ContrastTest | bool | None,
    progress: bool,
    depth: str = "warn",
    title: str | None = None,
    origin: Origin | None = None,
    shown: bool = True,
) -> dict[str, Any]:
    """The summary of a report; `shown` says whether there is a page, which may not show everything."""
    by_blocks, words = subject.study.blocks is not None, words_for(subject.study.design)
    sources, code, findings = ((), None, None) if origin is None else (origin.sources, origin.command, origin.findings)
    if findings is None:
        names, columns = subject.row_names, subject.tables.names
        findings = check_groups(Given(subject.study.tables.rows, columns, names, subject.classes, by_blocks))
        # Means of cells are taken out, and those of doses may differ.
        unasked = {"depth"} if depth != "warn" else set()
        unasked |= {"batch"} if words["cases"] != "cases" else set()
        findings = [finding for finding in findings if finding.check not in unasked]
    ignores_replicates = shows_replicates(findings)
    verdict = _judge(subject, test, depth, progress, ignores_replicates=ignores_replicates)
    held_out = _on_unseen_rows(subject)
    answer = None if verdict is None else verdict.sentence  # about the tables alone
    tested = None if verdict is None or verdict.test is None else bool(verdict.test.n_components)
    components = _components(subject, held_out)
    for entry in components:
        entry["support"] = support_of(entry, tested, ignores_replicates=ignores_replicates)
    if verdict is not None and subject.study.design is None:
        strongest = [[item["feature"] for item in entry["features"][:TOP_NAMES]] for entry in components]
        verdict = verdict.about(held_out, strongest)
    given = os.environ.get("SOURCE_DATE_EPOCH", "")  # sets the date, so that a page can be made again to the byte
    today = datetime.fromtimestamp(int(given), UTC).date() if given.isdecimal() else date.today()
    summary = {
        "title": shown_name(words["title"] if title is None else str(title)),
        "answer": answer,
        **({"verdict": None, "test": None} if verdict is None else verdict.summary()),
        "remarks": remarks(subject),
        "data": _data(subject, sources),
        "model": _model(subject),
        "components": components,
        "by_blocks": by_blocks,
        "words": words,
        "design": _design(subject, held_out),
        "path": _path(subject),
        "uncertainty": None if subject.uncertainty is None else _uncertainty(subject.uncertainty),
        "code": {
            "python": python_code(subject, title, "" if origin is None else origin.study, verdict is not None, depth),
            "command": code,
        },
        "versions": {"contrapca": __version__, "Python": platform.python_version()}
        | {name: version(name) for name in LIBRARIES},
        "date": today.isoformat(),
    }
    said: Words = "python" if code is None else "command"
    found = [*findings, *cautions(subject, summary, by_blocks=by_blocks, shown=shown)]
    summary["cautions"] = [finding.text(said) for finding in found]
    summary["caution_topics"] = list(dict.fromkeys(finding.check for finding in found))
    cited = [] if subject.kind._source is None else [SOURCES[subject.kind._source]]
    return summary | {"methods": methods_paragraph(summary, subject.kind), "citations": cited}


def _judge(
    subject: Subject,
    test: ContrastTest | bool | None,
    depth: str,
    progress: bool,
    *,
    ignores_replicates: bool,
) -> Verdict | None:
    """The verdict of a report; None if it is not wanted."""
    n_shown = subject.path.n_components
    if isinstance(test, ContrastTest):
        return Verdict.of(test, n_shown)
    if test is False:
        return None
    if test not in (True, None):
        raise TypeError(f"test is a {type(test).__name__}: pass the result of contrast_test, True or False.")
    study = subject.study
    if depth == "match":
        refuse_designs(study, "match_depth")
    if study.blocks is None:
        warn_of_replicates(subject.row_names)
    return verdict_on(
        adjusted_tables(study),
        n_shown=n_shown,
        blocks=study.blocks,
        paired=study.paired,
        design=study.design,
        scale=subject.scale,
        depth=depth,
        ignores_replicates=ignores_replicates,
        progress=progress,
    )


def _on_unseen_rows(subject: Subject) -> HeldOutContrast | None:
    """Ratios of variances on held-out rows; None if these tables do not allow it."""
    if min(rows.shape[0] for rows in subject.rows) < MIN_ROWS:
        return None
    study, design = subject.study, subject.study.design
    try:
        # What covariates explain is taken out of all rows, but the means of cells are those of each half.
        tables = usable(adjusted_tables(study) if design is None else study.tables, "holding rows out")
        encoded = None if design is None else encoded_of(study, tables)
        unit_of = units_of(study, tables, least=2, what="holding rows out")
        model = subject.path.model(subject.path.gammas[subject.start])
        found = held_out_of(prepared(model), tables, unit_of, encoded, design=design)
    except (InfeasibleGammaError, RankError):  # gamma or n_components is too large for fewer rows
        return None
    if found.cells is None or found.cells.kind == "conditions":
        return found
    # Of two factors the question is the double ratio, of a dose the growth.
    return replace(found, log_ratios=found.cells.log_ratios[-1], intervals=found.cells.intervals[-1])


def _data(subject: Subject, sources: Sequence[str]) -> dict[str, Any]:
    groups, labels = {}, None
    for name, rows in zip(("foreground", "background"), subject.rows, strict=True):
        missing = np.isnan(rows).sum(axis=1) if subject.tables.incomplete else np.zeros(1)
        counts = {"missing_values": int(missing.sum()), "incomplete_rows": int(np.sum(missing > 0))}
        groups[name] = {"rows": rows.shape[0]} | counts
    if subject.classes is not None:
        names, sizes = np.unique(subject.classes, return_counts=True)
        labels = {str(names[k]) or NO_LABEL: int(sizes[k]) for k in natural_order(names.tolist())}
    return {
        "sources": list(map(str, sources)),
        **groups,
        "features": subject.tables.n_features,
        "label_name": subject.label_name,
        "labels": labels,
        "labels_are_clusters": subject.clustered,
    }


def _model(subject: Subject) -> dict[str, Any]:
    path, g = subject.path, subject.start
    shortened = {}  # the names of the rows of each group that are so long that they count less (F42)
    for name, rows in () if (long := subject.tables.shortened) is None else long.map_named(lambda *of: of):
        own = subject.row_names[name]
        shortened[name] = [f"row {k}" if own is None else own[k] for k in rows.tolist()]
    return {
        "estimator": subject.kind.__name__,
        "n_components": path.n_components,
        "n_latent": path.loading_coordinates.shape[2],
        "gamma": float(path.gammas[g]),
        "strength": subject.kind._short_strength(float(path.gammas[g])),
        "limit": _finite(path.gamma_max),
        "limit_is_bound": path.gamma_max_is_bound,
        "scale": path.estimator.scale,
        # What the noise decided on units and axes (F41); empty where these were given.
        "noise": "" if subject.model is None else str(subject.model.fit_.plateau or ""),
        "shortened": shortened,
        "noise_variance": _finite(path.noise_variance[g]),
        "objective": float(path.objective[g]),
    }


def _finite(value: float) -> float | None:
    """None for infinity and nan, which JSON does not have."""
    return float(value) if np.isfinite(value) else None


def _components(subject: Subject, held_out: HeldOutContrast | None) -> list[dict[str, Any]]:
    """One entry per component at the report's gamma."""
    path, g = subject.path, subject.start
    W, shares = path.loadings(path.gammas[g]), path.shares()
    entries: list[dict[str, Any]] = []
    for k, (label, carrier) in enumerate(zip(separations(subject), carriers(subject), strict=True)):
        strongest = np.argsort(-np.abs(W[:, k]), kind="stable")[:TOP_FEATURES].tolist()
        # A card names fewer features where names are long, so that all cards have room.
        sizes = np.cumsum([min(len(subject.features[j]), LONG_NAME) for j in strongest[:NAMED]])
        entry = {
            "component": k,
            "eigenvalue": float(path.eigenvalues[g, k]),
            "foreground_variance": float(path.explained_variance[g, k]),
            "background_variance": float(path.background_variance[g, k]),
            "foreground_share": float(shares.foreground[g, k]),
            "background_share": float(shares.backgrounds[0][g, k]),
            **{name: None if held_out is None else value(held_out, k) for name, value in UNSEEN.items()},
            "label": label,
            "cells": _cells(held_out, k),
            "carrier": carrier if held_out is None else carrier | {"share": float(held_out.largest_share[k])},
            "n_named": max(2, int(np.count_nonzero(sizes <= CARD_NAMES))),
            "features": [{"feature": subject.features[j], "loading": float(W[j, k])} for j in strongest],
        }
        entries.append(entry)
    return entries


def _cells(held_out: HeldOutContrast | None, k: int) -> list[dict[str, Any]] | None:
    """Of a design: how many times as much each cell varies along a component as the reference, on unseen rows."""
    if held_out is None or held_out.cells is None:
        return None
    found = held_out.cells
    with np.errstate(over="ignore"):
        ratios = np.exp(found.log_ratios[:, k])
    return [
        {
            "name": shown_name(name),
            "ratio": _finite(ratio),
            "interval": [_finite(low), _finite(high)],
            "is_more": low > 1,
        }
        for name, ratio, (low, high) in zip(found.cells, ratios.tolist(), found.intervals[:, k].tolist(), strict=True)
    ]


def _design(subject: Subject, held_out: HeldOutContrast | None) -> dict[str, Any] | None:
    """Of a design: its cells and their rows, what they are compared with, and how alike conditions are."""
    design = subject.study.design
    if design is None:
        return None
    return {
        "kind": design.kind,
        "name": shown_name(design.name),
        "text": str(design),
        "short": shortly(design),
        "cells": {shown_name(cell): count for cell, count in zip(design.cells, design.counts, strict=True)},
        "reference": None if held_out is None or held_out.cells is None else shown_name(held_out.cells.reference),
        "similarity": similarity_of(subject.study, subject.path.estimator, float(subject.path.gammas[subject.start])),
    }


def _path(subject: Subject) -> dict[str, Any]:
    path, shares = subject.path, subject.path.shares()
    return {
        "gammas": path.gammas.tolist(),
        "start": subject.start,
        "foreground_share": shares.foreground.sum(axis=1).tolist(),
        "background_share": shares.backgrounds[0].sum(axis=1).tolist(),
        "axis_shares": _axis_shares(subject),
        "noise_variance": [_finite(value) for value in path.noise_variance],
        "depends_on_gamma": path.axis_ratios is None and len(path) > 1,
        "logarithmic": isinstance(path.estimator, Contrastive) and not isinstance(path.estimator, Likelihood),
    }


def _axis_shares(subject: Subject) -> dict[str, list[list[float] | None]]:
    """Fraction of each group's variance along the axes of the scatter plot at every gamma; None if it is not known.

    Away from the report's gamma the axes are rotated components. With missing values their variance is not known.
    """
    path, start = subject.path, subject.start
    if subject.inside is None:
        shares = path.shares()
        steps = range(len(path))
        return {name: [shares[name][g].tolist() if g == start else None for g in steps] for name in shares.names}
    frames = path.coordinates @ path.turns(start)
    frames /= np.linalg.norm(frames, axis=1, keepdims=True)
    found = {}
    for name in subject.rows.names:
        inside, weights = subject.inside[name], subject.tables.weights[name]  # of long rows, which count less
        covariance = inside.T @ inside if weights is None else inside.T @ (weights[:, None] * inside)
        along = np.einsum("gkd,gkd->gd", frames, covariance / subject.tables.totals[name] @ frames)
        found[name] = share_of(along, path.totals[name]).tolist()
    return found


def _uncertainty(posterior: ContrastPosterior) -> dict[str, Any]:
    chains, draws, _, d = posterior.loadings.shape
    angles = np.degrees(posterior.angles()[..., 0]).ravel()
    components = []
    for k in range(d):
        found = posterior.largest_loadings(k + 1, TOP_FEATURES, PROBABILITY)
        lists = {
            name: list(map(shown_name, found[name])) if name == "feature" else found[name].tolist() for name in found
        }
        components.append({"component": k, **lists})
    table = posterior.diagnostics() if posterior.kind == "gibbs" else None
    return {
        "kind": posterior.kind,
        "by_blocks": posterior.by_blocks,
        "power": posterior.power,
        "draws": chains * draws,
        "probability": PROBABILITY,
        "failures": posterior.failures,
        "divergences": posterior.divergences,
        "largest_r_hat": None if table is None else _finite(float(np.max(table["largest R-hat"]))),
        "least_ess": None if table is None else _finite(float(np.min(table["least ESS"]))),
        "angle_median": float(np.median(angles)),
        "angle_upper": float(np.quantile(angles, PROBABILITY)),
        "components": components,
    }
