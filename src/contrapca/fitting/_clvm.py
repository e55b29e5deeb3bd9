"""CLVM: shared and foreground-specific dimensions in one model."""

from __future__ import annotations

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._checks import check_count, check_positive
from .._util.arrays import Array
from ..exceptions import warn
from ..gaussian import LatentGaussian
from ..moments import MAX_DENSE, Complete, Moments, mixed_background
from ..solvers import solve_clvm
from ..subspaces import principal_axes
from ._axes import automatic_rank
from ._fit import Fit

MAX_SHARED = 10  # shared dimensions that are chosen: the run time grows with them
LOOSEST = 1e-4  # above this relative gradient a fit has not converged, whatever `tol` is


def check_clvm(k: int, d: int, D: int, *, tol: float, max_iter: int) -> None:
    """Raise for settings that are impossible with D features."""
    check_count(k, "n_shared")
    check_count(d, "n_foreground", least=0)
    check_count(max_iter, "max_iter")
    check_positive(tol, "tol")
    if k + d >= D:
        raise ValueError(f"n_shared + n_foreground = {k + d} is not possible with n_features={D}: use fewer.")
    if D > MAX_DENSE:
        raise ValueError(f"{D} features are too many for CLVM (at most {MAX_DENSE}). Select some, or use PCPCA.")


def shared_rank(data: Complete, d: int) -> int:
    """The number of shared dimensions that the data suggest, beside d of the foreground alone."""
    room = data.groups.foreground.mean.size - d - 1
    return max(min(automatic_rank(data, d) - d, MAX_SHARED, room), 1)


def fit_clvm(data: Complete, k: int, d: int, *, tol: float, max_iter: int) -> Fit:
    """The maximum-likelihood fit with k shared and d foreground-specific dimensions; the latter are the axes shown."""
    groups = data.groups
    if not sum(map(Moments.total_variance, groups)) > 0:
        raise ValueError("The rows of each group are all the same, so there is no variance to model: pass more rows.")
    found = solve_clvm(groups, k, d, tol=tol, max_iter=max_iter)
    if not found.bounded:
        raise ValueError(
            f"The likelihood has no maximum: n_shared={k} and n_foreground={d} dimensions fit these rows exactly, "
            "so the noise variance goes to 0. Use fewer dimensions or more rows."
        )
    if found.residual > max(tol, LOOSEST):
        warn(
            f"CLVM did not converge in {found.history.size - 1} iterations: the relative gradient is "
            f"{found.residual:.1e} (tol={tol:g}). Raise max_iter, or use scale='pooled'.",
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
        units=data.units,
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
