"""What CPCA and PCPCA share: a background, and gamma with its limit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._array import Array
from .._validation import check_gamma
from ._base import ContrastEstimator
from ._fit import Fit, Method


class ContrastiveEstimator(ContrastEstimator):
    """Base of CPCA and PCPCA; not public."""

    _method: Method

    def __init__(
        self,
        n_components: int = 2,
        *,
        gamma: float | str = "auto",
        background_label: Any = None,
        scale: bool | str = False,
        solver: str = "auto",
    ):
        self.n_components = n_components
        self.gamma = gamma
        self.background_label = background_label
        self.scale = scale
        self.solver = solver

    def fit(self, X: Any, y: Any = None, *, background: Any = None) -> Any:
        """Fit to a foreground and a background.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, D)
            The foreground (cases), rows are samples; with `background_label`, both groups stacked. PCPCA takes missing
            values (NaN) in both groups.
        y : array-like of shape (n,), optional
            The group of each row. Rows with `y == background_label` are the background. Ignored without
            `background_label`.
        background : array-like, data frame or sparse matrix of shape (m, D), optional
            The background (controls) as a table of its own. In a Pipeline it would bypass the earlier steps: use
            `background_label` there. Not needed for gamma=0.

        Returns
        -------
        self
        """
        return self._fit(X, y, background, self._method, check_gamma(self.gamma))

    def _adopt(self, fit: Fit, dtype: np.dtype[Any]) -> None:
        super()._adopt(fit, dtype)
        along = fit.variances[1]
        self.background_variance_: Array | None = None if along is None else along.astype(dtype)
        self.background_variance_ratio_: Array | None = None if along is None else fit.shares(1).astype(dtype)
        self._loss = fit.reconstruction_loss
        self.gamma_ = fit.gamma
        self.gamma_raw_ = fit.gamma / fit.source.ratio
        self._gamma_max: float | None = fit.limit if along is not None else math.nan

    def reconstruction_loss(self) -> float:
        """CPCA's geometric objective at the fit (the paper's Theorem 1), in scaled units.

        Mean squared distance of foreground rows from the components' subspace, less gamma times that
        of background rows.
        """
        check_is_fitted(self)
        return self._loss

    @property
    def gamma_max_(self) -> float:
        """The exact limit of gamma for these data and n_components; nan without a background.

        With missing values only an upper bound of it. Computed when first asked for, from moments that fit kept.
        """
        check_is_fitted(self)
        if self._gamma_max is None:
            self._gamma_max = self._kept().limit(self._method, self.components_.shape[0])
        return self._gamma_max

    def _resolve(self) -> None:
        super()._resolve()
        _ = self.gamma_max_
