"""gamma by a budget (F28): no more background variance along the components than the background's noise has."""

from __future__ import annotations

from dataclasses import replace

from ..groups import Groups
from ..limits import cpca_limit
from ..moments import Complete, Moments
from ..solvers import budget_strengths
from ._axes import noise_variance

LEAST = 1e-6  # of a background's budget, relative to the mean variance of either group: 0 would need infinite strength
CLOSEST = 1e-3  # how near the limit of gamma it may come


def budgeted(data: Complete, d: int) -> tuple[Complete, float, float | None]:
    """The data with the part of gamma that each background needs; gamma, the sum over the backgrounds; and its limit,
    if that was needed."""
    groups = data.groups
    tau = budget_strengths(groups, d, [_budget(group, groups) for group in groups.backgrounds]).strengths
    gamma = float(tau.sum())
    if gamma > 0 and tau.size > 1:
        mix = tuple((tau / gamma).tolist())
        data = replace(data, groups=replace(groups, mix=mix), units=replace(data.units, mix=mix))
    if gamma <= 0:
        return data, 0.0, None
    limit = cpca_limit(data.groups, d)
    return data, min(gamma, (1 - CLOSEST) * limit), limit


def _budget(group: Moments, groups: Groups[Moments]) -> float:
    largest = max(either.scatter.trace / either.weight for either in (group, groups.foreground))
    return max(noise_variance(group), LEAST * largest / group.mean.size)
