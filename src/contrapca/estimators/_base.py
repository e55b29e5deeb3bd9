"""What PPCA, CPCA and PCPCA share: fitting, mapping rows, features, saving."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from .._array import Array, Rows, is_sparse, row_slices
from .._table import Table
from .._validation import Groups, canonical, check_n_components, check_option, split_groups, without_mask
from ..exceptions import RowsChangedError
from ..gaussian import centred_product
from ..moments import finite_column_means
from ..solvers import SolverChoice
from ._fit import Fit, Method, Source, collect, fit_contrast
from ._persistence import save_model

ROW_BLOCK_BYTES = 16 * 2**20


class ContrastEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators; not public."""

    n_components: int
    scale: bool | str
    solver: str
    background_label: Any = None

    # Both None without a background.
    background_mean_: Array | None
    background_scale_: Array | None

    # ------------------------------------------------------------------ fit

    def _fit(self, X: Any, y: Any, background: Any, method: Method, gamma: float | None) -> Self:
        """Compute everything first and set attributes last, so that a failure leaves nothing behind."""
        check_option(self.scale, "scale", (False, "group", "pooled"))
        groups = split_groups(
            X, y, background, self.background_label, name=type(self).__name__, needs_background=gamma != 0
        )
        d = check_n_components(self.n_components, groups.foreground.shape[1])
        fit = self._solve(groups, d, method, gamma)
        validate_data(self, X, skip_check_array=True)
        self._adopt(fit, groups.foreground.dtype)
        return self

    def _solve(self, groups: Groups, d: int, method: Method, gamma: float | None) -> Fit:
        """From checked rows to the solution."""
        return fit_contrast(collect(groups, d, self.scale, self.solver), method, d, gamma)

    def _adopt(self, fit: Fit, dtype: np.dtype[Any]) -> None:
        """Set the fitted attributes; arrays in the float type of the foreground."""

        def cast(array: Array | None) -> Array | None:
            return None if array is None else array.astype(dtype)

        data = fit.source
        self.components_ = fit.components.T.astype(dtype)
        self.eigenvalues_ = fit.eigenvalues.astype(dtype)
        self.mean_ = data.means[0].astype(dtype)
        self.background_mean_ = cast(data.means[1])
        self.scale_ = data.scales[0].astype(dtype)
        self.background_scale_ = cast(data.scales[1])
        self.feature_variance_ = data.variances[0].astype(dtype)
        self.background_feature_variance_ = cast(data.variances[1])
        self.explained_variance_ = fit.variances[0].astype(dtype)
        self.explained_variance_ratio_ = fit.shares(0).astype(dtype)
        self.n_effective_ = fit.n_effective
        self.n_iter_ = fit.n_iter
        self.solver_: SolverChoice = fit.solver
        self._objective = fit.objective
        self._source: Source | None = data
        for scatter in data.watched_rows():
            _ = scatter.fingerprint  # of the rows as they are now

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "components_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # ------------------------------------------------------------------ rows to latents and back

    def _decoder(self) -> Array:
        """B of shape (D, d): a row is mean + B z in scaled units."""
        return self.components_.T

    def _rows(self, X: Any) -> Rows:
        """New rows, complete, checked against those seen in fit."""
        rows = canonical(self._validated(X, accept_sparse="csr", ensure_all_finite=False))
        finite_column_means(rows)
        return rows

    def _validated(self, X: Any, **checks: Any) -> Rows:
        check_is_fitted(self)
        X = without_mask(X)
        return validate_data(self, X, reset=False, dtype=[np.float64, np.float32], **checks)

    def _map_rows(self, function: Callable[[Rows], Array], rows: Rows, scale: Array) -> Array:
        """`function` over blocks of the rows divided by `scale`; results stacked."""
        divisor = scale.astype(rows.dtype)
        plain = bool(np.all(divisor == 1))
        bytes_per_row = 12 * rows.nnz / rows.shape[0] if is_sparse(rows) else 8 * rows.shape[1]
        results = []
        for part in row_slices(rows.shape[0], int(1 + ROW_BLOCK_BYTES / (1 + bytes_per_row))):
            block = rows[part]
            if not plain:
                block = block @ sp.diags_array(1 / divisor) if is_sparse(rows) else block / divisor
            results.append(function(block))
        return np.concatenate(results)

    def transform(self, X: Any, *, center: str = "foreground") -> Array:
        """Latent coordinates of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)
        center : {"foreground", "background"}
            "foreground" subtracts `mean_` and divides by `scale_`, as suits foreground and new rows.
            "background" treats the rows as background rows, as fit did: `background_mean_`, `background_scale_`.

        Returns
        -------
        Z : ndarray of shape (n, d), in the float type of `X`
        """
        return self._latents(X, center)

    def _latents(self, X: Any, center: str) -> Array:
        """`transform` without its wrapper for data frames."""
        rows = self._rows(X)
        mean, scale = self._origin(center)
        origin, V = mean / scale, self._decoder()
        return self._map_rows(lambda block: centred_product(block, origin, V), rows, scale)

    def _origin(self, center: str) -> tuple[Array, Array]:
        """Mean and scale of the group that rows are treated as."""
        check_option(center, "center", ("foreground", "background"))
        if center == "foreground":
            return self.mean_, self.scale_
        if self.background_mean_ is None or self.background_scale_ is None:
            raise ValueError("center='background' needs a model that was fitted with a background.")
        return self.background_mean_, self.background_scale_

    def fit_transform(self, X: Any, y: Any = None, *, background: Any = None) -> Array:
        """Fit, then transform all rows of `X` in their order (background rows among them included).

        Parameters
        ----------
        X, y, background
            As for `fit`.

        Returns
        -------
        Z : ndarray of shape (n, d)
        """
        given = {} if background is None else {"background": background}
        return self.fit(X, y, **given).transform(X)  # type: ignore[no-any-return, attr-defined]

    def inverse_transform(self, Z: Any) -> Array:
        """Rows that the latents stand for: mean + W z (CPCA: mean + V z), in original units.

        Parameters
        ----------
        Z : array-like of shape (n, d)

        Returns
        -------
        X : ndarray of shape (n, D)
        """
        check_is_fitted(self)
        latents = check_array(Z, dtype=[np.float64, np.float32], estimator=type(self).__name__)
        d = self.components_.shape[0]
        if latents.shape[1] != d:
            raise ValueError(f"Z has {latents.shape[1]} columns, but the model has {d} components.")
        decoder = (self._decoder() * self.scale_[:, None]).astype(latents.dtype)
        return latents @ decoder.T + self.mean_.astype(latents.dtype)

    # ------------------------------------------------------------------ results

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def objective(self) -> float:
        """The value that `fit` maximised, at its maximum.

        PPCA: the log-likelihood of the rows. PCPCA: the relative log-likelihood
        log p(X) - gamma_raw log p(Y). CPCA: tr V'C V = n times the sum of `eigenvalues_`.
        In scaled units where `scale` is set.
        """
        check_is_fitted(self)
        return self._objective

    def feature_table(self) -> Table:
        """Every feature's part in the components.

        Returns
        -------
        Table
            Columns: `feature`, `loading_0`, ... (rows of W; of V for CPCA), `foreground_variance` and, with a
            background, `background_variance` (original units), and `rank`, 1 for the largest sum of squared loadings.
            `to_frame()` makes it a pandas DataFrame.
        """
        check_is_fitted(self)
        loadings = self._decoder()
        names = getattr(self, "feature_names_in_", np.array([f"x{j}" for j in range(self.n_features_in_)]))
        columns: dict[str, Any] = {"feature": names}
        columns |= {f"loading_{k}": loadings[:, k] for k in range(loadings.shape[1])}
        columns["foreground_variance"] = self.feature_variance_
        if self.background_feature_variance_ is not None:
            columns["background_variance"] = self.background_feature_variance_
        order = np.argsort(-np.sum(loadings**2, axis=1), kind="stable")
        rank = np.empty(order.size, dtype=int)
        rank[order] = np.arange(1, order.size + 1)
        return Table(columns | {"rank": rank})

    # ------------------------------------------------------------------ saving

    def _resolve(self) -> None:
        """Compute what is left until asked for, while the moments it needs are still here."""

    def _kept(self) -> Source:
        """What fit kept of the data; rows among it must be what they were then."""
        if self._source is None or any(scatter.rows_changed() for scatter in self._source.watched_rows()):
            raise RowsChangedError
        return self._source

    def __getstate__(self) -> dict[str, Any]:
        """Without the moments, which may hold the user's rows; what depends on them is computed first, if it can be."""
        if self.__dict__.get("_source") is None:
            return super().__getstate__()
        with contextlib.suppress(RowsChangedError):
            self._resolve()
        return {**super().__getstate__(), "_source": None}

    def save(self, path: Any) -> None:
        """Write the fitted model to a file that `contrapca.load` reads (npz and JSON, no pickle).

        Parameters
        ----------
        path : str or path-like
            Written atomically; an existing file is replaced. `set_output` settings are not part of it.
        """
        check_is_fitted(self)
        if self._source is not None:
            self._resolve()
        save_model(self, path)
