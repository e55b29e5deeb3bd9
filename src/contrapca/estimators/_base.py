"""The bases of all estimators.

`Decomposition` has scikit-learn's interface, the steps of a fit, and what inference asks for; `ContrastSolver` solves a
contrast of moments at one gamma; for `Contrastive` methods gamma is a parameter.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from .._files import pack, write
from .._util.arrays import Array, float_type, on_device, put
from .._util.checks import SCALES, Check, check_gamma, check_n_components, one_of
from .._util.tables import Display, Table
from .._util.text import format_gamma, listed
from .._version import DOCUMENTATION
from ..contrast import (
    SEED,
    SPLITS,
    TOLERANCE,
    Fit,
    Halves,
    LatentGaussian,
    Latents,
    PathSpectrum,
    ShownAxes,
    Solution,
    Spectrum,
    Training,
    around_axes,
    cpca_grid,
    cpca_limit,
    halves_of,
    in_original_units,
    most_reproducible,
    path_of_solutions,
    rank_exceeds,
    ratio_axes,
    show_solution,
    solve_cpca,
    top_eigenpairs,
    unwarned,
    variance_inside,
)
from ..data import (
    Groups,
    Study,
    Tables,
    check_device_table,
    check_features,
    check_names,
    check_same_tables,
    column_names,
    distinct,
    encoded_of,
    foreground_of,
    refuse_others,
    study_of,
    tables_of,
    units_of,
    without_covariates,
)
from ..data.rows import DaskRows
from ..exceptions import GroupError, InfeasibleGammaError, RankError, warn
from ..missing import Incomplete, collect, collect_expected, filled_draws, usable
from ..moments import (
    Complete,
    Contrast,
    Moments,
    SolverChoice,
    Stream,
    Subspace,
    check_solver_of,
    contrast,
    read_batch,
    read_batches,
    row_units,
)
from ._new_rows import check_covariates, check_place, latent_means, map_new_rows
from ._summary import feature_table, summary

T = TypeVar("T")

EXACT = "objective_history_"  # in float64, for rows of any type

NO_MOMENTS = (
    "This model has no moments of its rows: it was not fitted by partial_fit or fit_batches, or it was loaded from a "
    "file, which does not keep them (save moments_ with Moments.save)."
)

TINY_LIMIT = 0.1  # with more variance in the background, the groups were then probably swapped
POINTS = 25  # gammas that halves of the rows choose from
COARSE = 1e-2  # residuals of axes that are only compared: they are then right to some 1e-4


class Decomposition(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators; not public.

    Of what begins with an underscore, inference, plots, reports, AnnData and the command line use only what is declared
    here and, of methods that contrast moments at a gamma, in `ContrastSolver` (`tests/test_layers.py`). A fit takes
    four steps, after which nothing needs the rows:

        tables -> _prepared -> _collected -> _fit_to -> _with_fit

    `_fit_to` is the mathematics of a method; where the first two will not do, it overrides them, too. Fits to subsets
    of the rows go through

        _settled    a copy with what all rows decide (rank, units), so that no subset decides otherwise
        _tuned      the same, with gamma or its like chosen: what `compare` compares
        _trained    the data of one subset
        _axes_of    the directions that the subset shows, and nothing else
    """

    components_: Array
    explained_variance_: Array
    explained_variance_ratio_: Array
    background_variance_: Array | dict[str, Array] | None
    background_variance_ratio_: Array | dict[str, Array] | None
    mean_: Array
    background_mean_: Array | dict[str, Array] | None
    scale_: Array
    background_scale_: Array | dict[str, Array] | None
    feature_variance_: Array
    eigenvalues_: Array
    covariate_names_: npt.NDArray[Any]
    covariate_coefficients_: Array
    n_iter_: int
    solver_: SolverChoice
    n_features_in_: int
    feature_names_in_: npt.NDArray[Any]

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

    @staticmethod
    def _short_strength(gamma: float) -> str:
        """The strength of a fit, as titles give it, in the parameter of the method; empty if there is none."""
        return ""

    @property
    def _holds_rows_out(self) -> bool:
        """Whether a fit chooses by rows held out, for which it needs rows and not moments."""
        return False

    @property
    def _scaling(self) -> str | None:
        """How each group is scaled, unless the data decide."""
        return self.scale

    # ------------------------------------------------------------------ fit

    def fit(self, X: Any, y: Any = None, *, background: Any = None, sample_weight: Any = None) -> Self:
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
        study = study_of(
            X,
            background,
            type(self).__name__,
            y=y,
            background_label=label,
            sample_weight=sample_weight,
            needs_background=self._contrasts and gamma != 0,
            designs=self._contrasts,
        )
        check_solver_of(study.rows.foreground, self.solver)
        study = study if self._contrasts else foreground_of(study)
        tables, encoded, regression = tables_of(study, allow_missing=self._takes_missing), encoded_of(study), None
        if encoded is not None:
            tables, regression = without_covariates(tables, encoded)
        _, fit = self._solved(tables, study)
        if regression is not None:
            fit = replace(fit, covariates=regression.of_covariates)
        if study.design is not None:
            fit = replace(fit, design=study.design.subject)
        X = study.rows.foreground if isinstance(X, Study) else X
        if not isinstance(tables.rows.foreground, Moments | DaskRows):
            validate_data(self, X, skip_check_array=True)
        # Everything is computed before attributes are set, so that a failure leaves nothing behind.
        self.__dict__.pop("_stream", None)  # batches before this fit no longer count
        return self._with_fit(fit, X if on_device(X) else None)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._takes_missing
        tags.array_api_support = self._takes_devices
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    _doc_link_module = "contrapca"

    @property
    def _doc_link_template(self) -> str:
        return DOCUMENTATION + "/api/generated/contrapca.{estimator_name}.html"

    def _get_doc_link(self) -> str:
        return super()._get_doc_link() if DOCUMENTATION else ""  # type: ignore[no-any-return]

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

    def _halves_of(self, tables: Tables, study: Study | None) -> Halves:
        """Halves of the rows of a fit, or of the blocks of the study they are from, the same on every run."""
        name = type(self).__name__
        if isinstance(tables.rows.foreground, Moments):
            raise ValueError(
                f"{name}'s gamma='auto' holds rows out, and moments have none: pass gamma=, for example "
                "2.0, or find one with GammaSearch where the rows are."
            )
        rng = np.random.default_rng(SEED)
        with unwarned():  # the fit has warned of rows that are left out
            [tables] = filled_draws(usable(tables, name), 1, rng)
        if study is None or study.blocks is None:
            return halves_of(tables, row_units(tables), SPLITS, rng)
        unit_of = units_of(study, tables, least=2, what="'auto' (pass a number, or leave blocks= out)")
        sections = None if study.design is None else study.design.sections
        return halves_of(tables, unit_of, SPLITS, rng, sections=sections)

    def _solved(self, tables: Tables, study: Study | None = None) -> tuple[Complete | Incomplete, Fit]:
        """The data that tables are reduced to, and the fit to them; the study, if they are of one, has the blocks."""
        tables = self._prepared(tables)
        data = self._collected(tables)
        fit = self._fit_to(data, lambda: self._halves_of(tables, study))
        if tables.shortened is not None:
            # Numbers of rows in the tables as they were given, from which some may have been left out.
            shortened = tables.shortened.map(
                lambda rows, kept: rows if kept is None else np.flatnonzero(kept)[rows], tables.kept
            )
            fit = replace(fit, shortened=shortened)
        return data, fit

    def _with_fit(self, fit: Fit, like: Any = None) -> Self:
        """Set the attributes of a fit to rows that are where `like` is; leave none of a fit before."""
        self._forget_fit()
        self.__dict__["fit_"] = fit
        names = parameter_names(type(self))  # type: ignore[arg-type]
        self._parameters = {name: getattr(self, name) for name in names}
        # An array of the library and on the device of the fit's rows, if that is not NumPy: results follow it.
        scaling, dtype = fit.scaling.foreground, fit.scaling.foreground.dtype
        self._place = None if like is None else put(np.empty(0), like, dtype)
        self.n_features_in_ = scaling.mean.size
        if scaling.names is not None:
            self.feature_names_in_ = np.array(scaling.names, dtype=object)
        for name, value in self._attributes(fit).items():
            setattr(self, name, self._placed(value, None if name == EXACT else dtype))
        return self

    def _forget_fit(self, *but: str) -> None:
        """Remove the attributes of a fit, but those."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            if name not in but:
                del self.__dict__[name]

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

        Any order and size of batches gives the model that `fit` gives for all rows, but for what needs the rows
        themselves: ContraPCA's `shorten`, and RatioPCA's ridge, which is "oas" where `fit` has "auto". The model is
        fitted as soon as each group has enough rows and gamma is below its limit for the rows so far; until then, only
        the moments grow.
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
        batch = read_batch(
            X,
            y,
            background=background,
            background_label=self.background_label,
            sample_weight=sample_weight,
            background_weight=background_weight,
            name=type(self).__name__,
        )
        stream = (before or Stream()).plus(*batch)
        anew = before is None and self.__sklearn_is_fitted__()
        if not stream.lacks(needs_background=gamma != 0):
            try:
                fit = self._fit_of(stream, gamma)
            except (RankError, InfeasibleGammaError) as error:  # so far: the batches after it may change that
                # Too few rows for so many components are no surprise, unless there was a model.
                if isinstance(error, InfeasibleGammaError) or (self.__sklearn_is_fitted__() and not anew):
                    warn(f"The batch is counted, but the model is not fitted to the rows so far. {error}")
                self._forget_fit("n_features_in_", "feature_names_in_")  # the next batch is checked against these
        if anew:
            warn(f"{NO_MOMENTS} partial_fit starts anew, without those rows.")
            self._forget_fit()
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
        check_solver_of(stream.moments["foreground"], self.solver)
        _, fit = self._solved(stream.tables(name=type(self).__name__, needs_background=gamma != 0))
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
        """Number of background rows so far; a dict if there are several backgrounds."""
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
        X : array-like or sparse matrix of shape (n, D), or Study, or AnnData
            Of a `Study`, the rows of the group that `center` names are taken; of an AnnData the genes of the fit, by
            their names, in any order.
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
        return map_new_rows(
            self, X, covariates, center, lambda rows, missing: latent_means(fit, rows, missing, center), fit.n_shown
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
        check_place(self, Z)
        fit, name = self.fit_, type(self).__name__
        checks: dict[str, Any] = {"dtype": [np.float64, np.float32], "ensure_min_features": 0}
        latents = check_device_table(Z, name, 1) if on_device(Z) else check_array(Z, estimator=name, **checks)
        if latents.shape[1] != fit.n_shown:
            raise ValueError(f"Z has {latents.shape[1]} columns, but the model has {fit.n_shown} components.")
        scaling, kind = fit.scaling.foreground, float_type(latents)
        decoder, mean = (fit.decoder * scaling.scale[:, None]).astype(kind), scaling.mean.astype(kind)
        found: Array = latents @ put(decoder, latents, kind).T + put(mean, latents, kind)
        return found

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
        return summary(self)

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

    # ------------------------------------------------------------------ saving

    def save(self, path: Any) -> None:
        """Write the fitted model to a file that `contrapca.load` reads (npz and JSON, no pickle).

        Parameters
        ----------
        path : str or path-like
            Written atomically; an existing file is overwritten. `set_output` settings are not saved.
        """
        write(path, packed(self))

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

    def _settled(self, data: Complete | Incomplete, halves: Halves | None = None) -> Self:
        """A copy with what all rows decide, so that subsets of them do not decide otherwise; `data` are all rows.

        Without halves of them, what is decided holds for any gamma: on a path, for example.
        """
        return unfitted(self)

    def _tuned(self, data: Complete | Incomplete, halves: Halves) -> Self:
        """A copy with the parameters by which the method is compared with others."""
        return self._settled(data, halves)

    def _trained(self, training: Training) -> Complete:
        """The data of a fit to a subset."""
        data = training if isinstance(training, Complete) else self._collected(training)
        assert isinstance(data, Complete)
        return data

    def _axes_of(self, training: Training) -> Groups[Array]:
        """The axes (D, k) that a subset shows, in each group's original units, without all else that a fit reports."""

        def no_halves() -> Halves:
            raise AssertionError("A subset is not split again: what halves decide was settled with all rows.")

        data = self._trained(training)
        return in_original_units(self._fit_to(data, no_halves).components, data)


@functools.cache
def parameter_names(kind: type[Decomposition]) -> tuple[str, ...]:
    """Cached, as scikit-learn inspects the constructor each time, which takes as long as a small eigenproblem."""
    return tuple(kind._get_param_names())


def unfitted(estimator: T, **parameters: Any) -> T:
    """A copy that is not fitted, with other parameters, whether or not a subclass still has them as arguments."""
    alike: T = clone(estimator) if estimator.__sklearn_is_fitted__() else copy(estimator)  # type: ignore[attr-defined]
    for name, value in parameters.items():
        setattr(alike, name, value)
    return alike


@dataclass(frozen=True)
class FittedModel:
    """What is saved of a fitted estimator."""

    estimator: Decomposition  # not fitted, with the parameters of the fit
    fit: Fit

    @property
    def model(self) -> Decomposition:
        """The fitted estimator."""
        return type(self.estimator)(**self.estimator.get_params(deep=False))._with_fit(self.fit)

    def _check_values(self) -> None:
        """Raise if the estimator does not have such fits."""
        if getattr(self.estimator, "n_components", self.fit.n_shown) != self.fit.n_shown:
            raise ValueError("its number of components is impossible")


def packed(model: Decomposition) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a file of a fitted model; what overflows in the float type of its attributes raises."""
    check_is_fitted(model)
    arrays, dtype = pack(FittedModel(type(model)(**model._parameters), model.fit_)), model.fit_.scaling.foreground.dtype
    with np.errstate(over="ignore"):
        overflowed = [name for name, array in arrays.items() if not np.isfinite(array.astype(dtype)).all()]
    if overflowed:
        raise ValueError(f"{', '.join(overflowed)} overflowed, so the model cannot be saved: rescale the data.")
    return arrays


# ---------------------------------------------------------------------- a contrast of moments at one gamma


class Choice(NamedTuple):
    """A gamma, and what choosing it found on the way."""

    gamma: float
    limit: float | None = None
    at_limit: bool = False  # whether it is a part of the limit
    near: Array | None = None  # vectors near the solution


class ContrastSolver(Decomposition):
    """Base of the methods that solve a contrast C of moments at one gamma: all but CLVM; not public.

    The methods of the first part are those of a contrast of variances, CPCA. A method overrides those in which it
    differs; the others serve all.

        _maximum    directions at one gamma (or `_solution`, where they are the first eigenvectors of C)
        _path       directions at many gammas
        _limit      the supremum of gamma; _grid: gammas below it; _refusal: the error above it
        _objective  what the directions maximise
        _strength, _with_strength: gamma from the parameters, and back
    """

    # ------------------------------------------------------------------ what methods differ in

    def _maximum(self, C: Contrast, r: int, start: Array | None = None) -> Solution:
        """The solution with r directions; `start` holds vectors near it."""
        return self._solution(C, top_eigenpairs(C, r, start=start))

    def _solution(self, C: Contrast, spectrum: Spectrum, /) -> Solution:
        """The solution with directions that are known; here nobody knows whether they are eigenvectors of C."""
        return replace(solve_cpca(C, spectrum), eigenvectors=False)

    def _limit(self, groups: Groups[Moments], r: int, near: float = 1.0, /) -> tuple[float, Array | None]:
        """The exact limit of gamma (0 if the foreground's rank is at most r), and vectors near the solution there.

        `near` is a guess of the limit, if one is known.
        """
        return cpca_limit(groups, r), None

    def _path(self, groups: Groups[Moments], gammas: Array, r: int, tolerance: float = TOLERANCE, /) -> PathSpectrum:
        """Directions at increasing gammas, with relative residuals of at most `tolerance`.

        They exist at every gamma, also where a fit refuses them because their contrast is not positive.
        """
        return path_of_solutions(groups, gammas, lambda C, start: replace(self._maximum(C, r, start), feasible=True))

    def _objective(self, C: Contrast, solution: Solution) -> float:
        """The objective at a solution: tr C in the span of its directions."""
        return float(solution.spectrum.values.sum())

    def _grid(self, limit: float, points: int, /) -> Array:
        """`points` gammas below the limit, starting at 0, shape (points,)."""
        return cpca_grid(limit, points)

    def _refusal(
        self, gamma: float, limit: float, r: int, parameter: str = "n_components", hint: str = ""
    ) -> ValueError:
        """The error for a gamma at or above the limit for r dimensions, the value of `parameter`; `hint` is a sentence
        to add."""
        reason = f"cov(foreground) - gamma cov(background) has fewer than {r} positive eigenvalues"
        return InfeasibleGammaError(gamma, limit, r, reason, f".{hint}", parameter)

    def _latents(self, n_features: int | None = None) -> Latents:
        """Which latent dimensions the parameters ask for; raises if they are too many for so many features."""
        return Latents(self.n_components, self.n_components)

    def _with_strength(self, gamma: float) -> Self:
        """Set the parameter that stands for this gamma."""
        raise TypeError(f"{type(self).__name__} must say which of its parameters is its strength: _with_strength.")

    @property
    def _holds_rows_out(self) -> bool:
        return self._strength() is None

    # ------------------------------------------------------------------ the fit at one gamma

    def _fit_to(self, data: Complete | Incomplete, halves: Callable[[], Halves]) -> Fit:
        assert isinstance(data, Complete)
        gamma = self._strength()
        chosen = self._gamma_by_halves(data, halves()) if gamma is None else Choice(gamma)
        check_rank(data, self.n_components)
        return self._solve(data, self._latents(), chosen)

    def _solve(self, data: Complete, latents: Latents, chosen: Choice) -> Fit:
        """The fit at a gamma; raises where there is no solution."""
        fit = self._attempt(data, latents, chosen)
        if fit is None:
            raise self._infeasible(data.groups, latents, chosen.gamma)
        return fit

    def _attempt(self, data: Complete, latents: Latents, chosen: Choice) -> Fit | None:
        """The fit at a gamma, or None if there is no solution."""
        found = self._shown(data.groups, latents, chosen.gamma, chosen.near)
        if found is None:
            return None
        C, solution, covariances, shown = found
        groups, spectrum, choice = data.groups, solution.spectrum, data.choice
        U = lifted(data, C, solution)
        components, W = shown.lift(U, solution.lengths)
        objective, values = self._objective(C, solution), spectrum.values[: latents.n_shown] / groups.foreground.weight
        return Fit(
            scaling=data.scaling,
            components=components,
            variances=shown.variances,
            totals=groups.map(Moments.total_variance),
            gamma=chosen.gamma,
            objective=objective,
            n_iter=spectrum.n_iter,
            solver=replace(choice, reason=f"{choice.reason}; {spectrum.note}") if spectrum.note else choice,
            model=LatentGaussian(groups.foreground.mean, W, solution.sigma2) if solution.sigma2 else None,
            inside=covariances.map(lambda c: variance_inside(solution, c)),
            axis_ratios=shown.ratios,
            eigenvalues=values if shown.ratios is None else None,
            limit=chosen.limit,
            limit_is_bound=chosen.limit is not None and isinstance(data.basis, Subspace),
            at_limit=chosen.at_limit,
            history=np.array([objective]),
            axes="variance" if shown.ratios is None else latents.axes,
            plateau=data.plateau,
            filling=data.filling,
        )

    def _shown(
        self, groups: Groups[Moments], latents: Latents, gamma: float, start: Array | None = None
    ) -> tuple[Contrast, Solution, Groups[Array], ShownAxes] | None:
        """The contrast at gamma, its solution, the groups' covariances along that, and the axes to show."""
        C = contrast(groups, gamma)
        solution = self._maximum(C, latents.rank, start)
        if not solution.feasible:
            return None
        known = ratio_axes(groups, latents.n_shown) if latents.axes == "ratio" and groups.backgrounds else None
        if known is not None:
            solution, known = around_axes(C, solution, known, self._solution)
        covariances = groups.like(solution.spectrum.covariances(C))
        return C, solution, covariances, show_solution(latents, solution, covariances, groups, known)

    def _infeasible(self, groups: Groups[Moments], latents: Latents, gamma: float) -> ValueError:
        """Why there is no solution at gamma: the foreground's rank, or the exact limit."""
        limit = 0.0 if groups.background is None else self._limit(groups, latents.rank)[0]
        if limit == 0:
            return RankError(latents.rank, parameter=latents.parameter)
        if gamma < limit * (1 - 1e-9):  # feasible in exact arithmetic, but not in floating point, or with few features
            return ValueError(
                f"gamma={gamma:.6g} is below its limit ({limit:.6g}), but so large that rounding errors hide the "
                "foreground, or that so few features show nothing of it. Use a smaller gamma, or allow more features."
            )
        totals, hint = groups.map(Moments.total_variance), ""
        if limit < TINY_LIMIT and any(total > totals.foreground for total in totals.backgrounds):
            hint = " In total the background varies more than the foreground: were the two groups swapped?"
        return self._refusal(gamma, limit, latents.rank, latents.parameter, hint)

    # ------------------------------------------------------------------ many gammas

    def _along(
        self, found: PathSpectrum, groups: Groups[Moments], gammas: Array
    ) -> Iterator[tuple[Contrast, Solution, Groups[Array]]]:
        """Contrast, solution and the groups' covariances at each gamma, in the coordinates of a path's basis."""
        for gamma, values, V in zip(gammas, found.values, found.coordinates, strict=True):
            C = contrast(groups, float(gamma))
            solution = self._solution(C, Spectrum(values * groups.foreground.weight, V, images=[]))
            yield C, solution, found.covariances.map(lambda c, V=V: V.T @ c @ V)  # type: ignore[misc]

    def _axes_at(self, training: Training, gammas: Array) -> Groups[Array]:
        """The axes that a subset shows at every gamma, in each group's original units, shape (G, D, k).

        Principal axes exist at every gamma, also where the method itself has no solution with these rows; contrast axes
        do not, and are nan there.
        """
        data, latents = self._trained(training), self._latents()
        groups = data.groups
        if latents.axes == "ratio" and (axes := ratio_axes(groups, latents.n_shown)) is not None:
            V = data.vectors(axes[1])
            return in_original_units(np.broadcast_to(V, (gammas.size, *V.shape)), data)
        latents = latents.within(groups.foreground.weight, groups.foreground.mean.size)
        found = self._path(groups, gammas, latents.rank, COARSE)
        basis = data.vectors(found.basis)
        shown = found.coordinates[:, :, : latents.n_shown]
        if latents.contrast_axes:
            shown = np.full(shown.shape, np.nan)
            for g, (_, solution, covariances) in enumerate(self._along(found, groups, gammas)):
                if solution.feasible:
                    own = show_solution(latents, solution, covariances, groups)
                    shown[g] = found.coordinates[g] @ own.directions
        return in_original_units(np.einsum("Dk,gkd->gDd", basis, shown), data)

    # ------------------------------------------------------------------ which gamma

    def _gamma_by_limit(self, data: Complete, latents: Latents) -> Choice:
        """The gamma that was given, or else a part of its exact limit (F3)."""
        if (gamma := self._strength()) is not None:
            return Choice(gamma)
        limit, near = self._limit(data.groups, latents.rank)
        if limit == 0:
            raise RankError(latents.rank, parameter=latents.parameter)
        return Choice(latents.auto_fraction * limit, limit, at_limit=True, near=near)

    def _gamma_by_halves(self, data: Complete, halves: Halves) -> Choice:
        """The gamma of the method's own range whose contrast is most reproducible (F43), and its limit for all rows."""
        latents = self._latents()
        limit, _ = self._limit(data.groups, latents.rank)
        if limit == 0:
            raise RankError(latents.rank, parameter=latents.parameter)
        gammas = self._grid(limit, POINTS)
        return Choice(float(gammas[most_reproducible(halves, lambda half: self._axes_at(half, gammas))]), limit)

    def _settled(self, data: Complete | Incomplete, halves: Halves | None = None) -> Self:
        return unfitted(self) if halves is None else self._tuned(data, halves)

    def _tuned(self, data: Complete | Incomplete, halves: Halves) -> Self:
        alike = self._settled(data)
        if alike._strength() is not None:
            return alike
        assert isinstance(data, Complete)
        return alike._with_strength(alike._gamma_by_halves(data, halves).gamma)

    def _path_estimator(self) -> Self:
        """The estimator of the path through this fit, with what the fit decided."""
        return unfitted(self)

    def _axes_of(self, training: Training) -> Groups[Array]:
        # Not by a fit: principal axes exist also where so few rows have no solution.
        gamma = self._strength()
        assert gamma is not None
        return self._axes_at(training, np.array([gamma])).map(lambda own: own[0])


def check_rank(data: Complete, d: int) -> None:
    """Raise unless the foreground varies in more than d directions."""
    if not rank_exceeds(data.groups.foreground, d):
        raise RankError(d)


def lifted(data: Complete, C: Contrast, solution: Solution) -> Array:
    """The directions of a solution in R^D."""
    V = solution.spectrum.vectors
    return data.lift(C, V, solution.spectrum.values) if solution.eigenvectors else data.vectors(V)


class Contrastive(ContrastSolver):
    """Base of the methods whose strength is the parameter gamma: CPCA, SparseCPCA, PCPCA and ContraPCA; not public."""

    _known_as, _source = "a contrast of variances", "Abid 2018"
    _decisive = "gamma"
    gamma: float | str
    gamma_: float
    n_effective_: float

    def _strength(self) -> float | None:
        return check_gamma(self.gamma)

    def _with_strength(self, gamma: float) -> Self:
        self.gamma = gamma
        return self

    @staticmethod
    def _strength_in_words(gamma: float, limit: str) -> str:
        return f" and contrast strength gamma = {format_gamma(gamma)}{limit}"

    @staticmethod
    def _short_strength(gamma: float) -> str:
        return f"gamma = {gamma:.4g}"

    def _attributes(self, fit: Fit) -> dict[str, Any]:
        return super()._attributes(fit) | {"gamma_": fit.gamma, "n_effective_": fit.n_effective}

    @property
    def reconstruction_error_(self) -> float:
        """CPCA's geometric objective at the fit (the paper's Theorem 1), in scaled units.

        Mean squared distance of foreground rows from the components' subspace, minus gamma times that of background
        rows.
        """
        return self.fit_.reconstruction_loss

    @property
    def gamma_max_(self) -> float:
        """The limit of gamma for these data and n_components, if fit computed it."""
        if self.fit_.limit is None:
            raise AttributeError(
                f"This {type(self).__name__} has no gamma_max_: fit computes the limit only if gamma='auto' needs it. "
                "contrapca.gamma_limits(X, background=Y, n_components=...) computes it for any table."
            )
        return self.fit_.limit

    @property
    def gamma_max_is_bound_(self) -> bool:
        """Whether `gamma_max_` is only an upper bound on the limit: values are missing, or a large table was searched
        for few directions."""
        _ = self.gamma_max_  # raises if there is none
        return self.fit_.limit_is_bound
