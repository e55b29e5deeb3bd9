"""The same contrast at many strengths: one pass over the rows, then cheap solutions."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from .._array import Array
from .._table import Table
from .._validation import check_count, check_n_components, check_option, split_groups
from .._version import __version__
from ..exceptions import InfeasibleGammaError, ModelFileError, NonFiniteError, RankError, UnboundedError
from ..gaussian import LatentGaussian
from ..io import write_archive
from ..objective import contrastive_variance, relative_log_likelihood
from ..posterior import align
from ..solvers import PathSpectrum, canonical_signs, cpca_limit, pcpca_limit, solve_path, solve_pcpca
from ._fit import Collected, Fit, Source, collect, fit_contrast
from ._missing import Settings, attempt_fit, observe_groups
from ._persistence import PATH_FORMAT
from .cpca import CPCA
from .pcpca import PCPCA

FORMAT_VERSION = 1
DEFAULT_POINTS = 40
# The default grid: limit * (1 - t^BEND) for t from 1 down to (almost) 0, so that points gather near the limit.
BEND, CLOSEST = 1.7, 1e-3
CPCA_LEAST, CPCA_LARGEST = 0.01, 1000.0  # of gamma above 0 in CPCA's default grid; its limit may be infinite


@dataclass(frozen=True)
class ContrastPath:
    """Contrasts of the same groups at increasing gamma.

    Attributes
    ----------
    gammas : ndarray of shape (G,)
        gamma', increasing.
    limit : float
        The exact limit of gamma' (an upper bound of it where values are missing).
    eigenvalues : ndarray of shape (G, d)
        Largest eigenvalues of cov_X - gamma cov_Y.
    sigma2 : ndarray of shape (G,)
        Noise variance; nan for CPCA.
    objective : ndarray of shape (G,)
    explained_variance, background_variance : ndarray of shape (G, d)
        Variance of each group along each component.
    totals : ndarray of shape (2,)
        Total variance of foreground and background.
    basis : ndarray of shape (D, k)
        Orthonormal directions that span the components of all gammas.
    coordinates : ndarray of shape (G, k, d)
        Components in that basis, with canonical signs: component j at gamma g is basis @ coordinates[g, :, j].
    lengths : ndarray of shape (G, d)
        Of the loading vectors; 1 for CPCA.
    mean, scale, background_mean, background_scale : ndarray of shape (D,)
    method : {"pcpca", "cpca"}
    feature_names : list of str
    solved : int
        Gammas that were solved exactly; the others are certified in the basis of those.
    """

    gammas: Array
    limit: float
    eigenvalues: Array
    sigma2: Array
    objective: Array
    explained_variance: Array
    background_variance: Array
    totals: Array
    basis: Array
    coordinates: Array
    lengths: Array
    mean: Array
    scale: Array
    background_mean: Array
    background_scale: Array
    method: str
    feature_names: list[str]
    solved: int
    source: Source | None = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return self.gammas.size

    @property
    def n_components(self) -> int:
        """d."""
        return self.eigenvalues.shape[1]

    def components(self, index: int) -> Array:
        """Components at the gamma with this index, shape (d, D), unit rows, canonical signs."""
        return (self.basis @ self.coordinates[index]).T

    def angles(self) -> tuple[Array, Array]:
        """Principal angles, radians, of each subspace to that of the previous gamma and of the first, (G, d) each."""
        previous = self.coordinates[np.maximum(np.arange(len(self)) - 1, 0)]
        return _angles(previous, self.coordinates), _angles(self.coordinates[:1], self.coordinates)

    def to_frame(self) -> Any:
        """The numbers of every gamma as a pandas DataFrame; `table()` has them without pandas."""
        return self.table().to_frame()

    def table(self) -> Table:
        """One row for each gamma: gamma, sigma2, objective, variances and shares, angles (the largest)."""
        previous, first = self.angles()
        columns: dict[str, Any] = {"gamma": self.gammas, "sigma2": self.sigma2, "objective": self.objective}
        columns |= {f"eigenvalue_{k}": self.eigenvalues[:, k] for k in range(self.n_components)}
        columns["foreground_share"] = self.explained_variance.sum(axis=1) / self.totals[0]
        columns["background_share"] = self.background_variance.sum(axis=1) / self.totals[1]
        return Table(columns | {"angle_to_previous": previous[:, 0], "angle_to_first": first[:, 0]})

    def latents(self, X: Any, *, center: str = "foreground") -> Array:
        """Coordinates of rows at every gamma, shape (G, n, d), as the models' `transform` gives them.

        Parameters
        ----------
        X : array-like of shape (n, D)
            Missing values are for PCPCA only.
        center : {"foreground", "background"}
            Which group the rows are treated as.
        """
        check_option(center, "center", ("foreground", "background"))
        foreground = center == "foreground"
        mean, scale = (self.mean, self.scale) if foreground else (self.background_mean, self.background_scale)
        rows = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
        holes = np.isnan(rows).any() and self.method == "pcpca"
        if rows.ndim != 2 or rows.shape[1] != mean.size or not (holes or np.isfinite(rows).all()):
            raise ValueError(f"X must be a finite table with {mean.size} columns; it has shape {rows.shape}.")
        if holes:
            loadings = np.einsum("Dk,gkd->gDd", self.basis, self.coordinates * self.lengths[:, None, :])
            models = [LatentGaussian(mean / scale, W, float(s)) for W, s in zip(loadings, self.sigma2, strict=True)]
            return np.stack([model.condition(rows / scale).latents() for model in models])
        inside = ((rows - mean) / scale) @ self.basis
        along = np.einsum("nk,gkd->gnd", inside, self.coordinates)
        if self.method == "cpca":
            return along
        return along * (self.lengths / (self.lengths**2 + self.sigma2[:, None]))[:, None, :]  # M^-1 W' is diagonal

    def aligned(self, X: Any, *, center: str = "foreground") -> Array:
        """`latents` turned, gamma by gamma, to lie as near as can be to those before: for display, shape (G, n, d)."""
        turned = self.latents(X, center=center)
        frames = self.coordinates.copy()
        for g in range(1, len(self)):
            frame = align(frames[g], frames[g - 1])
            turned[g] = turned[g] @ (self.coordinates[g].T @ frame)
            frames[g] = frame
        return turned

    def affinity(self) -> Array:
        """Mean squared cosine of the principal angles between the subspaces of any two gammas, shape (G, G)."""
        cosines = np.einsum("gkd,hke->ghde", self.coordinates, self.coordinates)
        return np.sum(cosines**2, axis=(2, 3)) / self.n_components

    def representatives(self, k: int = 4) -> Array:
        """`k` gammas whose subspaces differ most, increasing.

        The first is the smallest gamma; each further one is that whose subspace is the least like any chosen before
        (centres of a clustering by affinity, Gonzalez 1985). Fewer where the path holds fewer different subspaces.
        """
        check_count(k, "k")
        affinity, chosen = self.affinity(), [0]
        while len(chosen) < min(k, len(self)):
            nearest = affinity[:, chosen].max(axis=1)
            least = int(np.argmin(nearest))
            if nearest[least] > 1 - 1e-9:
                break
            # Among equally different ones the strongest contrast.
            chosen.append(int(np.flatnonzero(nearest <= nearest[least] + 1e-9)[-1]))
        return self.gammas[sorted(chosen)]

    def model(self, gamma: float) -> PCPCA | CPCA:
        """The fitted estimator at a gamma, without another pass over the rows.

        Parameters
        ----------
        gamma : float
            Any below the limit; one of `gammas` only where values are missing.
        """
        if self.source is None:
            raise ValueError("This path was loaded from a file, without the moments of its data: compute it again.")
        if isinstance(self.source, Collected):
            fit = fit_contrast(self.source, self.method, self.n_components, float(gamma))  # type: ignore[arg-type]
        else:
            fit = self._fits[int(np.argmin(np.abs(self.gammas - gamma)))]
            if not np.isclose(fit.gamma, gamma, rtol=1e-9):
                raise ValueError(f"gamma={gamma} is not one of this path's gammas, and values are missing.")
        estimator = (PCPCA if self.method == "pcpca" else CPCA)(self.n_components, gamma=float(gamma))
        estimator.n_features_in_ = self.mean.size
        if any(name != f"x{j}" for j, name in enumerate(self.feature_names)):
            estimator.feature_names_in_ = np.array(self.feature_names, dtype=object)
        estimator._adopt(fit, np.dtype(np.float64))
        estimator._gamma_max = self.limit
        return estimator

    @property
    def _fits(self) -> list[Fit]:
        return self.__dict__["_observed_fits"]

    def save(self, path: Any) -> None:
        """Write the path to a file that `contrapca.load` reads (npz and JSON, no pickle), atomically."""
        header = {"format": PATH_FORMAT, "version": FORMAT_VERSION, "written_by": f"contrapca {__version__}"}
        header |= {"limit": self.limit if np.isfinite(self.limit) else None}
        header |= {"method": self.method, "solved": self.solved}
        arrays = {name: getattr(self, name) for name in ARRAYS}
        write_archive(path, header, arrays | {"feature_names": np.asarray(self.feature_names, dtype=np.str_)})


ARRAYS = [
    item.name
    for item in fields(ContrastPath)
    if item.name not in ("limit", "method", "feature_names", "solved", "source")
]


def restore_path(path: Any, header: dict[str, Any], arrays: dict[str, Any]) -> ContrastPath:
    """A path from the parts of a file that `save` wrote, each checked."""
    if header.get("version") != FORMAT_VERSION:
        raise ModelFileError(f"{str(path)!r} has format version {header.get('version')!r}; {FORMAT_VERSION} is known.")
    try:
        G, k, d = arrays["coordinates"].shape
        D = arrays["basis"].shape[0]
        shapes: dict[str, tuple[int, ...]] = {"basis": (D, k), "coordinates": (G, k, d), "totals": (2,)}
        shapes |= dict.fromkeys(("gammas", "sigma2", "objective"), (G,))
        shapes |= dict.fromkeys(("eigenvalues", "explained_variance", "background_variance", "lengths"), (G, d))
        for name in ARRAYS:
            expected = shapes.get(name, (D,))
            if arrays[name].dtype.kind != "f" or arrays[name].shape != expected:
                raise ValueError(f"{name} is not an array of shape {expected}")
        names = arrays["feature_names"]
        if names.dtype.kind != "U" or names.shape != (D,):
            raise ValueError("feature_names is not one text for each feature")
        limit = np.inf if header["limit"] is None else float(header["limit"])
        facts: dict[str, Any] = {"limit": limit, "method": str(header["method"]), "solved": int(header["solved"])}
        return ContrastPath(**{name: arrays[name] for name in ARRAYS}, **facts, feature_names=names.tolist())
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{str(path)!r} does not describe a path: {error}. It may be damaged.") from error


def _angles(left: Array, right: Array) -> Array:
    """Principal angles between frames (..., k, d), the largest first, shape (..., d)."""
    cosines = np.linalg.svd(np.swapaxes(left, -1, -2) @ right, compute_uv=False)
    return np.arccos(np.clip(cosines, 0.0, 1.0))[..., ::-1]


def default_grid(limit: float, points: int = DEFAULT_POINTS) -> Array:
    """`points` gammas in [0, limit), dense near the limit."""
    t = np.linspace(1.0, CLOSEST ** (1 / BEND), points)
    return limit * (1 - t**BEND)


def contrast_path(
    X: Any,
    *,
    background: Any,
    n_components: int = 2,
    gammas: Any = None,
    method: str = "pcpca",
    scale: bool | str = False,
    solver: str = "auto",
) -> ContrastPath:
    """Contrasts at many gammas: one pass over the rows, a few exact solutions, the others certified in their span.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix of shape (n, D)
        The foreground. With missing values (PCPCA only) every gamma is a gradient fit, started from the one before.
    background : array-like, data frame or sparse matrix of shape (m, D)
    n_components : int, default 2
    gammas : array-like of shape (G,), optional
        gamma', all below the limit. By default 40 from 0 to (almost) the limit, dense near it; for CPCA, whose limit
        may be infinite, 0 and 39 in equal ratios from 0.01 to at most 1000.
    method : {"pcpca", "cpca"}, default "pcpca"
    scale, solver
        As for PCPCA.

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
    names = groups.names or [f"x{j}" for j in range(groups.foreground.shape[1])]
    try:
        data = collect(groups, d, scale, solver)
    except NonFiniteError as error:
        if not error.missing or method == "cpca":
            raise
        return _observed_path(groups, d, gammas, scale, names)
    limit = pcpca_limit(data.pair, d) if method == "pcpca" else cpca_limit(data.pair, d)
    if limit == 0:
        raise RankError(d)
    grid = _grid(gammas, limit, method, d)
    return _solved_path(data, grid, d, method, limit, names)


def _grid(gammas: Any, limit: float, method: str, d: int) -> Array:
    """Checked gammas, increasing."""
    if gammas is None:
        if method == "pcpca":
            return default_grid(limit)
        top = (1 - CLOSEST) * min(limit, CPCA_LARGEST)
        return np.concatenate([[0.0], np.geomspace(min(CPCA_LEAST, top / 10), top, DEFAULT_POINTS - 1)])
    grid = np.unique(np.asarray(gammas, dtype=np.float64).ravel())
    if grid.size == 0 or not np.isfinite(grid).all() or grid[0] < 0:
        raise ValueError("gammas must be finite numbers, 0 or more, at least one.")
    if grid[-1] >= limit:
        raise InfeasibleGammaError(method, float(grid[-1]), limit, d, False)
    return grid


def _solved_path(data: Collected, gammas: Array, d: int, method: Any, limit: float, names: list[str]) -> ContrastPath:
    """The path of complete rows."""
    pair = data.pair
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
        feature_names=names,
        solved=int(found.solved.sum()),
        source=data,
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


def _observed_path(groups: Any, d: int, gammas: Any, scale: bool | str, names: list[str]) -> ContrastPath:
    """The path of rows with missing values: gradient fits."""
    settings = Settings("lbfgs", "observed", 1, 1000, 1e-6, 0, 0)
    data = observe_groups(groups, scale, settings)
    limit = data.limit("pcpca", d)
    grid = _grid(gammas, limit, "pcpca", d) if gammas is not None else default_grid(0.97 * limit, 20)
    fits: list[Fit] = []
    for gamma in grid:  # each from the solution before
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
    path = ContrastPath(
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
        feature_names=names,
        solved=grid.size,
        source=last,
    )
    path.__dict__["_observed_fits"] = fits
    return path
