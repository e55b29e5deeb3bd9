"""The maximum of the relative likelihood in closed form (F2, F3), and CPCA's."""

from __future__ import annotations

import numpy as np

from .._array import EPS, Array
from ..moments import Contrast
from ._solution import Solution


def noise_sum(contrast: Contrast, values: Array) -> float:
    """f = tr C - sum_{i<=d} lambda_i, as 0 where it is no more than rounding (F3)."""
    f = contrast.trace - float(values.sum())
    return f if f > contrast.rounding else min(f, 0.0)


def solve_pcpca(contrast: Contrast, values: Array) -> Solution:
    """W = U_d (Lambda_d / N - sigma2 I)^(1/2), sigma2 = f / (N (D - d)) (F2).

    Both N and f must be positive: two negatives would cancel in sigma2 (F3).

    Parameters
    ----------
    contrast : Contrast
    values : ndarray of shape (d,)
        The largest algebraic eigenvalues of C, descending.
    """
    d, N, f = values.size, contrast.N, noise_sum(contrast, values)
    if N <= EPS * contrast.terms[0][1].weight or f <= 0:
        return Solution(False, np.zeros(d), 0.0)
    sigma2 = f / (N * (contrast.n_features - d))
    # lambda_i / N >= sigma2 always, as sigma2 is the mean of smaller eigenvalues; equality may round below 0.
    return Solution(True, np.sqrt(np.maximum(values / N - sigma2, 0.0)), sigma2)


def solve_cpca(contrast: Contrast, values: Array) -> Solution:
    """Unit vectors, if all d eigenvalues are positive beyond rounding."""
    return Solution(bool(values[-1] > contrast.rounding), np.ones(values.size), 0.0)
