"""Uncertainty: Gibbs posteriors, the bootstrap, and the theory behind them."""

from ._bingham import sample_frames, sample_vectors
from ._bootstrap import bootstrap
from ._calibration import calibrate_learning_rate
from ._diagnostics import MIN_DRAWS
from ._draws import MAX_R_HAT, MIN_ESS, ContrastPosterior
from ._gibbs import sample_posterior
from ._nuts import sample_nuts
from ._target import GibbsTarget
from ._theory import divergence, risk, risk_minimizer
