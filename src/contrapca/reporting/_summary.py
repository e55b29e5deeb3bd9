"""The summary: everything in a report as JSON-compatible values."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from importlib.metadata import version
from typing import Any

import numpy as np

from .._util.text import Words, natural_order
from .._version import __version__
from ..contrast import share_of
from ..data import units_of
from ..data.checks import Finding, Given, check_groups, shows_replicates, warn_of_replicates
from ..estimators import Contrastive, Likelihood
from ..exceptions import InfeasibleGammaError, RankError
from ..inference import ContrastPosterior, ContrastTest, HeldOutContrast, Verdict, held_out_of, prepared, verdict_on
from ..missing import usable
from ..plots import NO_LABEL
from ._answers import carriers, remarks, separations, support_of
from ._cautions import cautions
from ._code import python_code
from ._methods_text import citations, methods_paragraph
from ._subject import TOP_FEATURES, Subject, shown_name

TITLE = "What varies in the cases but not in the controls"
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
    by_blocks = subject.study.blocks is not None
    sources, code, findings = ((), None, None) if origin is None else (origin.sources, origin.command, origin.findings)
    if findings is None:
        names, columns = subject.row_names, subject.tables.names
        findings = check_groups(Given(subject.rows, columns, names, subject.classes, by_blocks))
        findings = [finding for finding in findings if depth == "warn" or finding.check != "depth"]
    ignores_replicates = shows_replicates(findings)
    verdict = _judge(subject, test, depth, progress, ignores_replicates=ignores_replicates)
    held_out = _on_unseen_rows(subject)
    answer = None if verdict is None else verdict.sentence  # about the tables alone
    tested = None if verdict is None or verdict.test is None else bool(verdict.test.n_components)
    components = _components(subject, held_out)
    for entry in components:
        entry["support"] = support_of(entry, tested, ignores_replicates=ignores_replicates)
    if verdict is not None:
        strongest = [[item["feature"] for item in entry["features"][:TOP_NAMES]] for entry in components]
        verdict = verdict.about(held_out, strongest)
    given = os.environ.get("SOURCE_DATE_EPOCH", "")  # sets the date, so that a page can be made again to the byte
    today = datetime.fromtimestamp(int(given), UTC).date() if given.isdecimal() else date.today()
    summary = {
        "title": TITLE if title is None else shown_name(str(title)),
        "answer": answer,
        **({"verdict": None, "test": None} if verdict is None else verdict.summary()),
        "remarks": remarks(subject),
        "data": _data(subject, sources),
        "model": _model(subject),
        "components": components,
        "by_blocks": by_blocks,
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
    words: Words = "python" if code is None else "command"
    found = [*findings, *cautions(subject, summary, by_blocks=by_blocks, shown=shown)]
    summary["cautions"] = [finding.text(words) for finding in found]
    summary["caution_topics"] = list(dict.fromkeys(finding.check for finding in found))
    return summary | {"methods": methods_paragraph(summary, subject.kind), "citations": citations(subject.kind)}


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
    if study.blocks is None:
        warn_of_replicates(subject.row_names)
    return verdict_on(
        study.tables,
        n_shown=n_shown,
        blocks=study.blocks,
        paired=study.paired,
        scale=subject.scale,
        depth=depth,
        ignores_replicates=ignores_replicates,
        progress=progress,
    )


def _on_unseen_rows(subject: Subject) -> HeldOutContrast | None:
    """Ratios of variances on held-out rows; None if these tables do not allow it."""
    if min(rows.shape[0] for rows in subject.rows) < MIN_ROWS:
        return None
    try:
        tables = usable(subject.tables, "holding rows out")
        unit_of = units_of(subject.study, tables, least=2, what="holding rows out")
        model = subject.path.model(subject.path.gammas[subject.start])
        return held_out_of(prepared(model), tables, unit_of)
    except (InfeasibleGammaError, RankError):  # gamma or n_components is too large for fewer rows
        return None


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
    shortened = {}  # the names of the rows of each group that are so long that they count less
    for name, rows in () if subject.shortened is None else subject.shortened.map_named(lambda *of: of):
        own = subject.row_names[name]
        shortened[name] = [f"row {k}" if own is None else own[k] for k in rows.tolist()]
    return {
        "estimator": subject.kind.__name__,
        "n_components": path.n_components,
        "n_latent": path.loading_coordinates.shape[2],
        "gamma": float(path.gammas[g]),
        "limit": _finite(path.gamma_max),
        "limit_is_bound": path.gamma_max_is_bound,
        "scale": path.estimator.scale,
        "noise": subject.noise,
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
        entry = {
            "component": k,
            "eigenvalue": float(path.eigenvalues[g, k]),
            "foreground_variance": float(path.explained_variance[g, k]),
            "background_variance": float(path.background_variance[g, k]),
            "foreground_share": float(shares.foreground[g, k]),
            "background_share": float(shares.backgrounds[0][g, k]),
            **{name: None if held_out is None else value(held_out, k) for name, value in UNSEEN.items()},
            "label": label,
            "carrier": carrier if held_out is None else carrier | {"share": float(held_out.largest_share[k])},
            "features": [{"feature": subject.features[j], "loading": float(W[j, k])} for j in strongest],
        }
        entries.append(entry)
    return entries


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
        inside = subject.inside[name]
        along = np.einsum("gkd,gkd->gd", frames, inside.T @ inside / len(inside) @ frames)
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
