"""The base of all estimators: scikit-learn's interface."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from .._files import pack, write
from .._util.arrays import Array, float_type, on_device, put
from .._util.tables import Display, Table
from .._version import DOCUMENTATION
from ..contrast import Fit
from ..data import (
    Study,
    check_device_table,
    distinct,
    encoded_of,
    foreground_of,
    refuse_others,
    study_of,
    tables_of,
    without_covariates,
)
from ..data.rows import DaskRows
from ..exceptions import GroupError, InfeasibleGammaError, RankError, warn
from ..moments import Moments, SolverChoice, Stream, check_solver_of, read_batch, read_batches
from ._method import Method
from ._new_rows import check_place, latent_means, map_new_rows
from ._summary import feature_table, summary

NO_MOMENTS = (
    "This model has no moments of its rows: it was not fitted by partial_fit or fit_batches, or it was loaded from a "
    "file, which does not keep them (save moments_ with Moments.save)."
)


class Decomposition(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Method):  # type: ignore[misc]
    """Base of the estimators; not public."""

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
        check_solver_of(X, self.solver)
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
        study = study if self._contrasts else foreground_of(study)
        tables, encoded, regression = tables_of(study, allow_missing=self._takes_missing), encoded_of(study), None
        if encoded is not None:
            tables, regression = without_covariates(tables, encoded)
        known = None if regression is None else regression.of_covariates
        about = None if study.design is None else study.design.subject
        fit = replace(self._solved(tables)[1], covariates=known, design=about)
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


def packed(model: Decomposition) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a file of a fitted model, in the float type of its attributes."""
    check_is_fitted(model)
    arrays = pack(FittedModel(type(model)(**model._parameters), model.fit_))
    with np.errstate(over="ignore"):
        kept = {name: array.astype(model.fit_.scaling.foreground.dtype) for name, array in arrays.items()}
    if overflowed := [name for name, array in kept.items() if not np.isfinite(array).all()]:
        raise ValueError(f"{', '.join(overflowed)} overflowed, so the model cannot be saved: rescale the data.")
    return arrays
