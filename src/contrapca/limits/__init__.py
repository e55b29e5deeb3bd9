"""Limits of gamma: exact limits, sufficient bounds, and bounds for missing values."""

from ._exact import cpca_limit, pcpca_limit, rank_exceeds
from ._gamma_limits import GammaLimits, gamma_limits
from ._masked import comes_near_the_bound, count_bound, masked_bound
from ._span import Span
