"""From a contrast to its solution."""

from ._select import SolverChoice, select_solver
from ._solution import Solution
from ._spectral import Spectrum, canonical_signs, top_eigenpairs
from .closed_form import solve_cpca, solve_pcpca
from .limits import GammaLimits, all_limits, cpca_limit, pcpca_limit, pcpca_limit_and_vectors, rank_exceeds

__all__ = [
    "GammaLimits",
    "Solution",
    "SolverChoice",
    "Spectrum",
    "all_limits",
    "canonical_signs",
    "cpca_limit",
    "pcpca_limit",
    "pcpca_limit_and_vectors",
    "rank_exceeds",
    "select_solver",
    "solve_cpca",
    "solve_pcpca",
    "top_eigenpairs",
]
