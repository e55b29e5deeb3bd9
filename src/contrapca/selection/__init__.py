"""Choosing gamma, the number of components and a method."""

from ..blocks import looks_like_replicates
from ._background import BackgroundCheck, check_background
from ._compare import Comparison, compare
from ._gamma_search import GammaSearch
from ._held_out import HeldOutContrast, held_out_contrast, held_out_of, prepared
from ._significance import LEAST_P, ContrastTest, Missing, at_equal_depth, contrast_test
from ._split_moments import GroupRows
from ._stability import StabilitySelection, stability_selection
from ._verdict import Verdict, verdict_on
