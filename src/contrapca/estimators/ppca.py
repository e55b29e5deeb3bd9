"""Probabilistic PCA: one group, no contrast."""

from __future__ import annotations

from typing import Any, Self

from ._likelihood import LikelihoodEstimator


class PPCA(LikelihoodEstimator):
    """Probabilistic principal component analysis (Tipping and Bishop 1999).

    Maximises p(X | W, sigma2) for rows x = mean + W z + noise, in closed form. It is PCPCA
    with gamma = 0, for a single group of rows.

    Parameters
    ----------
    n_components : int, default 2
        Number of latent dimensions d, 1 <= d < D.
    scale : False, "group" or "pooled", default False
        Anything but False divides each feature by its standard deviation first.
    solver : {"auto", "eigh", "dual", "lanczos"}, default "auto"
        How the eigenvectors are found; `contrapca.which_solver` tells what "auto" picks.

    Attributes
    ----------
    components_ : ndarray of shape (d, D)
        Unit vectors, the entry of largest magnitude positive.
    loadings_ : ndarray of shape (D, d)
        W, in scaled units.
    noise_variance_ : float
        sigma2, in scaled units.
    eigenvalues_ : ndarray of shape (d,)
        Largest eigenvalues of the covariance (ddof 0); here equal to `explained_variance_`.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (d,)
        Variance along each component, and its share of the total.
    mean_, scale_, feature_variance_ : ndarray of shape (D,)
    n_effective_ : float
        Number of rows.
    solver_ : SolverChoice
        Which solver ran and why.
    n_iter_ : int
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

    def __init__(self, n_components: int = 2, *, scale: bool | str = False, solver: str = "auto"):
        self.n_components = n_components
        self.scale = scale
        self.solver = solver

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to the rows of `X`.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, D)
        y : ignored

        Returns
        -------
        self
        """
        return self._fit(X, None, None, "pcpca", 0.0)
