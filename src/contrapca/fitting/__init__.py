"""Fitting: from the data to everything an estimator reports."""

from ._again import check_same_data, tables_again
from ._axes import (
    along_path,
    at_least_short,
    automatic_rank,
    dimensions_above_noise,
    few_directions,
    in_best_units,
    masked_rank,
    path_around_axes,
    ratio_axes,
    show_solution,
    unwarned,
    variance_inside,
)
from ._clvm import check_clvm, fit_clvm, shared_rank
from ._common import Common, fit_common
from ._complete import complete_background_model, fit_complete, looks_swapped, solve_complete
from ._data import background_model, fit_data, fit_pcpca, fold_directions, resolved
from ._filled_tables import any_folds, collect_expected, expected_fold, filled_draws, thinned, usable
from ._fit import (
    AUTO_FRACTION,
    AXES,
    CONTRAST_FRACTION,
    SHARED_RATIO,
    UNIT_LENGTH,
    Fit,
    Latents,
    Settings,
    same_groups,
    share_of,
    shared_components,
)
from ._held_out import (
    HeldOut,
    Training,
    auto_directions,
    fold_error,
    gamma_with_contrast,
    held_out,
    in_original_units,
    many_problems,
    one_error_rule,
    path_directions,
    within_rows,
)
from ._incomplete import BACKTRACK, Start, attempt_fit, fit_incomplete, incomplete_background_model, upper_bound
from ._rows import (
    adjusted,
    by_block,
    decoded,
    imputed,
    latent_means,
    latent_posterior,
    log_density,
    log_ratio,
    maps_missing,
    of_foreground,
    shared_means,
)
from ._tables import facts, feature_table, summary
from ._unseen import (
    FOUND_AGAIN,
    OTHER_AXES,
    RANKED,
    HalfLatents,
    Halves,
    UnitSquares,
    best_setting,
    contrast_gamma,
    gamma_by_halves,
    half_latents,
    halves_of,
    largest_shares,
    matched,
    mean_ratio,
    ratio_intervals,
    reproducible_contrast,
)
