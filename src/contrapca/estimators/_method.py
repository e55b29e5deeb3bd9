"""What the package asks of an estimator, beside scikit-learn's interface: the steps of a fit, and fits to subsets."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from .._util.arrays import Array, put
from .._util.checks import SCALES, Check, check_n_components, one_of
from .._util.text import listed
from ..contrast import SEED, SPLITS, Fit, Halves, Training, halves_of, in_original_units, unwarned
from ..data import (
    Groups,
    Regression,
    Study,
    Tables,
    check_features,
    check_names,
    check_same_tables,
    column_names,
    distinct,
    encoded_of,
    tables_of,
    without_covariates,
)
from ..data.rows import DaskRows
from ..exceptions import GroupError
from ..missing import Incomplete, collect, collect_expected, filled_draws, usable
from ..moments import Complete, Moments, row_units

T = TypeVar("T")


EXACT = "objective_history_"  # in float64, for rows of any type


class Method(BaseEstimator):  # type: ignore[misc]
    """What inference, plots, reports, AnnData and the command line may ask of an estimator; not public.

    They use the public methods, `fit_`, and of what begins with an underscore only what is declared here and, of
    methods that contrast moments at a gamma, in `ContrastSolver` (`tests/test_layers.py`). A fit takes four steps:

        tables -> _prepared -> _collected -> _fit_to -> _with_fit

    Every method has its own `_fit_to`; where the first two will not do, it overrides them, too.
    """

    # ------------------------------------------------------------------ which kind of method it is

    _known_as: ClassVar[str] = ""  # in the methods section of a paper; by default the class's name
    _source: ClassVar[str | None] = None  # to be cited there, a key of the report's sources
    _decisive: ClassVar[str] = "n_components"  # the parameter that a comparison of methods shows
    _contrasts: ClassVar[bool] = True  # whether there is a background: not in PPCA
    _takes_missing: ClassVar[bool] = True
    _takes_devices: ClassVar[bool] = True  # tables of torch and cupy
    # Whether rotated features give the same, rotated: few rows are then replaced by coordinates in their span.
    _rotates: ClassVar[bool] = True
    _parameter_checks: ClassVar[dict[str, Check]] = {"scale": one_of(*SCALES)}  # those that need no table

    n_components: int
    scale: str | None
    solver: str = "auto"  # CLVM has one only
    background_label: Any = None

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

    @property
    def _holds_rows_out(self) -> bool:
        """Whether a fit chooses by rows held out, for which it needs rows and not moments."""
        return False

    @property
    def _scaling(self) -> str | None:
        """How each group is scaled, unless the data decide."""
        return self.scale

    # ------------------------------------------------------------------ the steps of a fit

    def _prepared(self, tables: Tables) -> Tables:
        """The tables with weights that the method gives the rows."""
        return tables

    def _collected(self, tables: Tables) -> Complete | Incomplete:
        """The data of the fit, in model units: the tables are read here, once."""
        d = check_n_components(self.n_components, tables.n_features)
        if tables.incomplete:  # there is no likelihood of what was observed to maximise
            return collect_expected(tables, d, self._scaling, self.solver, type(self).__name__)
        return collect(tables, d, self._scaling, self.solver, reduced=self._rotates)

    def _fit_to(self, data: Complete | Incomplete, halves: Callable[[], Halves]) -> Fit:
        """The fit to data; `halves` makes halves of their rows, for methods that choose by rows held out."""
        raise NotImplementedError(f"{type(self).__name__} needs a method _fit_to(data, halves).")

    def _halves_of(self, tables: Tables) -> Halves:
        """Halves of the rows of a fit, the same on every run."""
        name = type(self).__name__
        if isinstance(tables.rows.foreground, Moments):
            raise ValueError(
                f"{name}'s gamma='auto' holds rows out, and moments have none: pass gamma=, for example "
                "2.0, or find one with GammaSearch where the rows are."
            )
        rng = np.random.default_rng(SEED)
        with unwarned():  # the fit has warned of rows that are left out
            [tables] = filled_draws(usable(tables, name), 1, rng)
        return halves_of(tables, row_units(tables), SPLITS, rng)

    def _solved(self, tables: Tables) -> tuple[Complete | Incomplete, Fit]:
        """The data that tables are reduced to, and the fit to them."""
        tables = self._prepared(tables)
        data = self._collected(tables)
        fit = self._fit_to(data, lambda: self._halves_of(tables))
        if tables.shortened is not None:
            # Numbers of rows in the tables as they were given, from which some may have been left out.
            shortened = tables.shortened.map(
                lambda rows, kept: rows if kept is None else np.flatnonzero(kept)[rows], tables.kept
            )
            fit = replace(fit, shortened=shortened)
        return data, fit

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
        """The attributes that `fit` sets, by name; of values of all groups, those of the backgrounds are shown."""
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

    # ------------------------------------------------------------------ a fit, again

    _parameters: dict[str, Any]  # those of the fit, even if `set_params` has changed them since
    _place: Any
    _layer: str | None = None  # of an AnnData that new rows come in: that of the fit

    @property
    def fit_(self) -> Fit:
        """The fit as plain values, in model units and float64: all other fitted attributes come from it."""
        if "fit_" not in vars(self):
            check_is_fitted(self)  # raises
        return vars(self)["fit_"]  # type: ignore[no-any-return]

    def __sklearn_is_fitted__(self) -> bool:
        return "fit_" in vars(self)

    def _as_fitted(self) -> Self:
        """A copy with the parameters that were used for the fit."""
        return type(self)(**self._parameters)._with_fit(self.fit_)

    def _tables_again(self, study: Study) -> Tables:
        """The tables of the fit when they are passed again: of the same features and groups, weighted as for the fit
        and without the effect of covariates."""
        fit, X = self.fit_, study.rows.foreground
        scaling, found = fit.scaling, fit.covariates
        if study.tables.are_moments:
            if study.tables.n_features != scaling.foreground.mean.size:
                raise ValueError(
                    f"X has {study.tables.n_features} features, but the fit had {scaling.foreground.mean.size}."
                )
        elif study.features is not None and column_names(X) is None:
            check_features(list(study.features), scaling.foreground.labels)
        elif isinstance(X, DaskRows):
            check_names(X, scaling.foreground.labels)
        else:
            validate_data(self, distinct(X), reset=False, skip_check_array=True)  # names and number of features
        if not scaling.backgrounds and len(study.rows) > 1:
            raise ValueError("This model was fitted without a background: do not pass one.")
        tables = tables_of(study, allow_missing=self._takes_missing and fit.maps_missing)
        if tables.rows.names != scaling.names:
            raise ValueError(f"The groups are {listed(tables.rows.names)}, but the fit had {listed(scaling.names)}.")
        encoded = encoded_of(study)
        if encoded is None or found is None:
            check_covariates(found, study.covariates)
        elif encoded.columns != found.columns:
            raise GroupError(
                f"covariates are {listed(encoded.names)}, but those of the fit were {listed(found.names)}."
            )
        if encoded is not None:  # means of cells are not kept with the fit: those of the same rows are the same
            tables, _ = without_covariates(tables, encoded, found if study.design is None else None)
        return self._as_fitted()._prepared(tables)

    def _data_again(self, tables: Tables) -> Complete | Incomplete:
        """The data of the fit in its units, from its tables; other tables raise."""
        fit = self.fit_
        self._check_same(tables.means)  # before columns are divided by the scales of the fit
        if tables.incomplete and fit.model is None:  # the same expected moments again
            data = self._collected(tables)
        else:
            known = len(fit.scaling) == len(tables.rows)  # PPCA may be shown with a background
            scale: Any = fit.scaling.map(lambda own: own.scale) if known else self._scaling
            data = collect(tables, fit.n_latent, scale, reduced=self._rotates)
        self._check_same(data.scaling.map(lambda own: own.mean), data.scaling.map(lambda own: own.weight))
        return data

    def _check_same(self, means: Groups[Array], weights: Groups[float] | None = None) -> None:
        """Raise unless tables have the column means, and numbers of rows, of those of the fit."""
        estimated = self._parameters.get("mean") == "gls" or self.fit_.filling is not None
        check_same_tables(means, self.fit_.scaling, weights=weights, estimated=estimated)

    # ------------------------------------------------------------------ fits to subsets of the rows
    # Inference fits to folds and halves by these, not by `fit`: moments of a subset may be in coordinates in which all
    # rows were read once, and axes alone cost a fraction of what a fit reports.

    def _for_halves(self, data: Complete, halves: Halves) -> Self:
        """A copy with what all rows decide, so that halves of them do not decide otherwise; `data` are all rows."""
        return unfitted(self)

    def _tuned(self, data: Complete, halves: Halves) -> Self:
        """A copy with the parameters by which the method is compared with others."""
        return self._for_halves(data, halves)

    def _trained(self, training: Training) -> Complete:
        """The data of a fit to a subset."""
        data = training if isinstance(training, Complete) else self._collected(training)
        assert isinstance(data, Complete)
        return data

    def _axes_of(self, training: Training) -> Groups[Array]:
        """The axes (D, k) that a subset shows, in each group's original units, without all else that a fit reports."""
        data = self._trained(training)
        return in_original_units(self._fit_to(data, _no_halves).components, data)


def _no_halves() -> Halves:
    raise AssertionError("A subset of the rows is not split again: what halves decide was settled with all rows.")


def unfitted(estimator: T, **parameters: Any) -> T:
    """A copy that is not fitted, with other parameters, whether or not a subclass still has them as arguments."""
    alike: T = clone(estimator) if estimator.__sklearn_is_fitted__() else copy(estimator)  # type: ignore[attr-defined]
    for name, value in parameters.items():
        setattr(alike, name, value)
    return alike


def check_covariates(known: Regression | None, covariates: Any) -> None:
    """Raise unless covariates are given exactly if a fit regressed some out."""
    if known is None and covariates is not None:
        raise GroupError(
            "Covariates are given, but this model was fitted without any: leave them out, or fit it to a Study "
            "that has them."
        )
    if known is not None and covariates is None:
        raise GroupError(
            f"This model was fitted with covariates ({listed([column.name for column in known.columns])}): pass "
            "covariates=, the same columns for these rows, so that their effect is taken out of them, too. For "
            "what takes no covariates, adjust the tables with regress_out, and fit a model to the result."
        )
