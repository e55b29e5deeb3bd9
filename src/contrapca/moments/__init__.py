"""Rows in, sufficient statistics out: means, scatter matrices and their contrast."""

from ._basis import Basis, Subspace
from ._choice import MAX_DENSE, SPECTRAL, SolverChoice, choose_solver, select_solver
from ._collect import (
    Complete,
    Incomplete,
    Plateau,
    check_solver_for,
    check_solver_of,
    collect,
    complete_data,
    collect_incomplete,
    pooled,
    read,
)
from ._contrast import Contrast, alone, contrast, factors, mixed, mixed_background, mixture
from ._dual import has_few_rows, in_span, reduce_rows, reduced_contrast
from ._folds import Fold, Parts, along, assign_folds, make_folds, make_parts, ready, row_units, spread_out, without
from ._long_rows import shortened
from ._masked import MaskedBlocks, MaskedGroup, MaskedRows, counted_terms, multiplications, observe
from ._moments import (
    DenseScatter,
    Indices,
    InnerScatter,
    Moments,
    RowScatter,
    Scatter,
    pooled_deviation,
    rounding_variance,
    row_moments,
)
from ._stream import Stream, read_batch, read_batches
