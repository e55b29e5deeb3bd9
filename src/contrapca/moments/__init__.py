"""Rows in, sufficient statistics out: means, scatter matrices and their contrast."""

from ._contrast import Contrast, Pair, alone
from ._masked import MaskedGroup, MaskedPair, MaskedRows, observe, pooled_observed_deviation
from ._moments import DenseScatter, Moments, finite_column_means, has_holes, observed_columns, pooled_deviation
from ._reduced import reduce_rows
from ._rows import RowScatter, accumulate, row_moments

__all__ = [
    "Contrast",
    "DenseScatter",
    "MaskedGroup",
    "MaskedPair",
    "MaskedRows",
    "Moments",
    "Pair",
    "RowScatter",
    "accumulate",
    "alone",
    "finite_column_means",
    "has_holes",
    "observe",
    "observed_columns",
    "pooled_deviation",
    "pooled_observed_deviation",
    "reduce_rows",
    "row_moments",
]
