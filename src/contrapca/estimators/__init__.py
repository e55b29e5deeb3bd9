"""scikit-learn estimators: they wire the numerics, and hold none."""

from ._fit import AUTO_FRACTION
from ._functions import gamma_limits, loss_by_components, reconstruction_loss, which_solver
from ._persistence import load
from ._uncertainty import calibrate_learning_rate
from .cpca import CPCA
from .pcpca import PCPCA
from .ppca import PPCA

__all__ = [
    "AUTO_FRACTION",
    "CPCA",
    "PCPCA",
    "PPCA",
    "calibrate_learning_rate",
    "gamma_limits",
    "load",
    "loss_by_components",
    "reconstruction_loss",
    "which_solver",
]
