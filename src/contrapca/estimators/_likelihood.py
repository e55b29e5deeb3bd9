"""The bases of estimators with a probability model of the foreground, and of those that solve it in closed form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from .._util.arrays import Array, Rows, cast, is_sparse, namespace, put
from .._util.checks import (
    auto_or,
    check_count,
    check_flag,
    check_n_components,
    check_positive,
    count,
    generator,
    one_of,
)
from .._util.text import Option, Said
from ..contrast import (
    Fit,
    Halves,
    LatentGaussian,
    Latents,
    Settings,
    Solution,
    Training,
    automatic_rank,
    complete_background_model,
    feasible_rank,
    in_original_units,
    pcpca_grid,
    pcpca_limit,
    ratio_axes,
    refuse_design,
    relative_log_likelihood,
    settled,
    solve_path,
    solve_pcpca,
)
from ..data import Groups, Scaling, Tables, like_table, refuse_device, refuse_devices
from ..data.checks import IMPUTED
from ..data.rows import DaskRows
from ..exceptions import InfeasibleGammaError, RankError, warn
from ..missing import (
    Incomplete,
    collect,
    collect_incomplete,
    fit_incomplete,
    incomplete_background_model,
    masked_rank,
)
from ..moments import SPECTRAL, Complete, Contrast, check_solver_of, contrast
from ._base import ContrastSolver, Decomposition, lifted
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


class LatentModel(Likelihood, ContrastSolver):
    """Base of PPCA, PCPCA and ContraPCA, which maximise the relative likelihood; not public.

    In closed form for complete rows (F2), by gradients if values are missing.
    """

    mean: str
    n_init: int | str
    max_iter: int
    tol: float
    random_state: Any
    progress: bool

    _holds_rows_out = False  # "auto" is a part of the limit
    _parameter_checks: ClassVar = Likelihood._parameter_checks | {
        "solver": one_of("auto", *SPECTRAL, "lbfgs"),
        "mean": one_of("observed", "gls"),
        "n_init": auto_or(count()),
        "max_iter": count(),
        "tol": check_positive,
        "progress": check_flag,
    }

    # ------------------------------------------------------------------ the mathematics

    _limit = staticmethod(pcpca_limit)
    _path = staticmethod(solve_path)
    _solution = staticmethod(solve_pcpca)
    _grid = staticmethod(pcpca_grid)

    def _refusal(
        self, gamma: float, limit: float, r: int, parameter: str = "n_components", hint: str = ""
    ) -> ValueError:
        reason = (
            "the background outweighs all foreground rows (N = n (1 - gamma) is not positive)"
            if limit >= 1
            else "the relative likelihood has no maximum (the noise variance would not be positive)"
        )
        advice = f", or CPCA, which allows stronger contrasts.{hint}"
        return InfeasibleGammaError(gamma, limit, r, reason, advice, parameter)

    def _objective(self, C: Contrast, solution: Solution) -> float:
        W = solution.spectrum.vectors * solution.lengths
        return relative_log_likelihood(C, W, W * solution.spectrum.values, solution.sigma2)

    # ------------------------------------------------------------------ steps of a fit

    def _collected(self, tables: Tables) -> Complete | Incomplete:
        self._latents(tables.n_features)  # raises for what so many features do not allow
        solver = self.solver
        if solver != "lbfgs":
            if solver != "auto" and tables.incomplete:
                raise ValueError(f"solver={solver!r} is for complete rows, but values are missing. Use solver='auto'.")
            return collect(tables, check_n_components(self.n_components, tables.n_features), self._scaling, solver)
        # By gradients, also of complete rows.
        check_solver_of(tables.rows.foreground, solver)
        refuse_devices(tables, f"solver={solver!r}")
        if not all(isinstance(rows, np.ndarray) for rows in tables.rows):
            raise ValueError(f"solver={solver!r} is for dense tables: pass X.toarray(), or use solver='auto'.")
        check_n_components(self.n_components, tables.n_features)
        return collect_incomplete(tables, self._scaling)

    def _fit_to(self, data: Complete | Incomplete, halves: Callable[[], Halves]) -> Fit:
        if isinstance(data, Incomplete):
            return self._by_gradients(data)
        latents = self._ranked(data, self._strength())  # F24
        fit = self._solve(data, latents, self._gamma_by_limit(data, latents))  # F1 to F3, and the axes
        return replace(fit, background_model=complete_background_model(data, fit.n_latent))  # for `contrast_score`

    def _ranked(self, data: Complete | Incomplete, gamma: float | None) -> Latents:
        """How many latent dimensions there are, and which are shown; counted where that is left to the data (F24).

        A given gamma may leave room for fewer than the groups suggest.
        """
        latents = settled(data.plateau, self._latents())
        if latents.n_latent is not None:
            return latents
        k = latents.n_shown
        rank = counted_rank(data, k, gamma) if isinstance(data, Complete) else masked_rank(data.groups, k)
        return replace(latents, n_latent=rank)

    def _by_gradients(self, data: Incomplete) -> Fit:
        """The fit where values are missing; "auto" tries gammas below an upper bound on the limit until one works."""
        n_init = None if isinstance(self.n_init, str) else int(self.n_init)
        settings = Settings(self.mean, n_init, self.max_iter, self.tol, self.random_state, self.progress)
        fit = fit_incomplete(data, self._latents(), self._strength(), settings)
        return replace(fit, background_model=incomplete_background_model(data, fit, settings))

    # ------------------------------------------------------------------ subsets of the rows

    def _axes_of(self, training: Training) -> Groups[Array]:
        data, gamma, latents = self._trained(training), self._strength(), self._latents()
        groups, k, near = data.groups, latents.n_shown, None
        if gamma is not None and not latents.contrast_axes:
            return super()._axes_of(data)
        if latents.axes == "ratio" and (known := ratio_axes(groups, k)) is not None:  # whatever gamma is
            return in_original_units(data.vectors(known[1]), data)
        latents = latents.within(groups.foreground.weight, groups.foreground.mean.size)
        if gamma is None:
            limit, near = self._limit(groups, latents.rank)
            while limit == 0 and latents.rank > k:  # few rows that count more than once: the rank gives way
                latents = replace(latents, n_latent=latents.rank - 1)
                limit, near = self._limit(groups, latents.rank)
            if limit == 0:
                raise RankError(latents.rank, parameter=latents.parameter)
            gamma = latents.auto_fraction * limit
        found = self._shown(groups, latents, gamma, near)
        if found is None:
            error = self._infeasible(groups, latents, gamma)
            if not isinstance(error, InfeasibleGammaError):
                raise error
            latents = replace(latents, n_latent=counted_rank(data, k, gamma))  # the rank gives way
            found = self._shown(groups, latents, gamma)
            if found is None:
                raise self._infeasible(groups, latents, gamma)
        C, solution, _, shown = found
        return in_original_units(lifted(data, C, solution) @ shown.directions, data)


def counted_rank(data: Complete, k: int, gamma: float | None) -> int:
    """The number of latent dimensions that the groups suggest, or fewer, with a warning, if gamma allows no more."""
    wanted = automatic_rank(data, k)
    if gamma is None or (r := feasible_rank(contrast(data.groups, gamma), wanted)) == wanted:
        return wanted
    if r >= k:
        warn(
            (
                Said(f"gamma={gamma:.6g}", f"--gamma {gamma:.6g}"),
                f" is above the limit for the {wanted} latent dimensions that these tables suggest, so the model has "
                f"only {r}. For all {wanted}, use ",
                Option("gamma", "auto"),
                " or a smaller gamma.",
            )
        )
    return max(r, k)


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
