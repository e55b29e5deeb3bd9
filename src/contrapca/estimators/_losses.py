"""CPCA's loss as a function of two tables and components, without a fitted estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from .._checks import check_fixed_gamma, check_n_components
from .._util.arrays import Array
from ..groups import Groups
from ..moments import Complete, Moments, collect, contrast, read
from ..objectives import least_losses
from ..objectives import reconstruction_loss as contrast_loss
from ..solvers import top_eigenpairs


def _groups(X: Any, background: Any, d: int, solver: str, name: str) -> Groups[Moments]:
    tables = read(X, None, background, name=name, needs_background=True)
    data = collect(tables, check_n_components(d, tables.n_features), False, solver)
    assert isinstance(data, Complete)
    return data.groups


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
    C = contrast(_groups(X, background, 1, "lanczos", "reconstruction_loss"), check_fixed_gamma(gamma))
    if V.shape[0] != C.n_features:
        raise ValueError(f"components have {V.shape[0]} features, the tables {C.n_features}.")
    return contrast_loss(C, V, C.matmul(V))


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
    C = contrast(_groups(X, background, max_components, "auto", "loss_by_components"), check_fixed_gamma(gamma))
    return least_losses(C, top_eigenpairs(C, max_components).values)
