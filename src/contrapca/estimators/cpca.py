"""Contrastive PCA: directions only, no probability model."""

from __future__ import annotations

from ._contrastive import ContrastiveEstimator
from ._uncertainty import DirectionPosterior


class CPCA(DirectionPosterior, ContrastiveEstimator):
    """Contrastive principal component analysis (Abid et al. 2018).

    Maximises tr V'(cov_X - gamma cov_Y) V over V with orthonormal columns: much variance in the
    foreground, little in the background. There is no likelihood, so nothing to score or to sample.

    Parameters
    ----------
    n_components : int, default 2
        Number of directions d, 1 <= d < D.
    gamma : float or "auto", default "auto"
        Strength of the contrast (elsewhere called alpha), 0 or more; 0 is PCA of the foreground. "auto" takes 0.97 of
        PCPCA's exact limit, which makes the two methods agree on the directions.
    background_label : optional
        Rows with `y == background_label` are the background, for stacked data in pipelines and searches.
    scale : False, "group" or "pooled", default False
        "group" divides each group by its own standard deviations (new rows by the foreground's), "pooled" all rows by
        the within-group ones.
    solver : {"auto", "eigh", "dual", "lanczos"}, default "auto"
        How the eigenvectors are found; `contrapca.which_solver` tells what "auto" picks.

    Attributes
    ----------
    components_ : ndarray of shape (d, D)
        V', unit rows, the entry of largest magnitude positive.
    eigenvalues_ : ndarray of shape (d,)
        Largest eigenvalues of cov_X - gamma cov_Y: `explained_variance_ - gamma_ * background_variance_`.
    explained_variance_, background_variance_ : ndarray of shape (d,)
        Variance (ddof 0) of each group along each component.
    explained_variance_ratio_, background_variance_ratio_ : ndarray of shape (d,)
        The same as shares of each group's total variance.
    mean_, background_mean_, scale_, background_scale_ : ndarray of shape (D,)
    feature_variance_, background_feature_variance_ : ndarray of shape (D,)
    gamma_, gamma_raw_ : float
        What was used, and the same in raw units, gamma n / m.
    gamma_max_ : float
        The exact limit: from it on fewer than d eigenvalues are positive. May be inf.
    n_effective_ : float
        n (1 - gamma).
    solver_ : SolverChoice
        Which solver ran and why.
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import CPCA
    >>> rng = np.random.default_rng(0)
    >>> controls = rng.normal(size=(200, 4)) * [5, 1, 1, 1]
    >>> cases = rng.normal(size=(200, 4)) * [5, 3, 1, 1]
    >>> CPCA(n_components=1).fit(cases, background=controls).components_.argmax()
    np.int64(1)
    """

    _method = "cpca"
