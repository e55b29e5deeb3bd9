"""Covariates of rows, such as age and sex, and features without their effect."""

from ._design import Design, Flags, check_dense, checked_covariates, design_of
from ._regression import Regression, regression, without_covariates

__all__ = [
    "Design",
    "Flags",
    "Regression",
    "check_dense",
    "checked_covariates",
    "design_of",
    "regression",
    "without_covariates",
]
