"""Probabilistic PCA: one group, no contrast."""

from __future__ import annotations

from typing import Any, Self

from ._likelihood import Likelihood


class PPCA(Likelihood):
    """Probabilistic principal component analysis (Tipping and Bishop 1999).

    Maximises p(X | W, sigma2) for rows x = mean + W z + noise, in closed form, or by gradients where values are missing
    (NaN). It is PCPCA with gamma = 0, for a single group of rows.

    Parameters
    ----------
    n_components : int, default 2
        Number of latent dimensions d, 1 <= d < D.
    scale : False, "group" or "pooled", default False
        Anything but False divides each feature by its standard deviation first.
    solver : {"auto", "eigh", "dual", "lanczos", "lbfgs", "adam"}, default "auto"
        For complete rows how the eigenvectors are found; `contrapca.which_solver` tells what "auto" picks. With missing
        values "auto" is "lbfgs". "adam" is the paper's own procedure (step size 0.01, decays 0.9 and 0.999), for
        comparison.
    mean : {"observed", "gls"}, default "observed"
        With missing values: each group's mean of what is observed, right where values are missing completely at random,
        or its generalised-least-squares mean given the model, right also where observed values decide what is missing.
    n_init : int, default 1
        With missing values: starts of the solver, the first from moments of what is observed, the others random. The
        best is kept.
    max_iter : int, default 1000
        Iterations of each start; a ConvergenceWarning where they do not suffice.
    tol : float, default 1e-6
        Bound of the relative gradient, of the relative change of the objective, and of the relative error of an
        identity that holds at the maximum; all three must hold, or at least to 1e-4 where rounding ends all progress.
    random_state : None, int, Generator or RandomState
        For the random starts.
    verbose : int, default 0
        1 shows the progress of gradient solvers on standard error.

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
    objective_history_ : ndarray of shape (1 + iterations,)
        The objective after each iteration of a gradient solver; of a closed form its value alone.
    init_objectives_ : ndarray of shape (n_init,)
        What each start reached: their spread tells whether there are several local maxima.
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

    def __init__(
        self,
        n_components: int = 2,
        *,
        scale: bool | str = False,
        solver: str = "auto",
        mean: str = "observed",
        n_init: int = 1,
        max_iter: int = 1000,
        tol: float = 1e-6,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.n_components = n_components
        self.scale = scale
        self.solver = solver
        self.mean = mean
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to the rows of `X`.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, D), or Moments
            NaN stands for missing values (not in sparse matrices).
        y : ignored

        Returns
        -------
        self
        """
        return self._fit(X, None, None, 0.0)
