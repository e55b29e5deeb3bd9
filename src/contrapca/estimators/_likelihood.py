"""The base of PPCA, PCPCA and CLVM: a probability model of the foreground."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._checks import check_count, check_n_components, check_option, check_positive, generator
from .._util.arrays import Array, Rows, is_sparse
from .._util.devices import cast, chosen, namespace, on_device, put
from .._util.suggest import suggesting
from ..backgrounds import label_groups
from ..fitting import Fit, Settings
from ..gaussian import LatentGaussian
from ..groups import Tables, like_table
from ..moments import SPECTRAL, Complete, Incomplete, check_solver_of, collect_incomplete
from ..rows import Blocked
from ..uncertainty import ContrastPosterior, sample_posterior
from ..units import Units
from ._base import Decomposition


class Likelihood(Decomposition):
    """Base of PPCA, PCPCA and CLVM; not public.

    The model N(mean, W W' + sigma2 I) is in scaled units (`model_`); every method takes and returns original units.
    """

    mean: str
    n_init: int | str
    max_iter: int
    tol: float
    random_state: Any
    progress: bool

    def _settings(self) -> Settings:
        check_option(self.solver, "solver", ("auto", *SPECTRAL, "lbfgs"))
        check_option(self.mean, "mean", ("observed", "gls"))
        n_init = None if self.n_init == "auto" else check_count(self.n_init, "n_init")
        check_count(self.max_iter, "max_iter")
        check_positive(self.tol, "tol")
        return Settings(self.mean, n_init, self.max_iter, self.tol, self.random_state, bool(self.progress))

    def _collected(self, tables: Tables) -> Complete | Incomplete:
        self._settings()
        if self.solver != "lbfgs":
            if self.solver != "auto" and tables.incomplete:
                raise ValueError(
                    f"solver={self.solver!r} is for complete rows, but values are missing. Use solver='auto', or "
                    "impute them first."
                )
            return super()._collected(tables)
        check_solver_of(tables.rows.foreground, self.solver)
        if not all(isinstance(rows, np.ndarray) or on_device(rows) for rows in tables.rows):
            raise ValueError(f"solver={self.solver!r} is for dense tables: pass X.toarray(), or use solver='auto'.")
        check_n_components(self.n_components, tables.n_features)
        return collect_incomplete(tables, self._scaling)

    def _with_fit(self, fit: Fit) -> Self:
        super()._with_fit(fit)
        if fit.model is None:  # in a file
            raise ValueError("its model is missing")
        self.n_effective_ = fit.n_effective
        self.objective_history_ = fit.history
        self.init_objectives_ = fit.init_objectives
        self.model_ = fit.model
        self.loadings_ = fit.loadings.astype(fit.units.foreground.dtype, copy=False)
        self.noise_variance_ = fit.model.sigma2
        return self

    # ------------------------------------------------------------------ densities

    def _log_density(self, model: LatentGaussian, rows: Rows, missing: bool, units: Units) -> Array:
        """log p of the observed values of each row in original units; `model` is in the given units."""
        log_prob = (lambda block: model.condition(block).log_prob()) if missing else model.log_prob
        density = units.apply(log_prob, rows)
        return cast(density - units.log_jacobian(rows, missing=missing), density)

    def score_samples(self, X: Any, *, covariates: Any = None) -> Array:
        """Log-likelihood of each row under the foreground model N(mean, W W' + sigma2 I).

        A strong contrast makes this a poor density: use at most half the limit of gamma.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)
        covariates : array-like or data frame of shape (n, q)
            As for `transform`.

        Returns
        -------
        log_likelihood : ndarray of shape (n,), in original units; for a dask array, a dask array
            Log-likelihood of the observed values; 0 for a row without any.
        """
        check_is_fitted(self)
        return self._by_block(X, lambda rows: self._log_likelihoods(rows, covariates), None)

    def _log_likelihoods(self, X: Any, covariates: Any) -> Array:
        rows, missing = self._rows(X, covariates)
        return self._log_density(self.model_, rows, missing, self._state.units.foreground)

    def score(self, X: Any, y: Any = None, *, covariates: Any = None) -> float:
        """Mean log-likelihood of the foreground rows.

        It falls as gamma grows, because a contrast gives up likelihood on purpose: always on the rows of the fit, and
        usually on new rows. Use it to compare models with the same gamma, not to choose gamma.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)
        y : array-like of shape (n,), optional
            With `background_label`, rows with that label are dropped.
        covariates : array-like or data frame of shape (n, q)
            As for `transform`.
        """
        log_likelihood: Any = self.score_samples(X, covariates=covariates)
        if hasattr(log_likelihood, "compute"):  # a dask array
            log_likelihood = log_likelihood.compute()
        label = self._parameters.get("background_label")
        if y is not None and label is not None:
            groups, _ = label_groups(y, label, log_likelihood.shape[0])
            log_likelihood = chosen(log_likelihood, groups == 0)
            if log_likelihood.shape[0] == 0:
                raise ValueError(
                    f"All rows have the background label {label!r}: nothing to score. "
                    "In cross-validation, use a splitter that mixes the groups, such as StratifiedKFold."
                )
        return float(namespace(log_likelihood).mean(log_likelihood))

    def latent_posterior(self, X: Any, *, covariates: Any = None) -> tuple[Array, Array]:
        """Distribution N(mean, covariance) of the latent z of each row, given the row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)
        covariates : array-like or data frame of shape (n, q)
            As for `transform`.

        Returns
        -------
        mean : ndarray of shape (n, d)
            Equal to `transform(X)`.
        covariance : ndarray of shape (n, d, d), read-only where all rows are complete
            sigma2 M^-1: the same for all complete rows, wider for rows with missing values, and the identity for a row
            without any value.
        """
        rows, missing = self._rows(X, covariates)
        units, k, model = self._state.units.foreground, self._state.n_shown, self.model_
        mean = self._latent_means(rows, missing, "foreground")
        if not missing:
            covariance = cast(put(model.latent_covariance()[:k, :k], mean), mean)
            return mean, namespace(mean).broadcast_to(covariance, (mean.shape[0], k, k))
        return mean, units.apply(lambda block: model.condition(block).latent_covariance()[:, :k, :k], rows)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draw new rows from the foreground model.

        For realistic rows use a small gamma, at most half its limit: a strong contrast inflates the variance. For a
        data frame, use `pd.DataFrame(model.sample(10), columns=model.feature_names_in_)`. With covariates in
        the fit, these are rows with average ones.

        Parameters
        ----------
        n_samples : int
        random_state : None, int, Generator or RandomState

        Returns
        -------
        X : ndarray of shape (n_samples, D), in original units
        """
        check_is_fitted(self)
        check_count(n_samples, "n_samples")
        units = self._state.units.foreground
        return put(units.undo(self.model_.sample(n_samples, generator(random_state))), self._place, units.dtype)

    def impute(
        self,
        X: Any,
        *,
        return_std: bool = False,
        n_draws: int | None = None,
        random_state: Any = None,
        covariates: Any = None,
    ) -> Any:
        """Impute missing values (NaN) from the foreground model; observed values do not change.

        Parameters
        ----------
        X : array-like or data frame of shape (n, D)
            Incomplete rows. A row without any value gets the mean.
        return_std : bool, default False
            Also return the standard deviation of each imputed value (0 where observed).
        n_draws : int, optional
            Draw this many completed tables from the conditional distribution instead of imputing its mean. Values
            imputed into one row vary together, as multiple imputation requires.
        random_state : None, int, Generator or RandomState
            Random seed for `n_draws`.
        covariates : array-like or data frame of shape (n, q)
            As for `transform`; imputed values include their effect.

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
        >>> incomplete = X.copy()
        >>> incomplete[0, 0] = np.nan
        >>> filled, std = PPCA(1).fit(incomplete).impute(incomplete, return_std=True)
        >>> bool(abs(filled[0, 0] - X[0, 0]) < 3 * std[0, 0] < 0.5)
        True
        """
        rows, _ = self._checked_rows(X)
        rows = rows[:] if isinstance(rows, Blocked) else rows
        if is_sparse(rows):
            raise TypeError("Unstored entries of sparse tables are zeros, not missing values: nothing to impute.")
        given, known = self._adjusted(X, rows, covariates), self._state.covariates
        effect = 0.0 if known is None else known.effect(known.design(covariates, X, rows.shape[0]))
        if n_draws is not None:
            check_count(n_draws, "n_draws")
            if return_std:
                raise ValueError("return_std cannot be combined with n_draws: the draws themselves show the spread.")
            random = generator(random_state)
            draws = [self._fill(rows, given, lambda row: row.draw(random), effect) for _ in range(n_draws)]
            frames = [like_table(draw, X) for draw in draws]
            return namespace(rows).stack(draws) if frames[0] is draws[0] else frames
        filled = like_table(self._fill(rows, given, lambda row: row.mean(), effect), X)
        if not return_std:
            return filled
        xp = namespace(rows)
        observed = xp.where(xp.isnan(rows), rows, xp.zeros_like(rows))
        return filled, like_table(self._fill(observed, given, lambda row: row.deviation()), X)

    def _fill(self, rows: Rows, given: Rows, values: Callable[[Any], Array], effect: Array | float = 0.0) -> Rows:
        """The rows with missing entries replaced by `values` of the distribution given other rows, plus an effect."""
        units = self._state.units.foreground
        scaled = units.apply(lambda block: values(self.model_.condition(block)), given)
        xp = namespace(rows)
        return xp.where(xp.isnan(rows), cast(units.undo(scaled) + effect, rows), rows)

    def get_covariance(self) -> Array:
        """The model's covariance W W' + sigma2 I in original units, shape (D, D)."""
        scale = self._fitted_scale()
        return put(self.model_.covariance() * scale[:, None] * scale, self._place)

    def get_precision(self) -> Array:
        """The inverse of `get_covariance()`, computed without inverting a D x D matrix."""
        scale = self._fitted_scale()
        return put(self.model_.precision() / scale[:, None] / scale, self._place)

    def _fitted_scale(self) -> Array:
        check_is_fitted(self)
        return self._state.units.foreground.scale

    @available_if(lambda self: self._method is not None)  # type: ignore[untyped-decorator]
    @suggesting
    def posterior(
        self,
        X: Any,
        y: Any = None,
        *,
        background: Any = None,
        sample_weight: Any = None,
        background_weight: Any = None,
        covariates: Any = None,
        background_covariates: Any = None,
        draws: int = 1000,
        tune: int = 1000,
        chains: int = 4,
        power: float = 1.0,
        sigma2_min: float = 0.0,
        random_state: Any = None,
        progress: bool = True,
    ) -> ContrastPosterior:
        """Draw from the Gibbs posterior of (W, sigma2) with NUTS; no missing values.

        Its density is exp(power * objective) under a flat prior: a true posterior for gamma = 0. It depends on the rows
        only through N and C, so its cost does not grow with their number. It exists if power times N = n (1 - gamma)
        exceeds D + d - 1; otherwise an error says what to do. If N is not much larger than D, the flat prior inflates
        W: trust directions (`angles`, `projector`) more than lengths.

        Parameters
        ----------
        X, y, background, sample_weight, background_weight, covariates, background_covariates
            The rows of the fit, as for `fit`, or their Moments.
        draws, tune, chains : int
            Draws kept and discarded in each chain, and chains.
        power : float, default 1.0
            Weight of the data: intervals shrink with its square root. With gamma > 0 no likelihood determines it;
            `contrapca.calibrate_power` finds the value at which intervals have the right coverage.
        sigma2_min : float, default 0.0
            Lower bound of the noise variance, in scaled units.
        random_state : None, int, Generator or RandomState
            A seed gives the same draws on any number of cores.
        progress : bool, default True
            Show a progress bar on a terminal or in a notebook if it takes longer than two seconds.

        Returns
        -------
        ContrastPosterior
        """
        assert self._method is not None
        beside = (sample_weight, background_weight, covariates, background_covariates)
        return sample_posterior(
            self._fitted_data(X, y, background, *beside),
            self._state,
            self._method,
            draws=draws,
            tune=tune,
            chains=chains,
            power=power,
            sigma2_min=sigma2_min,
            random_state=random_state,
            progress=progress,
        )
