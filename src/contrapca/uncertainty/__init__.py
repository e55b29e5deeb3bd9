"""Uncertainty: Gibbs posteriors and the bootstrap."""

from ._bingham import sample_frames, sample_vectors
from ._calibration import calibrate_power
from ._diagnostics import MIN_DRAWS
from ._draws import MAX_R_HAT, MIN_ESS, ContrastPosterior
from ._intervals import corrected_log_interval, normal_interval
from ._models import bootstrap, posterior
from ._nuts import sample_nuts
from ._target import GibbsTarget
