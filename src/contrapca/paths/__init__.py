"""Paths: many gammas at about the cost of a few."""

from ..saving import load  # paths register last: `load` now knows every kind of file
from ._build import check_estimator, contrast_path, path_of_data
from ._masked import masked_path_around
from ._path import ContrastPath
