"""Probable mistakes in a study: one sentence, and what to do, for each."""

from ._columns import is_whole, names_rows
from ._finding import Finding, Given
from ._tables import (
    alike_labels,
    check_groups,
    check_tables,
    repeated_names,
    replicates,
    same_row_names,
    shows_replicates,
    swapped_names,
    warn_of_depth,
    warn_of_far_cells,
    warn_of_imputed,
    warn_of_moments,
    warn_of_replicates,
)
from ._values import IMPUTED, advice_on_values, are_counts, depth_finding, imputed_values
