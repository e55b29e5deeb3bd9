"""Questions about two tables that need no fitted estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from .._array import Array, is_sparse
from .._validation import check_gamma, check_n_components, check_option, split_groups
from ..exceptions import NonFiniteError
from ..objective import least_losses
from ..objective import reconstruction_loss as contrast_loss
from ..solvers import GammaLimits, SolverChoice, all_limits, top_eigenpairs
from ._fit import Collected, choose_solver, collect
from ._missing import observed_limits


def _collect(X: Any, background: Any, d: int, scale: bool | str, solver: str, name: str) -> Collected:
    check_option(scale, "scale", (False, "group", "pooled"))
    groups = split_groups(X, None, background, None, name=name, needs_background=True)
    return collect(groups, check_n_components(d, groups.foreground.shape[1]), scale, solver)


def gamma_limits(
    X: Any, background: Any, *, n_components: int = 2, scale: bool | str = False, solver: str = "auto"
) -> GammaLimits:
    """How strong a contrast these groups allow: exact limits and the sufficient bounds of the paper.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix of shape (n, D)
        The foreground.
    background : array-like, data frame or sparse matrix of shape (m, D)
    n_components : int, default 2
    scale, solver
        As for PCPCA.

    Returns
    -------
    GammaLimits
        In gamma' units, with `raw` beside them; prints as a table. `pcpca` and `cpca` are exact: fits succeed below and
        fail from there on. The others are the paper's sufficient bounds: `positive_definite`, `leading_positive` (safe
        for CPCA), `noise_positive` and the sharper `noise_positive_sharp` (safe for PCPCA). With missing values `pcpca`
        is only an upper bound, from which on fits certainly fail (`is_bound` is True), and the others are nan.

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import gamma_limits
    >>> rng = np.random.default_rng(0)
    >>> limits = gamma_limits(rng.normal(size=(90, 6)), background=rng.normal(size=(80, 6)), n_components=1)
    >>> limits.noise_positive <= limits.noise_positive_sharp <= limits.pcpca <= 1
    True
    """
    try:
        return all_limits(_collect(X, background, n_components, scale, solver, "gamma_limits").pair, n_components)
    except NonFiniteError as error:
        groups = split_groups(X, None, background, None, name="gamma_limits", needs_background=True)
        if not error.missing or any(map(is_sparse, groups.tables)):
            raise
    return observed_limits(groups, n_components, scale)


def which_solver(X: Any, *, background: Any = None) -> SolverChoice:
    """The solver that `solver="auto"` picks for these tables, and why; nothing is fitted.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix of shape (n, D)
        The foreground, or both groups stacked.
    background : array-like, data frame or sparse matrix of shape (m, D), optional

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import which_solver
    >>> print(which_solver(np.zeros((20, 500)), background=np.zeros((30, 500))))
    dual: more features (500) than rows (50): the problem reduces to order 50
    """
    groups = split_groups(X, None, background, None, name="which_solver", needs_background=False)
    return choose_solver(groups, "auto")


def reconstruction_loss(X: Any, components: Any, *, background: Any, gamma: float) -> float:
    """CPCA's geometric objective (the paper's Theorem 1) for any orthonormal components.

    ``(1/n) sum |x - V V'x|^2 - gamma (1/m) sum |y - V V'y|^2``, each group about its own mean.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix of shape (n, D)
    components : array-like of shape (d, D), orthonormal rows
    background : array-like, data frame or sparse matrix of shape (m, D)
    gamma : float

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import CPCA, reconstruction_loss
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(50, 4)) * [3, 2, 1, 1], rng.normal(size=(40, 4))
    >>> model = CPCA(1, gamma=0.5).fit(X, background=Y)
    >>> loss = reconstruction_loss(X, model.components_, background=Y, gamma=0.5)
    >>> np.isclose(loss, model.reconstruction_loss())
    np.True_
    >>> bool(loss < reconstruction_loss(X, np.eye(4)[3:], background=Y, gamma=0.5))  # the last feature is no good
    True
    """
    V = check_array(components, dtype=np.float64).T
    if not np.allclose(V.T @ V, np.eye(V.shape[1]), atol=1e-6):
        raise ValueError("components must have orthonormal rows, as components_ of a fitted estimator do.")
    pair = _collect(X, background, 1, False, "lanczos", "reconstruction_loss").pair
    if V.shape[0] != pair.n_features:
        raise ValueError(f"components have {V.shape[0]} features, the tables {pair.n_features}.")
    contrast = pair.contrast(_fixed_gamma(gamma))
    return contrast_loss(contrast, V, contrast.matmat(V))


def loss_by_components(X: Any, *, background: Any, gamma: float, max_components: int) -> Array:
    """The least reconstruction loss for 0, 1, ..., `max_components` components (the paper's Corollary).

    The loss with d components is (tr C - sum_{i<=d} lambda_i) / n. A further component lowers it only while
    its eigenvalue is positive, so the curve turns up where a strong contrast leaves no more directions.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix of shape (n, D)
    background : array-like, data frame or sparse matrix of shape (m, D)
    gamma : float
    max_components : int, less than D

    Returns
    -------
    loss : ndarray of shape (max_components + 1,)

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import loss_by_components
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(50, 4)) * [3, 2, 1, 1], rng.normal(size=(40, 4))
    >>> loss = loss_by_components(X, background=Y, gamma=0.5, max_components=3)
    >>> loss.shape, bool(np.all(np.diff(loss) < 0))
    ((4,), True)
    """
    pair = _collect(X, background, max_components, False, "auto", "loss_by_components").pair
    contrast = pair.contrast(_fixed_gamma(gamma))
    return least_losses(contrast, top_eigenpairs(contrast, max_components).values)


def _fixed_gamma(gamma: Any) -> float:
    value = check_gamma(gamma)
    if value is None:
        raise ValueError("gamma='auto' is for estimators; give a number here, for example one from gamma_limits.")
    return value
