"""Rows in, sufficient statistics out: means, scatter matrices and their contrast."""

from ._accumulate import accumulate
from ._contrast import Contrast, Pair
from ._moments import DenseScatter, Moments, pooled_deviation
from ._reduced import reduce_rows
from ._rows import RowScatter, row_moments

__all__ = [
    "Contrast",
    "DenseScatter",
    "Moments",
    "Pair",
    "RowScatter",
    "accumulate",
    "pooled_deviation",
    "reduce_rows",
    "row_moments",
]
