"""The base of PPCA, PCPCA and CLVM: a probability model of the foreground."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._util.arrays import Array, Rows, cast, is_sparse, namespace, put
from .._util.checks import check_count, check_flag, generator
from ..contrast import Fit, LatentGaussian, refuse_design
from ..data import Scaling, like_table, refuse_device
from ..data.checks import IMPUTED
from ..data.rows import DaskRows
from ..exceptions import warn
from ._base import Decomposition
from ._new_rows import adjusted, checked, latent_means, map_new_rows, new_rows, of_foreground, of_group


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
        refuse_design(self.fit_, "A density")
        scaling, model = self.fit_.scaling.foreground, self.model_
        return map_new_rows(
            self,
            X,
            covariates,
            "foreground",
            lambda rows, missing: log_density(model, scaling, rows, missing),
            None,
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
        fit, (rows, missing) = self.fit_, new_rows(self, X, covariates)
        mean, model, k = latent_means(fit, rows, missing), self.model_, fit.n_shown
        if missing:
            scaling = fit.scaling.foreground
            return mean, scaling.apply(lambda block: model.condition(block).latent_covariance()[:, :k, :k], rows)
        covariance = cast(put(model.latent_covariance()[:k, :k], mean), mean)
        return mean, namespace(mean).broadcast_to(covariance, (mean.shape[0], k, k))

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
        fit = self.fit_
        X, covariates, named = of_group(self, X, covariates, "foreground")
        rows, _ = checked(self, X, named)
        refuse_device(rows, "impute")
        rows = rows[:] if isinstance(rows, DaskRows) else rows
        if is_sparse(rows):
            raise TypeError("Unstored entries of sparse tables are zeros, not missing values: nothing to impute.")
        if n_draws is not None:
            check_count(n_draws, "n_draws")
            if return_std:
                raise ValueError("return_std cannot be combined with n_draws: the draws themselves show the spread.")
        known, scaling, model = fit.covariates, fit.scaling.foreground, self.model_
        given = adjusted(fit, X, rows, covariates)
        effect = 0.0 if known is None else known.effect(known.encoded(covariates, X, rows.shape[0]))

        def filled(rows: Rows, values: Callable[[Any], Array], effect: Array | float) -> Rows:
            """Rows with missing entries replaced by `values` of the distribution given other rows, plus an effect."""
            scaled = scaling.apply(lambda block: values(model.condition(block)), given)
            return np.where(np.isnan(rows), cast(scaling.undo(scaled) + effect, rows), rows)

        if n_draws is not None:
            random = generator(random_state)
            draws = [filled(rows, lambda row: row.draw(random), effect) for _ in range(n_draws)]
            frames = [_marked(like_table(draw, X), rows) for draw in draws]
            return np.stack(draws) if frames[0] is draws[0] else frames
        means = _marked(like_table(filled(rows, lambda row: row.mean(), effect), X), rows)
        if not return_std:
            return means
        observed = np.where(np.isnan(rows), rows, np.zeros_like(rows))
        return means, like_table(filled(observed, lambda row: row.deviation(), 0.0), X)

    def get_covariance(self) -> Array:
        """The model's covariance W W' + sigma2 I in original units, shape (D, D)."""
        scale = self.fit_.scaling.foreground.scale
        return put(self.model_.covariance() * scale[:, None] * scale, self._place)

    def get_precision(self) -> Array:
        """The inverse of `get_covariance()`, computed without inverting a D x D matrix."""
        scale = self.fit_.scaling.foreground.scale
        return put(self.model_.precision() / scale[:, None] / scale, self._place)


def log_density(model: LatentGaussian, scaling: Scaling, rows: Rows, missing: bool) -> Array:
    """log p of the observed values of each row under a model in the given units, shape (n,)."""
    log_prob = (lambda block: model.condition(block).log_prob()) if missing else model.log_prob
    density = scaling.apply(log_prob, rows)
    return cast(density - scaling.log_jacobian(rows, missing=missing), density)


def _marked(table: Any, rows: Rows) -> Any:
    """A data frame that says how many of its values were imputed; other tables cannot."""
    if hasattr(table, "attrs") and (count := int(np.isnan(rows).sum())):
        table.attrs[IMPUTED] = count
    return table
