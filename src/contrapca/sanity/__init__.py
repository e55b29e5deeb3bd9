"""What is probably wrong with tables: free functions on plain values, each with a sentence and a way out."""

from ._features import check_features, far_cells, is_whole, names_rows, warn_of_far_cells
from ._finding import Finding, Findings, Words, both
from ._tables import (
    check_groups,
    check_tables,
    distant_means,
    same_row_names,
    shared_rows,
    swapped_names,
    transposed,
    warn_of_moments,
)
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
    looks_like_counts,
    warn_of_depth,
    warn_of_imputed,
)
