"""From a contrast, or masked rows, to a solution."""

from ._closed_form import Solution, closed_form, noise_sum, solve_cpca, solve_pcpca
from ._clvm import solve_clvm
from ._contrast_axes import (
    CAP,
    SPARE,
    contrast_axes,
    has_plateau,
    latent_rank,
    latent_rotation,
    most_above_noise,
    noise_edges,
    noise_outside,
    noise_rank,
)
from ._directions import BLOCK, Directions, random_block
from ._expectations import expected_covariance, expected_total_variance, gls_mean
from ._factors import Factors, Labels, fit_factors
from ._gradient import GradientSolution, maximise
from ._identified import noise_is_determined
from ._lbfgs import minimise
from ._path import TOLERANCE as PATH_TOLERANCE
from ._path import PathSpectrum, outside, path_of_solutions, solve_path, symmetric
from ._ratio import BACKGROUND, BOTH, FOREGROUND, count_of_foreground, shrunk_strength, solve_ratio, strength
from ._sparse import solve_sparse
from ._spectral import LOOSE, SECOND_ORDER, Spectrum, is_iterated, top_eigenpairs, top_eigenvalues
from ._starts import estimated_moments, masked_start, missing_edge, random_start
