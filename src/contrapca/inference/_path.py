"""Contrasts at many gammas: one pass over the rows, then cheap solutions."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .._files import check_values, save
from .._util.arrays import Array, Rows, float_type, namespace, put
from .._util.checks import check_count, check_fixed_gamma
from .._util.progress import Progress
from .._util.tables import Table, shown_as_html
from ..contrast import (
    AUTO_FRACTION,
    UNIT_LENGTH,
    Fit,
    LatentGaussian,
    Latents,
    Settings,
    affinity,
    at_least_short,
    canonical_sign_of,
    complete_background_model,
    path_around_axes,
    principal_angles,
    procrustes,
    project,
    ratio_axes,
    same_groups,
    share_of,
    show_solution,
    variance_inside,
)
from ..contrast import TOLERANCE as PATH_TOLERANCE
from ..data import Groups, Scaling, Study, Tables, group_of, refuse, study_of, tables_of
from ..data.rows import storage
from ..estimators import ContrastSolver, Likelihood, unfitted
from ..exceptions import InfeasibleGammaError, RankError, UnboundedError
from ..missing import Incomplete, Start, attempt_fit, incomplete_background_model, upper_bound
from ..moments import Complete, Filling, Moments, SolverChoice, check_solver_of, factors, mixed

DEFAULT_POINTS, MASKED_POINTS = 40, 20  # gammas of a path; fewer where each is a gradient fit
SETTINGS = Settings(random_state=0)

# Of a path that is only drawn: variances are right to some 5e-4, directions to more, in a sixth of the time.
DRAWN = replace(SETTINGS, tol=3e-3)

ROUNDING = 1e-12  # of entries of vectors, relative to the largest


@dataclass(frozen=True, eq=False)
class ContrastPath:
    """Contrasts of the same groups at increasing gamma.

    Attributes
    ----------
    gammas : ndarray of shape (G,)
        gamma', increasing; for RatioPCA 1 / (1 + ridge), from 0 (PCA) to 1 (no ridge).
    gamma_max : float
        The exact limit of gamma' (an upper bound if values are missing).
    gamma_max_is_bound : bool
        Whether it is only an upper bound.
    auto_gamma : float
        The gamma that "auto" takes for these groups; nan if unknown.
    eigenvalues : ndarray of shape (G, d)
        Variance of the foreground along each component minus gamma times that of the background; for the paper's axes,
        the largest eigenvalues of cov_X - gamma cov_Y. For RatioPCA, v'cov_X v / v'M v with the metric M of that gamma.
    noise_variance : ndarray of shape (G,)
        sigma2; nan if there is no model.
    objective : ndarray of shape (G,)
    variances : Groups of ndarray of shape (G, d)
        Variance of each group along each component.
    totals : Groups of float
        Total variance of each group.
    subspace_variance : Groups of ndarray of shape (G,)
        Variance of each group inside the model's subspace.
    axis_ratios : ndarray of shape (G, d) or None
        Variance ratios of contrast axes.
    basis : ndarray of shape (D, k)
        Orthonormal directions that span the components of all gammas.
    coordinates : ndarray of shape (G, k, d)
        Components in that basis, with canonical signs: component j at gamma g is basis @ coordinates[g, :, j].
    loading_coordinates : ndarray of shape (G, k, r)
        Loadings W of all latent dimensions in that basis, the shown ones first; the components if there is no model.
    scaling : Groups of Scaling
        Mean, variance and divisor of each feature in each group, and the names of the features.
    estimator : PCPCA, ContraPCA, CPCA or RatioPCA
        Not fitted; gives the axes, scaling and number of components.
    solver : SolverChoice
    solved : int
        Number of gammas that were solved exactly; the others are certified in their basis.
    background_model : LatentGaussian or None
        PPCA of the background, for `contrast_score` of the models.
    filling : Filling or None
        As for `Fit`: what missing values of rows are replaced by, without a probability model.

    Examples
    --------
    >>> from contrapca import PCPCA, contrast_path
    >>> from contrapca.datasets import make_hidden_clusters
    >>> data = make_hidden_clusters(random_state=0)
    >>> path = contrast_path(PCPCA(2), data.foreground, background=data.background, gammas=[0, 0.5, 0.9])
    >>> path
    ContrastPath(PCPCA: 3 gammas from 0 to 0.9, gamma_max 0.9399, d = 2)
    >>> path.latents(data.foreground).shape
    (3, 400, 2)
    """

    gammas: Array
    gamma_max: float
    gamma_max_is_bound: bool
    auto_gamma: float
    eigenvalues: Array
    noise_variance: Array
    objective: Array
    variances: Groups[Array]
    totals: Groups[float]
    subspace_variance: Groups[Array]
    axis_ratios: Array | None
    basis: Array
    coordinates: Array
    loading_coordinates: Array
    scaling: Groups[Scaling]
    estimator: ContrastSolver
    solver: SolverChoice
    solved: int
    background_model: LatentGaussian | None = None
    filling: Filling | None = None

    def __repr__(self) -> str:
        edge = f"{self.gammas[0]:.4g} to {self.gammas[-1]:.4g}, gamma_max {self.gamma_max:.4g}"
        return f"ContrastPath({type(self.estimator).__name__}: {len(self)} gammas from {edge}, d = {self.n_components})"

    def _repr_html_(self) -> str:
        return shown_as_html(repr(self), self.table())

    def __len__(self) -> int:
        return self.gammas.size

    @property
    def n_components(self) -> int:
        """d."""
        return self.eigenvalues.shape[1]

    @property
    def feature_names(self) -> list[str]:
        """Feature names."""
        return self.scaling.foreground.labels

    @property
    def explained_variance(self) -> Array:
        """Variance of the foreground along each component, shape (G, d)."""
        return self.variances.foreground

    @property
    def background_variance(self) -> Array:
        """Variance of the background along each component; the mean of several, as in the contrast; shape (G, d)."""
        return mixed(self.scaling, self.variances)

    @property
    def background_share(self) -> Array:
        """`background_variance` as a fraction of each background's total variance, shape (G, d)."""
        return mixed(self.scaling, self.shares())

    def index(self, gamma: float) -> int:
        """The index of one of the path's gammas."""
        value = check_fixed_gamma(gamma)
        index = int(np.argmin(np.abs(self.gammas - value)))
        if not np.isclose(self.gammas[index], value, rtol=1e-9, atol=1e-12):
            raise ValueError(
                f"gamma={gamma} is not one of this path's gammas; the nearest is {float(self.gammas[index])!r}. "
                "Include it in gammas= when computing the path, or fit an estimator at this gamma."
            )
        return index

    def components(self, gamma: float) -> Array:
        """Components at one of the path's gammas, shape (d, D): unit vectors with canonical signs."""
        return self._lifted(self.coordinates[self.index(gamma)]).T

    def _lifted(self, coordinates: Array) -> Array:
        """Vectors (D, k) from their coordinates; entries that are only rounding are 0, as in sparse components."""
        found = self.basis @ coordinates
        return np.where(np.abs(found) > ROUNDING * np.abs(found).max(initial=0.0), found, 0.0)

    def angles(self) -> tuple[Array, Array]:
        """Principal angles in radians from each subspace to the previous one and to the first, shape (G, d) each."""
        bases = self._bases()
        previous = bases[np.maximum(np.arange(len(self)) - 1, 0)]
        return principal_angles(previous, bases), principal_angles(bases[:1], bases)

    def _bases(self) -> Array:
        """Orthonormal bases of the components' subspaces, shape (G, k, d); contrast axes are not orthogonal."""
        return np.linalg.qr(self.coordinates)[0]

    def shares(self) -> Groups[Array]:
        """Fraction of each group's total variance along each component, shape (G, d) each."""
        return self.variances.map(share_of, self.totals)

    def table(self) -> Table:
        """One row per gamma: its noise variance, objective, eigenvalues, shares of variance, and largest angles."""
        previous, first = self.angles()
        columns = {"gamma": self.gammas, "noise_variance": self.noise_variance, "objective": self.objective}
        columns |= {f"eigenvalue_{k + 1}": self.eigenvalues[:, k] for k in range(self.n_components)}
        shares = self.shares()
        columns |= {f"{name}_share": shares[name].sum(axis=1) for name in shares.names}
        return Table(columns | {"angle_to_previous": previous[:, 0], "angle_to_first": first[:, 0]})

    # ------------------------------------------------------------------ rows

    def latents(self, X: Any, *, center: str = "foreground") -> Array:
        """Latents of rows at every gamma, shape (G, n, d), as from the models' `transform`.

        Parameters
        ----------
        X : array-like of shape (n, D)
            Missing values are allowed for PCPCA, ContraPCA, and other paths of tables in which values are missing.
        center : {"foreground", "background"} or the name of one of several backgrounds
            Which group's mean and scale to use.
        """
        rows, missing, scaling = self._rows(X, center)
        if not missing or not self._has_model:
            inside = project(rows, self.basis, scaling, self.filling)
            return inside @ put(self.projections(), inside, float_type(inside))
        k, W = self.n_components, self.loading_coordinates
        models = [
            LatentGaussian(scaling.origin, self.basis @ W[g], float(s)) for g, s in enumerate(self.noise_variance)
        ]
        found = [scaling.apply(lambda b, m=m: m.condition(b).latent_mean[:, :k], rows) for m in models]  # type: ignore[misc]
        return namespace(rows).stack(found)

    def _rows(self, X: Any, center: str) -> tuple[Rows, bool, Scaling]:
        """Checked rows, whether values are missing, and the units of the group named by `center`."""
        scaling = group_of(self.scaling, center)
        rows, missing = scaling.check(X, allow_missing=self.maps_missing)
        return storage(rows).prepared(rows), missing, scaling

    @property
    def maps_missing(self) -> bool:
        """Whether rows with missing values have latents: with a probability model, or after a fit to such rows."""
        return self._has_model or self.filling is not None

    @property
    def _has_model(self) -> bool:
        return isinstance(self.estimator, Likelihood)

    def inside(self, X: Any, *, center: str = "foreground") -> Array:
        """Complete rows in the basis of all gammas, shape (n, k); multiply by `projections()[g]` for latents."""
        rows, _, scaling = self._rows(X, center)
        return project(rows, self.basis, scaling, self.filling)

    def projections(self) -> Array:
        """From the basis to the latents of each gamma, shape (G, k, d): M^-1 W', or V' for CPCA."""
        if not self._has_model:
            return self.coordinates
        pairs, origin = zip(self.loading_coordinates, self.noise_variance, strict=True), np.zeros(self.basis.shape[1])
        found = [LatentGaussian(origin, W, float(sigma2)).projection() for W, sigma2 in pairs]
        return np.stack(found)[..., : self.n_components]

    def loadings(self, gamma: float) -> Array:
        """W (CPCA: V) at one of the path's gammas, shape (D, d), in scaled units."""
        return self._lifted(self.loading_coordinates[self.index(gamma), :, : self.n_components])

    # ------------------------------------------------------------------ comparing gammas

    def turns(self, start: int = 0) -> Array:
        """Rotations (and reflections) R_g, shape (G, d, d), that align the components from gamma to gamma.

        Each rotates the components at a gamma as close as possible to those of its neighbour (Procrustes), working
        outwards from the gamma with index `start`, whose rotation is the identity. Z R and W R describe the same model
        as Z and W.
        """
        frames, turns = self.coordinates.copy(), np.empty((len(self), self.n_components, self.n_components))
        turns[start] = np.eye(self.n_components)
        for g in (*range(start + 1, len(self)), *range(start - 1, -1, -1)):
            turns[g] = procrustes(frames[g], frames[g - 1 if g > start else g + 1])
            frames[g] = frames[g] @ turns[g]
        return turns

    def aligned(self, X: Any, *, center: str = "foreground", start: int = 0) -> Array:
        """`latents` rotated by `turns(start)`, for display, shape (G, n, d)."""
        found = self.latents(X, center=center)
        return found @ put(self.turns(start), found, float_type(found))

    def affinity(self) -> Array:
        """Mean squared cosine of the principal angles between the subspaces of any two gammas, shape (G, G)."""
        bases = self._bases()
        return affinity(bases[:, None], bases[None])

    def representatives(self, k: int = 4) -> Array:
        """`k` gammas whose subspaces differ most, increasing.

        The first is the smallest gamma; each of the others has the subspace that is least similar to those chosen
        before (centres of a clustering by affinity, Gonzalez 1985). Fewer than `k` if the path has fewer different
        subspaces.
        """
        check_count(k, "k")
        chosen, bases = [0], self._bases()
        nearest = affinity(bases, bases[0])
        while len(chosen) < min(k, len(self)):
            least = float(nearest.min())
            if least > 1 - 1e-9:
                break
            # Of equally different ones, take the strongest contrast.
            chosen.append(int(np.flatnonzero(nearest <= least + 1e-9)[-1]))
            nearest = np.maximum(nearest, affinity(bases, bases[chosen[-1]]))
        return self.gammas[sorted(chosen)]

    # ------------------------------------------------------------------ models and files

    def model(self, gamma: float) -> ContrastSolver:
        """The fitted estimator at one of the path's gammas.

        Parameters
        ----------
        gamma : float
            One of `gammas`.
        """
        g, estimator = self.index(gamma), unfitted(self.estimator)
        W = self._lifted(self.loading_coordinates[g])
        model = LatentGaussian(self.scaling.foreground.origin, W, float(self.noise_variance[g]))
        fit = Fit(
            scaling=self.scaling,
            components=self._lifted(self.coordinates[g]),
            variances=self.variances.map(lambda along: along[g]),
            totals=self.totals,
            gamma=float(self.gammas[g]),
            objective=float(self.objective[g]),
            n_iter=1,
            solver=self.solver,
            model=model if self._has_model else None,
            inside=self.subspace_variance.map(lambda inside: float(inside[g])),
            axis_ratios=None if self.axis_ratios is None else self.axis_ratios[g],
            eigenvalues=self.eigenvalues[g] if self.axis_ratios is None else None,
            axes="variance" if self.axis_ratios is None else self.estimator._latents().axes,
            background_model=self.background_model,
            filling=self.filling,
            limit=self.gamma_max,
            limit_is_bound=self.gamma_max_is_bound,
            history=self.objective[[g]],
        )
        estimator._with_strength(fit.gamma)
        return estimator._with_fit(fit)

    def save(self, path: Any) -> None:
        """Write the path to a file that `contrapca.load` reads (npz and JSON, no pickle), atomically."""
        save(path, self)

    def _check_values(self) -> None:
        """Raise if there is no such path."""
        if not self.estimator._contrasts:
            raise ValueError("its estimator is impossible")
        shapes = {"gammas": "G", "eigenvalues": "Gd", "noise_variance": "G", "objective": "G", "axis_ratios": "Gd"}
        shapes |= {"basis": "Dk", "coordinates": "Gkd", "loading_coordinates": "Gkr"}
        shapes |= {"variances": "Gd", "subspace_variance": "G"}
        unknown = () if self._has_model else ("noise_variance",)
        not_negative = ("gammas", "axis_ratios", "variances", "subspace_variance", "totals", "solved")
        sizes = check_values(self, shapes, positive=("noise_variance",), not_negative=not_negative, may_be_nan=unknown)
        same_groups(self.scaling, self.variances, self.totals, self.subspace_variance)
        widths = {own.mean.size for own in self.scaling}
        widths |= set() if self.background_model is None else {self.background_model.mean.size}
        if widths != {sizes["D"]} or self.estimator.n_components != sizes["d"]:
            raise ValueError("its sizes are impossible")
        if np.any(np.diff(self.gammas) <= 0) or not self.gamma_max >= 0 or self.auto_gamma < 0:
            raise ValueError("its gammas are impossible")
        if not np.allclose(self.basis.T @ self.basis, np.eye(sizes["k"]), atol=UNIT_LENGTH):
            raise ValueError("its basis is not orthonormal")


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
    model: ContrastSolver,
    tables: Tables,
    study: Study,
    *,
    points: int | None,
    tolerance: float,
    progress: bool,
) -> tuple[ContrastSolver, ContrastPath]:
    """A fitted model, and the path through it, with its tables, the study that they are of, and settings.

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
        data, fit = model._solved(tables, study)
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
        return _masked_path(data, estimator, latents, gammas, progress=progress)
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
    basis, coordinates = found.basis, found.coordinates  # with respect to the features
    if data.basis is not None:  # reduced coordinates (F7)
        basis, triangle = np.linalg.qr(data.basis.vectors(basis))
        coordinates = triangle @ coordinates
        coordinates = coordinates / np.linalg.norm(coordinates, axis=1, keepdims=True)
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


def _masked_path(
    data: Incomplete, estimator: ContrastSolver, latents: Latents, gammas: Any, *, progress: bool
) -> ContrastPath:
    """Fit from the smallest gamma upwards; a gamma without a solution is an error."""
    limit = upper_bound(data, latents.rank)
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


def stacked(groups: Sequence[Groups[Any]]) -> Groups[Array]:
    """For each group, one array of the values at every gamma."""
    return groups[0].like(np.array(values) for values in zip(*groups, strict=True))
