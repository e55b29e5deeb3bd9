"""The same contrast at many strengths: one pass over the rows, then cheap solutions."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from .._array import Array, Rows, is_sparse, row_slices
from .._table import Table
from .._validation import Groups, check_count, check_gamma, check_names, check_option, default_names
from .._version import __version__
from ..exceptions import ModelFileError, RowsChangedError
from ..gaussian import LatentGaussian, centred_product
from ..io import check_version, checked_array, checked_names, write_archive
from ..posterior import align
from ._fit import Collected, Fit, Source, fit_contrast
from ._persistence import PATH_FORMAT
from .cpca import CPCA
from .pcpca import PCPCA

FORMAT_VERSION, ROW_BLOCK = 1, 1000
FACTS = ("method", "named", "scaling", "dtype", "solved", "limit_is_bound")  # besides arrays


@dataclass(frozen=True, eq=False)
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
    named : bool
        Whether the names are those of a data frame's columns.
    scaling : False, "group" or "pooled"
    dtype : str
        The float type of the foreground, which models have, too.
    solved : int
        Gammas that were solved exactly; the others are certified in the basis of those.

    Examples
    --------
    >>> from contrapca import contrast_path
    >>> from contrapca.datasets import make_hidden_clusters
    >>> data = make_hidden_clusters(random_state=0)
    >>> path = contrast_path(data.foreground, background=data.background, gammas=[0, 0.5, 0.9])
    >>> path
    ContrastPath(pcpca: 3 gammas from 0 to 0.9, limit 0.9399, d = 2)
    >>> path.latents(data.foreground).shape
    (3, 400, 2)
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
    named: bool
    scaling: bool | str
    dtype: str
    solved: int
    limit_is_bound: bool = False
    source: Source | None = None
    fits: list[Fit] | None = None  # at every gamma, where values are missing

    def __repr__(self) -> str:
        edge = f"{self.gammas[0]:.4g} to {self.gammas[-1]:.4g}, limit {self.limit:.4g}"
        return f"ContrastPath({self.method}: {len(self)} gammas from {edge}, d = {self.n_components})"

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

    def shares(self) -> tuple[Array, Array]:
        """Of the foreground's and the background's variance along each component, (G, d) each; 0 of no variance."""

        def share(along: Array, total: float) -> Array:
            return along / total if total > 0 else np.zeros_like(along)

        return share(self.explained_variance, self.totals[0]), share(self.background_variance, self.totals[1])

    def to_frame(self) -> Any:
        """The numbers of every gamma as a pandas DataFrame; `table()` has them without pandas."""
        return self.table().to_frame()

    def table(self) -> Table:
        """One row for each gamma: gamma, sigma2, objective, variances and shares, angles (the largest)."""
        previous, first = self.angles()
        columns: dict[str, Any] = {"gamma": self.gammas, "sigma2": self.sigma2, "objective": self.objective}
        columns |= {f"eigenvalue_{k}": self.eigenvalues[:, k] for k in range(self.n_components)}
        columns["foreground_share"], columns["background_share"] = (share.sum(axis=1) for share in self.shares())
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
        rows, mean, scale = self._rows(X, center)
        if not is_sparse(rows) and np.isnan(rows).any():
            models = [LatentGaussian(mean / scale, self.loadings(g), float(s)) for g, s in enumerate(self.sigma2)]
            return np.stack([model.condition(rows / scale).latents() for model in models])
        return np.einsum("nk,gkd->gnd", self._inside(rows, mean, scale), self.projections())

    def _rows(self, X: Any, center: str) -> tuple[Rows, Array, Array]:
        """Checked rows, and the mean and scale of the group they are treated as."""
        check_option(center, "center", ("foreground", "background"))
        foreground = center == "foreground"
        mean, scale = (self.mean, self.scale) if foreground else (self.background_mean, self.background_scale)
        check_names(X, self.feature_names if self.named else default_names(mean.size))
        rows = X.astype(np.float64) if is_sparse(X) else np.asarray(X, dtype=np.float64)
        values = rows.data if is_sparse(rows) else rows
        may_be_missing = self.method == "pcpca" and not is_sparse(rows)
        if rows.ndim != 2 or rows.shape[1] != mean.size or np.isinf(values).any():
            raise ValueError(f"X must be a finite table with {mean.size} columns; it has shape {rows.shape}.")
        if np.isnan(values).any() and not may_be_missing:
            raise ValueError("X has missing values, which only paths of PCPCA, with dense tables, can use.")
        return rows, mean, scale

    def _inside(self, rows: Rows, mean: Array, scale: Array) -> Array:
        """Block by block: centred rows would be another copy of the table."""
        P = self.basis / scale[:, None]
        return np.concatenate([centred_product(rows[part], mean, P) for part in row_slices(rows.shape[0], ROW_BLOCK)])

    def inside(self, X: Any, *, center: str = "foreground") -> Array:
        """Complete rows in the basis of all gammas, shape (n, k); times `projections()[g]` they are latents."""
        return self._inside(*self._rows(X, center))

    def projections(self) -> Array:
        """From the basis to the latents of each gamma, shape (G, k, d): M^-1 W', or V' for CPCA."""
        if self.method == "cpca":
            return self.coordinates
        return self.coordinates * (self.lengths / (self.lengths**2 + self.sigma2[:, None]))[:, None, :]  # M is diagonal

    def loadings(self, index: int) -> Array:
        """W (CPCA: V) at the gamma with this index, shape (D, d), in scaled units."""
        return self.basis @ (self.coordinates[index] * self.lengths[index])

    def turns(self, start: int = 0) -> Array:
        """Rotations (and reflections) R_g, shape (G, d, d), that keep components still from gamma to gamma.

        Each turns the components at a gamma as near as can be to those beside them (Procrustes), outwards from the
        gamma with the index `start`, whose own is the identity: Z R and W R describe the same model as Z and W.
        """
        frames, turns = self.coordinates.copy(), np.empty((len(self), self.n_components, self.n_components))
        turns[start] = np.eye(self.n_components)
        for g in (*range(start + 1, len(self)), *range(start - 1, -1, -1)):
            frames[g] = align(frames[g], frames[g - 1 if g > start else g + 1])
            turns[g] = self.coordinates[g].T @ frames[g]
        return turns

    def aligned(self, X: Any, *, center: str = "foreground", start: int = 0) -> Array:
        """`latents` turned by `turns(start)`: for display, shape (G, n, d)."""
        return self.latents(X, center=center) @ self.turns(start)

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
        value = check_gamma(gamma)
        if value is None:
            raise ValueError("gamma='auto' is for estimators; give a number here.")
        if self.source is None:
            raise ValueError("This path was loaded from a file, without the moments of its data: compute it again.")
        if self.fits is not None:
            fit = self.fits[int(np.argmin(np.abs(self.gammas - value)))]
            if not np.isclose(fit.gamma, value, rtol=1e-9):
                raise ValueError(f"gamma={gamma} is not one of this path's gammas, and values are missing.")
        else:
            assert isinstance(self.source, Collected)
            if any(scatter.rows_changed() for scatter in self.source.watched_rows()):
                raise RowsChangedError
            fit = fit_contrast(self.source, self.method, self.n_components, value)  # type: ignore[arg-type]
        kind = PCPCA if self.method == "pcpca" else CPCA
        estimator = kind(self.n_components, gamma=value, scale=self.scaling)
        estimator.n_features_in_ = self.mean.size
        if self.named:
            estimator.feature_names_in_ = np.array(self.feature_names, dtype=object)
        estimator._adopt(fit, np.dtype(self.dtype))
        estimator._gamma_max = self.limit
        return estimator

    def save(self, path: Any) -> None:
        """Write the path to a file that `contrapca.load` reads (npz and JSON, no pickle), atomically."""
        header = {"format": PATH_FORMAT, "version": FORMAT_VERSION, "written_by": f"contrapca {__version__}"}
        header |= {"limit": self.limit if np.isfinite(self.limit) else None}
        header |= {name: getattr(self, name) for name in FACTS}
        arrays = {name: getattr(self, name) for name in ARRAYS}
        write_archive(path, header, arrays | {"feature_names": np.asarray(self.feature_names, dtype=np.str_)})


def table_facts(groups: Groups, scale: bool | str) -> dict[str, Any]:
    """What a path keeps of the tables besides numbers."""
    D = groups.foreground.shape[1]
    return {
        "feature_names": groups.names or default_names(D),
        "named": groups.names is not None and groups.text_names,
        "scaling": scale,
        "dtype": str(groups.foreground.dtype),
    }


ARRAYS = [
    item.name for item in fields(ContrastPath) if item.name not in ("limit", "feature_names", "source", "fits", *FACTS)
]


def restore_path(path: Any, header: dict[str, Any], arrays: dict[str, Any]) -> ContrastPath:
    """A path from the parts of a file that `save` wrote, each checked."""
    check_version(path, header, FORMAT_VERSION)
    try:
        G, k, d = arrays["coordinates"].shape
        D = arrays["basis"].shape[0]
        shapes: dict[str, tuple[int, ...]] = {"basis": (D, k), "coordinates": (G, k, d), "totals": (2,)}
        shapes |= dict.fromkeys(("gammas", "sigma2", "objective"), (G,))
        shapes |= dict.fromkeys(("eigenvalues", "explained_variance", "background_variance", "lengths"), (G, d))
        # sigma2 is nan for CPCA
        found: dict[str, Any] = {
            name: checked_array(arrays, name, shapes.get(name, (D,)), finite=False) for name in ARRAYS
        }
        names = checked_names(arrays, "feature_names", D)
        limit = np.inf if header["limit"] is None else float(header["limit"])
        facts = {name: header[name] for name in FACTS} | {"limit": limit}
        return ContrastPath(**found, **facts, feature_names=names.tolist())
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{str(path)!r} does not describe a path: {error}. It may be damaged.") from error


def _angles(left: Array, right: Array) -> Array:
    """Principal angles between frames (..., k, d), the largest first, shape (..., d)."""
    cosines = np.linalg.svd(np.swapaxes(left, -1, -2) @ right, compute_uv=False)
    return np.arccos(np.clip(cosines, 0.0, 1.0))[..., ::-1]
