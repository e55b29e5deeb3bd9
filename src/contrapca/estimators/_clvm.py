"""CLVM: shared and foreground-specific dimensions in one model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._util.arrays import Array, Rows
from .._util.checks import auto_or, check_positive, count
from ..contrast import Fit, Halves, LatentGaussian, automatic_rank, principal_axes, solve_clvm
from ..data import Tables, group_of
from ..exceptions import warn
from ..missing import Incomplete, collect
from ..moments import MAX_DENSE, Complete, Moments, mixed_background
from ._base import unfitted
from ._likelihood import Likelihood
from ._new_rows import new_rows

MAX_SHARED = 10  # shared dimensions that are chosen: the run time grows with them
LOOSEST = 1e-4  # above this relative gradient a fit has not converged, for any `tol`


class CLVM(Likelihood):
    """Contrastive latent variable model (Severson, Ghosh and Ng 2019), by maximum likelihood.

    Background rows are mean_Y + S t + noise and foreground rows mean_X + S t + W z + noise, with Gaussian t, z and
    noise: S describes what both groups share, W what only the foreground has. The fit uses only the two covariances, so
    its cost does not grow with the number of rows.

    Parameters
    ----------
    n_shared : int or "auto", default "auto"
        Number of shared dimensions k. "auto" counts the dimensions that stand out from the noise in either group,
        beside those of the foreground alone: at least 1 and at most 10.
    n_foreground : int, default 2
        Number of foreground-specific dimensions d; k + d < D. With 0 the model is PPCA of both groups together, each
        centred by its own mean.
    background_label : optional
        As for PCPCA.
    scale : {None, "group", "pooled"}, default None
    tol : float, default 1e-6
        Tolerance for the relative gradient.
    max_iter : int, default 1000

    Attributes
    ----------
    components_ : ndarray of shape (d, D)
        Unit directions that rows are projected on.
    loadings_ : ndarray of shape (D, d)
        Foreground-specific loadings W in scaled units; columns are orthogonal, longest first.
    shared_loadings_ : ndarray of shape (D, k)
        Shared loadings S, likewise.
    noise_variance_ : float
    explained_variance_, explained_variance_ratio_, mean_, background_mean_, scale_, background_scale_, n_iter_
        As for `PCPCA`, as are `feature_variance_` and `objective_history_`.
    model_, background_model_ : LatentGaussian
        The fitted distributions of both groups, in scaled units; the foreground's has the loadings [W S].

    Examples
    --------
    >>> from contrapca import CLVM
    >>> from contrapca.datasets import make_hidden_clusters
    >>> data = make_hidden_clusters(random_state=0)
    >>> model = CLVM(n_shared=3, n_foreground=2).fit(data.foreground, background=data.background)
    >>> model.transform(data.foreground).shape
    (400, 2)
    """

    shared_loadings_: Array
    background_model_: LatentGaussian

    _takes_missing = False
    _rotates = False  # features are told apart
    _decisive = "n_shared"
    _parameter_checks: ClassVar = Likelihood._parameter_checks | {
        "n_shared": auto_or(count()),
        "n_foreground": count(least=0),
        "max_iter": count(),
        "tol": check_positive,
    }

    def __init__(
        self,
        n_shared: int | str = "auto",
        n_foreground: int = 2,
        *,
        background_label: Any = None,
        scale: str | None = None,
        tol: float = 1e-6,
        max_iter: int = 1000,
    ):
        self.n_shared = n_shared
        self.n_foreground = n_foreground
        self.background_label = background_label
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter

    def _strength(self) -> float | None:
        """None, as of a contrast whose gamma is yet to be chosen: a background is needed."""
        return None

    def _collected(self, tables: Tables) -> Complete | Incomplete:
        d, D = self.n_foreground, tables.n_features
        k = 1 if self._counts else int(self.n_shared)
        if k + d >= D:
            raise ValueError(f"n_shared + n_foreground = {k + d} is not possible with n_features={D}: use fewer.")
        if D > MAX_DENSE:
            raise ValueError(f"{D} features are too many for CLVM (at most {MAX_DENSE}). Select some, or use PCPCA.")
        return collect(tables, k + d, self._scaling, "eigh")

    @property
    def _counts(self) -> bool:
        """Whether the shared dimensions are counted."""
        return isinstance(self.n_shared, str) and self.n_shared == "auto"

    def _fit_to(self, data: Complete | Incomplete, halves: Callable[[], Halves]) -> Fit:
        """The maximum-likelihood fit; the axes shown are those of the foreground alone."""
        assert isinstance(data, Complete)
        groups, k, d = data.groups, self._shared_rank(data), self.n_foreground
        if not sum(map(Moments.total_variance, groups)) > 0:
            raise ValueError(
                "The rows of each group are all the same, so there is no variance to model: pass more rows."
            )
        found = solve_clvm(groups, k, d, tol=self.tol, max_iter=self.max_iter)
        if not found.bounded:
            raise ValueError(
                f"The likelihood has no maximum: n_shared={k} and n_foreground={d} dimensions fit these rows exactly, "
                "so the noise variance goes to 0. Use fewer dimensions or more rows."
            )
        if found.residual > max(self.tol, LOOSEST):
            warn(
                f"CLVM did not converge in {found.history.size - 1} iterations: the relative gradient is "
                f"{found.residual:.1e} (tol={self.tol:g}). Raise max_iter, or use scale='pooled'.",
                ConvergenceWarning,
            )
        S, W = (U * lengths for U, lengths in map(principal_axes, (found.S, found.W)))
        model = LatentGaussian(groups.foreground.mean, np.hstack([W, S]), found.sigma2)
        projection = model.projection()[:, :d]
        components = projection / np.linalg.norm(projection, axis=0)

        basis = np.linalg.qr(model.W)[0]

        def variance(group: Moments) -> Array:
            return np.sum(components * group.scatter.matmul(components), axis=0) / group.weight

        return Fit(
            scaling=data.scaling,
            components=components,
            variances=groups.map(variance),
            totals=groups.map(Moments.total_variance),
            gamma=0.0,
            objective=float(found.history[-1]),
            n_iter=found.history.size - 1,
            solver=data.choice,
            model=model,
            inside=groups.map(lambda group: float(np.trace(basis.T @ group.scatter.matmul(basis))) / group.weight),
            background_model=LatentGaussian(mixed_background(groups).mean, S, found.sigma2),
            history=found.history,
        )

    def _shared_rank(self, data: Complete) -> int:
        """The number of shared dimensions, or what the data suggest, beside those of the foreground alone."""
        if not self._counts:
            return int(self.n_shared)
        d, D = self.n_foreground, data.groups.foreground.mean.size
        return max(min(automatic_rank(data, d) - d, MAX_SHARED, D - d - 1), 1)

    def _settled(self, data: Complete | Incomplete, halves: Halves | None = None) -> Self:
        assert isinstance(data, Complete)
        return unfitted(self, n_shared=self._shared_rank(data))

    def _attributes(self, fit: Fit) -> dict[str, Any]:
        if (model := fit.background_model) is None:  # in a file
            raise ValueError("its background_model is missing")
        return super()._attributes(fit) | {"background_model_": model, "shared_loadings_": model.W}

    def transform_shared(self, X: Any, *, center: str = "foreground", covariates: Any = None) -> Array:
        """Shared latents E[t | x] of each row, shape (n, k).

        Parameters
        ----------
        X, center, covariates
            As for `transform`; `center` also says which group's model to use.
        """
        rows, missing = new_rows(self, X, covariates, center)
        fit = self.fit_
        scaling, model, shared = group_of(fit.scaling, center), self.model_, slice(fit.n_shown, None)
        if center != "foreground":
            assert fit.background_model is not None
            model, shared = replace(fit.background_model, mean=scaling.origin), slice(None)

        def latents(block: Rows) -> Array:
            return (model.condition(block).latent_mean if missing else model.latent_mean(block))[:, shared]

        return scaling.apply(latents, rows)
