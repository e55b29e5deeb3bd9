"""From two tables to a path: one pass over the rows, then cheap solutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._array import Array, is_sparse
from .._validation import Groups, check_n_components, check_option, split_groups
from ..exceptions import NonFiniteError, RankError
from ..objective import contrastive_variance, relative_log_likelihood
from ..solvers import PathSpectrum, canonical_signs, cpca_limit, pcpca_limit, solve_path, solve_pcpca
from ._fit import Collected, collect
from ._path_grids import checked_grid
from ._path_observed import observed_path
from .path import ContrastPath, table_facts


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
        return observed_path(groups, d, gammas, scale, progress)
    limit = pcpca_limit(data.pair, d) if method == "pcpca" else cpca_limit(data.pair, d)
    if limit == 0:
        raise RankError(d)
    grid = checked_grid(gammas, limit, method, d)
    return _solved_path(data, grid, d, method, limit, table_facts(groups, scale))


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
