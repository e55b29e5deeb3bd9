"""From a contrast to its solution."""

from ._select import MAX_DENSE, SolverChoice, select_solver
from ._solution import Solution
from ._spectral import Spectrum, canonical_signs, top_eigenpairs
from .closed_form import solve_cpca, solve_pcpca
from .clvm import ClvmSolution, clvm_log_likelihood, solve_clvm
from .gradient import Algorithm, GradientSolution, maximise
from .limits import GammaLimits, all_limits, cpca_limit, pcpca_limit, pcpca_limit_and_vectors, rank_exceeds
from .missing_limits import comes_near_the_bound, count_bound, observed_bound
from .observed import expected_total_variance, expected_variances, gls_mean
from .path import PathSpectrum, solve_path
from .permutation import helmert_contrasts, largest_excess, whitening
from .start import observed_start, random_start

__all__ = [
    "MAX_DENSE",
    "Algorithm",
    "ClvmSolution",
    "GammaLimits",
    "GradientSolution",
    "PathSpectrum",
    "Solution",
    "SolverChoice",
    "Spectrum",
    "all_limits",
    "canonical_signs",
    "clvm_log_likelihood",
    "comes_near_the_bound",
    "count_bound",
    "cpca_limit",
    "expected_total_variance",
    "expected_variances",
    "gls_mean",
    "helmert_contrasts",
    "largest_excess",
    "maximise",
    "observed_bound",
    "observed_start",
    "pcpca_limit",
    "pcpca_limit_and_vectors",
    "random_start",
    "rank_exceeds",
    "select_solver",
    "solve_clvm",
    "solve_cpca",
    "solve_path",
    "solve_pcpca",
    "top_eigenpairs",
    "whitening",
]
