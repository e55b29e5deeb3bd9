"""Caveats of a report, in words that need no statistics."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._util.text import in_words
from ..fitting import AUTO_FRACTION, SHARED_RATIO, looks_swapped
from ..paths import ContrastPath
from ..sanity import Finding, both
from ..subspaces import principal_angles, principal_axes
from ..uncertainty import MAX_R_HAT, MIN_ESS
from ._points import MAX_POINTS
from ._subject import Subject

ONE_FEATURE = 0.8  # fraction of a component in one feature, by its squared direction and its squared loadings
ONE_ROW = 0.5  # fraction of a component's variance in one row
UNEQUAL_UNITS = 100.0  # ratio of standard deviations above which the larger ones dominate
MANY_MISSING = 0.2
STRONG = 0.9  # fraction of the largest gamma shown
WIDE_ANGLE = 30.0  # degrees
SAME_ANGLE = 5.0  # degrees from PCA below which the contrast has changed nothing
MAX_OUTLIER_ROWS = 200_000


def cautions(subject: Subject, summary: dict[str, Any], *, shown: bool = True) -> list[Finding]:
    """One finding per caveat, besides those of the tables; empty if there are none.

    Parameters
    ----------
    subject : Subject
    summary : dict
    shown : bool
        Whether there is a page, which may not show everything.
    """
    uncertainty = summary["uncertainty"]
    return [
        *_about_groups(subject, summary),
        *_about_features(subject),
        *_about_components(subject, summary),
        *([] if uncertainty is None else _about_uncertainty(uncertainty)),
        *(_about_display(subject, summary) if shown else []),
    ]


def _about_groups(subject: Subject, summary: dict[str, Any]) -> list[Finding]:
    found, data, path = [], summary["data"], subject.path
    n, m, D = data["foreground"]["rows"], data["background"]["rows"], data["features"]
    if looks_swapped(path.gamma_max, path.totals):
        found.append(
            both(
                "swapped",
                "The controls vary more than the cases, so almost no contrast is possible.",
                "Were the two tables swapped?",
            )
        )
    for rows, name in ((n, "cases"), (m, "controls")):
        if rows < D:
            found.append(
                Finding(
                    "few rows",
                    f"There are fewer {name} ({rows}) than features ({D}). Directions found from so few rows may be "
                    "due to chance:",
                    "check the uncertainty with bootstrap(), or confirm them with new samples.",
                    "check the uncertainty with --uncertainty bootstrap, or confirm them with new samples.",
                )
            )
    for group, name in (("foreground", "cases"), ("background", "controls")):
        share = data[group]["missing_values"] / (data[group]["rows"] * D)
        if share > MANY_MISSING:
            found.append(
                both(
                    "missing values",
                    f"{share:.0%} of the values of the {name} are missing: the results depend on the rest.",
                )
            )
    return found


def _about_features(subject: Subject) -> list[Finding]:
    path = subject.path
    if path.estimator.scale:
        return []
    deviations = np.sqrt(path.units.foreground.variance)
    positive = deviations[deviations > 0]
    if positive.size < 2 or positive.max() < UNEQUAL_UNITS * np.median(positive):
        return []
    largest, times = path.feature_names[int(np.argmax(deviations))], positive.max() / np.median(positive)
    return [
        Finding(
            "units",
            f"The features are in very different units: {largest!r} varies {times:.0f} times more than a typical one, "
            "so it dominates.",
            'Unless that is intended, use scale="pooled".',
            "Unless that is intended, add --scale pooled.",
        )
    ]


def _angle_to_pca(path: ContrastPath, g: int) -> float:
    """The largest angle, in degrees, to the plane of ordinary PCA (the longest loadings at gamma = 0)."""
    pca = principal_axes(path.loading_coordinates[0])[0][:, : path.n_components]
    shown = np.linalg.qr(path.coordinates[g])[0]
    return float(np.degrees(principal_angles(pca, shown)[0]))


def _about_components(subject: Subject, summary: dict[str, Any]) -> list[Finding]:
    found, path, g = [], subject.path, subject.start
    # Use held-out rows if possible: on the rows of the fit the ratio is far too large.
    ratios = {
        entry["component"]: entry["held_out_ratio"]
        or entry["foreground_variance"] / max(entry["background_variance"], 1e-300)
        for entry in summary["components"]
    }
    if path.gammas[0] == 0 < path.gammas[g] and _angle_to_pca(path, g) < SAME_ANGLE:
        found.append(
            both(
                "no contrast",
                "The contrast changed nothing: these are the components of an ordinary PCA of the cases.",
            )
        )
    shared = [k for k, ratio in ratios.items() if ratio < SHARED_RATIO]
    if shared:
        many = len(shared) > 1
        times = ", ".join(f"{ratios[k]:.2g}" for k in shared[:3]) + ", ..." * (len(shared) > 3)
        found.append(
            both(
                "shared",
                f"Component{'s' * many} {in_words(k + 1 for k in shared)} var{'y' if many else 'ies'} hardly more in "
                f"the cases than in the controls, or even less ({times} times as much), and may be something both "
                "share.",
                _way_out(subject),
            )
        )
    # What rows are projected onto, and what the tables and bars show.
    gamma = path.gammas[g]
    for k, both_weights in enumerate(zip(path.components(gamma) ** 2, path.loadings(gamma).T ** 2, strict=True)):
        top = int(np.argmax(both_weights[1]))
        if all(weights[top] > ONE_FEATURE * weights.sum() for weights in both_weights):
            name = path.feature_names[top]
            found.append(
                both("one feature", f"Component {k + 1} is almost only the feature {name!r}:", "look at it directly.")
            )
    return found + _outliers(subject)


def _way_out(subject: Subject) -> str:
    """What to try if both groups share a component."""
    path = subject.path
    if path.gammas[subject.start] < STRONG * path.gammas[-1]:
        return "A larger gamma may remove it."
    if path.estimator._method.has_likelihood and not path.gamma_max_is_bound:
        return "CPCA allows larger gammas, which may remove it; or use fewer components."
    return "Fewer components may help."


def _outliers(subject: Subject) -> list[Finding]:
    """Single rows that dominate a component."""
    if subject.inside is None or len(subject.inside.foreground) > MAX_OUTLIER_ROWS:
        return []
    Z = subject.latents()
    shares = Z**2 / np.maximum(np.sum(Z**2, axis=0), 1e-300)
    names = subject.row_names.foreground
    found = []
    for k in range(Z.shape[1]):
        i = int(np.argmax(shares[:, k]))
        if shares[i, k] > ONE_ROW:
            who = f"row {i}" if names is None else repr(names[i])
            found.append(
                both(
                    "outlier",
                    f"A single case ({who}) accounts for {shares[i, k]:.0%} of component {k + 1};",
                    "it may be an outlier. Try without it.",
                )
            )
    return found


def _about_uncertainty(uncertainty: dict[str, Any]) -> list[Finding]:
    found = []
    if uncertainty["kind"] == "gibbs" and uncertainty["power"] == 1:
        found.append(
            both(
                "uncertainty",
                "The intervals are from a posterior that was not calibrated: they can be far too narrow.",
                "Compare them with the bootstrap.",
            )
        )
    r_hat, ess = uncertainty["largest_r_hat"], uncertainty["least_ess"]
    if (r_hat or 0) > MAX_R_HAT or (ess or np.inf) < MIN_ESS or uncertainty["divergences"]:
        found.append(
            both(
                "uncertainty",
                "The draws behind the intervals have not converged yet: do not trust them; draw more.",
            )
        )
    if uncertainty["kind"] == "bootstrap" and uncertainty["angle_upper"] > WIDE_ANGLE:
        found.append(
            both(
                "uncertainty",
                f"Other samples of the same size could give components {uncertainty['angle_upper']:.0f} degrees away "
                "from these: treat the picture as tentative.",
            )
        )
    if uncertainty["failures"]:
        found.append(
            both(
                "uncertainty",
                f"In {uncertainty['failures']} of {uncertainty['failures'] + uncertainty['draws']} resampled tables "
                "this gamma was not possible: a smaller one would be safer.",
            )
        )
    return found


def _about_display(subject: Subject, summary: dict[str, Any]) -> list[Finding]:
    found, path = [], subject.path
    # Well below the bound on gamma, because there are no more solutions.
    if path.gamma_max_is_bound and path.gammas[-1] < 0.99 * AUTO_FRACTION * path.gamma_max:
        found.append(
            both(
                "display",
                f"With these missing values no solution was found above gamma = {path.gammas[-1]:.4g}, where the "
                f"slider ends; {path.gamma_max:.4g} is only an upper bound.",
            )
        )
    rows = summary["data"]["foreground"]["rows"] + summary["data"]["background"]["rows"]
    if rows > MAX_POINTS:
        found.append(
            both(
                "display",
                f"The scatter shows a random sample of {MAX_POINTS:,} of {rows:,} rows; all numbers use every row.",
            )
        )
    return found
