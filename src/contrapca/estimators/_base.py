"""The base of all estimators: reading, fitting, mapping rows, features, uncertainty, saving."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from .._checks import SCALES, check_n_components, check_option
from .._util.archive import write_archive
from .._util.arrays import Array, Rows
from .._util.devices import float_type, namespace, on_device, put
from .._util.display import Display
from .._util.suggest import suggesting
from .._util.table import Table
from .._util.text import component_names
from ..covariates import check_dense, design_of, without_covariates
from ..fitting import Fit, Latents, Settings, fit_data
from ..groups import Groups, Tables, check_device_table, refuse_moments
from ..methods import PCPCA_METHOD, Method
from ..moments import Complete, Incomplete, Moments, Stream, check_solver_of, collect, read
from ..rows import Blocked, map_rows, opened
from ..saving import REGISTRY, fit_from_saved, saved_fit, saved_model
from ..units import Units, group_of
from . import _again, _new_rows, _streaming
from ._display import html_inner, mimebundle, summary_of_model

OfBackgrounds = Any  # an array, a dict of them by name if there are several backgrounds, None if there is none


@suggesting
class Decomposition(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators; not public. All fitted attributes come from the fit in `_state`."""

    _method: ClassVar[Method | None] = PCPCA_METHOD
    _takes_missing: ClassVar[bool] = True
    _takes_devices: ClassVar[bool] = True  # tables of torch and cupy
    _resampled: ClassVar[bool] = True  # whether there is a bootstrap
    _reduced: ClassVar[bool] = True  # whether few rows are replaced by coordinates in their span
    _rotates: ClassVar[bool] = True  # whether rotated features give the same, rotated
    _holds_out: ClassVar[bool] = False  # whether gamma="auto" is chosen on held-out rows
    _has_budget: ClassVar[bool] = False  # whether gamma is chosen by a budget
    _scales: ClassVar[tuple[str | bool | None, ...]] = SCALES
    n_components: int
    scale: str | bool | None
    solver: str
    background_label: Any = None

    mean_: Array
    scale_: Array
    feature_variance_: Array
    background_mean_: OfBackgrounds
    background_scale_: OfBackgrounds
    background_feature_variance_: OfBackgrounds

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.startswith(f"{__package__}."):  # `load` could not read files of other classes
            REGISTRY[cls.__name__] = cls
        suggesting(cls)

    _repr_html_inner, _repr_mimebundle_ = html_inner, mimebundle

    # ------------------------------------------------------------------ batches

    _stream: Stream | None = None
    partial_fit, fit_batches = _streaming.partial_fit, _streaming.fit_batches
    moments_ = property(_streaming.moments_)
    n_samples_seen_ = property(_streaming.n_samples_seen_)
    n_background_samples_seen_ = property(_streaming.n_background_samples_seen_)

    # ------------------------------------------------------------------ fit

    def _fit(
        self,
        X: Any,
        y: Any,
        background: Any,
        gamma: float | None,
        sample_weight: Any,
        background_weight: Any = None,
        memory_limit: Any = None,
        covariates: Any = None,
        background_covariates: Any = None,
    ) -> Self:
        """Compute everything first and set attributes last, so a failure leaves nothing behind."""
        check_option(self.scale, "scale", self._scales)
        check_solver_of(X, getattr(self, "solver", "auto"))  # CLVM has one solver
        X = opened(X, memory_limit)
        tables = read(
            X,
            y,
            background,
            self.background_label,
            name=type(self).__name__,
            needs_background=gamma != 0,
            allow_missing=self._takes_missing,
            sample_weight=sample_weight,
            background_weight=background_weight,
            gamma=getattr(self, "gamma", None),
            memory_limit=memory_limit,
        )
        beside = (covariates, background_covariates, y, self.background_label)
        design, found = design_of(tables, X, background, *beside), None
        if design is not None:
            tables, found = without_covariates(tables, design)
        fit = self._fitted(tables, self._collected(tables), gamma)
        fit = fit if found is None else replace(fit, covariates=found)
        if not isinstance(X, Moments | Blocked):
            validate_data(self, X, skip_check_array=True)
        self.__dict__.pop("_stream", None)  # batches before this fit no longer count
        self._with_fit(fit)
        if on_device(X):
            self._follow(X)
        return self

    def _collected(self, tables: Tables) -> Complete | Incomplete:
        """The data of the fit, read from the tables."""
        d = check_n_components(self.n_components, tables.n_features)
        return collect(tables, d, self._scaling, self._storage(tables), reduced=self._reduced)

    def _storage(self, tables: Tables) -> str:
        """The solver that the moments are stored for."""
        return self.solver

    def _fitted(self, tables: Tables, data: Complete | Incomplete, gamma: float | None) -> Fit:
        """From tables and their data to the solution."""
        return self._solve(data, gamma)

    def _solve(self, data: Complete | Incomplete, gamma: float | None) -> Fit:
        """From the data to the solution."""
        assert self._method is not None
        return fit_data(data, self._method, self._latents(), gamma, self._settings())

    @property
    def _scaling(self) -> str | None:
        """How each group is scaled; PPCA, with one group, uses True for "group"."""
        return "group" if self.scale is True else self.scale or None

    def _latents(self) -> Latents:
        return Latents.plain(self.n_components)

    def _settings(self) -> Settings:
        return Settings()

    def _strength(self) -> float | None:
        """gamma as the parameters give it; None if it is to be chosen, 0 if there is none."""
        return 0.0

    def _with_fit(self, fit: Fit) -> Self:
        """Set the attributes of a fit, arrays in the float type of the foreground; leave none of a fit before."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        self._state, self._parameters = fit, self.get_params(deep=False)
        self._place: Any = None  # an array of the library and on the device of the fit's rows, if that is not NumPy
        dtype, units = fit.units.foreground.dtype, fit.units
        self.n_features_in_ = fit.components.shape[0]
        if units.foreground.names is not None:
            self.feature_names_in_ = np.array(units.foreground.names, dtype=object)
        self.components_ = fit.components.T.astype(dtype, copy=False)
        for name, value in (("mean", "mean"), ("scale", "scale"), ("feature_variance", "variance")):
            arrays = units.map(attrgetter(value))
            setattr(self, f"{name}_", arrays.foreground.astype(dtype, copy=False))
            setattr(self, f"background_{name}_", of_backgrounds(arrays, dtype))
        shares = fit.shares
        self.explained_variance_ = fit.variances.foreground.astype(dtype, copy=False)
        self.explained_variance_ratio_ = shares.foreground.astype(dtype, copy=False)
        if fit.eigenvalues is not None:
            self.eigenvalues_ = fit.eigenvalues.astype(dtype, copy=False)
        self.background_variance_ = of_backgrounds(fit.variances, dtype)
        self.background_variance_ratio_ = of_backgrounds(shares, dtype)
        self.n_iter_ = fit.n_iter
        self.solver_ = fit.solver
        if fit.covariates is not None:
            self.covariate_names_ = np.array(fit.covariates.names, dtype=object)
            self.covariate_coefficients_ = fit.covariates.coefficients.astype(dtype, copy=False)
        return self

    def _follow(self, X: Any) -> None:
        """Move the fitted arrays to the library and device of X, as scikit-learn's estimators do."""
        xp, dtype = namespace(X), self._state.units.foreground.dtype
        self._place = xp.empty(0, dtype=getattr(xp, dtype), device=X.device)

        def moved(value: Any) -> Any:
            if isinstance(value, dict):  # one array for each background
                return {name: moved(one) for name, one in value.items()}
            is_array = isinstance(value, np.ndarray) and value.dtype.kind == "f"
            return put(value, X, str(value.dtype)) if is_array else value

        for name, value in vars(self).items():
            if name.endswith("_"):
                setattr(self, name, moved(value))

    def _as_fitted(self) -> Self:
        """A copy with the parameters that were used for the fit, even if `set_params` has changed them since."""
        return type(self)(**self._parameters)._with_fit(self._state)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_state")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._takes_missing
        tags.array_api_support = self._takes_devices
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # ------------------------------------------------------------------ rows to latents and back

    _rows, _checked_rows, _adjusted = _new_rows.rows, _new_rows.checked_rows, _new_rows.adjusted
    _check_place, _has_missing = _new_rows.check_place, _new_rows.has_missing
    _check_covariates = _new_rows.check_covariates

    def _units(self, center: str) -> Units:
        """Units of the group named by `center`."""
        return group_of(self._state.units, center)

    def transform(self, X: Any, *, center: str = "foreground", covariates: Any = None) -> Array:
        """Latent coordinates of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)
        center : {"foreground", "background"} or the name of one of several backgrounds
            "foreground" subtracts `mean_` and divides by `scale_`: use it for foreground and new rows. "background"
            uses `background_mean_` and `background_scale_`: use it for background rows.
        covariates : array-like or data frame of shape (n, q)
            Those of these rows, if the model was fitted with covariates: their effect is taken out in the same way.

        Returns
        -------
        Z : ndarray of shape (n, d), in the float type of `X`; for a dask array, a dask array
        """
        check_is_fitted(self)
        return self._by_block(X, lambda rows: self._latents_of(rows, center, covariates), self._n_features_out)

    def _latents_of(self, X: Any, center: str, covariates: Any) -> Array:
        rows, missing = self._rows(X, covariates)
        return self._latent_means(rows, missing, center)

    def _by_block(self, X: Any, function: Callable[[Any], Array], n_columns: int | None) -> Any:
        """A function of rows; of a dask array, a dask array whose blocks are not computed yet."""
        rows = opened(X)
        if not isinstance(rows, Blocked) or not rows.remote:
            return function(X)
        if rows.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {rows.shape[1]} features, but {self.n_features_in_} were fitted.")
        if self._state.covariates is not None:
            check_dense(rows, "table")  # blocks do not know which rows they are
        return map_rows(X, function, n_columns)

    def _latent_means(self, rows: Rows, missing: bool, center: str) -> Array:
        units, fit = self._units(center), self._state
        if not missing:
            return units.project(rows, fit.projection)
        assert fit.model is not None
        model = replace(fit.model, mean=units.origin)
        return units.apply(lambda block: model.condition(block).latent_mean[:, : fit.n_shown], rows)

    def fit_transform(self, X: Any, y: Any = None, **groups: Any) -> Array:
        """Fit, then transform all rows of `X`, in order, including any background rows among them.

        Parameters
        ----------
        X, y
            As for `fit`.
        **groups
            The keywords of `fit`, such as `background`.

        Returns
        -------
        Z : ndarray of shape (n, d)
        """
        refuse_moments(X, "fit_transform", "X")
        fitted: Self = self.fit(X, y, **groups)  # type: ignore[attr-defined]
        return fitted.transform(X, **({"covariates": groups["covariates"]} if "covariates" in groups else {}))

    def inverse_transform(self, Z: Any) -> Array:
        """Map latents back to rows: mean + W z, in original units; without a model, the nearest rows of the components'
        span that have these latents. Rows have average covariates, if the fit had covariates.

        Parameters
        ----------
        Z : array-like of shape (n, d)

        Returns
        -------
        X : ndarray of shape (n, D)
        """
        check_is_fitted(self)
        self._check_place(Z)
        checks: dict[str, Any] = {"dtype": [np.float64, np.float32], "ensure_min_features": 0}
        name = type(self).__name__
        latents = check_device_table(Z, name, 1) if on_device(Z) else check_array(Z, estimator=name, **checks)
        decoder, units = self._state.decoder, self._state.units.foreground
        if latents.shape[1] != decoder.shape[1]:
            raise ValueError(f"Z has {latents.shape[1]} columns, but the model has {decoder.shape[1]} components.")
        kind = float_type(latents)
        decoder, mean = (decoder * units.scale[:, None]).astype(kind), units.mean.astype(kind)
        return latents @ put(decoder, latents, kind).T + put(mean, latents, kind)

    # ------------------------------------------------------------------ results

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    @property
    def objective_(self) -> float:
        """The maximum of the objective.

        PPCA: the log-likelihood of the rows. PCPCA: the relative log-likelihood
        log p(X) - gamma_raw log p(Y). CPCA: tr V'C V = n times the sum of `eigenvalues_`. CLVM: the log-likelihood of
        both groups. In scaled units if `scale` is set.
        """
        check_is_fitted(self)
        return self._state.objective

    def summary(self) -> Display:
        """What the fit found: settings, variances along the components, and the features with the largest loadings.

        Returns
        -------
        Display
            Printed as text, shown as HTML in a notebook.
        """
        check_is_fitted(self)
        return summary_of_model(self)

    def feature_table(self) -> Table:
        """Loadings and variances of every feature, strongest features first.

        Returns
        -------
        Table
            Columns: `feature`, its loadings `component_1`, ... (rows of W; of V for CPCA), `foreground_variance` and,
            with a background, `background_variance` (original units; with several, one column for each, by name), and
            `rank`, 1 for the largest sum of squared loadings.
        """
        check_is_fitted(self)
        units = self._state.units
        dtype = units.foreground.dtype
        loadings = self._state.loadings.astype(dtype)
        order = np.argsort(-np.sum(loadings**2, axis=1), kind="stable")
        columns: dict[str, Any] = {"feature": np.array(units.foreground.labels, dtype=object)}
        columns |= dict(zip(component_names(loadings.shape[1]), loadings.T, strict=True))
        variances = units.map(lambda group: group.variance.astype(dtype, copy=False))
        columns |= {f"{name}_variance": variance for name, variance in zip(units.names, variances, strict=True)}
        ranked = {name: column[order] for name, column in columns.items()}
        return Table(ranked | {"rank": np.arange(1, order.size + 1)})

    # ------------------------------------------------------------------ the tables of the fit, again

    _fitted_groups, _fitted_data = _again.fitted_groups, _again.fitted_data
    bootstrap = available_if(lambda self: self._resampled)(_again.bootstrap)

    # ------------------------------------------------------------------ saving

    _saved_fit, _restored_fit = staticmethod(saved_fit), staticmethod(fit_from_saved)

    def save(self, path: Any) -> None:
        """Write the fitted model to a file that `contrapca.load` reads (npz and JSON, no pickle).

        Parameters
        ----------
        path : str or path-like
            Written atomically; an existing file is overwritten. `set_output` settings are not saved.
        """
        check_is_fitted(self)
        write_archive(path, **saved_model(self))

    @classmethod
    def from_saved(cls, facts: dict[str, Any], arrays: dict[str, Any], names: tuple[str, ...] | None) -> Self:
        """A fitted model from the checked contents of a saved file."""
        return cls(**facts["parameters"])._with_fit(cls._restored_fit(facts, arrays, names))


def of_backgrounds(values: Groups[Array], dtype: str) -> OfBackgrounds:
    """The background's array, a dict of arrays if there are several backgrounds, None if there is none."""
    arrays = [value.astype(dtype, copy=False) for value in values.backgrounds]
    return dict(zip(values.names[1:], arrays, strict=True)) if len(arrays) > 1 else next(iter(arrays), None)
