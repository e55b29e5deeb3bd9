"""Many gammas at little more than the cost of a few."""

from ..estimators import load  # from here on every kind of file is known: paths are the last to enter
from ._build import contrast_path, path_of_data
from ._masked import masked_path_around
from ._path import ESTIMATORS, ContrastPath
