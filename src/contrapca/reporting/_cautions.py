"""Caveats of a report, in words that need no statistics."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..fitting import SHARED_RATIO, looks_exchanged
from ..paths import ContrastPath
from ..selection import advice_on_values
from ..subspaces import principal_angles, principal_axes
from ..uncertainty import MAX_R_HAT, MIN_ESS
from ._points import MAX_POINTS
from ._subject import Subject

ONE_FEATURE = 0.8  # fraction of a component's squared loadings in one feature
ONE_ROW = 0.5  # fraction of a component's variance in one row
UNEQUAL_UNITS = 100.0  # ratio of standard deviations above which the larger ones dominate
MANY_MISSING = 0.2
STRONG = 0.9  # fraction of the largest gamma shown
WIDE_ANGLE = 30.0  # degrees
SAME_ANGLE = 5.0  # degrees from PCA below which the contrast has changed nothing
MAX_OUTLIER_ROWS = 200_000


def cautions(subject: Subject, summary: dict[str, Any]) -> list[str]:
    """One sentence per caveat; empty if there are none."""
    return [
        *_about_groups(subject, summary),
        *advice_on_values(subject.tables.rows),
        *_about_features(subject),
        *_about_components(subject, summary),
        *_about_uncertainty(summary["uncertainty"]),
        *_about_display(subject, summary),
    ]


def _about_groups(subject: Subject, summary: dict[str, Any]) -> list[str]:
    found, data, path = [], summary["data"], subject.path
    n, m, D = data["foreground"]["rows"], data["background"]["rows"], data["features"]
    if looks_exchanged(path.gamma_max, path.totals):
        found.append(
            "The controls vary more than the cases, so almost no contrast is possible. Were the two tables swapped?"
        )
    for rows, name in ((n, "cases"), (m, "controls")):
        if rows < D:
            found.append(
                f"There are fewer {name} ({rows}) than features ({D}). Directions found from so few rows may be due "
                "to chance: check the uncertainty (bootstrap), or confirm them with new samples."
            )
    for group, name in (("foreground", "cases"), ("background", "controls")):
        share = data[group]["missing_values"] / (data[group]["rows"] * D)
        if share > MANY_MISSING:
            found.append(f"{share:.0%} of the values of the {name} are missing: the results depend on the rest.")
    return found


def _about_features(subject: Subject) -> list[str]:
    path = subject.path
    if path.estimator.scale:
        return []
    deviations = np.sqrt(path.units.foreground.variance)
    positive = deviations[deviations > 0]
    if positive.size < 2 or positive.max() < UNEQUAL_UNITS * np.median(positive):
        return []
    largest, times = path.feature_names[int(np.argmax(deviations))], positive.max() / np.median(positive)
    return [
        f"The features are in very different units: {largest!r} varies {times:.0f} times "
        'more than a typical one, so it dominates. Unless that is intended, use scale="pooled".'
    ]


def _angle_to_pca(path: ContrastPath, g: int) -> float:
    """The largest angle, in degrees, to the plane of ordinary PCA (the longest loadings at gamma = 0)."""
    pca = principal_axes(path.loading_coordinates[0])[0][:, : path.n_components]
    shown = np.linalg.qr(path.coordinates[g])[0]
    return float(np.degrees(principal_angles(pca, shown)[0]))


def _about_components(subject: Subject, summary: dict[str, Any]) -> list[str]:
    found, path, g = [], subject.path, subject.start
    # Use held-out rows if possible: on the rows of the fit the ratio is far too large.
    ratios = {
        entry["component"]: entry["held_out_ratio"]
        or entry["foreground_variance"] / max(entry["background_variance"], 1e-300)
        for entry in summary["components"]
    }
    if path.gammas[0] == 0 < path.gammas[g] and _angle_to_pca(path, g) < SAME_ANGLE:
        found.append("The contrast changed nothing: these are the components of an ordinary PCA of the cases.")
    shared = [k for k, ratio in ratios.items() if ratio < SHARED_RATIO]
    if shared:
        times = ", ".join(f"{ratios[k]:.2g}" for k in shared[:3]) + ", ..." * (len(shared) > 3)
        found.append(
            f"{_listed(shared)} var{'ies' if len(shared) == 1 else 'y'} barely more in the cases than in the controls, "
            f"or less ({times} times), and may be something both share. {_way_out(subject)}"
        )
    U2 = path.components(path.gammas[g]) ** 2
    for k, weights in enumerate(U2):
        top = int(np.argmax(weights))
        if weights[top] > ONE_FEATURE:
            found.append(f"Component {k} is almost only the feature {path.feature_names[top]!r}: look at it directly.")
    return found + _outliers(subject)


def _listed(components: list[int]) -> str:
    if len(components) == 1:
        return f"Component {components[0]}"
    return f"Components {', '.join(map(str, components[:-1]))} and {components[-1]}"


def _way_out(subject: Subject) -> str:
    """What to try if both groups share a component."""
    path = subject.path
    if path.gammas[subject.start] < STRONG * path.gammas[-1]:
        return "A larger gamma may remove it."
    if path.estimator._method.has_likelihood and not path.gamma_max_is_bound:
        return "CPCA allows larger gammas, which may remove it; or use fewer components."
    return "Fewer components may help."


def _outliers(subject: Subject) -> list[str]:
    """Single rows that dominate a component."""
    rows = subject.rows.foreground
    if subject.tables.incomplete or rows.shape[0] > MAX_OUTLIER_ROWS:
        return []
    Z = subject.path.inside(rows) @ subject.path.projections()[subject.start]
    shares = Z**2 / np.maximum(np.sum(Z**2, axis=0), 1e-300)
    names = subject.row_names.foreground
    found = []
    for k in range(Z.shape[1]):
        i = int(np.argmax(shares[:, k]))
        if shares[i, k] > ONE_ROW:
            who = f"row {i}" if names is None else repr(names[i])
            found.append(
                f"A single case ({who}) accounts for {shares[i, k]:.0%} of component {k}; it may be an outlier. Try "
                "without it."
            )
    return found


def _about_uncertainty(uncertainty: dict[str, Any] | None) -> list[str]:
    if uncertainty is None:
        return []
    found = []
    if uncertainty["kind"] == "gibbs" and uncertainty["power"] == 1:
        found.append(
            "The intervals are from a posterior that was not calibrated: they can be far too narrow. Compare them "
            "with the bootstrap."
        )
    r_hat, ess = uncertainty["largest_r_hat"], uncertainty["least_ess"]
    if (r_hat or 0) > MAX_R_HAT or (ess or np.inf) < MIN_ESS or uncertainty["divergences"]:
        found.append("The draws behind the intervals have not converged yet: do not trust them; draw more.")
    if uncertainty["kind"] == "bootstrap" and uncertainty["angle_upper"] > WIDE_ANGLE:
        found.append(
            f"Other samples of the same size could give components {uncertainty['angle_upper']:.0f} degrees away from "
            "these: treat the picture as tentative."
        )
    if uncertainty["failures"]:
        found.append(
            f"In {uncertainty['failures']} of {uncertainty['failures'] + uncertainty['draws']} resampled tables this "
            "gamma was not possible: a smaller one would be safer."
        )
    return found


def _about_display(subject: Subject, summary: dict[str, Any]) -> list[str]:
    found, path = [], subject.path
    if subject.ends_early:
        found.append(
            f"With these missing values no solution was found above gamma = {path.gammas[-1]:.4g}, where the slider "
            f"ends; {path.gamma_max:.4g} is only an upper bound."
        )
    rows = summary["data"]["foreground"]["rows"] + summary["data"]["background"]["rows"]
    if rows > MAX_POINTS:
        found.append(
            f"The scatter shows a random sample of {MAX_POINTS:,} of {rows:,} rows; all numbers use every row."
        )
    return found
