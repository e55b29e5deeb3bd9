"""Probabilistic contrastive PCA."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._array import Array
from ..exceptions import GroupError, RankError, UnavailableError
from ..gaussian import LatentGaussian
from ._contrastive import ContrastiveEstimator
from ._fit import Fit, background_model
from ._likelihood import LikelihoodEstimator


class PCPCA(LikelihoodEstimator, ContrastiveEstimator):
    """Probabilistic contrastive principal component analysis (Li, Jones and Engelhardt).

    Maximises the relative likelihood p(X | W, sigma2) / p(Y | W, sigma2)^gamma_raw of foreground X and background Y,
    in closed form: the fitted model describes what varies in the foreground and not in the background.

    Parameters
    ----------
    n_components : int, default 2
        Number of latent dimensions d, 1 <= d < D.
    gamma : float or "auto", default "auto"
        Strength of the contrast, in [0, `gamma_max_`) and so below 1: the paper's gamma' = gamma_raw m / n. 0 is PPCA
        of the foreground. "auto" takes 0.97 of the exact limit, a robust choice for finding directions; for densities,
        scores, sampling and imputation use at most half the limit.
    background_label : optional
        Rows with `y == background_label` are the background, for stacked data in pipelines and searches.
    scale : False, "group" or "pooled", default False
        "group" divides each group by its own standard deviations (new rows by the foreground's), "pooled" all rows by
        the within-group ones.
    solver : {"auto", "eigh", "dual", "lanczos"}, default "auto"
        How the eigenvectors are found; `contrapca.which_solver` tells what "auto" picks.

    Attributes
    ----------
    components_ : ndarray of shape (d, D)
        Unit vectors, the entry of largest magnitude positive.
    loadings_ : ndarray of shape (D, d)
        W, in scaled units.
    noise_variance_ : float
        sigma2, in scaled units.
    eigenvalues_ : ndarray of shape (d,)
        Largest eigenvalues of cov_X - gamma cov_Y: `explained_variance_ - gamma_ * background_variance_`.
    explained_variance_, background_variance_ : ndarray of shape (d,)
        Variance (ddof 0) of each group along each component; `..._ratio_` are shares of the group's total.
    mean_, background_mean_, scale_, background_scale_ : ndarray of shape (D,)
    feature_variance_, background_feature_variance_ : ndarray of shape (D,)
    gamma_, gamma_raw_ : float
        What was used, and the same in the paper's raw units, gamma n / m.
    gamma_max_ : float
        The exact limit: from it on the relative likelihood has no maximum.
    n_effective_ : float
        N = n (1 - gamma).
    solver_ : SolverChoice
        Which solver ran and why.
    n_iter_ : int
    model_ : LatentGaussian
        The fitted foreground distribution, in scaled units.
    background_model_ : LatentGaussian
        PPCA of the background, in its scaled units; what `contrast_score` compares with.

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import PCPCA
    >>> rng = np.random.default_rng(0)
    >>> controls = rng.normal(size=(200, 4)) * [5, 1, 1, 1]
    >>> cases = rng.normal(size=(200, 4)) * [5, 3, 1, 1]
    >>> model = PCPCA(n_components=1).fit(cases, background=controls)
    >>> model.components_.argmax()
    np.int64(1)
    >>> 0 < model.gamma_ < model.gamma_max_ <= 1
    True
    """

    _method = "pcpca"

    def _adopt(self, fit: Fit, dtype: np.dtype[Any]) -> None:
        super()._adopt(fit, dtype)
        self._background_model: LatentGaussian | None = None

    @property
    def background_model_(self) -> LatentGaussian:
        """PPCA of the background with the same number of components, computed when first asked for."""
        check_is_fitted(self)
        try:
            return self._background()
        except (GroupError, RankError) as error:
            raise UnavailableError(str(error)) from error

    def _background(self) -> LatentGaussian:
        if self.background_mean_ is None:
            raise GroupError("This model was fitted without a background: there is nothing to compare with.")
        if self._background_model is None:
            d = self.components_.shape[0]
            if self._collected is None and self._gamma_max is not None:  # copied or saved, and still there is none
                raise RankError(d, "background")
            self._background_model = background_model(self._moments(), d)
        return self._background_model

    def _resolve(self) -> None:
        super()._resolve()
        with contextlib.suppress(GroupError, RankError):
            self._background()

    def contrast_score(self, X: Any) -> Array:
        """How much better the foreground model explains each row than the background does.

        The log-likelihood of the row under the fitted foreground model less that under a PPCA of the
        background with the same number of components: the larger, the more like the foreground. A strong contrast gives
        up likelihood of all rows alike, so that only the order of scores means something then; with gamma at most half
        its limit, 0 is a sensible threshold too.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)

        Returns
        -------
        log_ratio : ndarray of shape (n,)
        """
        check_is_fitted(self)
        model = self._background()
        assert self.background_scale_ is not None
        background = self._map_rows(model.log_prob, self._rows(X), self.background_scale_)
        return self.score_samples(X) - background - self._log_jacobian(self.background_scale_)
