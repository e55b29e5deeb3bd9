"""`ContrastPath`, the result of `contrast_path`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._files import check_values, save
from .._util.arrays import Array, Rows, float_type, namespace, put
from .._util.checks import check_count, check_fixed_gamma
from .._util.tables import Table, shown_as_html
from ..contrast import (
    UNIT_LENGTH,
    Fit,
    LatentGaussian,
    affinity,
    principal_angles,
    procrustes,
    project,
    same_groups,
    share_of,
)
from ..data import Groups, Scaling, group_of
from ..data.rows import storage
from ..estimators import ContrastSolver, Likelihood, unfitted
from ..moments import Filling, SolverChoice, mixed

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
        """The same as a fraction of each background's total variance, shape (G, d)."""
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


def stacked(groups: Sequence[Groups[Any]]) -> Groups[Array]:
    """For each group, one array of the values at every gamma."""
    return groups[0].like(np.array(values) for values in zip(*groups, strict=True))
