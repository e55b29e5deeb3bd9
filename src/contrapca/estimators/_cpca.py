"""Contrastive PCA: directions only, no probability model."""

from __future__ import annotations

from typing import Any

from ..contrast import solve_cpca, solve_path
from ._base import Contrastive


class CPCA(Contrastive):
    """Contrastive principal component analysis (Abid et al. 2018).

    Maximises tr V'(cov_X - gamma cov_Y) V over V with orthonormal columns: high variance in the foreground, low
    variance in the background. There is no likelihood, so it cannot score or sample.

    Parameters
    ----------
    n_components : int, default 2
        Number of directions d, 1 <= d < D.
    gamma : float or "auto", default "auto"
        Strength of the contrast (called alpha elsewhere), 0 or more; 0 is PCA of the foreground. "auto" takes the
        gamma whose contrast is most reproducible: axes of one half of the rows along which the cases of the other half
        vary more than its controls, and that the other half finds again. It needs rows, not Moments. Blocks of
        a `Study` are in one half as a whole; each group needs at least 2.
        Several backgrounds share it by their rows.
    background_label, scale
        As for `PCPCA`.
    solver : {"auto", "eigh", "dual", "lanczos"}, default "auto"
        How the eigenvectors are computed; `solver_` says what "auto" chose and why.

    Attributes
    ----------
    components_ : ndarray of shape (d, D)
        V': unit vectors whose entry of largest magnitude is positive.
    eigenvalues_ : ndarray of shape (d,)
        Largest eigenvalues of cov_X - gamma cov_Y: `explained_variance_ - gamma_ * background_variance_`.
    explained_variance_, background_variance_, explained_variance_ratio_, background_variance_ratio_, mean_, scale_
        As for `PCPCA`, as are `background_mean_`, `background_scale_`, `feature_variance_`,
        `n_effective_`, `solver_` and `n_iter_`.
    gamma_ : float
        The gamma that was used.
    gamma_max_ : float
        With gamma="auto", or from a path: the exact limit, at or above which fewer than d eigenvalues are positive. May
        be inf. `contrapca.gamma_limits` computes it for any table.

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

    _known_as, _source = "contrastive principal component analysis (CPCA)", "Abid 2018"

    def __init__(
        self,
        n_components: int = 2,
        *,
        gamma: float | str = "auto",
        background_label: Any = None,
        scale: str | None = None,
        solver: str = "auto",
    ):
        self.n_components = n_components
        self.gamma = gamma
        self.background_label = background_label
        self.scale = scale
        self.solver = solver

    _path = staticmethod(solve_path)
    _solution = staticmethod(solve_cpca)
