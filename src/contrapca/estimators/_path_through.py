"""The path that a fitted model lies on: the same tables and settings, its gamma among the gammas."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._array import Array, Rows, is_sparse
from .._validation import Groups
from ..exceptions import UnboundedError, warn
from ._functions import gamma_limits
from ._path_build import (
    DEFAULT_POINTS,
    OBSERVED_POINTS,
    default_cpca_grid,
    default_grid,
    default_observed_grid,
    path_of_groups,
)
from .cpca import CPCA
from .path import ContrastPath
from .pcpca import PCPCA
from .ppca import PPCA


def path_through(
    model: PPCA | PCPCA | CPCA, groups: Groups, *, points: int | None = None, progress: bool = False
) -> tuple[ContrastPath, int]:
    """The path of a model's tables and settings, and the index of the model's gamma in it.

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
    _check_same_rows(model, groups.foreground)
    method = "cpca" if isinstance(model, CPCA) else "pcpca"
    limit = getattr(model, "gamma_max_", np.nan)  # nan: fitted without a background
    if np.isnan(limit):
        limit = getattr(gamma_limits(*groups.tables, n_components=d, scale=model.scale), method)
    if any(map(has_holes, groups.tables)):
        grid = default_observed_grid(limit, points or OBSERVED_POINTS)
    else:
        grid = (default_grid if method == "pcpca" else default_cpca_grid)(limit, points or DEFAULT_POINTS)

    def path(gammas: Array) -> ContrastPath:
        return path_of_groups(groups, d, _with(gammas, gamma), method, model.scale, progress=progress)

    try:
        found = path(grid)
    except UnboundedError as error:
        if error.works is None or error.works < gamma:
            raise
        warn(f"With these missing values there is no solution at gamma = {error.gamma:.4g}: the path ends before.")
        found = path(grid[grid <= error.works])
    return found, int(np.argmin(np.abs(found.gammas - gamma)))


def has_holes(rows: Rows) -> bool:
    """Whether values are missing; never so in sparse tables."""
    return not is_sparse(rows) and bool(np.isnan(rows).any())


def _with(grid: Array, gamma: float) -> Array:
    """The grid with a gamma among it, in place of one that is the same but for rounding."""
    return np.append(grid[~np.isclose(grid, gamma, rtol=1e-9, atol=1e-12)], gamma)


def _check_same_rows(model: Any, rows: Rows) -> None:
    """Refuse other rows than those of the fit: what is shown would not be the model."""
    if rows.shape[1] != model.mean_.size:
        raise ValueError(f"X has {rows.shape[1]} columns, and the model was fitted to {model.mean_.size}.")
    if has_holes(rows):
        return  # means with missing values are estimates of their own
    mean = np.asarray(rows.mean(axis=0)).ravel()
    if not np.allclose(mean, model.mean_, rtol=1e-4, atol=1e-4 * np.abs(model.mean_).max()):
        raise ValueError("X is not the table that the model was fitted to: its column means differ from model.mean_.")
