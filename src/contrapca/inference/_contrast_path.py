"""From two tables to a path: one pass over the rows, then cheap solutions."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .._util.arrays import Array
from .._util.progress import Progress
from ..contrast import (
    AUTO_FRACTION,
    Fit,
    LatentGaussian,
    Latents,
    PathSpectrum,
    Settings,
    at_least_short,
    canonical_sign_of,
    complete_background_model,
    path_around_axes,
    ratio_axes,
    show_solution,
    variance_inside,
)
from ..contrast import (
    TOLERANCE as PATH_TOLERANCE,
)
from ..data import Groups, Tables, refuse, study_of, tables_of
from ..estimators import ContrastSolver, Likelihood, unfitted
from ..exceptions import InfeasibleGammaError, RankError, UnboundedError
from ..missing import Incomplete, Start, attempt_fit, incomplete_background_model, upper_bound
from ..moments import Complete, Moments, check_solver_of, factors
from ._path import ContrastPath, stacked

DEFAULT_POINTS, MASKED_POINTS = 40, 20  # gammas of a path; fewer where each is a gradient fit
SETTINGS = Settings(random_state=0)

# Of a path that is only drawn: variances are right to some 5e-4, directions to more, in a sixth of the time.
DRAWN = replace(SETTINGS, tol=3e-3)


def contrast_path(
    estimator: ContrastSolver,
    X: Any,
    *,
    background: Any = None,
    gammas: Any = None,
    progress: bool = True,
) -> ContrastPath:
    """Contrasts at many gammas, from one pass over the rows and a few exact solutions; the others are certified.

    Parameters
    ----------
    estimator : PCPCA, ContraPCA, CPCA or RatioPCA
        Fitted or not: only its parameters are used, but not its gamma.
    X : Study, or array-like, data frame or sparse matrix of shape (n, D), or Moments
        A `Study`, whose covariates are to be regressed out before (`regress_out`), or the foreground. With missing
        values (PCPCA only), every gamma is a gradient fit, started from the previous one.
    background : array-like, data frame or sparse matrix of shape (m, D), or Moments, or a dict of them, optional
        If `X` is not a Study.
    gammas : array-like of shape (G,) or int, optional
        Values of gamma', all below the limit, or how many: by default 40, or 20 with missing values. The default values
        run from 0 to just below the limit and are dense near it; for CPCA, whose limit may be infinite, they are 0 and
        a geometric sequence from 0.01 to at most 1000. For RatioPCA gamma is 1 / (1 + ridge), so that a path leads from
        PCA (0) to the pure ratio (1, if the background varies wherever the foreground does).
    progress : bool, default True
        Show a progress bar on a terminal or in a notebook if it takes longer than two seconds.

    Returns
    -------
    ContrastPath

    Examples
    --------
    >>> from contrapca import PCPCA, contrast_path
    >>> from contrapca.datasets import make_hidden_clusters
    >>> data = make_hidden_clusters(random_state=0)
    >>> path = contrast_path(PCPCA(2), data.foreground, background=data.background)
    >>> len(path), path.model(path.gammas[20]).transform(data.foreground).shape
    (40, (400, 2))
    """
    check_estimator(estimator, "contrast_path")
    study = study_of(X, background, "contrast_path")
    refuse(study, "contrast_path", covariates="pass regress_out(study)")
    check_solver_of(study.rows.foreground, estimator.solver)
    tables = tables_of(study, allow_missing=estimator._takes_missing)
    return path_of_data(estimator._collected(tables), estimator, gammas, progress=progress)


def path_through(
    model: ContrastSolver, tables: Tables, *, points: int | None, tolerance: float, progress: bool
) -> tuple[ContrastSolver, ContrastPath]:
    """A fitted model, and the path through it, with its tables and settings.

    A model that is not fitted yet is fitted here, so the rows are read only once. With missing values the path starts
    from the model's own solution and ends early if there are no more solutions.
    """
    if not model._contrasts or model.__sklearn_is_fitted__():
        check_is_fitted(model)
        model = model._as_fitted()
        data = model._data_again(model._prepared(tables))
    else:
        model._check_parameters()
        model = clone(model)
        data, fit = model._solved(tables)
        model._with_fit(fit)
        if isinstance(data, Incomplete) and not tables.incomplete:  # because a gradient solver was requested
            data = model._data_again(model._prepared(tables))
    fit, alike = model.fit_, model._path_estimator()
    # Reuse a limit that was computed for the model.
    if isinstance(data, Incomplete):
        return model, masked_path_around(data, fit, alike, points, limit=fit.limit, progress=progress)
    limit = None if fit.limit_is_bound else fit.limit
    path = path_of_data(data, alike, points, gamma=fit.gamma, limit=limit, tolerance=tolerance, progress=progress)
    return model, path


def check_estimator(estimator: Any, name: str) -> None:
    """Raise if the estimator has neither a gamma nor a ridge."""
    if not (isinstance(estimator, ContrastSolver) and estimator._contrasts):
        raise TypeError(
            f"{name} takes ContraPCA, PCPCA, CPCA, SparseCPCA or RatioPCA as its first argument; got "
            f"{type(estimator).__name__}."
        )
    estimator._check_parameters()


def path_of_data(
    data: Complete | Incomplete,
    estimator: ContrastSolver,
    gammas: Any,
    *,
    gamma: float | None = None,
    limit: float | None = None,
    tolerance: float = PATH_TOLERANCE,
    progress: bool = True,
) -> ContrastPath:
    """`contrast_path` of data in model units.

    A default grid includes `gamma`. `limit` is that of gamma, if known; `tolerance` is for residuals of complete rows,
    relative to the largest eigenvalue.
    """
    estimator = estimator._settled(data)
    latents = estimator._latents()
    if isinstance(data, Incomplete):
        return _masked_path(data, estimator, latents, gammas, limit=limit, progress=progress)
    if limit is None:
        limit, _ = estimator._limit(data.groups, latents.rank)
    if limit == 0:
        raise RankError(latents.rank, parameter=latents.parameter)
    grid = _grid(gammas, DEFAULT_POINTS, limit, limit, estimator, latents, gamma)
    while True:
        try:
            return _solved_path(data, estimator, latents, grid, limit, tolerance)
        except InfeasibleGammaError as error:  # so close to the limit that rounding decides
            grid = grid[grid < error.gamma]
            if not _is_number(gammas) or not grid.size:
                raise


def _solved_path(
    data: Complete, estimator: ContrastSolver, latents: Latents, gammas: Array, limit: float, tolerance: float
) -> ContrastPath:
    """The path of complete rows."""
    groups, r = data.groups, latents.rank
    found, totals = estimator._path(groups, gammas, r, tolerance), groups.map(Moments.total_variance)
    axes = ratio_axes(groups, latents.n_shown) if latents.axes == "ratio" else None
    if axes is not None:
        found = path_around_axes(found, groups, gammas, axes[1])
    basis, coordinates = _in_features(data, found)
    G, k, size = gammas.size, latents.n_shown, coordinates.shape[1]
    sigma2, objective, eigenvalues = np.full(G, np.nan), np.empty(G), np.empty((G, k))
    components, loadings = np.empty((G, size, k)), np.empty(coordinates.shape)
    ratios = np.empty((G, k)) if latents.contrast_axes else None
    variances: list[Groups[Array]] = []
    inside: list[Groups[float]] = []
    # Vectors are in the coordinates of the basis: none of what follows depends on the basis, or on D.
    for g, (C, solution, covariances) in enumerate(estimator._along(found, groups, gammas)):
        gamma, small = gammas[g], found.coordinates[g]
        if isinstance(estimator, Likelihood) and not solution.feasible:
            raise estimator._refusal(float(gamma), limit, r, latents.parameter)
        objective[g] = estimator._objective(C, solution)
        if isinstance(estimator, Likelihood):
            sigma2[g] = solution.sigma2
        known = None
        if axes is not None:
            solution, known = at_least_short(solution), (axes[0], small.T @ (found.basis.T @ axes[1]))
        shown = show_solution(latents, solution, covariances, groups, known)
        components[g] = coordinates[g] @ shown.directions
        loadings[g] = (coordinates[g] * solution.lengths) @ shown.rotation
        variances.append(shown.variances)
        inside.append(covariances.map(partial(variance_inside, solution)))
        if ratios is not None:
            ratios[g] = shown.ratios
        along = np.tensordot(factors(groups, gamma), list(shown.variances), 1)
        eigenvalues[g] = along if latents.contrast_axes else found.values[g, :k]
    lifted = basis @ np.moveaxis(components, 0, 1).reshape(size, -1)  # at once: several times faster than one by one
    signs = canonical_sign_of(lifted).reshape(G, 1, k)
    loadings[..., :k] *= signs
    return ContrastPath(
        gammas=gammas,
        gamma_max=limit,
        gamma_max_is_bound=False,
        auto_gamma=latents.auto_fraction * limit if isinstance(estimator, Likelihood) else np.nan,
        eigenvalues=eigenvalues,
        noise_variance=sigma2,
        objective=objective,
        variances=stacked(variances),
        totals=totals,
        subspace_variance=stacked(inside),
        axis_ratios=ratios,
        basis=basis,
        coordinates=components * signs,
        loading_coordinates=loadings,
        scaling=data.scaling,
        estimator=unfitted(estimator),
        solver=data.choice,
        filling=data.filling,
        solved=int(found.solved.sum()),
        background_model=complete_background_model(data, r) if isinstance(estimator, Likelihood) else None,
    )


def _in_features(data: Complete, found: PathSpectrum) -> tuple[Array, Array]:
    """Basis and coordinates with respect to the features."""
    basis, coordinates = found.basis, found.coordinates
    if data.basis is not None:  # reduced coordinates (F7)
        basis, triangle = np.linalg.qr(data.basis.vectors(basis))
        coordinates = triangle @ coordinates
        coordinates = coordinates / np.linalg.norm(coordinates, axis=1, keepdims=True)
    return basis, coordinates


def _masked_path(
    data: Incomplete, estimator: ContrastSolver, latents: Latents, gammas: Any, *, limit: float | None, progress: bool
) -> ContrastPath:
    """Fit from the smallest gamma upwards; a gamma without a solution is an error."""
    limit = upper_bound(data, latents.rank) if limit is None else limit
    grid = _grid(gammas, MASKED_POINTS, limit, AUTO_FRACTION * limit, estimator, latents)
    with Progress("contrasts with missing values", grid.size, progress) as bar:
        fits, reason = _fits(data, latents, grid, limit, None, SETTINGS, bar)
    if reason is not None:
        raise UnboundedError(
            float(grid[len(fits)]), limit, fits[-1].gamma if fits else None, latents.rank, reason, latents.parameter
        )
    return _assembled(fits, limit, estimator, latents, incomplete_background_model(data, fits[-1], SETTINGS))


def _grid(
    gammas: Any,
    points: int,
    limit: float,
    until: float,
    estimator: ContrastSolver,
    latents: Latents,
    gamma: float | None = None,
) -> Array:
    """The given gammas, checked and sorted, or a default grid up to `until` that includes `gamma`."""
    if not _is_number(gammas):
        grid: Array = np.unique(np.asarray(gammas, dtype=np.float64).ravel())
        if grid.size == 0 or not np.isfinite(grid).all() or grid[0] < 0:
            raise ValueError("gammas must contain at least one value, all finite and 0 or more.")
        if grid[-1] >= limit:
            raise estimator._refusal(float(grid[-1]), limit, latents.rank, latents.parameter)
        return grid
    points = points if gammas is None else int(gammas)
    if points < 2:
        raise ValueError(
            f"gammas={points}: an integer is the number of values, at least 2. For a single value pass [{points}.0]."
        )
    grid = estimator._grid(until, points)
    # A gamma replaces one that is equal up to rounding.
    return grid if gamma is None else np.sort(np.append(grid[~np.isclose(grid, gamma, rtol=1e-9, atol=1e-12)], gamma))


def _is_number(gammas: Any) -> bool:
    """Whether a grid is given by its number of values, or not at all."""
    return gammas is None or isinstance(gammas, numbers.Integral)


def masked_path_around(
    data: Incomplete, fit: Fit, estimator: ContrastSolver, gammas: Any, *, limit: float | None, progress: bool
) -> ContrastPath:
    """Fit outwards from an existing fit, centred by its means; stop at the first gamma without a solution.

    `gammas` is how many besides the gamma of the fit; `limit` is the upper bound on gamma, if known.
    """
    assert fit.model is not None
    latents = fit.latents
    known = replace(data.scaling, foreground=fit.scaling.foreground) if not fit.scaling.backgrounds else fit.scaling
    data = data.about(known.map(lambda scaling: scaling.origin))
    limit = upper_bound(data, latents.rank) if limit is None else limit
    grid = _grid(gammas, MASKED_POINTS, limit, AUTO_FRACTION * limit, estimator, latents, fit.gamma)
    above, below = grid[grid > fit.gamma], grid[grid < fit.gamma][::-1]
    with Progress("contrasts with missing values", grid.size, progress) as bar:
        own, reason = _fits(data, latents, [fit.gamma], limit, (fit.model.W, fit.model.sigma2), DRAWN, bar)
        if reason is not None:
            raise UnboundedError(fit.gamma, limit, None, latents.rank, reason, latents.parameter)
        assert own[0].model is not None
        start = own[0].model.W, own[0].model.sigma2
        sides = [_fits(data, latents, side, limit, start, DRAWN, bar)[0] for side in (below, above)]
    path = _assembled([*sides[0][::-1], *own, *sides[1]], limit, estimator, latents, fit.background_model)
    # With missing values they depend on the model: shares are then the fit's. PPCA knows the cases' only.
    return replace(path, totals=fit.totals) if len(fit.totals) == len(path.totals) else path


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
        assert attempt.fit.model is not None
        fits.append(attempt.fit)
        start = attempt.fit.model.W, attempt.fit.model.sigma2
    return fits, None


def _assembled(
    fits: list[Fit], limit: float, estimator: ContrastSolver, latents: Latents, background: LatentGaussian | None
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
        scaling=last.scaling,
        estimator=unfitted(estimator),
        solver=last.solver,
        solved=len(fits),
        background_model=background,
    )
