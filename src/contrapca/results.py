"""The types that contrapca's functions and methods return, for annotations and `isinstance`."""

from ._util.display import Display
from ._util.table import Table
from .gaussian import LatentGaussian
from .limits import GammaLimits
from .moments import SolverChoice
from .paths import ContrastPath
from .sanity import Finding, Findings
from .selection import BackgroundCheck, Comparison, ContrastTest, HeldOutContrast, StabilitySelection
from .uncertainty import ContrastPosterior

__all__ = [
    "BackgroundCheck",
    "Comparison",
    "ContrastPath",
    "ContrastPosterior",
    "ContrastTest",
    "Display",
    "Finding",
    "Findings",
    "GammaLimits",
    "HeldOutContrast",
    "LatentGaussian",
    "SolverChoice",
    "StabilitySelection",
    "Table",
]
