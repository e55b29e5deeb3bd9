"""The contrastive latent variable model."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from .._array import Array, Rows, is_sparse
from .._validation import (
    canonical,
    check_count,
    check_option,
    check_positive,
    generator,
    split_groups,
    without_mask,
)
from .._version import __version__
from ..exceptions import ModelFileError, warn
from ..gaussian import LatentGaussian
from ..io import check_version, checked_array, checked_names, write_archive
from ..moments import finite_column_means
from ..solvers import MAX_DENSE, canonical_signs, solve_clvm
from ._fit import collect
from ._persistence import CLVM_FORMAT, plain_parameter, shape_of

FORMAT_VERSION = 1


class CLVM(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Contrastive latent variable model (Severson, Ghosh and Ng 2019), by maximum likelihood.

    Background rows are mean_Y + S t + noise, foreground rows mean_X + S t + W z + noise, with t, z and noise Gaussian:
    S holds what both groups share, W what only the foreground has. Fitted to the two covariances, so that the cost does
    not grow with the number of rows.

    Parameters
    ----------
    n_shared : int, default 2
        Shared dimensions k.
    n_foreground : int, default 2
        Dimensions of the foreground's own, d; k + d < D. With 0 the model is PPCA of both groups together, each about
        its own mean.
    background_label : optional
        As for PCPCA.
    scale : False, "group" or "pooled", default False
    tol : float, default 1e-6
        Bound of the relative gradient.
    max_iter : int, default 1000

    Attributes
    ----------
    loadings_ : ndarray of shape (D, d)
        W, foreground-specific, columns orthogonal and longest first, in scaled units.
    shared_loadings_ : ndarray of shape (D, k)
        S, likewise.
    noise_variance_ : float
    mean_, background_mean_, scale_, background_scale_ : ndarray of shape (D,)
    model_, background_model_ : LatentGaussian
        The fitted distributions of both groups, in scaled units; the foreground's has the loadings [S W].
    objective_history_ : ndarray of shape (1 + iterations,)
    n_iter_ : int

    Examples
    --------
    >>> from contrapca import CLVM
    >>> from contrapca.datasets import make_hidden_clusters
    >>> data = make_hidden_clusters(random_state=0)
    >>> model = CLVM(n_shared=3, n_foreground=2).fit(data.foreground, background=data.background)
    >>> model.transform(data.foreground).shape
    (400, 2)
    """

    def __init__(
        self,
        n_shared: int = 2,
        n_foreground: int = 2,
        *,
        background_label: Any = None,
        scale: bool | str = False,
        tol: float = 1e-6,
        max_iter: int = 1000,
    ):
        self.n_shared = n_shared
        self.n_foreground = n_foreground
        self.background_label = background_label
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any = None, *, background: Any = None) -> Self:
        """Fit to a foreground and a background.

        Parameters
        ----------
        X, y, background
            As for PCPCA, sparse tables included; complete rows.

        Returns
        -------
        self
        """
        check_option(self.scale, "scale", (False, "group", "pooled"))
        check_count(self.n_shared, "n_shared")
        check_count(self.n_foreground, "n_foreground", least=0)
        check_count(self.max_iter, "max_iter")
        check_positive(self.tol, "tol")
        groups = split_groups(X, y, background, self.background_label, name="CLVM", needs_background=True)
        D, k, d = groups.foreground.shape[1], self.n_shared, self.n_foreground
        if k + d >= D:
            raise ValueError(f"n_shared + n_foreground = {k + d} must be less than the number of features, {D}.")
        if D > MAX_DENSE:
            raise ValueError(f"{D} features are more than CLVM can take ({MAX_DENSE}). Select some, or use PCPCA.")
        data = collect(groups, k + d, self.scale, "eigh")
        found = solve_clvm(data.pair, k, d, tol=self.tol, max_iter=self.max_iter)
        if not found.bounded:
            raise ValueError(
                f"The likelihood has no maximum: n_shared={k} and n_foreground={d} dimensions describe these rows "
                "without rest, so that the noise variance goes to 0. Use fewer dimensions or more rows."
            )
        validate_data(self, X, skip_check_array=True)
        if found.residual > max(self.tol, 1e-4):
            warn(
                f"CLVM did not converge in {found.history.size - 1} iterations: the relative gradient is "
                f"{found.residual:.1e}, where tol={self.tol:g} is asked for. Raise max_iter, or use scale='pooled'.",
                ConvergenceWarning,
            )
        self.shared_loadings_, self.loadings_ = _principal(found.S), _principal(found.W)
        self.mean_, self.background_mean_ = data.means
        self.scale_, self.background_scale_ = data.scales
        self.objective_history_ = found.history
        self._adopt(found.sigma2)
        return self

    def _adopt(self, sigma2: float) -> None:
        """Set what follows from the fitted arrays and the noise variance."""
        assert self.background_mean_ is not None
        assert self.background_scale_ is not None
        self.noise_variance_ = sigma2
        together = np.hstack([self.shared_loadings_, self.loadings_])
        self.model_ = LatentGaussian(self.mean_ / self.scale_, together, sigma2)
        self.background_model_ = LatentGaussian(
            self.background_mean_ / self.background_scale_, self.shared_loadings_, sigma2
        )
        self.n_iter_ = self.objective_history_.size - 1

    @property
    def _n_features_out(self) -> int:
        return int(self.loadings_.shape[1])

    def _scaled(self, X: Any, scale: Array) -> Rows:
        """New rows, complete, checked against those seen in fit, in a group's scaled units."""
        check_is_fitted(self)
        checks: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64, "ensure_all_finite": False}
        rows = canonical(validate_data(self, without_mask(X), reset=False, **checks))
        finite_column_means(rows)
        return rows @ sp.diags_array(1 / scale) if is_sparse(rows) else rows / scale

    def transform(self, X: Any) -> Array:
        """Foreground-specific latents E[z | x] of each row, shape (n, d)."""
        check_is_fitted(self)
        return self.model_.latent_mean(self._scaled(X, self.scale_))[:, self.n_shared :]

    def transform_shared(self, X: Any, *, center: str = "foreground") -> Array:
        """Shared latents E[t | x] of each row, shape (n, k).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)
        center : {"foreground", "background"}
            Which group the rows are treated as: its mean, scale and model.
        """
        check_is_fitted(self)
        check_option(center, "center", ("foreground", "background"))
        if center == "foreground":
            return self.model_.latent_mean(self._scaled(X, self.scale_))[:, : self.n_shared]
        assert self.background_scale_ is not None
        return self.background_model_.latent_mean(self._scaled(X, self.background_scale_))

    def inverse_transform(self, Z: Any) -> Array:
        """Rows that foreground-specific latents stand for, mean + W z, shape (n, D), in original units."""
        check_is_fitted(self)
        latents = check_array(Z, dtype=np.float64, ensure_min_features=0, estimator="CLVM")
        d = self.loadings_.shape[1]
        if latents.shape[1] != d:
            raise ValueError(f"Z has {latents.shape[1]} columns, but the model has {d} foreground dimensions.")
        return latents @ (self.loadings_ * self.scale_[:, None]).T + self.mean_

    def get_covariance(self) -> Array:
        """The foreground's covariance S S' + W W' + sigma2 I in original units, shape (D, D)."""
        check_is_fitted(self)
        return self.model_.covariance() * self.scale_[:, None] * self.scale_

    def score_samples(self, X: Any) -> Array:
        """Log-likelihood of each row under the foreground model, in original units, shape (n,)."""
        check_is_fitted(self)
        return self.model_.log_prob(self._scaled(X, self.scale_)) - float(np.log(self.scale_).sum())

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of the rows under the foreground model."""
        return float(np.mean(self.score_samples(X)))

    def objective(self) -> float:
        """Log-likelihood of both groups at the fit, in scaled units."""
        check_is_fitted(self)
        return float(self.objective_history_[-1])

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """New foreground rows, shape (n_samples, D), in original units."""
        check_is_fitted(self)
        check_count(n_samples, "n_samples")
        return self.model_.sample(n_samples, generator(random_state)) * self.scale_

    def save(self, path: Any) -> None:
        """Write the fitted model to a file that `contrapca.load` reads (npz and JSON, no pickle), atomically."""
        check_is_fitted(self)
        arrays = {name: getattr(self, name) for name in ARRAYS}
        if hasattr(self, "feature_names_in_"):
            arrays["feature_names_in_"] = np.asarray(self.feature_names_in_, dtype=np.str_)
        header = {
            "format": CLVM_FORMAT,
            "version": FORMAT_VERSION,
            "written_by": f"contrapca {__version__}",
            "parameters": {name: plain_parameter(name, value) for name, value in self.get_params().items()},
            "noise_variance": self.noise_variance_,
        }
        write_archive(path, header, arrays)


ARRAYS = {
    "shared_loadings_": "Dk",
    "loadings_": "Dd",
    "mean_": "D",
    "scale_": "D",
    "background_mean_": "D",
    "background_scale_": "D",
    "objective_history_": "*",
}


def restore_clvm(path: Any, header: dict[str, Any], arrays: dict[str, Any]) -> CLVM:
    """A model from the parts of a file that `save` wrote, each checked."""
    check_version(path, header, FORMAT_VERSION)
    try:
        model = CLVM(**header["parameters"])
        D, k = arrays["shared_loadings_"].shape
        sizes = {"D": D, "k": k, "d": arrays["loadings_"].shape[1]}
        for name, shape in ARRAYS.items():
            setattr(model, name, checked_array(arrays, name, shape_of(arrays[name], shape, sizes)))
        if not 0 < header["noise_variance"] < np.inf or k + sizes["d"] >= D or np.any(model.scale_ <= 0):
            raise ValueError("its noise variance, sizes or scales are impossible")
        if "feature_names_in_" in arrays:
            model.feature_names_in_ = checked_names(arrays, "feature_names_in_", D).astype(object)
        model.n_features_in_ = D
        model._adopt(float(header["noise_variance"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{str(path)!r} does not describe a CLVM: {error}. It may be damaged.") from error
    return model


def _principal(loadings: Array) -> Array:
    """Loadings turned to their principal axes, the longest first, with canonical signs: only L L' is identified."""
    U, lengths, _ = np.linalg.svd(loadings, full_matrices=False)
    return canonical_signs(U) * lengths
