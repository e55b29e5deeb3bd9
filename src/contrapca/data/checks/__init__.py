"""Probable mistakes in a study: one sentence, and what to do, for each."""

from ._columns import is_whole, names_rows
from ._finding import Finding, Given
from ._names import alike_labels, repeated_names, replicates, swapped_names
from ._tables import (
    check_groups,
    check_tables,
    same_row_names,
    shows_replicates,
    warn_of_depth,
    warn_of_far_cells,
    warn_of_imputed,
    warn_of_moments,
    warn_of_replicates,
)
from ._values import IMPUTED, advice_on_values, are_counts, depth_finding, imputed_values
