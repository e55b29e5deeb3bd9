"""Who is who: what users pass becomes checked groups of rows, with blocks, covariates, weights and labels."""

from ._adjusted import regress_out, within_pairs
from ._arguments import genes_of, is_anndata, matrix_of, take
from ._blocks import (
    Indices,
    checked_blocks,
    count_units,
    fewer_folds,
    paired_units,
    resampled_weights,
    table_units,
)
from ._covariates import Encoded, Regression, check_dense, regression, without_covariates
from ._depth import DEPTHS, counts_in, kind_of, match_depth, totals_in, typical_ratio
from ._design import Design, conditions, doses, interaction
from ._groups import Groups, Tables, feature_label
from ._labels import by_background, check_labelled, group_rows, label_groups, named_backgrounds
from ._replicates import SOURCES_OF_CELLS, looks_like_replicates, names_source
from ._scaling import Scaling, check_same_tables, group_of
from ._study import (
    Study,
    adjusted_tables,
    encoded_of,
    foreground_of,
    refuse,
    refuse_designs,
    refuse_moments,
    study_of,
    tables_of,
    units_of,
)
from ._tables import (
    aligned,
    check_device_table,
    check_features,
    check_names,
    check_table,
    column_means,
    column_names,
    distinct,
    like_table,
    refuse_device,
    refuse_devices,
    refuse_others,
    text_names,
    without_mask,
)
from ._weights import check_weights
