"""Paths: many gammas at about the cost of a few."""

from ._build import check_estimator, contrast_path, path_of_data
from ._masked import masked_path_around
from ._path import ContrastPath
