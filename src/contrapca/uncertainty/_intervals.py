"""Intervals from draws: quantiles of a posterior, and corrected ones of the bootstrap (docs/math.md, F19).

Refits scatter around the estimate as the estimate does around the truth, and are biased as it is: they lie on the far
side of it. Their quantiles then miss the truth by twice the bias.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from .._util.arrays import Array

Interval = tuple[Array, Array]  # lower and upper ends


def check_probability(probability: float) -> None:
    """Refuse what is no probability."""
    if not 0 < probability < 1:
        raise ValueError(f"probability={probability} must be between 0 and 1.")


def quantile_interval(draws: Array, probability: float) -> Interval:
    """The equal-tailed interval of draws (n, ...), shape (...) each end."""
    lower, upper = np.quantile(draws, [(1 - probability) / 2, (1 + probability) / 2], axis=0)
    return lower, upper


def normal_interval(estimate: Array, draws: Array, probability: float) -> Interval:
    """estimate -+ z sd of the refits (n, ...): for loadings.

    Each refit is turned towards the estimate, which shortens it as if the estimate were the truth. How far the refits
    scatter tells how far off the estimate is, but their centre does not.
    """
    reach = ndtri((1 + probability) / 2) * draws.std(axis=0, ddof=1)
    return estimate - reach, estimate + reach


def corrected_log_interval(estimate: float, draws: Array, probability: float) -> tuple[float, float]:
    """exp(log estimate - bias -+ z sd), with bias and sd of the logarithms of the refits (n,): for variances."""
    logarithms = np.log(draws)
    centre = 2 * np.log(estimate) - logarithms.mean()
    reach = ndtri((1 + probability) / 2) * logarithms.std(ddof=1)
    return float(np.exp(centre - reach)), float(np.exp(centre + reach))
