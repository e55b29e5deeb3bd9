"""The mathematics of complete groups: plain values in, plain values out."""

from ._axes import (
    SHORTEST,
    ShownAxes,
    around_axes,
    at_least_short,
    contrast_axes,
    path_around_axes,
    ratio_axes,
    settled,
    show_axes,
    show_solution,
    strongest_around,
    unwarned,
    variance_inside,
)
from ._clvm import solve_clvm
from ._cpca import Evaluation, cpca_grid, cpca_refusal, moments_log_likelihood, solve_cpca
from ._eigen import LOOSE, Spectrum, top_eigenpairs
from ._few_directions import few_directions
from ._fit import (
    AUTO_FRACTION,
    AXES,
    SHARED_RATIO,
    UNIT_LENGTH,
    Fit,
    Latents,
    Settings,
    Step,
    same_groups,
    share_of,
    shared_components,
)
from ._halves import (
    FOUND_AGAIN,
    RANKED,
    SEED,
    SPLITS,
    Halves,
    half_latents,
    halves_of,
    matched,
    most_reproducible,
    reproducible_contrast,
)
from ._held_out import (
    Training,
    held_out,
    in_original_units,
    many_problems,
    one_error_rule,
)
from ._lbfgs import minimise
from ._limits import cpca_limit, pcpca_limit, rank_exceeds
from ._noise import has_plateau, latent_rank, most_above_noise, noise_rank
from ._path import TOLERANCE, PathSpectrum, path_of_solutions, solve_path
from ._pcpca import (
    closed_form,
    complete_background_model,
    pcpca_grid,
    pcpca_refusal,
    relative_log_likelihood,
    solve_pcpca,
)
from ._rank import MANY, NEARLY_ALL, automatic_rank, count_above_noise, dimensions_above_noise, feasible_rank
from ._ratio import (
    ENDS,
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
from ._ratios import UnitSquares, largest_shares, mean_ratio, ratio_intervals
from ._solution import Solution
from ._sparse import solve_sparse
from ._subspaces import affinity, align, canonical_sign_of, principal_angles, principal_axes, procrustes
from ._whitening import Spread, ledoit_wolf, oracle_approximating, relative_kurtosis, spread
