"""scikit-learn estimators: they wire the numerics, and hold none."""

from ._code import model_code, path_code
from ._fit import AUTO_FRACTION, TINY_LIMIT
from ._functions import gamma_limits, loss_by_components, reconstruction_loss, which_solver
from ._path_build import contrast_path
from ._path_through import check_same_tables, path_through
from ._persistence import load
from ._uncertainty import calibrate_learning_rate
from .clvm import CLVM
from .components import ComponentTest, choose_components, remove_background
from .cpca import CPCA
from .path import ContrastPath
from .pcpca import PCPCA
from .ppca import PPCA
from .search import GammaSearch

__all__ = [
    "AUTO_FRACTION",
    "CLVM",
    "CPCA",
    "PCPCA",
    "PPCA",
    "TINY_LIMIT",
    "ComponentTest",
    "ContrastPath",
    "GammaSearch",
    "calibrate_learning_rate",
    "check_same_tables",
    "choose_components",
    "contrast_path",
    "gamma_limits",
    "load",
    "loss_by_components",
    "model_code",
    "path_code",
    "path_through",
    "reconstruction_loss",
    "remove_background",
    "which_solver",
]
