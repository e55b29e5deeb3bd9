"""From two tables to a path: one pass over the rows, then cheap solutions."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from .._array import Array, is_sparse
from .._progress import Progress
from .._validation import Groups, check_n_components, check_option, default_names, split_groups
from ..exceptions import InfeasibleGammaError, NonFiniteError, RankError, UnboundedError
from ..objective import contrastive_variance, relative_log_likelihood
from ..solvers import PathSpectrum, canonical_signs, cpca_limit, pcpca_limit, solve_path, solve_pcpca
from ._fit import AUTO_FRACTION, Collected, Fit, collect
from ._missing import Settings, attempt_fit, observe_groups
from .path import ContrastPath

DEFAULT_POINTS, OBSERVED_POINTS = 40, 20  # gammas of a path; fewer where each is a gradient fit
# The default grid: limit * (1 - t^BEND) for t from 1 down to (almost) 0, so that points gather near the limit.
BEND, CLOSEST = 1.7, 1e-3
CPCA_LEAST, CPCA_LARGEST = 0.01, 1000.0  # of gamma above 0 in CPCA's default grid; its limit may be infinite


def default_grid(limit: float, points: int = DEFAULT_POINTS) -> Array:
    """`points` gammas in [0, limit), dense near the limit."""
    t = np.linspace(1.0, CLOSEST ** (1 / BEND), points)
    return limit * (1 - t**BEND)


def default_observed_grid(bound: float, points: int = OBSERVED_POINTS) -> Array:
    """`points` gammas below an upper bound of the limit, where values are missing."""
    return default_grid(AUTO_FRACTION * bound, points)


def default_cpca_grid(limit: float, points: int = DEFAULT_POINTS) -> Array:
    """0 and `points` - 1 gammas in equal ratios up to (almost) the limit, or to 1000."""
    top = (1 - CLOSEST) * min(limit, CPCA_LARGEST)
    return np.concatenate([[0.0], np.geomspace(min(CPCA_LEAST, top / 10), top, points - 1)])


def contrast_path(
    X: Any,
    *,
    background: Any,
    n_components: int = 2,
    gammas: Any = None,
    method: str = "pcpca",
    scale: bool | str = False,
    solver: str = "auto",
    progress: bool = False,
) -> ContrastPath:
    """Contrasts at many gammas: one pass over the rows, a few exact solutions, the others certified in their span.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix of shape (n, D)
        The foreground. With missing values (PCPCA only) every gamma is a gradient fit, started from the one before.
    background : array-like, data frame or sparse matrix of shape (m, D)
    n_components : int, default 2
    gammas : array-like of shape (G,) or int, optional
        gamma', all below the limit; or how many, by default 40, and 20 with missing values: from 0 to (almost) the
        limit, dense near it; for CPCA, whose limit may be infinite, 0 and the others in equal ratios from 0.01 to at
        most 1000.
    method : {"pcpca", "cpca"}, default "pcpca"
    scale, solver
        As for PCPCA.
    progress : bool, default False
        Show how far it is, where values are missing (complete tables take seconds).

    Returns
    -------
    ContrastPath

    Examples
    --------
    >>> from contrapca import contrast_path
    >>> from contrapca.datasets import make_hidden_clusters
    >>> data = make_hidden_clusters(random_state=0)
    >>> path = contrast_path(data.foreground, background=data.background)
    >>> len(path), path.model(path.gammas[20]).transform(data.foreground).shape
    (40, (400, 2))
    """
    check_option(method, "method", ("pcpca", "cpca"))
    check_option(scale, "scale", (False, "group", "pooled"))
    groups = split_groups(X, None, background, None, name="contrast_path", needs_background=True)
    d = check_n_components(n_components, groups.foreground.shape[1])
    return path_of_groups(groups, d, gammas, method, scale, solver, progress)


def path_of_groups(
    groups: Groups,
    d: int,
    gammas: Any,
    method: str,
    scale: bool | str,
    solver: str = "auto",
    progress: bool = False,
) -> ContrastPath:
    """`contrast_path` of checked rows."""
    try:
        data = collect(groups, d, scale, solver)
    except NonFiniteError as error:
        if not error.missing or method == "cpca" or any(map(is_sparse, groups.tables)):
            raise
        return _observed_path(groups, d, gammas, scale, progress)
    limit = pcpca_limit(data.pair, d) if method == "pcpca" else cpca_limit(data.pair, d)
    if limit == 0:
        raise RankError(d)
    grid = _grid(gammas, limit, method, d)
    return _solved_path(data, grid, d, method, limit, _facts(groups, scale))


def _grid(gammas: Any, limit: float, method: str, d: int) -> Array:
    """Checked gammas, increasing."""
    points = _points(gammas, DEFAULT_POINTS)
    if points is not None:
        return (default_grid if method == "pcpca" else default_cpca_grid)(limit, points)
    grid = np.unique(np.asarray(gammas, dtype=np.float64).ravel())
    if grid.size == 0 or not np.isfinite(grid).all() or grid[0] < 0:
        raise ValueError("gammas must be finite numbers, 0 or more, at least one.")
    if grid[-1] >= limit:
        raise InfeasibleGammaError(method, float(grid[-1]), limit, d, False)
    return grid


def _points(gammas: Any, default: int) -> int | None:
    """How many gammas a default grid shall have; None where the gammas themselves are given."""
    if gammas is not None and not isinstance(gammas, numbers.Integral):
        return None
    points = default if gammas is None else int(gammas)
    if points < 2:
        raise ValueError(
            f"gammas={points} as a whole number says how many: 2 or more. For one value give [{points}.0]."
        )
    return points


def _facts(groups: Groups, scale: bool | str) -> dict[str, Any]:
    """What a path keeps of the tables besides numbers."""
    D = groups.foreground.shape[1]
    return {
        "feature_names": groups.names or default_names(D),
        "named": groups.names is not None and groups.text_names,
        "scaling": scale,
        "dtype": str(groups.foreground.dtype),
    }


def _solved_path(
    data: Collected, gammas: Array, d: int, method: Any, limit: float, facts: dict[str, Any]
) -> ContrastPath:
    """The path of complete rows."""
    pair = data.pair
    for scatter in data.watched_rows():
        _ = scatter.fingerprint  # of the rows as they are now
    found = solve_path(pair, gammas, d)
    sigma2, objective = np.full(gammas.size, np.nan), np.empty(gammas.size)
    lengths = np.ones((gammas.size, d))
    for g, gamma in enumerate(gammas):
        contrast = pair.contrast(float(gamma))
        values = found.values[g] * pair.foreground.weight
        if method == "cpca":
            objective[g] = contrastive_variance(np.eye(d), np.diag(values))
            continue
        solution = solve_pcpca(contrast, values)
        sigma2[g], lengths[g] = solution.sigma2, solution.lengths
        U = found.basis @ found.coordinates[g]
        objective[g] = relative_log_likelihood(contrast, U * lengths[g], U * (lengths[g] * values), solution.sigma2)
    basis, coordinates = _in_features(data, found)
    totals = np.array([data.total_variance(k) for k in (0, 1)])
    assert data.means[1] is not None
    assert data.scales[1] is not None
    return ContrastPath(
        gammas=gammas,
        limit=limit,
        eigenvalues=found.values,
        sigma2=sigma2,
        objective=objective,
        explained_variance=found.variances[0],
        background_variance=found.variances[1],
        totals=totals,
        basis=basis,
        coordinates=coordinates,
        lengths=lengths,
        mean=data.means[0],
        scale=data.scales[0],
        background_mean=data.means[1],
        background_scale=data.scales[1],
        method=method,
        solved=int(found.solved.sum()),
        source=data,
        **facts,
    )


def _in_features(data: Collected, found: PathSpectrum) -> tuple[Array, Array]:
    """Basis and coordinates with respect to the features, the components with canonical signs."""
    basis, coordinates = found.basis, found.coordinates
    if data.pair.basis is not None:  # reduced coordinates (F7)
        basis, triangle = np.linalg.qr(data.pair.basis.vectors(basis))
        coordinates = triangle @ coordinates
        coordinates = coordinates / np.linalg.norm(coordinates, axis=1, keepdims=True)
    components = np.einsum("Dk,gkd->gDd", basis, coordinates)
    signs = np.stack([np.sign(np.sum(canonical_signs(frame) * frame, axis=0)) for frame in components])
    return basis, coordinates * signs[:, None, :]


def _observed_path(groups: Groups, d: int, gammas: Any, scale: bool | str, progress: bool) -> ContrastPath:
    """The path of rows with missing values: gradient fits."""
    settings = Settings(random_state=0)
    data = observe_groups(groups, scale, settings)
    limit = data.limit("pcpca", d)
    points = _points(gammas, OBSERVED_POINTS)
    grid = _grid(gammas, limit, "pcpca", d) if points is None else default_observed_grid(limit, points)
    fits: list[Fit] = []
    with Progress("contrasts with missing values", grid.size, progress) as bar:
        for gamma in grid:  # each from the solution before
            bar.update(len(fits), f"gamma {gamma:.3g}")
            start = (fits[-1].components * fits[-1].lengths, fits[-1].sigma2) if fits else None
            attempt = attempt_fit(data, groups, d, float(gamma), limit, start)
            if attempt.fit is None:
                raise UnboundedError(float(gamma), limit, fits[-1].gamma if fits else None, d, attempt.reason)
            fits.append(attempt.fit)
    stacked = np.hstack([fit.components for fit in fits])
    basis, triangle = np.linalg.qr(stacked) if stacked.shape[1] <= stacked.shape[0] else (np.eye(len(stacked)), stacked)
    coordinates = triangle.reshape(triangle.shape[0], grid.size, d).transpose(1, 0, 2)
    last = fits[-1].source
    assert last.means[1] is not None
    assert last.scales[1] is not None
    return ContrastPath(
        gammas=grid,
        limit=limit,
        eigenvalues=np.array([fit.eigenvalues for fit in fits]),
        sigma2=np.array([fit.sigma2 for fit in fits]),
        objective=np.array([fit.objective for fit in fits]),
        explained_variance=np.array([fit.variances[0] for fit in fits]),
        background_variance=np.array([fit.variances[1] for fit in fits]),
        totals=np.array([last.total_variance(k) for k in (0, 1)]),
        basis=basis,
        coordinates=coordinates,
        lengths=np.array([fit.lengths for fit in fits]),
        mean=last.means[0],
        scale=last.scales[0],
        background_mean=last.means[1],
        background_scale=last.scales[1],
        method="pcpca",
        solved=grid.size,
        source=last,
        fits=fits,
        **_facts(groups, scale),
    )
