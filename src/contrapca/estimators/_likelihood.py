"""The base of PPCA, PCPCA and CLVM: a probability model of the foreground."""

from __future__ import annotations

from typing import Any

from .._util.arrays import Array, namespace, put
from .._util.checks import check_count, check_flag, generator
from ..contrast import Fit, LatentGaussian, refuse_design
from ..exceptions import warn
from ._base import Decomposition
from ._new_rows import checked, map_new_rows, new_rows, of_group
from ._rows import imputed, latent_posterior, log_density, of_foreground


class Likelihood(Decomposition):
    """Base of PPCA, PCPCA and CLVM; not public.

    The model N(mean, W W' + sigma2 I) is in scaled units (`model_`); every method takes and returns original units.
    """

    model_: LatentGaussian
    loadings_: Array
    noise_variance_: float
    objective_history_: Array
    n_effective_: float

    def _attributes(self, fit: Fit) -> dict[str, Any]:
        if fit.model is None:  # in a file
            raise ValueError("its model is missing")
        found = {"model_": fit.model, "loadings_": fit.loadings, "noise_variance_": fit.model.sigma2}
        return super()._attributes(fit) | found | {"objective_history_": fit.history, "n_effective_": fit.n_effective}

    # ------------------------------------------------------------------ densities

    def score_samples(self, X: Any, *, covariates: Any = None) -> Array:
        """Log-likelihood of each row under the foreground model N(mean, W W' + sigma2 I).

        A strong contrast makes this a poor density: use at most half the limit of gamma.

        Parameters
        ----------
        X, covariates
            As for `transform`.

        Returns
        -------
        log_likelihood : ndarray of shape (n,), in original units; for a dask array, a dask array
            Log-likelihood of the observed values; 0 for a row without any.
        """
        fit = self.fit_
        refuse_design(fit, "A density")
        return map_new_rows(
            self, X, covariates, "foreground", lambda rows, missing: log_density(fit, rows, missing), None
        )

    def score(self, X: Any, y: Any = None, *, covariates: Any = None) -> float:
        """Mean log-likelihood of the foreground rows.

        It falls as gamma grows, because a contrast gives up likelihood on purpose: always on the rows of the fit, and
        usually on new rows. Use it to compare models with the same gamma, not to choose gamma.

        Parameters
        ----------
        X, covariates
            As for `transform`.
        y : array-like of shape (n,), optional
            With `background_label`, rows with that label are dropped.
        """
        log_likelihood: Any = self.score_samples(X, covariates=covariates)
        if hasattr(log_likelihood, "compute"):  # a dask array
            log_likelihood = log_likelihood.compute()
        label = self._parameters.get("background_label")
        if y is not None and label is not None:
            log_likelihood = of_foreground(log_likelihood, y, label)
            if log_likelihood.shape[0] == 0:  # no error: cross-validation would hide it in a traceback for every fold
                warn(
                    f"All rows have the background label {label!r}: there is nothing to score, so the score is nan. In "
                    "cross-validation, use a splitter that mixes the groups, such as cv=StratifiedKFold(5)."
                )
                return float("nan")
        return float(namespace(log_likelihood).mean(log_likelihood))

    def latent_posterior(self, X: Any, *, covariates: Any = None) -> tuple[Array, Array]:
        """Distribution N(mean, covariance) of the latent z of each row, given the row.

        Parameters
        ----------
        X, covariates
            As for `transform`.

        Returns
        -------
        mean : ndarray of shape (n, d)
            Equal to `transform(X)`.
        covariance : ndarray of shape (n, d, d), read-only where all rows are complete
            sigma2 M^-1: the same for all complete rows, wider for rows with missing values, and the identity for a row
            without any value.
        """
        return latent_posterior(self.fit_, *new_rows(self, X, covariates))

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
        refuse_design(self.fit_, "sample")
        scaling = self.fit_.scaling.foreground
        check_count(n_samples, "n_samples")
        return put(scaling.undo(self.model_.sample(n_samples, generator(random_state))), self._place, scaling.dtype)

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
        X : array-like or data frame of shape (n, D), or Study
            Incomplete rows; of a `Study`, those of the foreground. A row without any value gets the mean.
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
        refuse_design(self.fit_, "impute")
        check_flag(return_std, "return_std")
        asked = {"return_std": return_std, "n_draws": n_draws, "random_state": random_state}
        X, covariates, named = of_group(self, X, covariates, "foreground")
        return imputed(self.fit_, X, checked(self, X, named)[0], covariates, **asked)

    def get_covariance(self) -> Array:
        """The model's covariance W W' + sigma2 I in original units, shape (D, D)."""
        scale = self.fit_.scaling.foreground.scale
        return put(self.model_.covariance() * scale[:, None] * scale, self._place)

    def get_precision(self) -> Array:
        """The inverse of `get_covariance()`, computed without inverting a D x D matrix."""
        scale = self.fit_.scaling.foreground.scale
        return put(self.model_.precision() / scale[:, None] / scale, self._place)
