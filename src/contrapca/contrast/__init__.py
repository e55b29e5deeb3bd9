"""The mathematics of complete groups: plain values in, plain values out."""

from ._axes import (
    MANY,
    NEARLY_ALL,
    ShownAxes,
    around_axes,
    at_least_short,
    contrast_axes,
    dimensions_above_noise,
    feasible_rank,
    latent_rank,
    loadings_around,
    most_above_noise,
    noise_is_visible,
    noise_rank,
    path_around_axes,
    show_axes,
    show_solution,
    variance_inside,
)
from ._clvm import solve_clvm
from ._cpca import cpca_grid, solve_cpca
from ._eigen import LOOSE, Solution, Spectrum, top_eigenpairs
from ._few_directions import automatic_rank, count_above_noise, few_directions
from ._fit import (
    AUTO_FRACTION,
    AXES,
    SHARED_RATIO,
    UNIT_LENGTH,
    Fit,
    Latents,
    Settings,
    Step,
    refuse_design,
    same_groups,
    settled,
    share_of,
    shared_components,
)
from ._gaussian import (
    Conditional,
    LatentGaussian,
    centred_condition,
    filled,
    log_normaliser,
    masked_inverses,
    packed_products,
    project,
    triangle,
    unpack,
)
from ._halves import (
    FOUND_AGAIN,
    RANKED,
    SEED,
    SPLITS,
    HalfLatents,
    Halves,
    Training,
    by_cell,
    half_latents,
    halves_of,
    in_original_units,
    many_problems,
    matched,
    most_reproducible,
    reproducible_contrast,
    unwarned,
)
from ._held_out import UnitSquares, combined_logs, held_out, largest_shares, mean_ratio, one_error_rule, ratio_intervals
from ._lbfgs import minimise
from ._limits import cpca_limit, pcpca_limit, rank_exceeds
from ._path import TOLERANCE, PathSpectrum, path_of_solutions, solve_path
from ._pcpca import (
    Evaluation,
    closed_form,
    complete_background_model,
    moments_log_likelihood,
    pcpca_grid,
    relative_log_likelihood,
    solve_pcpca,
)
from ._ratio import (
    ENDS,
    ratio_axes,
    ratio_grid,
    ratio_limit,
    ratio_refusal,
    ratios,
    ridge_of_strength,
    shrunk_strength,
    solve_ratio,
    strength_of_ridge,
    sum_of_theta,
)
from ._sparse import solve_sparse
from ._subspaces import affinity, align, canonical_sign_of, principal_angles, principal_axes, procrustes
from ._whitening import Spread, relative_kurtosis, spread
