"""The mathematics of incomplete groups."""

from ._collect import Incomplete, collect, collect_incomplete
from ._filled import any_folds, collect_expected, filled_draws, usable
from ._fit import (
    BACKTRACK,
    Start,
    attempt_fit,
    count_above_wider_noise,
    fit_incomplete,
    incomplete_background_model,
    masked_rank,
    upper_bound,
)
from ._limits import masked_bound
from ._rows import observe
