"""What is probably wrong with tables: free functions on plain values, each with a sentence and a way out."""

from ._check import check_groups, check_tables
from ._depth import depth_finding, unequal_depth, warn_of_depth
from ._features import check_features, far_cells, is_whole, names_rows, warn_of_far_cells
from ._finding import Finding, Findings, Words, both
from ._imputed import IMPUTED, imputed_values, warn_of_imputed
from ._names import alike_labels, repeated_names, replicates, shows_replicates, warn_of_replicates
from ._raw_values import advice_on_values, are_counts, looks_like_counts
from ._tables import distant_means, same_row_names, shared_rows, swapped_names, transposed, warn_of_moments
from ._texts import dropped_columns, hidden_by
