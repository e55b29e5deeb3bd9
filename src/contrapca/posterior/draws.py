"""Draws of the loadings and the noise variance: what every way to get uncertainty returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._array import Array, is_sparse
from .._optional import require
from .._table import Table
from .._validation import check_count, check_names, generator
from .._version import __version__
from ..exceptions import ModelFileError, warn
from ..gaussian import LatentGaussian
from ..io import check_version, checked_array, checked_names, write_archive
from .diagnostics import ess_bulk, r_hat

FORMAT, FORMAT_VERSION = "contrapca-posterior", 1
ARRAYS = ("loadings", "sigma2", "estimate", "mean", "scale")
FACTS = {"kind": str, "method": str, "learning_rate": float, "divergences": int, "failures": int}
MAX_R_HAT, MIN_ESS = 1.01, 400.0
MAX_MATRIX = 30  # features up to which every entry of A and of the projector is watched
MAX_DRAWS_FOR_LATENTS = 500


def align(loadings: Array, estimate: Array) -> Array:
    """Each draw W rotated (and reflected) to be as near as can be to the estimate: W R, R from the SVD of W'W_hat.

    Only W W' is identified, so that draws must be brought into one frame before loadings are averaged (Procrustes).

    Parameters
    ----------
    loadings : (..., D, d) ndarray
    estimate : (D, d) ndarray
    """
    U, _, Vt = np.linalg.svd(np.swapaxes(loadings, -1, -2) @ estimate)
    return loadings @ (U @ Vt)


@dataclass(frozen=True, eq=False)
class ContrastPosterior:
    """Draws from a Gibbs posterior, or of the bootstrap, around a fitted model.

    Attributes
    ----------
    loadings : ndarray of shape (chains, draws, D, d)
        W (CPCA: V with orthonormal columns), aligned to the estimate by rotation and signs, in the model's units.
    sigma2 : ndarray of shape (chains, draws), or None for CPCA
    estimate : ndarray of shape (D, d)
        The fitted W or V.
    mean, scale : ndarray of shape (D,)
        Of the foreground, in original units.
    kind : {"gibbs", "bootstrap"}
    method : {"pcpca", "cpca"}
    learning_rate : float
        w of the Gibbs posterior; 1 for the bootstrap.
    divergences : int
        Of NUTS; any are a reason for doubt.
    failures : int
        Bootstrap samples in which gamma was infeasible; they are left out.
    feature_names : list of str

    Examples
    --------
    >>> from contrapca import PCPCA
    >>> from contrapca.datasets import make_hidden_clusters
    >>> data = make_hidden_clusters(nuisance=2.0, random_state=0)
    >>> X, Y = data.foreground, data.background
    >>> refits = PCPCA(gamma=0.6).fit(X, background=Y).bootstrap(X, background=Y, random_state=0, progress=False)
    >>> list(refits.summary().columns)
    ['feature', 'component', 'estimate', 'mean', 'sd', 'lower', 'upper', 'excludes_zero']
    >>> refits.sample(5, random_state=0).shape
    (5, 30)
    """

    loadings: Array
    sigma2: Array | None
    estimate: Array
    mean: Array
    scale: Array
    kind: str
    method: str
    learning_rate: float = 1.0
    divergences: int = 0
    failures: int = 0
    feature_names: list[str] = field(default_factory=list)

    # ------------------------------------------------------------------ identified quantities

    def covariance_draws(self) -> Array:
        """A = W W' + sigma2 I of each draw, shape (chains, draws, D, D), in scaled units; PCPCA only."""
        A = self.loadings @ np.swapaxes(self.loadings, -1, -2)
        np.einsum("...ii->...i", A)[...] += self._sigma2()[..., None]
        return A

    def _sigma2(self) -> Array:
        if self.sigma2 is None:
            raise ValueError("CPCA has no noise variance, so its posterior has no covariance, likelihood or samples.")
        return self.sigma2

    def bases(self) -> Array:
        """Orthonormal bases of span(W) of each draw, shape (chains, draws, D, d)."""
        return self.loadings if self.method == "cpca" else np.linalg.svd(self.loadings, full_matrices=False)[0]

    def projector(self) -> Array:
        """The mean projector onto span(W) over all draws, shape (D, D): its diagonal is each feature's part."""
        bases = self.bases()
        flat = bases.reshape(-1, *bases.shape[2:])
        stacked = flat.transpose(1, 0, 2).reshape(flat.shape[1], -1)
        return stacked @ stacked.T / flat.shape[0]

    def angles(self) -> Array:
        """Principal angles of each draw's subspace to the estimate's, in radians, shape (chains, draws, d)."""
        reference = np.linalg.qr(self.estimate)[0]
        cosines = np.linalg.svd(np.swapaxes(self.bases(), -1, -2) @ reference, compute_uv=False)
        return np.arccos(np.clip(cosines, 0.0, 1.0))[..., ::-1]

    # ------------------------------------------------------------------ summaries

    def summary(self, probability: float = 0.9) -> Table:
        """Mean, standard deviation and credible interval of every loading.

        Parameters
        ----------
        probability : float in (0, 1)
            Mass of the equal-tailed interval.

        Returns
        -------
        Table
            Columns `feature`, `component`, `estimate`, `mean`, `sd`, `lower`, `upper`, `excludes_zero`.
        """
        if not 0 < probability < 1:
            raise ValueError(f"probability={probability} must be between 0 and 1.")
        D, d = self.estimate.shape
        flat = self.loadings.reshape(-1, D, d)
        lower, upper = np.quantile(flat, [(1 - probability) / 2, (1 + probability) / 2], axis=0)
        columns: dict[str, Any] = {
            "feature": np.repeat(self.feature_names, d),
            "component": np.tile(np.arange(d), D),
            "estimate": self.estimate.ravel(),
            "mean": flat.mean(axis=0).ravel(),
            "sd": flat.std(axis=0, ddof=1).ravel(),
            "lower": lower.ravel(),
            "upper": upper.ravel(),
        }
        return Table(columns | {"excludes_zero": (columns["lower"] > 0) | (columns["upper"] < 0)})

    def _watched(self) -> dict[str, Array]:
        """Identified quantities whose convergence is judged: name to (chains, draws, k)."""
        bases, reference = self.bases(), np.linalg.qr(self.estimate)[0]
        chains, draws, D, _ = bases.shape
        watched: dict[str, Array] = {}
        if D <= MAX_MATRIX:
            upper = np.triu_indices(D)
            watched["projector"] = (bases @ np.swapaxes(bases, -1, -2))[..., upper[0], upper[1]]
        else:
            along = bases @ (np.swapaxes(bases, -1, -2) @ reference)
            watched["projector"] = np.concatenate(
                [np.sum(bases**2, axis=-1), along.reshape(chains, draws, -1)], axis=-1
            )
        if self.sigma2 is not None:
            watched["sigma2"] = self.sigma2[..., None]
            if D <= MAX_MATRIX:
                watched["A"] = self.covariance_draws()[..., upper[0], upper[1]]
            else:
                along = self.loadings @ (np.swapaxes(self.loadings, -1, -2) @ reference)
                diagonal = np.sum(self.loadings**2, axis=-1) + self.sigma2[..., None]
                watched["A"] = np.concatenate([diagonal, along.reshape(chains, draws, -1)], axis=-1)
        return watched

    def diagnostics(self) -> Table:
        """R-hat and effective sample size of identified quantities (A, sigma2, projector), the worst of each.

        Raw loadings are identified up to rotation only, so theirs would mean nothing.
        """
        watched = self._watched()
        return Table(
            {
                "quantity": np.array(list(watched)),
                "largest R-hat": np.array([float(r_hat(x).max()) for x in watched.values()]),
                "least ESS": np.array([float(ess_bulk(x).min()) for x in watched.values()]),
            }
        )

    def check(self) -> None:
        """Warn loudly where chains did not converge."""
        table = self.diagnostics()
        worst, least = float(np.max(table["largest R-hat"])), float(np.min(table["least ESS"]))
        if worst > MAX_R_HAT or least < MIN_ESS or self.divergences:
            warn(
                f"DO NOT TRUST THESE DRAWS YET: largest R-hat {worst:.3f} (at most {MAX_R_HAT} is wanted), least "
                f"effective sample size {least:.0f} (at least {MIN_ESS:.0f}), {self.divergences} divergences. Raise "
                "draws and tune, or use a smaller gamma or n_components."
            )

    # ------------------------------------------------------------------ predictions

    def latent_posterior(self, X: Any) -> tuple[Array, Array]:
        """Latents of rows with the uncertainty of the parameters added to that of the latents.

        By the law of total variance over (at most 500 of) the draws; latents are in the frame of the estimate.

        Parameters
        ----------
        X : array-like of shape (n, D), complete rows in original units

        Returns
        -------
        mean : ndarray of shape (n, d)
        covariance : ndarray of shape (n, d, d)
        """
        scaled = (self._rows(X) - self.mean) / self.scale
        D, d = self.estimate.shape
        loadings, sigma2 = self.loadings.reshape(-1, D, d), None if self.sigma2 is None else self.sigma2.ravel()
        chosen = np.linspace(0, loadings.shape[0] - 1, min(loadings.shape[0], MAX_DRAWS_FOR_LATENTS)).astype(int)
        means, within = np.empty((chosen.size, scaled.shape[0], d)), np.zeros((d, d))
        for k, draw in enumerate(chosen):
            if sigma2 is None:
                means[k] = scaled @ loadings[draw]
            else:
                model = LatentGaussian(np.zeros(D), loadings[draw], float(sigma2[draw]))
                means[k] = scaled @ model.projection()
                within += model.sigma2 * np.linalg.inv(model.M) / chosen.size
        centred = means - means.mean(axis=0)
        return means.mean(axis=0), np.einsum("kni,knj->nij", centred, centred) / chosen.size + within

    def _rows(self, X: Any) -> Array:
        check_names(X, self.feature_names)
        rows = np.asarray(X.toarray() if is_sparse(X) else X, dtype=np.float64)
        D = self.mean.size
        if rows.ndim != 2 or rows.shape[1] != D or not np.isfinite(rows).all():
            raise ValueError(f"X must be a finite table with {D} columns; it has shape {rows.shape}.")
        return rows

    def sample(self, n: int, random_state: Any = None) -> Array:
        """Posterior predictive rows: each from a random draw of the parameters, shape (n, D), in original units."""
        random = generator(random_state)
        check_count(n, "n")
        D, d = self.estimate.shape
        loadings, sigma2 = self.loadings.reshape(-1, D, d), self._sigma2().ravel()
        draws = random.integers(0, sigma2.size, n)
        latent, noise = random.standard_normal((n, d)), random.standard_normal((n, D))
        rows = np.einsum("nij,nj->ni", loadings[draws], latent) + np.sqrt(sigma2[draws])[:, None] * noise
        return self.mean + rows * self.scale

    # ------------------------------------------------------------------ elsewhere

    def save(self, path: Any) -> None:
        """Write the draws to a file that `contrapca.load` reads (npz and JSON, no pickle), atomically.

        Parameters
        ----------
        path : str or path-like
        """
        arrays = {name: value for name in ARRAYS if (value := getattr(self, name)) is not None}
        header = {"format": FORMAT, "version": FORMAT_VERSION, "written_by": f"contrapca {__version__}"}
        header |= {name: getattr(self, name) for name in FACTS}
        write_archive(path, header, arrays | {"feature_names": np.asarray(self.feature_names, dtype=np.str_)})

    def to_arviz(self) -> Any:
        """The draws for ArviZ: InferenceData of its versions below 1, DataTree from 1 on."""
        arviz = require("arviz", extra="bayes")
        posterior = {"loadings": self.loadings} | ({} if self.sigma2 is None else {"sigma2": self.sigma2})
        names = {
            "coords": {"feature": self.feature_names, "component": list(range(self.estimate.shape[1]))},
            "dims": {"loadings": ["feature", "component"]},
        }
        if int(arviz.__version__.partition(".")[0]) >= 1:
            return arviz.from_dict({"posterior": posterior}, **names)
        return arviz.from_dict(posterior=posterior, **names)

    def __repr__(self) -> str:
        chains, draws, D, d = self.loadings.shape
        return f"ContrastPosterior({self.kind}, {self.method}: {chains} x {draws} draws, D = {D}, d = {d})"


def restore_posterior(path: Any, header: dict[str, Any], arrays: dict[str, Any]) -> ContrastPosterior:
    """Draws from the parts of a file that `save` wrote, each checked."""
    check_version(path, header, FORMAT_VERSION)
    try:
        facts = {name: kind(header[name]) for name, kind in FACTS.items()}
        chains, draws, D, d = arrays["loadings"].shape
        shapes = {
            "loadings": (chains, draws, D, d),
            "sigma2": (chains, draws),
            "estimate": (D, d),
            "mean": (D,),
            "scale": (D,),
        }
        found: dict[str, Any] = {"sigma2": None}
        for name in arrays.keys() & shapes.keys():
            found[name] = checked_array(arrays, name, shapes[name])
        names = checked_names(arrays, "feature_names", D)
        return ContrastPosterior(**found, **facts, feature_names=names.tolist())
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{str(path)!r} does not describe a posterior: {error}. It may be damaged.") from error
