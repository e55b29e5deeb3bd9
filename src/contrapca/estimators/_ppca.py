"""Probabilistic PCA: one group, no contrast."""

from __future__ import annotations

from typing import Any, Self

from ._likelihood import Likelihood


class PPCA(Likelihood):
    """Probabilistic principal component analysis (Tipping and Bishop 1999).

    Maximises p(X | W, sigma2) for rows x = mean + W z + noise, in closed form, or by gradients if values are missing
    (NaN). It is PCPCA with gamma = 0, for a single group of rows.

    Parameters
    ----------
    n_components : int, default 2
        Number of latent dimensions d, 1 <= d < D.
    scale : bool, default False
        Divide each feature by its standard deviation first.
    solver, mean, n_init, max_iter, tol, random_state, progress
        As for `PCPCA`: the solver for complete rows, and how missing values are treated.

    Attributes
    ----------
    components_ : ndarray of shape (d, D)
        Unit vectors whose entry of largest magnitude is positive.
    loadings_ : ndarray of shape (D, d)
        W, in scaled units.
    noise_variance_ : float
        sigma2, in scaled units.
    eigenvalues_ : ndarray of shape (d,)
        Largest eigenvalues of the covariance (ddof 0); here equal to `explained_variance_`.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (d,)
        Variance along each component, and as a fraction of the total.
    mean_, scale_, feature_variance_ : ndarray of shape (D,)
    n_effective_ : float
        Number of rows.
    solver_ : SolverChoice
        Which solver ran and why.
    n_iter_ : int
    objective_history_ : ndarray of shape (1 + iterations,)
        The objective after each iteration of a gradient solver; a single value for the closed form.
    init_objectives_ : ndarray of shape (number of starts,)
        The objective that each start reached; a spread means that there are several local maxima.
    model_ : LatentGaussian
        The fitted distribution, in scaled units.

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import PPCA
    >>> X = np.random.default_rng(0).normal(size=(100, 5)) * [5, 2, 1, 1, 1]
    >>> PPCA(n_components=2).fit(X).transform(X).shape
    (100, 2)
    """

    _scales = (False, True)

    def __init__(
        self,
        n_components: int = 2,
        *,
        scale: bool = False,
        solver: str = "auto",
        mean: str = "observed",
        n_init: int | str = "auto",
        max_iter: int = 1000,
        tol: float = 1e-6,
        random_state: Any = None,
        progress: bool = True,
    ):
        self._keep(locals())

    def fit(  # type: ignore[override]
        self, X: Any, y: Any = None, *, sample_weight: Any = None, covariates: Any = None, memory_limit: Any = None
    ) -> Self:
        """Fit to the rows of `X`.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, D), or Moments
            Missing values are NaN (not in sparse matrices).
        y : ignored
        sample_weight : array-like of shape (n,), optional
            How often each row counts, 0 or more: weights are the same as repeated rows.
        covariates : array-like or data frame of shape (n, q), optional
            What is known of each row, such as age and sex: its linear effect is taken out of the rows, which must be
            dense and in memory. Text is categorical. `transform` and the like then need the covariates of new rows.
        memory_limit : int or str, optional
            How much memory may be used for blocks of rows from files, memory maps, zarr and HDF5, and for their
            moments: bytes, or text such as "500 MB".

        Returns
        -------
        self
        """
        return super().fit(X, sample_weight=sample_weight, covariates=covariates, memory_limit=memory_limit)

    def partial_fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Add a batch of rows, and fit to all rows so far.

        Any order and size of batches gives the model that `fit` gives for all rows. The model is fitted as soon as
        there are rows enough; until then it only counts them. `moments_` has the moments so far, which can be saved.

        Parameters
        ----------
        X : as for `fit`, complete rows or Moments
        y : ignored
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        self
        """
        return super().partial_fit(X, sample_weight=sample_weight)
