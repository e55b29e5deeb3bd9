"""Probabilistic PCA: one group, no contrast."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

from ..contrast import Training
from ..data import Groups
from ..moments import Complete
from ._likelihood import LatentModel
from ._pcpca import PCPCA


class PPCA(LatentModel):
    """Probabilistic principal component analysis (Tipping and Bishop 1999).

    Maximises p(X | W, sigma2) for rows x = mean + W z + noise, in closed form, or by gradients if values are missing
    (NaN). It is PCPCA with gamma = 0, for a single group of rows.

    Parameters
    ----------
    n_components : int, default 2
        Number of latent dimensions d, 1 <= d < D.
    scale : {None, "group", "pooled"}, default None
        Divide each feature by its standard deviation first: "group" and "pooled" are the same for one group.
    solver, mean, n_init, max_iter, tol, random_state, progress
        As for `PCPCA`: the solver for complete rows, and how missing values are treated.

    Attributes
    ----------
    components_, loadings_, noise_variance_, eigenvalues_, explained_variance_, explained_variance_ratio_, mean_, scale_
        As for `PCPCA`; eigenvalues are those of the covariance (ddof 0), and so equal to the variances.
    feature_variance_, solver_, n_iter_, objective_history_, model_
        As for `PCPCA`.
    n_effective_ : float
        Number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import PPCA
    >>> X = np.random.default_rng(0).normal(size=(100, 5)) * [5, 2, 1, 1, 1]
    >>> PPCA(n_components=2).fit(X).transform(X).shape
    (100, 2)
    """

    _contrasts = False
    _known_as, _source = "probabilistic principal component analysis (PPCA)", "Tipping 1999"

    def __init__(
        self,
        n_components: int = 2,
        *,
        scale: str | None = None,
        solver: str = "auto",
        mean: str = "observed",
        n_init: int | str = "auto",
        max_iter: int = 1000,
        tol: float = 1e-6,
        random_state: Any = None,
        progress: bool = True,
    ):
        self.n_components = n_components
        self.scale = scale
        self.solver = solver
        self.mean = mean
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.progress = progress

    def fit(  # type: ignore[override]
        self, X: Any, y: Any = None, *, sample_weight: Any = None
    ) -> Self:
        """Fit to the rows of `X`.

        Parameters
        ----------
        X, sample_weight
            As for `PCPCA`; of a `Study`, the foreground.
        y : ignored

        Returns
        -------
        self
        """
        return super().fit(X, sample_weight=sample_weight)

    def partial_fit(  # type: ignore[override]
        self, X: Any, y: Any = None, *, sample_weight: Any = None
    ) -> Self:
        """Add a batch of rows, and fit to all rows so far.

        As for `PCPCA`, with one group: the model is fitted once there are enough rows.

        Parameters
        ----------
        X, sample_weight
            As for `fit`, complete rows or Moments.
        y : ignored

        Returns
        -------
        self
        """
        return super().partial_fit(X, sample_weight=sample_weight)

    def _path_estimator(self) -> PCPCA:  # type: ignore[override]
        """PCPCA, whose path begins here."""
        return PCPCA(self.n_components, scale=self._scaling)

    def _trained(self, training: Training) -> Complete:
        """Of the foreground alone."""
        if isinstance(training, Complete):
            return replace(training, groups=Groups.of(training.groups.foreground))
        return super()._trained(training.foreground_alone())
