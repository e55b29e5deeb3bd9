"""Whitening by the controls: distances in units of what varies among them (F47)."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from .._files import check_values, save
from .._util.arrays import Array, Rows, float_type, is_sparse, on_device, put
from .._util.checks import check_option
from .._util.text import is_missing
from ..contrast import Spread, relative_kurtosis, spread
from ..data import (
    Scaling,
    Study,
    Tables,
    check_device_table,
    column_means,
    refuse,
    refuse_moments,
    study_of,
    tables_of,
)
from ..data.rows import DaskRows, as_rows, map_rows, storage
from ..exceptions import GroupError, warn
from ..moments import DenseScatter, Moments, has_few_rows, pooled_deviation, row_moments, sum_of_fourth_powers
from ._new_rows import of_foreground, rows_as_fitted

FAR_LONGER = 3.0  # times the fourth powers of Gaussian rows: as many as rows of Student's t with 5 degrees of freedom


class BackgroundWhitener(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Whiten rows by the controls: directions in which controls vary a lot count less, and the others more.

    Rows become ``(x - mean) / scale`` times the inverse root of the controls' shrunk covariance, so that distances and
    cosines between cases are in units of what varies without any treatment. Known as sphering or typical variation
    normalisation. It keeps all features; to see what is special about the cases in a few components, use ContraPCA.

    Parameters
    ----------
    ridge : {"auto", "oas"} or float, default "auto"
        How far the controls' covariance S is shrunk toward the mean variance t of its features: whitening divides by
        the roots of (S + ridge t I) / (1 + ridge). "auto" is Ledoit and Wolf's choice, "oas" the oracle-approximating
        one, which supposes Gaussian rows and needs no more than moments (for moments "auto" takes it, too). 0 is no
        ridge, infinity scales only.
    scale : {"background", None}, default "background"
        Divide each feature by the controls' standard deviation first (with `replicates`, by that of all rows used).
    background_label : optional
        Rows of `X` with this label in `y` are the controls: for pipelines.

    Attributes
    ----------
    ridge_ : float
        The ridge that was used.
    shrinkage_ : float
        The same as a part of the whole, ridge / (1 + ridge): 0 is the covariance itself, 1 its mean variance.
    mean_, scale_ : ndarray of shape (D,)
        The mean of the controls, and the divisor of each feature.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import BackgroundWhitener
    >>> rng = np.random.default_rng(0)
    >>> controls = rng.normal(size=(500, 3)) * [1, 10, 100]
    >>> cases = rng.normal(size=(80, 3)) * [5, 10, 100]
    >>> whitener = BackgroundWhitener().fit(cases, background=controls)
    >>> whitener.transform(cases).std(axis=0).round()
    array([5., 1., 1.])
    """

    def __init__(
        self, ridge: float | str = "auto", scale: str | None = "background", *, background_label: Any = None
    ) -> None:
        self.ridge = ridge
        self.scale = scale
        self.background_label = background_label

    # ------------------------------------------------------------------ fit

    def fit(self, X: Any, y: Any = None, *, background: Any = None, replicates: Any = None) -> Self:
        """Learn how the controls vary.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, D), or Moments, or Study
            The cases. Only their features matter, and with `replicates` what varies between them.
        y : array-like of shape (n,), optional
            The group of each row, with `background_label`.
        background : array-like, data frame or sparse matrix of shape (m, D), or Moments, or a dict of them, optional
            The controls; several are each centred by their own mean.
        replicates : array-like of shape (n,), optional
            The treatment of each row of `X`, such as compound and dose: what varies between rows of one treatment says
            what to divide by, like the controls. Worth having wherever treatments were repeated.

        Returns
        -------
        self
        """
        name, shrinkage = type(self).__name__, self._shrinkage()
        check_option(self.scale, "scale", ("background", None))
        study = study_of(X, background, name, y=y, background_label=self.background_label)
        refuse(study, name, covariates="pass regress_out(study)")
        tables = tables_of(study, allow_missing=False)
        # The rows to whiten by: those of the controls, and what varies within treatments.
        controls = (own.backgrounds for own in (tables.rows, tables.means, tables.weights))
        every: list[Any] = list(zip(*controls, strict=True))
        if replicates is not None:
            within = of_treatments(replicates, X, y, self.background_label, tables)
            every.append((within, np.zeros(tables.n_features), None))
        groups = [rows if isinstance(rows, Moments) else row_moments(rows, mean, w) for rows, mean, w in every]
        if not has_few_rows(groups):
            groups = [replace(group, scatter=DenseScatter(group.scatter.dense())) for group in groups]
        scale = pooled_deviation(groups) if self.scale else np.ones(tables.n_features)
        found = spread([group.scaled(scale) for group in groups])
        fourth = None  # the mean of |y|^4 over these rows, each about its group's mean: moments have no rows
        if not tables.are_moments:
            fourth = sum(sum_of_fourth_powers(rows, mean, scale, w) for rows, mean, w in every) / found.weight
        if shrinkage is None:
            shrinkage = found.shrinkage(fourth if self.ridge == "auto" else None)
        self._warn_of_long_rows(found, fourth)
        factors, rest = found.factors(shrinkage)
        first, names = tables.rows.foreground, tables.names if tables.text_names else None
        dtype = "float64" if isinstance(first, Moments) else float_type(first)
        weights = [group.weight for group in groups[: len(tables.rows.backgrounds)]]
        mean = np.average([group.mean for group in groups[: len(weights)]], axis=0, weights=weights)
        variance = np.sum([group.scatter.diagonal() for group in groups], axis=0) / found.weight
        scaling = Scaling(found.weight, mean, variance, scale, names, dtype)
        if not isinstance(first, Moments | DaskRows):
            validate_data(self, study.rows.foreground if isinstance(X, Study) else X, skip_check_array=True)
        return self._with_fit(Whitening(scaling, found.directions, factors, rest, shrinkage))

    def _shrinkage(self) -> float | None:
        """The shrinkage that is asked for; None if the rows are to say."""
        if isinstance(self.ridge, str):
            check_option(self.ridge, "ridge", ("auto", "oas"))
            return None
        if not isinstance(self.ridge, numbers.Real) or isinstance(self.ridge, bool):
            raise TypeError(f"ridge={self.ridge!r} must be 'auto', 'oas' or a number, 0 or more.")
        ridge = float(self.ridge)
        if not ridge >= 0:
            raise ValueError(f"ridge={self.ridge} must be 'auto', 'oas' or a number, 0 or more (0: no ridge).")
        return 1.0 if ridge == np.inf else ridge / (1 + ridge)

    def _warn_of_long_rows(self, found: Spread, fourth: float | None) -> None:
        if fourth is None or found.weight >= found.n_features:
            return
        if (times := relative_kurtosis(found, fourth)) > FAR_LONGER:
            warn(
                f"The controls ({found.weight:g} rows) are fewer than their {found.n_features} features, and a few of "
                f"them are far longer than most ({times:.2g} times the fourth powers of Gaussian rows): whitening then "
                "follows these few rows. Check how the rows were normalised, leave the longest out, or use a larger "
                "ridge, such as ridge=10."
            )

    def _with_fit(self, fit: Whitening) -> Self:
        self._fit = fit
        self.shrinkage_ = fit.shrinkage
        self.ridge_ = np.inf if fit.shrinkage == 1 else fit.shrinkage / (1 - fit.shrinkage)
        self.mean_, self.scale_ = (own.astype(fit.scaling.dtype) for own in (fit.scaling.mean, fit.scaling.scale))
        self.n_features_in_ = fit.scaling.mean.size
        if fit.scaling.names is not None:
            self.feature_names_in_ = np.array(fit.scaling.names, dtype=object)
        return self

    # ------------------------------------------------------------------ rows to whitened rows and back

    def transform(self, X: Any) -> Any:
        """Whitened rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D), or Study
            Cases, controls or new rows; of a `Study`, the foreground.

        Returns
        -------
        Z : ndarray of shape (n, D), in the float type of `X`; for a dask array, a dask array
        """
        check_is_fitted(self)
        if isinstance(X, Study):
            refuse_moments(X, "transform")
            X = X.rows.foreground

        def whitened(table: Any, named: bool = False) -> Array:
            rows = rows_as_fitted(self, table, named)
            column_means(rows)  # raises where values are missing or infinite
            return self._fit.whitened(rows)

        lazy = as_rows(X)
        if not isinstance(lazy, DaskRows):
            return whitened(X)
        if lazy.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {lazy.shape[1]} features, but {self.n_features_in_} were fitted.")
        # Blocks of a table have no names of their own.
        return map_rows(X, lambda block: whitened(block, named=True), self.n_features_in_)

    def inverse_transform(self, Z: Any) -> Array:
        """Rows in original units from whitened ones.

        Parameters
        ----------
        Z : array-like of shape (n, D)

        Returns
        -------
        X : ndarray of shape (n, D)
        """
        check_is_fitted(self)
        if on_device(Z):
            return self._fit.restored(check_device_table(Z, type(self).__name__, least_rows=1))
        rows = check_array(Z, dtype=[np.float64, np.float32], estimator=type(self).__name__)
        if rows.shape[1] != self.n_features_in_:
            raise ValueError(f"Z has {rows.shape[1]} columns, but {self.n_features_in_} features were fitted.")
        return self._fit.restored(rows)

    # ------------------------------------------------------------------ scikit-learn, and files

    def __sklearn_is_fitted__(self) -> bool:
        return "_fit" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.array_api_support = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def save(self, path: Any) -> None:
        """Write the fitted whitener to a file that `contrapca.load` reads (npz and JSON, no pickle).

        Parameters
        ----------
        path : str or path-like
        """
        check_is_fitted(self)
        save(path, FittedWhitener(type(self)(**self.get_params(deep=False)), self._fit))


@dataclass(frozen=True)
class Whitening:
    """What a fit to the controls knows, in float64."""

    scaling: Scaling
    directions: Array  # eigenvectors of the scaled covariance, (D, k): all, or those in the span of rows that are few
    factors: Array  # what scaled rows are multiplied by along these, (k,)
    rest: float  # the same in all directions that are orthogonal to them
    shrinkage: float

    def _check_values(self) -> None:
        """Raise if no controls have these."""
        sizes = check_values(self, {"directions": "Dk", "factors": "k"}, positive=("factors", "rest"))
        if sizes["D"] != self.scaling.mean.size or sizes["k"] > sizes["D"] or not 0 <= self.shrinkage <= 1:
            raise ValueError("its sizes are impossible")
        V = self.directions
        if not np.allclose(V.T @ V, np.eye(sizes["k"]), atol=1e-4):
            raise ValueError("its directions are not orthonormal")

    @cached_property
    def matrices(self) -> tuple[Array, Array]:
        """The symmetric matrix that whitens scaled rows, and its inverse, shape (D, D)."""
        V = self.directions
        return (V * self.factors) @ V.T, (V / self.factors) @ V.T

    @property
    def is_full(self) -> bool:
        """Whether there is a direction for every feature."""
        return self.directions.shape[0] == self.directions.shape[1]

    def whitened(self, rows: Rows) -> Array:
        """Checked rows, whitened."""
        if self.is_full:
            return self.scaling.project(rows, self.matrices[0])
        origin = self.scaling.origin

        def of_block(block: Rows) -> Array:  # in scaled units
            inside = storage(block).centred_product(block, origin, self.directions)
            dense = block.toarray() if is_sparse(block) else block
            return self._stretched(dense - put(origin, dense, float_type(dense)), inside, self.factors, self.rest)

        return self.scaling.apply(of_block, rows)

    def restored(self, rows: Any) -> Array:
        """Rows in original units from whitened ones."""
        kind = float_type(rows)
        scale, mean = (put(own.astype(kind), rows, kind) for own in (self.scaling.scale, self.scaling.mean))
        if self.is_full:
            back = rows @ put(self.matrices[1].astype(kind), rows, kind)
        else:
            inside = rows @ put(self.directions.astype(kind), rows, kind)
            back = self._stretched(rows, inside, 1 / self.factors, 1 / self.rest)
        return back * scale + mean

    def _stretched(self, rows: Any, inside: Any, factors: Array, rest: float) -> Any:
        """Rows times `factors` along the directions, where they are `inside`, and times `rest` elsewhere."""
        kind = float_type(rows)
        more = put((factors - rest).astype(kind), rows, kind)
        return rest * rows + (inside * more) @ put(self.directions.T.astype(kind), rows, kind)


@dataclass(frozen=True)
class FittedWhitener:
    """What is saved of a fitted whitener."""

    estimator: BackgroundWhitener  # not fitted, with the parameters of the fit
    fit: Whitening

    @property
    def model(self) -> BackgroundWhitener:
        """The fitted whitener."""
        return self.estimator._with_fit(self.fit)


def of_treatments(replicates: Any, X: Any, y: Any, background_label: Any, tables: Tables) -> Array:
    """Rows of the cases about the mean of their treatment, with the variance of single rows, (rows, D).

    Treatments with one row say nothing, and are left out.
    """
    rows = tables.rows.foreground
    if not isinstance(rows, np.ndarray):
        raise TypeError(
            "replicates= needs the cases as a NumPy array in memory: pass X.toarray(), numpy.asarray(X) or "
            "X.cpu().numpy(), or leave replicates= out."
        )
    if tables.weights.foreground is not None:
        raise GroupError("replicates= takes no weights of the cases: leave them out, or repeat rows.")
    labels = np.asarray(replicates)
    n = len(rows) if background_label is None or isinstance(X, Study) else X.shape[0]
    if labels.ndim != 1 or labels.size != n:
        raise GroupError(
            f"replicates= has the shape {labels.shape}: pass the treatment of each of the {n} rows of X, one label for "
            "each."
        )
    if background_label is not None and not isinstance(X, Study):
        labels = of_foreground(labels, y, background_label)
    if missing := sum(map(is_missing, labels.tolist())):
        raise GroupError(f"{missing} of the labels in replicates= are missing: give each row its treatment.")
    _, code, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if counts.max() < 2:
        raise GroupError(
            "Every label in replicates= occurs once, so nothing varies within treatments: pass the treatment of each "
            "row, such as compound and dose, or leave replicates= out."
        )
    means = np.zeros((counts.size, rows.shape[1]))
    np.add.at(means, code, rows.astype(np.float64))
    means /= counts[:, None]
    some = counts[code] > 1
    found: Array = (rows[some] - means[code[some]]) * np.sqrt(counts / np.maximum(counts - 1.0, 1.0))[code[some], None]
    return found
