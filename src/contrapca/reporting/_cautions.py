"""Cautions of a report, in words that need no statistics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._util.text import joined
from ..contrast import AUTO_FRACTION, SHARED_RATIO, principal_angles, principal_axes
from ..data.checks import Finding
from ..estimators import Likelihood
from ..inference import MAX_R_HAT, MIN_ESS
from ._points import MAX_POINTS
from ._subject import Subject

ONE_FEATURE = 0.8  # fraction of a component in one feature, by its squared direction and its squared loadings
ONE_ROW = 0.5  # fraction of a component's variance in one row
UNEQUAL_UNITS = 100.0  # ratio of standard deviations above which the larger ones dominate
MANY_MISSING = 0.2  # fraction of a group's values
STRONG = 0.9  # fraction of the largest gamma shown
WIDE_ANGLE = 30.0  # degrees
BOOTSTRAP = ("from bootstrap()", "with --uncertainty bootstrap")  # in Python, and on the command line
SAME_ANGLE = 5.0  # degrees from PCA below which the contrast has changed nothing


def cautions(subject: Subject, summary: dict[str, Any], *, by_blocks: bool, shown: bool) -> Iterator[Finding]:
    """One finding per caution, besides those of the tables; `shown`: there is a page, which may not show all."""
    yield from _about_groups(summary)
    yield from _about_features(subject)
    yield from _about_components(subject, summary)
    yield from _outliers(subject)
    if summary["uncertainty"] is not None:
        yield from _about_uncertainty(summary["uncertainty"], by_blocks)
    if shown:
        yield from _about_display(subject, summary["data"])


def _about_groups(summary: dict[str, Any]) -> Iterator[Finding]:
    data, words = summary["data"], summary["words"]
    D, groups = data["features"], ((words["many"], data["foreground"]), (words["others"], data["background"]))
    confirm = "confirm them with new samples."
    ways = [f"See intervals of the loadings {how}, or {confirm}" for how in BOOTSTRAP]
    if summary["design"] is not None:  # whose groups are no populations to resample
        ways = [confirm.capitalize()]
    for name, group in groups:
        if group["rows"] < D:
            yield Finding(
                "few rows",
                f"There are fewer {name} ({group['rows']}) than features ({D}): which features a component consists of "
                "is then uncertain, even where it is clear that there is one.",
                *ways,
            )
    for name, group in groups:
        share = group["missing_values"] / (group["rows"] * D)
        if share > MANY_MISSING:
            yield Finding(
                "missing values",
                f"{share:.0%} of the values of the {name} are missing: the results depend on the rest.",
            )


def _about_features(subject: Subject) -> Iterator[Finding]:
    path = subject.path
    deviations = np.sqrt(path.scaling.foreground.variance)
    positive = deviations[deviations > 0]
    if path.estimator.scale or positive.size < 2 or positive.max() < UNEQUAL_UNITS * np.median(positive):
        return
    largest, times = subject.features[int(np.argmax(deviations))], positive.max() / np.median(positive)
    yield Finding(
        "units",
        f"The features are in very different units: {largest!r} varies {times:.0f} times more than a typical one, so "
        "it dominates.",
        'Unless that is intended, use scale="pooled".',
        "Unless that is intended, add --scale pooled.",
    )


def _about_components(subject: Subject, summary: dict[str, Any]) -> Iterator[Finding]:
    path, g = subject.path, subject.start
    if path.gammas[0] == 0 < path.gammas[g]:  # the longest loadings at gamma = 0 are the plane of ordinary PCA
        pca = principal_axes(path.loading_coordinates[0])[0][:, : path.n_components]
        if np.degrees(principal_angles(pca, np.linalg.qr(path.coordinates[g])[0])[0]) < SAME_ANGLE:
            yield Finding(
                "no contrast", "The contrast changed nothing: these are the components of an ordinary PCA of the cases."
            )
    lows = {entry["component"]: (entry["held_out_interval"] or [None])[0] for entry in summary["components"]}
    ratios = {entry["component"]: _ratio(entry) for entry in summary["components"]}
    ratios = {k: ratio for k, ratio in ratios.items() if lows[k] is None or lows[k] <= 1}  # the others surely vary more
    shared = [k for k, ratio in ratios.items() if ratio < SHARED_RATIO]
    if shared:
        many = len(shared) > 1
        times = ", ".join(f"{ratios[k]:.2g}" for k in shared[:3]) + ", ..." * (len(shared) > 3)
        yield Finding(
            "shared",
            f"Component{'s' * many} {joined(k + 1 for k in shared)} var{'y' if many else 'ies'} hardly more "
            f"{summary['words']['more']}, or even less ({times} times as much): chance, or something that both share.",
            _way_out(subject),
        )
    # What rows are projected onto, and what the tables and bars show.
    gamma = path.gammas[g]
    for k, both_weights in enumerate(zip(path.components(gamma) ** 2, path.loadings(gamma).T ** 2, strict=True)):
        top = int(np.argmax(both_weights[1]))
        if all(weights[top] > ONE_FEATURE * weights.sum() for weights in both_weights):
            name = subject.features[top]
            yield Finding(
                "one feature", f"Component {k + 1} is almost only the feature {name!r}:", "look at it directly."
            )


def _ratio(entry: dict[str, Any]) -> float:
    """How many times as much the cases vary, in rows that were held out if possible: on those of the fit it is far
    too large."""
    if entry["held_out_ratio"] is not None:
        return float(entry["held_out_ratio"])
    return float(entry["foreground_variance"] / max(entry["background_variance"], 1e-300))


def _way_out(subject: Subject) -> str:
    """What to try if both groups share a component."""
    path = subject.path
    if path.axis_ratios is not None:  # contrast axes hardly depend on gamma
        return "Fewer components may help."
    if path.gammas[subject.start] < STRONG * path.gammas[-1]:
        return "A larger gamma may remove it."
    if isinstance(path.estimator, Likelihood) and not path.gamma_max_is_bound:
        return "CPCA allows larger gammas, which may remove it; or use fewer components."
    return "Fewer components may help."


def _outliers(subject: Subject) -> Iterator[Finding]:
    """Single rows that dominate a component."""
    if subject.inside is None:
        return
    Z = subject.latents
    shares = Z**2 / np.maximum(np.sum(Z**2, axis=0), 1e-300)
    names = subject.row_names.foreground
    for k, i in enumerate(np.argmax(shares, axis=0).tolist()):
        if shares[i, k] > ONE_ROW:
            who = f"row {i}" if names is None else repr(names[i])
            yield Finding(
                "outlier",
                f"A single case ({who}) accounts for {shares[i, k]:.0%} of component {k + 1};",
                "it may be an outlier. Try without it.",
            )


def _about_uncertainty(uncertainty: dict[str, Any], by_blocks: bool) -> Iterator[Finding]:
    if by_blocks and uncertainty["power"] == 1 and not uncertainty["by_blocks"]:
        yield Finding(
            "uncertainty",
            "The intervals take the rows for independent, but they come in blocks: they are too narrow.",
            "Take them from the bootstrap of whole blocks.",
        )
    if uncertainty["kind"] == "gibbs" and uncertainty["power"] == 1:
        yield Finding(
            "uncertainty",
            "The intervals are from a posterior that was not calibrated: they can be far too narrow.",
            "Compare them with the bootstrap.",
        )
    r_hat, ess = uncertainty["largest_r_hat"], uncertainty["least_ess"]
    mixed = (r_hat is None or r_hat <= MAX_R_HAT) and (ess is None or ess >= MIN_ESS)
    if not mixed or uncertainty["divergences"]:
        yield Finding(
            "uncertainty", "The draws behind the intervals have not converged yet: do not trust them; draw more."
        )
    if uncertainty["kind"] == "bootstrap" and uncertainty["angle_upper"] > WIDE_ANGLE:
        yield Finding(
            "uncertainty",
            f"Other samples of the same size could give components {uncertainty['angle_upper']:.0f} degrees away from "
            "these: treat the picture as tentative.",
        )
    if uncertainty["failures"]:
        yield Finding(
            "uncertainty",
            f"In {uncertainty['failures']} of {uncertainty['failures'] + uncertainty['draws']} resampled tables this "
            "gamma was not possible: a smaller one would be safer.",
        )


def _about_display(subject: Subject, data: dict[str, Any]) -> Iterator[Finding]:
    path = subject.path
    # Well below the bound on gamma, because there are no more solutions.
    if path.gamma_max_is_bound and path.gammas[-1] < 0.99 * AUTO_FRACTION * path.gamma_max:
        yield Finding(
            "display",
            f"With these missing values no solution was found above gamma = {path.gammas[-1]:.4g}, where the slider "
            f"ends; {path.gamma_max:.4g} is only an upper bound.",
        )
    rows = data["foreground"]["rows"] + data["background"]["rows"]
    if rows > MAX_POINTS:
        yield Finding(
            "display",
            f"The scatter shows a random sample of {MAX_POINTS:,} of {rows:,} rows; all numbers use every row.",
        )
