"""What PPCA and PCPCA share: a probability model of the foreground."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._array import Array
from .._validation import generator, label_mask, like_table
from ..gaussian import Conditional, LatentGaussian
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

        The stronger the contrast, the less of a density this is: use at most half the limit of gamma for it.

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

        For realistic rows use a small gamma, at most half its limit: a strong contrast inflates the variance.
        For a data frame: `pd.DataFrame(model.sample(10), columns=model.feature_names_in_)`.

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

    def impute(self, X: Any, *, return_std: bool = False, n_draws: int | None = None, random_state: Any = None) -> Any:
        """Rows with their missing values (NaN) filled in from the foreground model; observed values stay as they are.

        Parameters
        ----------
        X : array-like or data frame of shape (n, D)
            Rows with holes. A row without any value gets the mean.
        return_std : bool, default False
            Also return the standard deviation of each filled value (0 where observed).
        n_draws : int, optional
            Draw this many completed tables from the conditional distribution instead of filling in its mean: the
            values filled into one row vary together, as multiple imputation needs.
        random_state : None, int, Generator or RandomState
            For `n_draws`.

        Returns
        -------
        filled : ndarray or data frame like `X`
            With `n_draws`, an ndarray of shape (n_draws, n, D), or a list of data frames.
        std : ndarray or data frame, if `return_std`
        """
        rows = self._validated(X, ensure_all_finite="allow-nan")
        if n_draws is not None and n_draws < 1:
            raise ValueError(f"n_draws={n_draws} must be 1 or more.")
        if n_draws is not None and return_std:
            raise ValueError("return_std goes without n_draws: the draws themselves show the spread.")
        holes = np.isnan(rows)
        if n_draws is None:
            filled = self._fill(rows, lambda given: given.mean())
            if not return_std:
                return like_table(filled, X)
            std = self._map_rows(lambda block: self.model_.condition(block).deviation(), rows, self.scale_)
            return like_table(filled, X), like_table(np.where(holes, std * self.scale_, 0).astype(rows.dtype), X)
        random = generator(random_state)
        draws = [self._fill(rows, lambda given: given.draw(random)) for _ in range(n_draws)]
        frames = [like_table(draw, X) for draw in draws]
        return np.stack(draws) if isinstance(frames[0], np.ndarray) else frames

    def _fill(self, rows: Array, values: Callable[[Conditional], Array]) -> Array:
        """A copy of the rows with `values` of their conditional distribution in their holes."""
        scaled = self._map_rows(lambda block: values(self.model_.condition(block)), rows, self.scale_)
        return np.where(np.isnan(rows), (scaled * self.scale_).astype(rows.dtype), rows)

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
