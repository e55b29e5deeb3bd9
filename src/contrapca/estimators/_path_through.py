"""The path that a fitted model lies on: the same tables and settings, its gamma among the gammas."""

from __future__ import annotations

import numpy as np

from .._array import Array
from .._validation import Groups
from ..moments import has_holes, observed_columns
from ._functions import gamma_limits
from ._path_build import path_of_groups
from ._path_grids import DEFAULT_POINTS, OBSERVED_POINTS, default_cpca_grid, default_grid, default_observed_grid
from ._path_observed import observed_path_around
from .cpca import CPCA
from .path import ContrastPath
from .pcpca import PCPCA
from .ppca import PPCA

# How far column means may be from those of a fit, in standard deviations (GLS means of a fit with holes: further),
# and relative, for float32.
SAME_MEAN, SAME_GLS_MEAN, ROUNDING = 1e-3, 1.0, 1e-5


def path_through(
    model: PPCA | PCPCA | CPCA, groups: Groups, *, points: int | None = None, progress: bool = False
) -> tuple[ContrastPath, int]:
    """The path of a model's tables and settings, and the index of the model's gamma in it.

    With missing values the path starts from the model's own solution and may end early, where solutions do.

    Parameters
    ----------
    model : fitted PPCA, PCPCA or CPCA
        PPCA is PCPCA at gamma = 0.
    groups : Groups
        The tables that the model was fitted to, and a background.
    points : int, optional
        Gammas besides the model's; by default 40, and 20 where values are missing.
    progress : bool, default False
    """
    d, gamma = model.components_.shape[0], float(getattr(model, "gamma_", 0.0))
    check_same_tables(groups, model.mean_, model.background_mean_, gls=getattr(model, "mean", "") == "gls")
    method = "cpca" if isinstance(model, CPCA) else "pcpca"
    limit = getattr(model, "gamma_max_", np.nan)  # nan: fitted without a background
    if np.isnan(limit):
        limit = getattr(gamma_limits(*groups.tables, n_components=d, scale=model.scale), method)
    if any(map(has_holes, groups.tables)):
        gammas = _with(default_observed_grid(limit, points or OBSERVED_POINTS), gamma)
        path = observed_path_around(model, groups, gammas, limit, progress)
    else:
        grid = (default_grid if method == "pcpca" else default_cpca_grid)(limit, points or DEFAULT_POINTS)
        path = path_of_groups(groups, d, _with(grid, gamma), method, model.scale)
    return path, int(np.argmin(np.abs(path.gammas - gamma)))


def _with(grid: Array, gamma: float) -> Array:
    """The grid with a gamma among it, in place of one that is the same but for rounding; increasing."""
    return np.sort(np.append(grid[~np.isclose(grid, gamma, rtol=1e-9, atol=1e-12)], gamma))


def check_same_tables(groups: Groups, mean: Array, background_mean: Array | None, *, gls: bool = False) -> None:
    """Refuse other tables than those of a fit, as far as column means tell: what is shown would not be the fit."""
    for rows, fitted, name in zip(groups.tables, (mean, background_mean), ("X", "background"), strict=True):
        if rows.shape[1] != mean.size:
            raise ValueError(f"{name} has {rows.shape[1]} columns, and the fit was to {mean.size}.")
        if fitted is None:
            continue
        found, deviation = observed_columns(rows)
        allowed = (SAME_GLS_MEAN if gls else SAME_MEAN) * deviation + ROUNDING * np.abs(found)
        far = np.flatnonzero(np.abs(found - fitted) > allowed)
        if far.size:
            raise ValueError(
                f"{name} is not the table of the fit: the means of {far.size} columns differ, the first is "
                f"{groups.name(int(far[0]))}. Pass the tables that it was fitted to, prepared in the same way."
            )
