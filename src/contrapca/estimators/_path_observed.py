"""Paths of rows with missing values: a gradient fit at every gamma, each started from the one beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from .._array import Array
from .._progress import Progress
from .._validation import Groups
from ..exceptions import UnboundedError
from ..moments import MaskedPair
from ._fit import Fit, two
from ._missing import Observed, Settings, attempt_fit, observe_groups
from ._path_grids import OBSERVED_POINTS, checked_grid, default_observed_grid, number_of_points
from .path import ContrastPath, table_facts

Start = tuple[Array, float]  # W and sigma2
SETTINGS = Settings(random_state=0)


def observed_path(groups: Groups, d: int, gammas: Any, scale: bool | str, progress: bool) -> ContrastPath:
    """From the smallest gamma upwards; one without a solution is an error."""
    data = observe_groups(groups, scale, SETTINGS)
    limit = data.limit("pcpca", d)
    points = number_of_points(gammas, OBSERVED_POINTS)
    grid = checked_grid(gammas, limit, "pcpca", d) if points is None else default_observed_grid(limit, points)
    with Progress("contrasts with missing values", grid.size, progress) as bar:
        fits, reason = _fits(data, groups, d, grid, limit, None, bar)
    if reason is not None:
        raise UnboundedError(float(grid[len(fits)]), limit, fits[-1].gamma if fits else None, d, reason)
    return _assembled(fits, limit, groups, scale)


def observed_path_around(model: Any, groups: Groups, gammas: Array, limit: float, progress: bool) -> ContrastPath:
    """From a fitted model outwards, about its means; gammas from the first without a solution on are left out.

    Parameters
    ----------
    model : fitted PPCA or PCPCA
    groups : Groups
    gammas : ndarray of shape (G,)
        Increasing, the model's among them.
    limit : float
        The upper bound of gamma.
    progress : bool
    """
    data, d = observe_groups(groups, model.scale, SETTINGS), model.components_.shape[0]
    data = _about(data, [model.mean_, model.background_mean_])
    gamma = float(getattr(model, "gamma_", 0.0))
    start = np.asarray(model.loadings_, dtype=np.float64), float(model.noise_variance_)
    above, below = gammas[gammas > gamma], gammas[gammas < gamma][::-1]
    with Progress("contrasts with missing values", gammas.size, progress) as bar:
        own, reason = _fits(data, groups, d, [gamma], limit, start, bar)
        if reason is not None:
            raise UnboundedError(gamma, limit, None, d, reason)
        fits = [_fits(data, groups, d, side, limit, _start(own[0]), bar)[0] for side in (below, above)]
    return _assembled([*fits[0][::-1], *own, *fits[1]], limit, groups, model.scale)


def _about(data: Observed, means: list[Array | None]) -> Observed:
    """The groups about other means, in original units; None keeps a group as it is."""
    scales = [scale for scale in data.scales if scale is not None]
    pairs = zip(data.pair.groups, means, scales, strict=True)
    masked = [group if mean is None else group.about(mean / scale) for group, mean, scale in pairs]
    found: list[Array] = [group.mean * scale for group, scale in zip(masked, scales, strict=True)]
    return replace(data, pair=MaskedPair(masked[0], masked[1]), means=two(found))


def _start(fit: Fit) -> Start:
    return fit.components * fit.lengths, fit.sigma2


def _fits(
    data: Observed, groups: Groups, d: int, gammas: Iterable[float], limit: float, start: Start | None, bar: Progress
) -> tuple[list[Fit], str | None]:
    """Fits one after the other, each from the solution before, up to the first that fails, and why it does."""
    fits: list[Fit] = []
    for gamma in gammas:
        bar.update(len(fits), f"gamma {gamma:.3g}")
        attempt = attempt_fit(data, groups, d, float(gamma), limit, start)
        if attempt.fit is None:
            return fits, attempt.reason
        fits.append(attempt.fit)
        start = _start(attempt.fit)
    return fits, None


def _assembled(fits: list[Fit], limit: float, groups: Groups, scale: bool | str) -> ContrastPath:
    d = fits[0].lengths.size
    stacked = np.hstack([fit.components for fit in fits])
    basis, triangle = np.linalg.qr(stacked) if stacked.shape[1] <= stacked.shape[0] else (np.eye(len(stacked)), stacked)
    last = fits[-1].source
    assert last.means[1] is not None
    assert last.scales[1] is not None
    return ContrastPath(
        gammas=np.array([fit.gamma for fit in fits]),
        limit=limit,
        eigenvalues=np.array([fit.eigenvalues for fit in fits]),
        sigma2=np.array([fit.sigma2 for fit in fits]),
        objective=np.array([fit.objective for fit in fits]),
        explained_variance=np.array([fit.variances[0] for fit in fits]),
        background_variance=np.array([fit.variances[1] for fit in fits]),
        totals=np.array([last.total_variance(k) for k in (0, 1)]),
        basis=basis,
        coordinates=triangle.reshape(triangle.shape[0], len(fits), d).transpose(1, 0, 2),
        lengths=np.array([fit.lengths for fit in fits]),
        mean=last.means[0],
        scale=last.scales[0],
        background_mean=last.means[1],
        background_scale=last.scales[1],
        method="pcpca",
        solved=len(fits),
        limit_is_bound=True,
        source=last,
        fits=fits,
        **table_facts(groups, scale),
    )
