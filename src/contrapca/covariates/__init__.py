"""Covariates of rows, such as age and sex, and features without their effect."""

from ._design import Design, Flags, check_dense, design_of
from ._regression import Regression, regress_out, regression, without_covariates

__all__ = [
    "Design",
    "Flags",
    "Regression",
    "check_dense",
    "design_of",
    "regress_out",
    "regression",
    "without_covariates",
]
