"""The base of all estimators: fitting, mapping rows, results, saving."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from .._files import pack, write
from .._util.arrays import Array, Rows, canonical, on_device, place_of, put
from .._util.checks import SCALES, Check, check_n_components, one_of
from .._util.tables import Display, Table
from ..contrast import Fit, Halves, Latents, Training, in_original_units
from ..data import (
    Groups,
    Study,
    Tables,
    check_device_table,
    check_features,
    column_means,
    column_names,
    design_of,
    distinct,
    foreground_of,
    refuse_moments,
    refuse_others,
    study_of,
    tables_of,
    without_covariates,
    without_mask,
)
from ..data.rows import DaskRows, as_rows, is_kept
from ..exceptions import GroupError, InfeasibleGammaError, NonFiniteError, RankError, warn
from ..missing import Incomplete, collect, collect_expected
from ..moments import Complete, Moments, Stream, check_solver_of, read_batch, read_batches
from ._rows import adjusted, by_block, check_same_data, decoded, latent_means, maps_missing, tables_again
from ._summary import facts, feature_table, summary

NO_MOMENTS = (
    "This model has no moments of its rows: it was not fitted by partial_fit or fit_batches, or it was loaded from a "
    "file, which does not keep them (save moments_ with Moments.save)."
)


EXACT = "objective_history_"  # in float64, for rows of any type


class Decomposition(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators; not public. All fitted attributes come from the fit in `fit_`."""

    _contrasts: ClassVar[bool] = True  # whether there is a background
    _has_model: ClassVar[bool] = False  # whether there is a probability model
    _takes_missing: ClassVar[bool] = True
    _takes_devices: ClassVar[bool] = True  # tables of torch and cupy
    _resampled: ClassVar[bool] = True  # whether there is a bootstrap
    _sampled: ClassVar[bool] = False  # whether there is a Gibbs posterior
    # Whether rotated features give the same, rotated: few rows are then replaced by coordinates in their span.
    _rotates: ClassVar[bool] = True
    _holds_out: ClassVar[bool] = False  # whether gamma="auto" is chosen on held-out rows
    _known_as: ClassVar[str] = ""  # in the methods section of a paper; by default the class's name
    _source: ClassVar[str | None] = None  # to be cited there, a key of the report's sources
    _decisive: ClassVar[str] = "n_components"  # the parameter that a comparison of methods shows
    _parameter_checks: ClassVar[dict[str, Check]] = {"scale": one_of(*SCALES)}  # those that need no table
    n_components: int
    scale: str | None
    solver: str
    background_label: Any = None

    # ------------------------------------------------------------------ fit

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        background: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Fit to a foreground and a background.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, D), or Moments, or Study
            The foreground (cases); rows are samples. A `Study` has both groups, weights and covariates: the linear
            effect of covariates is taken out, and `transform` and the like then need those of new rows. With
            `background_label`, both groups stacked. Missing values (NaN) may be in both groups: PPCA, PCPCA and
            ContraPCA maximise the likelihood of what was observed, CPCA and RatioPCA take the moments that one factor
            model of both groups expects. Other estimators need complete rows.
        y : array-like of shape (n,), optional
            The group of each row. Rows with `y == background_label` are the background. Ignored without
            `background_label`.
        background : array-like, data frame or sparse matrix of shape (m, D), or Moments, or a dict of them, optional
            The background (controls) as a separate table, or several by name, {"batch1": Y1, "batch2": Y2}: each is
            centred by its own mean. In a Pipeline it would bypass the earlier steps: use `background_label` there. If
            there is a gamma and it is 0, none is needed.
        sample_weight : array-like of shape (n,), optional
            How often each row of `X` counts, 0 or more: weights are the same as repeated rows.

        Returns
        -------
        self
        """
        gamma, label = self._strength(), self.background_label
        self._check_parameters()
        check_solver_of(X, getattr(self, "solver", "auto"))  # CLVM has one solver
        given = {"y": y, "background_label": label, "sample_weight": sample_weight}
        contrasts = self._contrasts and gamma != 0
        study = study_of(X, background, type(self).__name__, **given, needs_background=contrasts)
        study = study if self._contrasts else foreground_of(study)
        tables, design, found = tables_of(study, allow_missing=self._takes_missing), design_of(study), None
        if design is not None:
            tables, found = without_covariates(tables, design)
        tables, _, fit = self._solved(tables, gamma)
        X = study.rows.foreground if isinstance(X, Study) else X
        if not isinstance(tables.rows.foreground, Moments | DaskRows):
            validate_data(self, X, skip_check_array=True)
        # Everything is computed before attributes are set, so that a failure leaves nothing behind.
        self.__dict__.pop("_stream", None)  # batches before this fit no longer count
        fit = fit if found is None else replace(fit, covariates=found)
        return self._with_fit(fit, X if on_device(X) else None)

    def _check_parameters(self) -> None:
        """Raise for parameters that are impossible with any table."""
        for name, check in self._parameter_checks.items():
            check(getattr(self, name), name)

    def _strength(self) -> float | None:
        """gamma as the parameters give it; None if it is to be chosen, 0 if there is none."""
        return 0.0

    @staticmethod
    def _strength_in_words(gamma: float, limit: str) -> str:
        """The strength of a fit, as the methods of a paper give it; `limit` is its limit, in words."""
        return ""

    def _solved(self, tables: Tables, gamma: float | None) -> tuple[Tables, Complete | Incomplete, Fit]:
        """The tables as the method weights their rows, the data they are reduced to, and the fit."""
        tables = self._prepared(tables)
        data = self._collected(tables)
        fit = self._solve(data, gamma, tables)
        if tables.shortened is not None:
            fit = replace(fit, shortened=tables.shortened.map(_as_given, tables.kept))
        return tables, data, fit

    def _prepared(self, tables: Tables) -> Tables:
        """The tables with weights that the method gives the rows."""
        return tables

    def _collected(self, tables: Tables) -> Complete | Incomplete:
        """The data of the fit, read from the tables."""
        d = check_n_components(self.n_components, tables.n_features)
        if tables.incomplete:  # there is no likelihood of what was observed to maximise
            return collect_expected(tables, d, self._scaling, self.solver, type(self).__name__)
        return collect(tables, d, self._scaling, self.solver, reduced=self._rotates)

    def _solve(self, data: Complete | Incomplete, gamma: float | None, tables: Tables | None = None) -> Fit:
        """From the data to the solution; rows of the tables may be held out to choose gamma (None)."""
        raise NotImplementedError(f"{type(self).__name__} needs a method _solve(data, gamma, tables).")

    @property
    def _scaling(self) -> str | None:
        """How each group is scaled."""
        return self.scale

    def _latents(self, n_features: int | None = None) -> Latents:
        """Which latent dimensions there are; raises if they are too many for so many features."""
        return Latents.plain(self.n_components)

    def _with_fit(self, fit: Fit, like: Any = None) -> Self:
        """Set the attributes of a fit to rows that are where `like` is; leave none of a fit before."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            del self.__dict__[name]
        self.__dict__["fit_"], self._parameters = fit, self.get_params(deep=False)
        # An array of the library and on the device of the fit's rows, if that is not NumPy: results follow it.
        scaling, dtype = fit.scaling.foreground, fit.scaling.foreground.dtype
        self._place = None if like is None else put(np.empty(0), like, dtype)
        self.n_features_in_ = scaling.mean.size
        if scaling.names is not None:
            self.feature_names_in_ = np.array(scaling.names, dtype=object)
        for name, value in self._attributes(fit).items():
            setattr(self, name, self._placed(value, None if name == EXACT else dtype))
        return self

    def _placed(self, value: Any, dtype: str | None) -> Any:
        """An array in a float type (None: its own), where the fit's rows are; of groups, those of the backgrounds."""
        if isinstance(value, Groups):
            arrays = [self._placed(own, dtype) for own in value.backgrounds]
            return dict(zip(value.names[1:], arrays, strict=True)) if len(arrays) > 1 else next(iter(arrays), None)
        if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
            return value
        kind = dtype or str(value.dtype)
        return put(value.astype(kind, copy=False), self._place, kind)

    def _attributes(self, fit: Fit) -> dict[str, Any]:
        """What is reported of a fit, by name; of values of all groups, those of the backgrounds are."""
        scaling, shares = fit.scaling, fit.shares
        found: dict[str, Any] = {
            "components_": fit.components.T,
            "explained_variance_": fit.variances.foreground,
            "explained_variance_ratio_": shares.foreground,
            "background_variance_": fit.variances,
            "background_variance_ratio_": shares,
            "mean_": scaling.foreground.mean,
            "background_mean_": scaling.map(lambda own: own.mean),
            "scale_": scaling.foreground.scale,
            "background_scale_": scaling.map(lambda own: own.scale),
            "feature_variance_": scaling.foreground.variance,
            "n_iter_": fit.n_iter,
            "solver_": fit.solver,
        }
        if fit.eigenvalues is not None:
            found["eigenvalues_"] = fit.eigenvalues
        if fit.covariates is not None:
            found["covariate_names_"] = np.array(fit.covariates.names, dtype=object)
            found["covariate_coefficients_"] = fit.covariates.coefficients
        return found

    def _as_fitted(self) -> Self:
        """A copy with the parameters that were used for the fit, even if `set_params` has changed them since."""
        return type(self)(**self._parameters)._with_fit(self.fit_)

    @property
    def fit_(self) -> Fit:
        """The fit as plain values, in model units and float64: all other fitted attributes come from it."""
        if "fit_" not in vars(self):
            check_is_fitted(self)  # raises
        return vars(self)["fit_"]  # type: ignore[no-any-return]

    def __sklearn_is_fitted__(self) -> bool:
        return "fit_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._takes_missing
        tags.array_api_support = self._takes_devices
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # ------------------------------------------------------------------ batches

    _stream: Stream | None = None  # the moments so far

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        background: Any = None,
        sample_weight: Any = None,
        background_weight: Any = None,
    ) -> Self:
        """Add a batch of rows, and fit to all rows so far.

        Any order and size of batches gives the model that `fit` gives for all rows. The model is fitted as soon as each
        group has enough rows and gamma is below its limit for the rows so far; until then, only the moments grow.
        `moments_` has the moments so far, which can be saved.

        Parameters
        ----------
        X, y, background, sample_weight, background_weight
            As for `fit`, complete rows or Moments. A batch may have rows of one group only: `X` may be None.

        Returns
        -------
        self
        """
        self._check_parameters()
        gamma, before, fit = self._strength(), self._stream, None
        is_table = X is not None and not isinstance(X, Moments | DaskRows)
        first = before is None or "foreground" not in before.counts
        if is_table and not first:
            validate_data(self, distinct(X), reset=False, skip_check_array=True)  # names and number of features
        given = (X, y, background, self.background_label, sample_weight, background_weight)
        stream = (before or Stream()).plus(*read_batch(*given, type(self).__name__))
        if not stream.lacks(needs_background=gamma != 0):
            with contextlib.suppress(RankError):  # too few rows for so many components: wait for more
                try:
                    fit = self._fit_of(stream, gamma)
                except InfeasibleGammaError as error:  # so far: the batches after it may raise the limit
                    warn(f"The batch is counted, but the model is not fitted to the rows so far. {error}")
                    self.__dict__.pop("fit_", None)
        if before is None and self.__sklearn_is_fitted__():
            warn(f"{NO_MOMENTS} partial_fit starts anew, without those rows.")
            del self.__dict__["fit_"]
        if is_table and first:
            validate_data(self, X, skip_check_array=True)
        self._stream = stream  # a failure before this leaves everything as it was
        return self if fit is None else self._with_fit(fit)

    def fit_batches(self, batches: Iterable[Any], *, checkpoint: Any = None) -> Self:
        """Fit to rows that come in batches, one at a time in memory.

        Parameters
        ----------
        batches : iterable
            Tables of the foreground, tuples (X, background), tuples (X, y) of stacked rows with `background_label`, or
            dicts of the arguments of `partial_fit`. Rows are complete.
        checkpoint : str or path-like, optional
            A file that has the moments after every batch. If it exists, as many batches as it counts are skipped: a run
            that was interrupted continues where it was. Delete it to start over.

        Returns
        -------
        self
        """
        self._check_parameters()
        gamma = self._strength()
        stream = read_batches(batches, self.background_label, checkpoint, type(self).__name__)
        if lacking := stream.lacks(needs_background=gamma != 0):
            raise GroupError(f"There are too few rows after {stream.n_batches} batches: {lacking}.")
        fit = self._fit_of(stream, gamma)
        self._stream = stream
        return self._with_fit(fit)

    def _fit_of(self, stream: Stream, gamma: float | None) -> Fit:
        """The fit to all rows of a stream."""
        check_solver_of(stream.moments["foreground"], getattr(self, "solver", "auto"))  # CLVM has one solver
        tables = stream.tables(name=type(self).__name__, needs_background=gamma != 0)
        fit = self._solve(self._collected(tables), gamma, tables)
        return replace(fit, scaling=fit.scaling.map(lambda scaling: replace(scaling, dtype=stream.dtype)))

    @property
    def moments_(self) -> dict[str, Moments]:
        """Moments of each group's rows so far, after `partial_fit` or `fit_batches`."""
        return dict(self._seen.moments)

    @property
    def n_samples_seen_(self) -> int:
        """Number of foreground rows so far, after `partial_fit` or `fit_batches`."""
        return self._seen.counts.get("foreground", 0)

    @property
    def n_background_samples_seen_(self) -> int | dict[str, int]:
        """The same for the background; a dict if there are several."""
        others = {name: count for name, count in self._seen.counts.items() if name != "foreground"}
        return others if len(others) > 1 else next(iter(others.values()), 0)

    @property
    def _seen(self) -> Stream:
        if self._stream is None:
            raise AttributeError(NO_MOMENTS)
        return self._stream

    # ------------------------------------------------------------------ rows to latents and back

    def transform(self, X: Any, *, center: str = "foreground", covariates: Any = None) -> Array:
        """Latent coordinates of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D), or Study
            Of a `Study`, the rows of the group that `center` names are taken.
        center : {"foreground", "background"} or the name of one of several backgrounds
            "foreground" subtracts `mean_` and divides by `scale_`: use it for foreground and new rows. "background"
            uses `background_mean_` and `background_scale_`: use it for background rows.
        covariates : array-like or data frame of shape (n, q)
            Those of these rows, if the model was fitted with covariates: their effect is taken out in the same way.

        Returns
        -------
        Z : ndarray of shape (n, d), in the float type of `X`; for a dask array, a dask array
        """
        fit = self.fit_
        X, *known = self._known_rows(X, covariates, center)
        return by_block(fit, X, lambda rows: latent_means(fit, *self._rows(rows, *known), center), fit.n_shown)

    def _known_rows(self, X: Any, covariates: Any, group: str = "foreground") -> tuple[Any, Any, bool]:
        """Rows of one group of a study, their covariates, and whether the study knows the features of an array; other
        tables and their covariates as they are."""
        if not isinstance(X, Study):
            return X, covariates, False
        if covariates is not None:
            raise GroupError("A Study has its covariates: leave covariates= out.")
        refuse_moments(X, f"This method of {type(self).__name__}")
        rows, fit = X.rows[group], self.fit_
        named = X.features is not None and column_names(rows) is None
        if named:
            check_features(list(X.features or ()), fit.scaling.foreground.labels)
        return rows, X.covariates[group] if fit.covariates is not None and X.covariates is not None else None, named

    def _rows(self, X: Any, covariates: Any = None, named: bool = False) -> tuple[Rows, bool]:
        """Check new rows, adjust them for their covariates; return them and whether values are missing.

        `named` rows have no names of their own, but a study has told that they have the fitted features.
        """
        found, missing = self._checked_rows(X, named)
        return adjusted(self.fit_, X, found, covariates), missing

    def _checked_rows(self, X: Any, named: bool = False) -> tuple[Rows, bool]:
        """Check new rows against the fitted features; return them and whether values are missing."""
        fit = self.fit_
        maps = maps_missing(fit)
        self._check_place(X)
        if on_device(X):
            rows = check_device_table(X, type(self).__name__, least_rows=1)
            validate_data(self, rows, reset=False, skip_check_array=True)
        else:
            refuse_others(X, f"This method of {type(self).__name__}", "X")
            X = as_rows(X)
            if isinstance(X, DaskRows):
                return fit.scaling.foreground.check(X, allow_missing=maps)  # type: ignore[no-any-return]
            checks: dict[str, Any] = {
                "accept_sparse": "csr",
                "dtype": [np.float64, np.float32],
                "ensure_all_finite": False,
            }
            checks = {"skip_check_array": True} if is_kept(X) else checks
            if not named:
                rows = canonical(validate_data(self, without_mask(distinct(X)), reset=False, **checks))
            elif not is_kept(X):
                rows = canonical(check_array(without_mask(X), estimator=type(self).__name__, **checks))
            else:
                rows = canonical(X)
        missing = np.isnan(column_means(rows, allow_missing=maps or self._takes_missing))
        if missing.any() and not maps:
            raise NonFiniteError(
                f"Input contains NaN, but this {type(self).__name__} was fitted to complete rows and has no model of "
                "what is missing: fit it to tables with missing values, too, or use ContraPCA, PCPCA or PPCA.",
                int(np.argmax(missing)),
            )
        return rows, bool(missing.any())

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

    def fit_transform(self, X: Any, y: Any = None, **groups: Any) -> Array:
        """Fit, then transform all rows of `X`, in order, including any background rows among them.

        Parameters
        ----------
        X, y, **groups
            As for `fit`, such as `background`.

        Returns
        -------
        Z : ndarray of shape (n, d)
        """
        if not isinstance(X, Study):
            refuse_others(X, "fit_transform", "X")
        return self.fit(X, y, **groups).transform(X)

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
        fit, name = self.fit_, type(self).__name__
        self._check_place(Z)
        checks: dict[str, Any] = {"dtype": [np.float64, np.float32], "ensure_min_features": 0}
        latents = check_device_table(Z, name, 1) if on_device(Z) else check_array(Z, estimator=name, **checks)
        return decoded(fit, latents)

    # ------------------------------------------------------------------ results

    @property
    def _n_features_out(self) -> int:
        return int(self.fit_.n_shown)

    @property
    def objective_(self) -> float:
        """The maximum of the objective.

        PPCA: the log-likelihood of the rows. PCPCA: the relative log-likelihood
        log p(X) - gamma_raw log p(Y). CPCA: tr V'C V = n times the sum of `eigenvalues_`. CLVM: the log-likelihood of
        both groups. In scaled units if `scale` is set.
        """
        return self.fit_.objective

    def summary(self) -> Display:
        """What the fit found: settings, variances along the components, and the features with the largest loadings.

        Returns
        -------
        Display
            Printed as text, shown as HTML in a notebook.
        """
        return summary(self.fit_, type(self).__name__, has_gamma="gamma_" in vars(self), n_shared=self._n_shared)

    def _facts(self) -> dict[str, Any]:
        """The same as values and tables, for programs."""
        return facts(self.fit_, type(self).__name__, has_gamma="gamma_" in vars(self), n_shared=self._n_shared)

    @property
    def _n_shared(self) -> int:
        """Shared dimensions, which only CLVM has."""
        return 0

    def feature_table(self) -> Table:
        """Loadings and variances of every feature, strongest features first.

        Returns
        -------
        Table
            Columns: `feature`, its loadings `component_1`, ... (rows of W; of V for CPCA), `foreground_variance` and,
            with a background, `background_variance` (original units; with several, one column for each, by name), and
            `rank`, 1 for the largest sum of squared loadings.
        """
        return feature_table(self.fit_)

    # ------------------------------------------------------------------ the tables of the fit, again

    def _fitted_groups(self, study: Study) -> Tables:
        """Check the tables of the fit when they are passed again."""
        fit = self.fit_
        X = study.rows.foreground
        if study.features is not None and column_names(X) is None and not study.tables.are_moments:
            check_features(list(study.features), fit.scaling.foreground.labels)
        elif not study.tables.are_moments and not isinstance(X, DaskRows):  # whose features are checked below
            validate_data(self, distinct(X), reset=False, skip_check_array=True)  # names and number of features
        allow_missing = self._takes_missing and maps_missing(fit)
        return self._as_fitted()._prepared(tables_again(fit, study, allow_missing=allow_missing))  # type: ignore[no-any-return]

    def _fitted_data(self, study: Study) -> Complete | Incomplete:
        """The data of the fit in model units, from its tables passed again; other tables raise."""
        tables, scaling = self._fitted_groups(study), self.fit_.scaling
        data = collect(tables, self.fit_.n_latent, scaling.map(lambda known: known.scale), reduced=self._rotates)
        check_same_data(data, self.fit_, gls=self._parameters.get("mean") == "gls")
        return data

    # ------------------------------------------------------------------ subsets of the rows
    # Inference fits to folds and halves by these, not by `fit`: moments of a subset may be in coordinates in which all
    # rows were read once, and axes alone cost a fraction of what a fit reports.

    def _settled(self, data: Complete | Incomplete, halves: Halves | None = None) -> Self:
        """A copy with what all rows decide, so that subsets do not decide otherwise; with halves of them, the strength
        that is chosen by rows held out, too."""
        return self._with()

    def _tuned(self, data: Complete, halves: Halves) -> Self:
        """A copy with the parameters by which the method is compared with others."""
        return self._settled(data, halves)

    def _with(self, **parameters: Any) -> Self:
        """A copy that is not fitted, with other parameters, whether or not a subclass still has them as arguments."""
        alike: Self = clone(self) if self.__sklearn_is_fitted__() else copy(self)
        for name, value in parameters.items():
            setattr(alike, name, value)
        return alike

    def _trained(self, training: Training) -> Complete:
        """The data of a fit to a subset."""
        data = training if isinstance(training, Complete) else self._collected(training)
        assert isinstance(data, Complete)
        return data

    def _axes_of(self, training: Training) -> Groups[Array]:
        """The axes (D, k) that a subset shows, in each group's original units, without all else that a fit reports."""
        data = self._trained(training)
        return in_original_units(self._solve(data, self._strength()).components, data)

    # ------------------------------------------------------------------ saving

    def save(self, path: Any) -> None:
        """Write the fitted model to a file that `contrapca.load` reads (npz and JSON, no pickle).

        Parameters
        ----------
        path : str or path-like
            Written atomically; an existing file is overwritten. `set_output` settings are not saved.
        """
        write(path, self._packed())

    def _packed(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays of a file of this model."""
        check_is_fitted(self)
        arrays = pack(FittedModel(type(self)(**self._parameters), self.fit_))
        with np.errstate(over="ignore"):  # in the float type of the attributes
            kept = {name: array.astype(self.fit_.scaling.foreground.dtype) for name, array in arrays.items()}
        if overflowed := [name for name, array in kept.items() if not np.isfinite(array).all()]:
            raise ValueError(f"{', '.join(overflowed)} overflowed, so the model cannot be saved: rescale the data.")
        return arrays


@dataclass(frozen=True)
class FittedModel:
    """What is saved of a fitted estimator.

    Attributes
    ----------
    estimator : estimator
        Not fitted, with the parameters of the fit.
    fit : Fit
    """

    estimator: Decomposition
    fit: Fit

    @property
    def model(self) -> Decomposition:
        """The fitted estimator."""
        return type(self.estimator)(**self.estimator.get_params(deep=False))._with_fit(self.fit)

    def _check_values(self) -> None:
        """Raise if the estimator does not have such fits."""
        if getattr(self.estimator, "n_components", self.fit.n_shown) != self.fit.n_shown:
            raise ValueError("its number of components is impossible")
        if self.estimator._has_model and self.fit.model is None:
            raise ValueError("its model is missing")


def _as_given(rows: Any, kept: Any) -> Any:
    """Numbers of rows in the table as it was given, from those in the table of rows that count."""
    return rows if kept is None else np.flatnonzero(kept)[rows]
