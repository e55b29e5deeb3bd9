"""Paths of incomplete rows: a gradient fit at every gamma, each started from its neighbour."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from .._util.arrays import Array
from .._util.progress import Progress
from ..estimators import WithStrength
from ..exceptions import UnboundedError
from ..fitting import AUTO_FRACTION, Fit, Latents, Settings, Start, attempt_fit, background_model, upper_bound
from ..gaussian import LatentGaussian
from ..methods import PCPCA_METHOD
from ..moments import Incomplete
from ._grids import MASKED_POINTS, checked_grid, number_of_points, with_gamma
from ._path import ContrastPath, stacked

SETTINGS = Settings(random_state=0)
# Of a path that is only drawn: variances are right to some 5e-4, directions to more, in a sixth of the time.
DRAWN = replace(SETTINGS, tol=3e-3)


def masked_path(
    data: Incomplete, estimator: WithStrength, latents: Latents, gammas: Any, *, limit: float | None, progress: bool
) -> ContrastPath:
    """Fit from the smallest gamma upwards; a gamma without a solution is an error."""
    limit = upper_bound(data, latents.rank) if limit is None else limit
    grid = _grid(gammas, limit, latents)
    with Progress("contrasts with missing values", grid.size, progress) as bar:
        fits, reason = _fits(data, latents, grid, limit, None, SETTINGS, bar)
    if reason is not None:
        raise UnboundedError(
            float(grid[len(fits)]), limit, fits[-1].gamma if fits else None, latents.rank, reason, latents.parameter
        )
    return _assembled(fits, limit, estimator, latents, background_model(data, fits[-1], SETTINGS))


def _grid(gammas: Any, limit: float, latents: Latents) -> Array:
    points = number_of_points(gammas, MASKED_POINTS)
    if points is None:
        return checked_grid(gammas, limit, PCPCA_METHOD, latents)
    return PCPCA_METHOD.grid(AUTO_FRACTION * limit, points)


def masked_path_around(
    data: Incomplete, fit: Fit, estimator: WithStrength, gammas: Any, *, limit: float | None, progress: bool
) -> ContrastPath:
    """Fit outwards from an existing fit, centred by its means; stop at the first gamma without a solution.

    Parameters
    ----------
    data : Incomplete
        The data of the fit.
    fit : Fit
    estimator : PCPCA or ContraPCA
    gammas : int, optional
        How many besides the gamma of the fit.
    limit : float or None
        The upper bound on gamma, if known.
    progress : bool
    """
    assert fit.model is not None
    latents = fit.latents
    known = replace(data.units, foreground=fit.units.foreground) if not fit.units.backgrounds else fit.units
    data = data.about(known.map(lambda units: units.origin))
    limit = upper_bound(data, latents.rank) if limit is None else limit
    grid = with_gamma(_grid(gammas, limit, latents), fit.gamma)
    above, below = grid[grid > fit.gamma], grid[grid < fit.gamma][::-1]
    with Progress("contrasts with missing values", grid.size, progress) as bar:
        own, reason = _fits(data, latents, [fit.gamma], limit, (fit.model.W, fit.model.sigma2), DRAWN, bar)
        if reason is not None:
            raise UnboundedError(fit.gamma, limit, None, latents.rank, reason, latents.parameter)
        sides = [_fits(data, latents, side, limit, _start(own[0]), DRAWN, bar)[0] for side in (below, above)]
    path = _assembled([*sides[0][::-1], *own, *sides[1]], limit, estimator, latents, fit.background_model)
    # With missing values they depend on the model: shares are then the fit's. PPCA knows the cases' only.
    return replace(path, totals=fit.totals) if len(fit.totals) == len(path.totals) else path


def _start(fit: Fit) -> Start:
    assert fit.model is not None
    return fit.model.W, fit.model.sigma2


def _fits(
    data: Incomplete,
    latents: Latents,
    gammas: Iterable[float],
    limit: float,
    start: Start | None,
    settings: Settings,
    bar: Progress,
) -> tuple[list[Fit], str | None]:
    """Fit one gamma after the other, each started from the previous solution, until one fails; also return why."""
    fits: list[Fit] = []
    for gamma in gammas:
        bar.update(len(fits), f"gamma {gamma:.3g}")
        attempt = attempt_fit(data, latents, float(gamma), settings, limit, start)
        if attempt.fit is None:
            return fits, attempt.reason
        fits.append(attempt.fit)
        start = _start(attempt.fit)
    return fits, None


def _assembled(
    fits: list[Fit], limit: float, estimator: WithStrength, latents: Latents, background: LatentGaussian | None
) -> ContrastPath:
    last, models = fits[-1], [fit.model for fit in fits if fit.model is not None]
    D, G, k = last.components.shape[0], len(fits), latents.n_shown
    frames = np.hstack([*(fit.components for fit in fits), *(model.W for model in models)])
    # A basis of the components and loadings of all gammas.
    basis = np.linalg.svd(frames, full_matrices=False)[0] if frames.shape[1] < D else np.eye(D)
    return ContrastPath(
        gammas=np.array([fit.gamma for fit in fits]),
        gamma_max=limit,
        gamma_max_is_bound=True,
        auto_gamma=latents.auto_fraction * limit,
        eigenvalues=np.array([fit.contrasted for fit in fits]),
        noise_variance=np.array([model.sigma2 for model in models]),
        objective=np.array([fit.objective for fit in fits]),
        variances=stacked([fit.variances for fit in fits]),
        totals=last.totals,
        subspace_variance=stacked([fit.inside for fit in fits]),
        axis_ratios=np.array([fit.axis_ratios for fit in fits]) if latents.contrast_axes else None,
        basis=basis,
        coordinates=(basis.T @ frames[:, : G * k]).reshape(-1, G, k).transpose(1, 0, 2),
        loading_coordinates=(basis.T @ frames[:, G * k :]).reshape(basis.shape[1], G, -1).transpose(1, 0, 2),
        units=last.units,
        estimator=clone(estimator),
        solver=last.solver,
        solved=len(fits),
        background_model=background,
    )
