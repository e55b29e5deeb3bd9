"""Uncertainty: Gibbs posteriors, the bootstrap, and the theory behind them."""

from .bingham import sample_frames, sample_vectors
from .bootstrap import Refits, bootstrap_observed, bootstrap_refits
from .diagnostics import MIN_DRAWS
from .draws import FORMAT as POSTERIOR_FORMAT
from .draws import MAX_R_HAT, MIN_ESS, ContrastPosterior, align, restore_posterior
from .nuts import sample_nuts
from .target import GibbsTarget
from .theory import divergence, risk, risk_minimizer

__all__ = [
    "MAX_R_HAT",
    "MIN_DRAWS",
    "MIN_ESS",
    "POSTERIOR_FORMAT",
    "ContrastPosterior",
    "GibbsTarget",
    "Refits",
    "align",
    "bootstrap_observed",
    "bootstrap_refits",
    "divergence",
    "restore_posterior",
    "risk",
    "risk_minimizer",
    "sample_frames",
    "sample_nuts",
    "sample_vectors",
]
