"""The mathematics of complete groups: plain values in, plain values out."""

from ._axes import (
    SHORTEST,
    along_path,
    at_least_short,
    contrast_axes,
    path_around_axes,
    ratio_axes,
    settled,
    show_axes,
    show_solution,
    solve_and_show,
    strongest_around,
    unwarned,
    variance_inside,
)
from ._clvm import solve_clvm
from ._cpca import CPCA_METHOD, Evaluation, moments_log_likelihood
from ._eigen import LOOSE, Spectrum, top_eigenpairs
from ._few_directions import few_directions
from ._fit import (
    AUTO_FRACTION,
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
    contrast_gamma,
    half_latents,
    halves_of,
    matched,
    reproducible_contrast,
)
from ._held_out import (
    HeldOut,
    Training,
    auto_directions,
    gamma_with_contrast,
    held_out,
    in_original_units,
    many_problems,
    one_error_rule,
    path_directions,
    within_rows,
)
from ._lbfgs import minimise
from ._limits import cpca_limit, pcpca_limit, rank_exceeds
from ._method import Method
from ._noise import has_plateau, latent_rank, most_above_noise, noise_rank
from ._path import TOLERANCE, PathSpectrum, solve_path
from ._pcpca import PCPCA_METHOD, closed_form, complete_background_model, relative_log_likelihood
from ._rank import MANY, NEARLY_ALL, _most_above_noise, automatic_rank, dimensions_above_noise, feasible_rank
from ._ratio import ENDS, Ratio, ridge_of_strength, strength_of_ridge
from ._ratios import UnitSquares, largest_shares, mean_ratio, ratio_intervals
from ._sparse import SparseCpca, solve_sparse
from ._subspaces import affinity, align, canonical_sign_of, principal_angles, principal_axes, procrustes
