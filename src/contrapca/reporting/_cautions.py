"""What to be careful about, in words that need no statistics."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._array import is_sparse
from ..estimators import has_holes
from ..posterior import MAX_R_HAT, MIN_ESS
from ._points import MAX_POINTS
from ._subject import Subject

SHARED_RATIO = 1.5  # a component that varies less than this many times more in the cases may be shared
ONE_FEATURE = 0.8  # of a component's squared loadings in one feature
ONE_ROW = 0.5  # of a component's variance in one row
UNEQUAL_UNITS = 100.0  # ratio of standard deviations from which the larger ones take over
MANY_MISSING = 0.2
TINY_LIMIT = 0.1
WIDE_ANGLE = 30.0  # degrees
MAX_OUTLIER_ROWS = 200_000


def cautions(subject: Subject, summary: dict[str, Any]) -> list[str]:
    """One text for each thing that a careful reader should know; none where all is well."""
    return [
        *_about_groups(subject, summary),
        *_about_features(subject),
        *_about_components(subject, summary),
        *_about_uncertainty(summary["uncertainty"]),
        *_about_display(summary),
    ]


def _about_groups(subject: Subject, summary: dict[str, Any]) -> list[str]:
    found, data, path = [], summary["data"], subject.path
    n, m, D = data["foreground"]["rows"], data["background"]["rows"], data["features"]
    if path.limit < TINY_LIMIT and path.totals[1] > path.totals[0]:
        found.append(
            "The controls vary more than the cases, so that hardly any contrast is possible. Were the two tables "
            "exchanged?"
        )
    for rows, name in ((n, "cases"), (m, "controls")):
        if rows < D:
            found.append(
                f"There are fewer {name} ({rows}) than features ({D}). Directions found from so few rows can be "
                "chance: look at the uncertainty (bootstrap), or confirm with new samples."
            )
    for group, name in (("foreground", "cases"), ("background", "controls")):
        share = data[group]["missing_values"] / (data[group]["rows"] * D)
        if share > MANY_MISSING:
            found.append(f"{share:.0%} of the values of the {name} are missing: what is shown rests on the others.")
    return found


def _about_features(subject: Subject) -> list[str]:
    path, rows = subject.path, subject.tables[0]
    if path.scaling or is_sparse(rows):
        return []
    with np.errstate(invalid="ignore"):
        deviations = np.nanstd(rows, axis=0)
    positive = deviations[deviations > 0]
    if positive.size < 2 or positive.max() < UNEQUAL_UNITS * np.median(positive):
        return []
    largest = path.feature_names[int(np.nanargmax(deviations))]
    times = positive.max() / np.median(positive)
    return [
        f"The features are in very different units: {largest!r} varies {times:.0f} times "
        'more than a typical one, so that it counts that much more. Unless that is meant, use scale="pooled".'
    ]


def _about_components(subject: Subject, summary: dict[str, Any]) -> list[str]:
    found, path, g = [], subject.path, subject.start
    for entry in summary["components"]:
        k, ratio = entry["component"], entry["foreground_variance"] / max(entry["background_variance"], 1e-300)
        if ratio < SHARED_RATIO:
            found.append(
                f"Component {k} varies hardly more in the cases than in the controls ({ratio:.2g} times): it may be "
                "something that both share. A larger gamma, CPCA or fewer components may help."
            )
    U2 = path.components(g) ** 2
    for k, weights in enumerate(U2):
        top = int(np.argmax(weights))
        if weights[top] > ONE_FEATURE:
            found.append(f"Component {k} is almost only one feature, {path.feature_names[top]!r}: look at it directly.")
    return found + _outliers(subject)


def _outliers(subject: Subject) -> list[str]:
    """Rows that make a component on their own."""
    rows = subject.tables[0]
    if has_holes(rows) or rows.shape[0] > MAX_OUTLIER_ROWS:
        return []
    Z = subject.path.inside(rows) @ subject.path.projections()[subject.start]
    shares = Z**2 / np.maximum(np.sum(Z**2, axis=0), 1e-300)
    names = subject.row_names[0]
    found = []
    for k in range(Z.shape[1]):
        i = int(np.argmax(shares[:, k]))
        if shares[i, k] > ONE_ROW:
            who = f"row {i}" if names is None else repr(names[i])
            found.append(
                f"One case, {who}, makes {shares[i, k]:.0%} of component {k} alone: an outlier? Try without it."
            )
    return found


def _about_uncertainty(uncertainty: dict[str, Any] | None) -> list[str]:
    if uncertainty is None:
        return []
    found = []
    r_hat, ess = uncertainty["largest_r_hat"], uncertainty["least_ess"]
    if (r_hat or 0) > MAX_R_HAT or (ess or np.inf) < MIN_ESS or uncertainty["divergences"]:
        found.append("The draws behind the intervals have not settled yet: do not trust them; draw more.")
    if uncertainty["angle_upper"] > WIDE_ANGLE:
        found.append(
            f"Other samples of the same size could well give components {uncertainty['angle_upper']:.0f} degrees away "
            "from these: treat the picture as a suggestion."
        )
    if uncertainty["failures"]:
        found.append(
            f"In {uncertainty['failures']} of {uncertainty['failures'] + uncertainty['draws']} resampled tables this "
            "gamma was not possible at all: a smaller one would be safer."
        )
    return found


def _about_display(summary: dict[str, Any]) -> list[str]:
    rows = summary["data"]["foreground"]["rows"] + summary["data"]["background"]["rows"]
    if rows <= MAX_POINTS:
        return []
    return [f"The scatter shows a random sample of {MAX_POINTS:,} of {rows:,} rows; all numbers use every row."]
