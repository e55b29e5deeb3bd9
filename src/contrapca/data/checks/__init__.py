"""What is probably a mistake in a study: one sentence, and what to do, for each."""

from ._features import is_whole, names_rows, warn_of_far_cells
from ._finding import Finding, Words, both
from ._tables import check_groups, check_tables, same_row_names, swapped_names, warn_of_moments
from ._texts import (
    alike_labels,
    dropped_columns,
    hidden_by,
    repeated_names,
    replicates,
    shows_replicates,
    warn_of_replicates,
)
from ._values import (
    IMPUTED,
    advice_on_values,
    are_counts,
    depth_finding,
    imputed_values,
    warn_of_depth,
    warn_of_imputed,
)
