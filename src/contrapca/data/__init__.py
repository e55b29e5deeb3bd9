"""Who is who: what users pass becomes checked groups of rows, with blocks, covariates, weights and labels."""

from ._adjusted import regress_out, within_pairs
from ._anndata import genes_of, is_anndata, matrix_of
from ._covariates import Encoded, Regression, check_dense, regression, without_covariates
from ._depth import DEPTHS, counts_in, kind_of, match_depth, totals_in, typical_ratio
from ._design import Design, conditions, doses, interaction
from ._groups import Groups, by_background, check_labelled, group_rows, label_groups, named_backgrounds
from ._names import (
    SOURCES_OF_CELLS,
    check_features,
    check_names,
    column_names,
    distinct,
    feature_label,
    like_table,
    looks_like_replicates,
    names_source,
    text_names,
)
from ._samples import (
    Indices,
    checked_blocks,
    count_units,
    fewer_folds,
    kinds_of_units,
    paired_units,
    resampled_weights,
    table_units,
    take,
)
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
    Tables,
    check_device_table,
    check_table,
    check_weights,
    column_means,
    refuse_device,
    refuse_devices,
    refuse_others,
    without_mask,
)
