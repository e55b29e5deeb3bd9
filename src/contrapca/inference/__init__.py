"""Is it real, how sure, and which is better: functions of an estimator and a study."""

from ._axes import GroupRows
from ._background import check_background
from ._bootstrap import bootstrap
from ._compare import Comparison, compare
from ._conditions import ConditionSimilarity, condition_similarity
from ._draws import MAX_R_HAT, MIN_ESS, ContrastPosterior
from ._gamma_limits import gamma_limits
from ._gamma_search import GammaSearch
from ._held_out import HeldOutContrast, held_out_contrast, held_out_of, prepared
from ._path import ContrastPath, contrast_path, path_through
from ._posterior import calibrate_power, posterior
from ._spread import MIN_UNITS
from ._stability import stability_selection
from ._test import contrast_test, verdict_on
from ._verdict import ContrastTest, Verdict, at_equal_depth
