"""What commands say of results: lines for people, in the words of the command line, and values for programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .._util.tables import Table
from .._util.text import format_gamma, plural
from ..estimators import facts
from ..inference import ContrastPath

SEEN = (
    "The components were chosen for these rows, in which cases and controls therefore differ too much: rows that the "
    "fit has not seen tell how real they are."
)


def records(table: Table) -> list[dict[str, Any]]:
    """The rows of a table, names with underscores."""
    names = [name.replace(" ", "_") for name in table]
    rows = zip(*(column.tolist() for column in table.values()), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


def model_lines(model: Any) -> list[Any]:
    """A fitted model: a sentence, its components, and their strongest features."""
    fit, found = model.fit_, facts(model)
    if "components" not in found:  # CLVM, which commands do not fit
        return [model.summary()]
    width, given = fit.scaling.foreground.mean.size, plural(fit.n_shown, "component")
    line = f"{type(model).__name__} with {given} of {width} features"
    if "gamma" in found:
        line += f", gamma = {format_gamma(fit.gamma)}"
        if np.isfinite(limit := found.get("gamma_max", np.nan)):
            size = "" if fit.n_latent == fit.n_shown else f" with {fit.n_latent} dimensions"
            line += f" ({'upper bound' if fit.limit_is_bound else 'limit'} {format_gamma(limit)}{size})"
    lines: list[Any] = [line, *([str(fit.plateau)] if fit.plateau is not None else [])]
    if fit.shortened is not None and (long := sum(own.size for own in fit.shortened)):
        lines.append(f"{plural(long, 'row')} far from most {'counts' if long == 1 else 'count'} less.")
    note = [SEEN, ""] if fit.variances.backgrounds else []
    top = found["top_features"]
    return [*lines, "", found["components"], "", *note, "Features with the largest loadings:", "", top, ""]


def model_facts(model: Any) -> dict[str, Any]:
    """A fitted model as values."""
    return {name: records(value) if isinstance(value, Table) else value for name, value in facts(model).items()}


def path_lines(path: ContrastPath) -> list[str]:
    """A path in lines."""
    limit = f"{'upper bound' if path.gamma_max_is_bound else 'limit'} {format_gamma(path.gamma_max)}"
    first, last = format_gamma(path.gammas[0]), format_gamma(path.gammas[-1])
    name = type(path.model(path.gammas[0])).__name__
    return [
        f"{name} with {plural(path.n_components, 'component')} of {len(path.feature_names)} features "
        f"at {len(path)} gammas from {first} to {last} ({limit})",
        f"Gammas whose components differ most: {', '.join(map(format_gamma, path.representatives()))}",
    ]


def path_facts(path: ContrastPath) -> dict[str, Any]:
    """A path as values."""
    return {
        "method": type(path.estimator).__name__.lower(),
        "n_features": len(path.feature_names),
        "n_components": path.n_components,
        "gamma_max": path.gamma_max,
        "gamma_max_is_bound": path.gamma_max_is_bound,
        "gammas": path.gammas,
        "representatives": path.representatives(),
    }


def verdict_lines(summary: dict[str, Any]) -> list[str]:
    """The verdict of a summary in lines for people, the first ones of the output."""
    if summary.get("verdict") is None:
        return []
    remarks = [] if summary["test"] is None else summary["test"]["remarks"]
    lines = [summary["verdict"], *remarks, *summary.get("remarks", [])]  # the last of a report
    return [*lines, ""]


def unseen_lines(summary: dict[str, Any]) -> list[Any]:
    """What other halves of the rows say of each component, in lines for people; none where that is not known."""
    components = [entry for entry in summary.get("components", ()) if entry["held_out_ratio"] is not None]
    if not components:
        return []

    def times(ratios: Iterable[float]) -> Any:  # in as many digits as the verdict has them
        return np.array([f"{ratio:.2g}" if ratio < 100 else f"{ratio:.0f}" for ratio in ratios], dtype=object)

    low, high = zip(*(entry["held_out_interval"] for entry in components), strict=True)
    columns: dict[str, Any] = {"component": np.array([entry["component"] + 1 for entry in components])}
    columns["ratio"] = times(entry["held_out_ratio"] for entry in components)
    columns |= {"from": times(low), "to": times(high)}
    columns["found again"] = np.array(["yes" if entry["found_again"] else "no" for entry in components], dtype=object)
    share = "largest share of one block" if summary["by_blocks"] else "largest share of one case"
    columns[share] = np.array([entry["largest_share"] for entry in components])
    return ["Variance of cases over that of controls, on rows that the fit has not seen:", Table(columns), ""]
