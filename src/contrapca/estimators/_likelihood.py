"""What PPCA and PCPCA share: a probability model of the foreground."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._array import Array, Rows, is_sparse
from .._validation import (
    Groups,
    canonical,
    check_count,
    check_option,
    check_positive,
    generator,
    label_mask,
    like_table,
)
from ..exceptions import NonFiniteError
from ..gaussian import Conditional, LatentGaussian
from ..moments import has_holes
from ..solvers import Algorithm
from ._base import ContrastEstimator
from ._fit import Fit, Method
from ._missing import Settings, fit_observed

GRADIENT_SOLVERS = ("lbfgs", "adam")


class LikelihoodEstimator(ContrastEstimator):
    """Base of PPCA and PCPCA; not public.

    The model N(mean, W W' + sigma2 I) lives in scaled units (`model_`); every method takes and
    returns original units.
    """

    mean: str
    n_init: int
    max_iter: int
    tol: float
    random_state: Any
    verbose: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _solve(self, groups: Groups, d: int, method: Method, gamma: float | None) -> Fit:
        """In closed form if the rows are complete, else (or if asked for) by gradients."""
        check_option(self.solver, "solver", ("auto", "eigh", "dual", "lanczos", *GRADIENT_SOLVERS))
        check_option(self.mean, "mean", ("observed", "gls"))
        check_count(self.n_init, "n_init")
        check_count(self.max_iter, "max_iter")
        check_positive(self.tol, "tol")
        if self.solver not in GRADIENT_SOLVERS:
            try:
                return super()._solve(groups, d, method, gamma)
            except NonFiniteError as error:
                if not error.missing or any(map(is_sparse, groups.tables)):
                    raise
                if self.solver != "auto":
                    raise ValueError(
                        f"solver={self.solver!r} is for complete rows, but values are missing. Use solver='auto', or "
                        "fill them first."
                    ) from error
        elif any(map(is_sparse, groups.tables)):
            raise ValueError(f"solver={self.solver!r} is for dense tables: pass X.toarray(), or use solver='auto'.")
        algorithm: Algorithm = "adam" if self.solver == "adam" else "lbfgs"
        settings = Settings(
            algorithm, self.mean, self.n_init, self.max_iter, self.tol, self.random_state, int(self.verbose)
        )
        return fit_observed(groups, d, gamma, self.scale, settings)

    def _adopt(self, fit: Fit, dtype: np.dtype[Any]) -> None:
        super()._adopt(fit, dtype)
        values = np.array([fit.objective])
        self.objective_history_ = values if fit.history is None else fit.history
        self.init_objectives_ = values if fit.init_objectives is None else fit.init_objectives
        W = fit.components * fit.lengths
        self.model_ = LatentGaussian(fit.source.model_mean, W, fit.sigma2)
        self.loadings_ = W.astype(dtype)
        self.noise_variance_ = fit.sigma2

    def _decoder(self) -> Array:
        return self.loadings_

    def _rows(self, X: Any) -> Rows:
        rows = canonical(self._validated(X, accept_sparse="csr", ensure_all_finite=False))
        has_holes(rows)  # refuses infinity
        return rows

    def _latents(self, X: Any, center: str) -> Array:
        rows = self._rows(X)
        mean, scale = self._origin(center)
        model = replace(self.model_, mean=mean.astype(np.float64) / scale)
        return self._map_rows(lambda block: _apply(model.latent_mean, Conditional.latents, model, block), rows, scale)

    def _log_density(self, model: LatentGaussian, rows: Rows, scale: Array) -> Array:
        """log p of the observed values of each row in original units, `model` being in units of `scale`."""
        density = self._map_rows(lambda block: _apply(model.log_prob, Conditional.log_prob, model, block), rows, scale)
        jacobian = np.log(scale.astype(np.float64))  # of what is observed
        if is_sparse(rows) or not np.any(jacobian):
            return density - density.dtype.type(jacobian.sum())
        return density - (~np.isnan(rows) @ jacobian).astype(density.dtype)

    def score_samples(self, X: Any) -> Array:
        """Log-likelihood of each row under the foreground model N(mean, W W' + sigma2 I).

        The stronger the contrast, the less of a density this is: use at most half the limit of gamma for it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)

        Returns
        -------
        log_likelihood : ndarray of shape (n,), in original units
            Of the observed values of each row; 0 of a row without any.
        """
        rows = self._rows(X)
        return self._log_density(self.model_, rows, self.scale_)

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
        covariance : ndarray of shape (n, d, d), read-only where all rows are complete
            sigma2 M^-1, the same for all complete rows; wider for rows with missing values, and the identity for a row
            without any value.
        """
        rows = self._rows(X)
        mean = self._latents(rows, center="foreground")
        if is_sparse(rows) or not np.isnan(rows).any():
            return mean, self.model_.latent_covariance(mean.shape[0], mean.dtype)
        covariance = self._map_rows(lambda block: self.model_.condition(block).latent_covariance(), rows, self.scale_)
        return mean, covariance.astype(mean.dtype)

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

        Examples
        --------
        >>> import numpy as np
        >>> from contrapca import PPCA
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(100, 1)) + 0.1 * rng.normal(size=(100, 4))  # four copies of one signal
        >>> holes = X.copy()
        >>> holes[0, 0] = np.nan
        >>> filled, std = PPCA(1).fit(holes).impute(holes, return_std=True)
        >>> bool(abs(filled[0, 0] - X[0, 0]) < 3 * std[0, 0] < 0.5)
        True
        """
        rows = self._validated(X, ensure_all_finite="allow-nan")
        if n_draws is not None:
            check_count(n_draws, "n_draws")
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


def _apply(
    complete: Callable[[Rows], Array], observed: Callable[[Conditional], Array], model: LatentGaussian, block: Rows
) -> Array:
    """A function of complete rows, or its counterpart for rows with holes, in the float type of the rows."""
    if is_sparse(block) or not np.isnan(block).any():
        return complete(block)
    return observed(model.condition(block)).astype(block.dtype)
