"""Rows reduced to moments: number, mean and scatter of each group, and their signed sums."""

from ._batches import Stream, read_batch, read_batches
from ._complete import Complete, Filling, Plateau, Scale, check_solver_of, complete_data, in_model_units, pooled
from ._contrast import (
    Contrast,
    alone,
    background_contrast,
    contrast,
    factors,
    mixed,
    mixed_background,
    mixture,
    weighted_terms,
)
from ._long_rows import shortened, sum_of_fourth_powers
from ._moments import Moments, deviation_beyond_rounding, pooled_deviation, rounding_variance, row_moments
from ._scatter import DenseScatter, Indices, InnerScatter, RowScatter, Scatter
from ._solver import MAX_DENSE, SPECTRAL, SolverChoice, choose_solver
from ._span import Basis, Subspace, has_few_rows, in_span, reduce_rows, reduced_contrast
from ._subsets import Flags, Fold, Parts, along, assign_folds, make_folds, make_parts, row_units, spread_out
