"""What PPCA and PCPCA share: a probability model of the foreground."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._array import Array
from .._validation import generator, label_mask
from ..gaussian import LatentGaussian
from ._base import ContrastEstimator
from ._fit import Fit


class LikelihoodEstimator(ContrastEstimator):
    """Base of PPCA and PCPCA; not public.

    The model N(mean, W W' + sigma2 I) lives in scaled units (`model_`); every method takes and
    returns original units.
    """

    def _adopt(self, fit: Fit, dtype: np.dtype[Any]) -> None:
        super()._adopt(fit, dtype)
        W = fit.components * fit.lengths
        self.model_ = LatentGaussian(fit.collected.pair.foreground.mean, W, fit.sigma2)
        self.loadings_ = W.astype(dtype)
        self.noise_variance_ = fit.sigma2

    def _decoder(self) -> Array:
        return self.loadings_

    def _encoder(self) -> Array:
        return self.model_.projection()

    def _log_jacobian(self, scale: Array) -> float:
        """log |dx_scaled / dx| for rows divided by `scale`."""
        return -float(np.sum(np.log(scale.astype(np.float64))))

    def score_samples(self, X: Any) -> Array:
        """Log-likelihood of each row under the foreground model N(mean, W W' + sigma2 I).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)

        Returns
        -------
        log_likelihood : ndarray of shape (n,), in original units
        """
        rows = self._rows(X)
        return self._map_rows(self.model_.log_prob, rows, self.scale_) + self._log_jacobian(self.scale_)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of the foreground rows.

        On the rows of the fit it falls as gamma grows, and mostly on new ones too, because a contrast gives up
        likelihood on purpose: it compares models of one gamma, it cannot choose gamma.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)
        y : array-like of shape (n,), optional
            With `background_label`, rows with that label are dropped.
        """
        log_likelihood = self.score_samples(X)
        if y is not None and self.background_label is not None:
            log_likelihood = log_likelihood[~label_mask(y, self.background_label, log_likelihood.size)]
            if log_likelihood.size == 0:
                raise ValueError(
                    f"All rows have the background label {self.background_label!r}: nothing to score. "
                    "In cross-validation use a splitter that mixes the groups, such as StratifiedKFold."
                )
        return float(np.mean(log_likelihood))

    def latent_posterior(self, X: Any) -> tuple[Array, Array]:
        """Distribution of the latent z of each row given the row: N(mean, covariance).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)

        Returns
        -------
        mean : ndarray of shape (n, d)
            Equal to `transform(X)`.
        covariance : ndarray of shape (n, d, d), read-only
            sigma2 M^-1, the same for all complete rows.
        """
        mean = self._latents(X, center="foreground")
        return mean, self.model_.latent_covariance(mean.shape[0], mean.dtype)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """New rows from the foreground model.

        Parameters
        ----------
        n_samples : int
        random_state : None, int, Generator or RandomState

        Returns
        -------
        X : ndarray of shape (n_samples, D), in original units
        """
        check_is_fitted(self)
        if n_samples < 1:
            raise ValueError(f"n_samples={n_samples} must be 1 or more.")
        scaled = self.model_.sample(n_samples, generator(random_state))
        return (scaled * self.scale_).astype(self.components_.dtype)

    def get_covariance(self) -> Array:
        """The model's covariance W W' + sigma2 I in original units, shape (D, D)."""
        scale = self._fitted_scale()
        return self.model_.covariance() * scale[:, None] * scale

    def get_precision(self) -> Array:
        """The inverse of `get_covariance()`, without inverting anything D x D."""
        scale = self._fitted_scale()
        return self.model_.precision() / scale[:, None] / scale

    def _fitted_scale(self) -> Array:
        check_is_fitted(self)
        return self.scale_.astype(np.float64)
