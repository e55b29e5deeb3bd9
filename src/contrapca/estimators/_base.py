"""The base of all estimators: reading, fitting, mapping rows, features, uncertainty, saving."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from typing import Any, ClassVar, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from .._checks import SCALES, check_n_components, check_option
from .._util.archive import write_archive
from .._util.arrays import Array, Rows
from .._util.devices import float_type, namespace, on_device, place_of, put
from .._util.display import Display
from .._util.suggest import suggesting
from .._util.table import Table
from .._util.text import component_names, listed
from ..covariates import Regression, check_dense, design_of, without_covariates
from ..exceptions import GroupError
from ..fitting import Fit, Latents, Settings, fit_data
from ..groups import (
    Groups,
    Tables,
    canonical,
    check_device_table,
    check_names,
    column_means,
    without_mask,
)
from ..methods import PCPCA_METHOD, Method
from ..moments import Complete, Incomplete, Moments, Stream, collect, read
from ..rows import Blocked, map_rows, opened, storage
from ..uncertainty import ContrastPosterior, bootstrap
from ..units import Units, check_same_tables, group_of
from . import _streaming
from ._display import html_inner, mimebundle, summary_of_model
from ._persistence import REGISTRY, fit_from_saved, saved_fit

OfBackgrounds = Any  # an array, a dict of them by name if there are several backgrounds, None if there is none


class Decomposition(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators; not public. All fitted attributes come from the fit in `_state`."""

    _method: ClassVar[Method | None] = PCPCA_METHOD
    _takes_missing: ClassVar[bool] = True
    _takes_devices: ClassVar[bool] = True  # tables of torch and cupy
    _resampled: ClassVar[bool] = True  # whether there is a bootstrap
    _reduced: ClassVar[bool] = True  # whether few rows are replaced by coordinates in their span
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
        for name in ("__init__", "fit"):
            if name in vars(cls):
                setattr(cls, name, suggesting(vars(cls)[name]))

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
        """Set the attributes of a fit, with arrays in the float type of the foreground."""
        self._state, self._parameters = fit, self.get_params(deep=False)
        self._place: Any = None  # an array of the library and on the device of the fit's rows, if that is not NumPy
        dtype, units = fit.units.foreground.dtype, fit.units
        self.n_features_in_ = fit.components.shape[0]
        if units.foreground.names is not None:
            self.feature_names_in_ = np.array(units.foreground.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
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
        for name in ("covariate_names_", "covariate_coefficients_"):
            self.__dict__.pop(name, None)
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

    def _rows(self, X: Any, covariates: Any = None) -> tuple[Rows, bool]:
        """Check new rows, adjust them for their covariates; return them and whether values are missing."""
        rows, missing = self._checked_rows(X)
        return self._adjusted(X, rows, covariates), missing

    def _adjusted(self, X: Any, rows: Rows, covariates: Any) -> Rows:
        """Checked rows of X without the effect of their covariates, if the fit had some."""
        known = self._check_covariates(covariates)
        return rows if known is None else known.adjusted(rows, known.design(covariates, X, rows.shape[0]))

    def _check_covariates(self, covariates: Any) -> Regression | None:
        """What the fit regressed out, if anything; raise unless covariates are given exactly then."""
        known = self._state.covariates
        if known is None and covariates is not None:
            raise GroupError(
                "covariates= is given, but this model was fitted without: leave it out, or pass it to fit."
            )
        if known is not None and covariates is None:
            raise GroupError(
                f"This model was fitted with covariates ({listed([column.name for column in known.columns])}): pass "
                "covariates=, the same columns for these rows, so that their effect is taken out of them, too. For "
                "what takes no covariates, adjust the tables with regress_out, and fit a model to the result."
            )
        return known

    def _checked_rows(self, X: Any) -> tuple[Rows, bool]:
        """Check new rows against the fitted features; return them and whether values are missing."""
        check_is_fitted(self)
        self._check_place(X)
        if on_device(X):
            rows = check_device_table(X, type(self).__name__, least_rows=1)
            validate_data(self, rows, reset=False, skip_check_array=True)
            return rows, self._has_missing(rows)
        X = opened(X)
        checks: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": False}
        if isinstance(X, Blocked):
            return self._state.units.foreground.check(X, allow_missing=self._state.model is not None)
        rows = canonical(validate_data(self, without_mask(X), reset=False, **checks))
        return rows, self._has_missing(rows)

    def _check_place(self, X: Any) -> None:
        """Refuse rows that are elsewhere than those of the fit, where scikit-learn's own estimators do.

        Otherwise a model serves rows anywhere, and the result follows them.
        """
        if get_config()["array_api_dispatch"] and (found := place_of(X)) != (fitted := place_of(self._place)):
            raise ValueError(
                f"Rows passed to {type(self).__name__}.transform() and other methods must use the same namespace and "
                f"device as those passed to fit(): these are {found}, and those of the fit were {fitted}. Move them, "
                "or set array_api_dispatch=False: contrapca does not need it."
            )

    def _has_missing(self, rows: Rows) -> bool:
        return bool(np.isnan(column_means(rows, allow_missing=self._state.model is not None)).any())

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
            P, origin = fit.projection, units.origin
            return units.apply(lambda block: storage(block).centred_product(block, origin, P), rows)
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

    # ------------------------------------------------------------------ uncertainty

    def _fitted_groups(
        self,
        X: Any,
        y: Any,
        background: Any,
        sample_weight: Any = None,
        background_weight: Any = None,
        covariates: Any = None,
        background_covariates: Any = None,
    ) -> Tables:
        """Check the tables of the fit when they are passed again."""
        check_is_fitted(self)
        X = opened(X)
        contrasted = self._state.units.background is not None
        if not contrasted and background is not None:
            raise ValueError("This model was fitted without a background: do not pass one.")
        if not isinstance(X, Moments | Blocked):
            validate_data(self, X, reset=False, skip_check_array=True)  # names and number of features
        elif isinstance(X, Blocked):
            check_names(X, self._state.units.foreground.labels)
        elif X.mean.size != self.n_features_in_:
            raise ValueError(f"X has {X.mean.size} features, but the fit had {self.n_features_in_}.")
        label = self._parameters.get("background_label") if contrasted else None
        name = type(self).__name__
        tables = read(
            X,
            y,
            background,
            label,
            name=name,
            needs_background=contrasted,
            allow_missing=self._takes_missing,
            sample_weight=sample_weight,
            background_weight=background_weight,
        )
        known = self._state.units
        if tables.rows.names != known.names:
            raise ValueError(f"The groups are {listed(tables.rows.names)}, but the fit had {listed(known.names)}.")
        tables = replace(tables, rows=replace(tables.rows, mix=known.mix))
        design = design_of(tables, X, background, covariates, background_covariates, y, label)
        found = self._state.covariates
        if design is None or found is None:
            self._check_covariates(covariates)
            return tables
        if design.columns != found.columns:
            raise GroupError(f"covariates are {listed(design.names)}, but those of the fit were {listed(found.names)}.")
        return without_covariates(tables, design, found)[0]

    def _fitted_data(self, *given: Any) -> Complete | Incomplete:
        """The data of the fit in model units, from the arguments of `fit` passed again; other tables raise."""
        tables, units = self._fitted_groups(*given), self._state.units
        data = collect(tables, self._state.n_latent, units.map(lambda known: known.scale), reduced=self._reduced)
        check_same_data(data, units, gls=self._parameters.get("mean") == "gls")
        return data

    @available_if(lambda self: self._resampled)  # type: ignore[untyped-decorator]
    def bootstrap(
        self,
        X: Any,
        y: Any = None,
        *,
        background: Any = None,
        sample_weight: Any = None,
        background_weight: Any = None,
        covariates: Any = None,
        background_covariates: Any = None,
        blocks: Any = None,
        background_blocks: Any = None,
        pairs: Any = None,
        background_pairs: Any = None,
        n_resamples: int = 200,
        random_state: Any = None,
        progress: bool = True,
    ) -> ContrastPosterior:
        """Refit to rows, or whole blocks, resampled with replacement within each group.

        It needs no condition on N and no extra library, and it takes missing values (PPCA, PCPCA). Scales and the
        number of latent dimensions are those of the fit; with gamma="auto" every refit uses the same fraction of its
        own limit. With missing values no exact limit is known: a refit without a solution is tried again at 0.85 of
        its gamma, up to 25 times, if gamma is "auto", and counts as failed if it was given.

        Parameters
        ----------
        X, y, background, sample_weight, background_weight, covariates, background_covariates
            The rows of the fit, as for `fit`. A row is drawn with its weight, and adjusted for its covariates as in the
            fit.
        blocks, background_blocks : array-like of shape (n,) and (m,), optional
            The donor, animal or plate of each row, if rows are not independent: whole blocks are resampled. A label in
            both is one block with rows in both groups. `background_blocks` is a dict if there are several backgrounds.
        pairs, background_pairs : array-like of shape (n,) and (m,), optional
            The same for pairs, such as a donor before and after treatment: every label must be in both groups.
        n_resamples : int, default 200
        random_state : None, int, Generator or RandomState
        progress : bool, default True
            Show a progress bar on a terminal or in a notebook if it takes longer than two seconds.

        Returns
        -------
        ContrastPosterior
            One chain; `failures` counts the refits for which gamma was infeasible.

        Examples
        --------
        >>> import numpy as np
        >>> from contrapca import PCPCA
        >>> rng = np.random.default_rng(0)
        >>> X, Y = rng.normal(size=(200, 5)) * [3, 1, 1, 1, 1], rng.normal(size=(150, 5))
        >>> model = PCPCA(1, gamma=0.5).fit(X, background=Y)
        >>> refits = model.bootstrap(X, background=Y, n_resamples=100, random_state=0)
        >>> refits
        ContrastPosterior(bootstrap, pcpca: 1 x 100 draws, D = 5, d = 1)
        >>> refits.summary()["excludes_zero"].tolist()
        [True, False, False, False, False]
        """
        beside = (sample_weight, background_weight, covariates, background_covariates)
        tables = self._fitted_groups(X, y, background, *beside)
        if isinstance(X, Moments):
            raise TypeError("bootstrap() resamples rows, and moments have none: pass the tables of the fit.")
        weights = None if tables.incomplete else tables.totals
        check_same_tables(tables.means, self._state.units, weights=weights, gls=self._parameters.get("mean") == "gls")
        assert self._method is not None
        given = {"blocks": blocks, "background_blocks": background_blocks, "pairs": (pairs, background_pairs)}
        settings: dict[str, Any] = {"n": n_resamples, "random_state": random_state, "progress": progress}
        return bootstrap(tables, self._state, self._method, **given, **settings)

    # ------------------------------------------------------------------ saving

    def save(self, path: Any) -> None:
        """Write the fitted model to a file that `contrapca.load` reads (npz and JSON, no pickle).

        Parameters
        ----------
        path : str or path-like
            Written atomically; an existing file is overwritten. `set_output` settings are not saved.
        """
        check_is_fitted(self)
        write_archive(path, **saved_fit(self, self._state))

    @classmethod
    def from_saved(cls, facts: dict[str, Any], arrays: dict[str, Any], names: tuple[str, ...] | None) -> Self:
        """A fitted model from the checked contents of a saved file."""
        return cls(**facts["parameters"])._with_fit(fit_from_saved(facts, arrays, names))


def of_backgrounds(values: Groups[Array], dtype: str) -> OfBackgrounds:
    """The background's array, a dict of arrays if there are several backgrounds, None if there is none."""
    arrays = [value.astype(dtype, copy=False) for value in values.backgrounds]
    return dict(zip(values.names[1:], arrays, strict=True)) if len(arrays) > 1 else next(iter(arrays), None)


def check_same_data(data: Complete | Incomplete, fitted: Groups[Units], *, gls: bool = False) -> None:
    """Raise if the data are not those of a fit."""
    means, weights = data.units.map(lambda units: units.mean), data.units.map(lambda units: units.weight)
    check_same_tables(means, fitted, weights=weights, gls=gls)
