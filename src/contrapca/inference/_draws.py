"""Draws of the loadings and the noise variance: what every way to get uncertainty returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.stats
from scipy.special import ndtri

from .._files import check_values, save
from .._util.arrays import Array, spread_out
from .._util.checks import check_count, generator
from .._util.optional import require
from .._util.tables import Table, shown_as_html
from ..contrast import LatentGaussian, principal_angles
from ..data import Scaling
from ..exceptions import warn

KINDS = ("gibbs", "bootstrap")
MAX_R_HAT, MIN_ESS = 1.01, 400.0  # as Vehtari et al. (2021) recommend
MAX_MATRIX = 30  # features up to which every entry of A and of the projector is watched
MAX_DRAWS_FOR_LATENTS = 500  # evenly spread: more draws tell hardly more, and rows are multiplied with each
Interval = tuple[Array, Array]  # lower and upper ends
MIN_DRAWS = 4  # of a chain: fewer cannot be split into halves that vary


@dataclass(frozen=True, eq=False)
class ContrastPosterior:
    """Draws from a Gibbs posterior, or of the bootstrap, around a fitted model.

    Attributes
    ----------
    W : ndarray of shape (chains, draws, D, r)
        Loadings (CPCA: orthonormal columns) of all latent dimensions, aligned to the estimate by rotation and signs, in
        the model's units; `loadings` has those that are shown.
    noise_variance : ndarray of shape (chains, draws), or None for CPCA
    W_estimate : ndarray of shape (D, r)
        The fitted W or V; `estimate` has the columns that are shown.
    n_shown : int
        k: the first k columns are shown.
    scaling : Scaling
        Mean, scale and names of the foreground's features.
    kind : {"gibbs", "bootstrap"}
    method : str
        The name of the estimator, such as "ContraPCA".
    power : float
        w of the Gibbs posterior; 1 for the bootstrap.
    divergences : int
        Number of divergent NUTS transitions; should be 0.
    failures : int
        Bootstrap samples in which gamma was infeasible; they are left out.
    noise_variance_estimate : float or None
        The fitted noise variance; None for CPCA, and for a bootstrap with gamma="auto", whose refits have other gammas.
    by_blocks : bool
        Whether whole blocks or pairs were resampled.
    seed : int or None
        The `random_state`, if it was a number.

    Examples
    --------
    >>> from contrapca import PCPCA, bootstrap
    >>> from contrapca.datasets import make_hidden_clusters
    >>> data = make_hidden_clusters(nuisance=2.0, random_state=0)
    >>> X, Y = data.foreground, data.background
    >>> refits = bootstrap(PCPCA(gamma=0.6).fit(X, background=Y), X, background=Y)
    >>> list(refits.summary())
    ['feature', 'component', 'estimate', 'mean', 'sd', 'lower', 'upper', 'excludes_zero']
    >>> refits.sample(5, random_state=0).shape
    (5, 30)
    """

    W: Array
    noise_variance: Array | None
    W_estimate: Array
    n_shown: int
    scaling: Scaling
    kind: str
    method: str
    power: float = 1.0
    divergences: int = 0
    failures: int = 0
    noise_variance_estimate: float | None = None
    by_blocks: bool = False
    seed: int | None = None

    @property
    def loadings(self) -> Array:
        """Loadings of each draw along the axes that are shown, shape (chains, draws, D, k)."""
        return self.W[..., : self.n_shown]

    @property
    def estimate(self) -> Array:
        """The fitted loadings along the axes that are shown, shape (D, k)."""
        return self.W_estimate[:, : self.n_shown]

    @property
    def mean(self) -> Array:
        """Mean of the foreground, shape (D,), in original units."""
        return self.scaling.mean

    @property
    def scale(self) -> Array:
        """What the rows were divided by, shape (D,)."""
        return self.scaling.scale

    @property
    def feature_names(self) -> list[str]:
        """Names of the features."""
        return self.scaling.labels

    # ------------------------------------------------------------------ identified quantities

    def covariance_draws(self) -> Array:
        """A = W W' + sigma2 I of each draw, shape (chains, draws, D, D), in scaled units; PCPCA only."""
        A = self.W @ np.swapaxes(self.W, -1, -2)
        np.einsum("...ii->...i", A)[...] += self._noise()[..., None]
        return A

    def _noise(self) -> Array:
        if self.noise_variance is None:
            raise ValueError("CPCA has no noise variance, so its posterior has no covariance, likelihood or samples.")
        return self.noise_variance

    def bases(self) -> Array:
        """Orthonormal bases of span(W) of each draw, shape (chains, draws, D, d)."""
        return self.loadings if self.noise_variance is None else np.linalg.svd(self.loadings, full_matrices=False)[0]

    def projector(self) -> Array:
        """The mean projector onto span(W) over all draws, shape (D, D): its diagonal is each feature's part."""
        bases = self.bases()
        flat = bases.reshape(-1, *bases.shape[2:])
        stacked = flat.transpose(1, 0, 2).reshape(flat.shape[1], -1)
        return stacked @ stacked.T / flat.shape[0]

    def angles(self) -> Array:
        """Principal angles of each draw's subspace to the estimate's, in radians, shape (chains, draws, d)."""
        return principal_angles(self.bases(), np.linalg.qr(self.estimate)[0])

    # ------------------------------------------------------------------ summaries

    def interval(self, probability: float = 0.9) -> Interval:
        """Lower and upper ends of intervals of the loadings, shape (D, k) each.

        For a posterior, quantiles of its draws. For the bootstrap, the estimate plus and minus a multiple of the
        standard deviation of the refits, which covers better than their quantiles (docs/math.md, F19).

        Parameters
        ----------
        probability : float in (0, 1)
        """
        _check_probability(probability)
        flat = self.loadings.reshape(-1, *self.estimate.shape)
        if self.kind == "bootstrap":
            return normal_interval(self.estimate, flat, probability)
        return _quantile_interval(flat, probability)

    def noise_interval(self, probability: float = 0.9) -> tuple[float, float]:
        """Lower and upper end of an interval of the noise variance.

        Quantiles of a posterior's draws. For the bootstrap the bias that the refits show is subtracted: the model takes
        the largest of noisy eigenvalues, so the estimate of the noise is too small, and in the refits even smaller.
        That works as long as the model has no more latent dimensions than are shown. Others absorb noise, and the
        refits do not reproduce how much, so the interval is refused. It is also refused with gamma="auto": each refit
        chooses its own gamma, and the noise variance depends on it.

        Parameters
        ----------
        probability : float in (0, 1)
        """
        _check_probability(probability)
        draws = self._noise().ravel()
        if self.kind != "bootstrap":
            lower, upper = _quantile_interval(draws, probability)
            return float(lower), float(upper)
        spare = self.W_estimate.shape[1] - self.n_shown
        if spare:
            raise ValueError(
                "The bootstrap has no interval for the noise variance of a model with more latent dimensions than the "
                f"{self.n_shown} shown (here {spare} more). The others absorb noise, and the refits do not reproduce "
                "how much. Use PCPCA, whose dimensions are all shown, or posterior()."
            )
        if self.noise_variance_estimate is None:
            raise ValueError(
                "The bootstrap has no interval for the noise variance with gamma='auto': each refit chooses its own "
                "gamma, and the noise variance depends on it. Fit with gamma=model.gamma_, or use posterior()."
            )
        return corrected_log_interval(self.noise_variance_estimate, draws, probability)

    def summary(self, probability: float = 0.9) -> Table:
        """Mean, standard deviation and interval of every loading.

        Parameters
        ----------
        probability : float in (0, 1)
            Of `interval`.

        Returns
        -------
        Table
            Columns `feature`, `component`, `estimate`, `mean`, `sd`, `lower`, `upper`, `excludes_zero`.
        """
        lower, upper = self.interval(probability)
        D, d = self.estimate.shape
        flat = self.loadings.reshape(-1, D, d)
        columns: dict[str, Any] = {
            "feature": np.repeat(self.feature_names, d),
            "component": np.tile(np.arange(1, d + 1), D),
            "estimate": self.estimate.ravel(),
            "mean": flat.mean(axis=0).ravel(),
            "sd": flat.std(axis=0, ddof=1).ravel(),
            "lower": lower.ravel(),
            "upper": upper.ravel(),
        }
        return Table(columns | {"excludes_zero": (columns["lower"] > 0) | (columns["upper"] < 0)})

    def largest_loadings(self, component: int, n_features: int, probability: float = 0.9) -> dict[str, Any]:
        """The features with the largest loadings: `feature`, `estimate`, `median`, `lower`, `upper`.

        Parameters
        ----------
        component : int
            Counting from 1.
        n_features : int
        probability : float in (0, 1)
            Of `interval`.
        """
        D, d = self.estimate.shape
        if not 1 <= component <= d:
            raise ValueError(f"component={component} must be one of the {d} components, counting from 1.")
        k = component - 1
        order = np.argsort(-np.abs(self.estimate[:, k]), kind="stable")[:n_features]
        lower, upper = (end[order, k] for end in self.interval(probability))
        median = np.median(self.loadings.reshape(-1, D, d)[:, order, k], axis=0)
        found = {"estimate": self.estimate[order, k], "median": median, "lower": lower, "upper": upper}
        return {"feature": [self.feature_names[j] for j in order]} | found

    def diagnostics(self) -> Table:
        """R-hat and effective sample size of identified quantities (A, noise variance, projector), the worst of each.

        Raw loadings are identified up to rotation only, so theirs would mean nothing.
        """
        bases, reference = self.bases(), np.linalg.qr(self.estimate)[0]
        chains, draws, D, _ = bases.shape
        upper = np.triu_indices(D)

        def watched(W: Array, noise: Array | None) -> Array:
            """Every entry of W W' + noise I, or, with many features, its diagonal and its product with the estimate."""
            if D <= MAX_MATRIX:
                A = W @ np.swapaxes(W, -1, -2) if noise is None else self.covariance_draws()
                return A[..., upper[0], upper[1]]
            diagonal = np.sum(W**2, axis=-1) + (0.0 if noise is None else noise[..., None])
            along = W @ (np.swapaxes(W, -1, -2) @ reference)
            return np.concatenate([diagonal, along.reshape(chains, draws, -1)], axis=-1)

        found = {"projector": watched(bases, None)}
        if self.noise_variance is not None:
            found["noise_variance"] = self.noise_variance[..., None]
            found["A"] = watched(self.W, self.noise_variance)
        return Table(
            {
                "quantity": np.array(list(found)),
                "largest R-hat": np.array([float(r_hat(x).max()) for x in found.values()]),
                "least ESS": np.array([float(ess_bulk(x).min()) for x in found.values()]),
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
        rows, _ = self.scaling.check(X)
        D, r = self.W_estimate.shape
        k = self.n_shown
        loadings = self.W.reshape(-1, D, r)
        sigma2 = None if self.noise_variance is None else self.noise_variance.ravel()
        chosen = spread_out(loadings.shape[0], MAX_DRAWS_FOR_LATENTS)
        within, projections = np.zeros((k, k)), []
        for draw in chosen:
            if sigma2 is None:
                projections.append(loadings[draw])
            else:
                model = LatentGaussian(np.zeros(D), loadings[draw], float(sigma2[draw]))
                projections.append(model.projection()[:, :k])
                within += model.latent_covariance()[:k, :k] / chosen.size
        latents = self.scaling.project(rows, np.hstack(projections)).astype(np.float64)
        means = latents.reshape(rows.shape[0], chosen.size, k)
        centred = means - means.mean(axis=1, keepdims=True)
        return means.mean(axis=1), np.einsum("nki,nkj->nij", centred, centred) / chosen.size + within

    def sample(self, n: int, random_state: Any = None) -> Array:
        """Posterior predictive rows: each from a random draw of the parameters, shape (n, D), in original units."""
        random = generator(random_state)
        check_count(n, "n")
        D, r = self.W_estimate.shape
        loadings, sigma2 = self.W.reshape(-1, D, r), self._noise().ravel()
        draws = random.integers(0, sigma2.size, n)
        latent, noise = random.standard_normal((n, r)), random.standard_normal((n, D))
        rows = np.einsum("nij,nj->ni", loadings[draws], latent) + np.sqrt(sigma2[draws])[:, None] * noise
        return self.mean + rows * self.scale

    # ------------------------------------------------------------------ elsewhere

    def save(self, path: Any) -> None:
        """Write the draws to a file that `contrapca.load` reads (npz and JSON, no pickle), atomically.

        Parameters
        ----------
        path : str or path-like
        """
        save(path, self)

    def _check_values(self) -> None:
        """Raise if there are no such draws."""
        shapes = {"W": "cnDr", "noise_variance": "cn", "W_estimate": "Dr"}
        positive, counts = ("power", "noise_variance", "noise_variance_estimate"), ("divergences", "failures", "seed")
        sizes = check_values(self, shapes, positive=positive, not_negative=counts)
        if self.kind not in KINDS:
            raise ValueError(f"its kind is {self.kind!r}")
        if not 0 < self.n_shown <= sizes["r"]:
            raise ValueError(f"it shows {self.n_shown} of {sizes['r']} dimensions")
        if self.scaling.mean.size != sizes["D"]:
            raise ValueError(f"its units have {self.scaling.mean.size} features, and the others {sizes['D']}")

    def to_arviz(self) -> Any:
        """The draws for ArviZ: InferenceData of its versions below 1, DataTree from 1 on."""
        arviz = require("arviz", extra="bayes")
        posterior = {"loadings": self.loadings}
        if self.noise_variance is not None:
            posterior["noise_variance"] = self.noise_variance
        names = {
            "coords": {"feature": self.feature_names, "component": list(range(1, self.estimate.shape[1] + 1))},
            "dims": {"loadings": ["feature", "component"]},
        }
        if int(arviz.__version__.partition(".")[0]) >= 1:
            return arviz.from_dict({"posterior": posterior}, **names)
        return arviz.from_dict(posterior=posterior, **names)

    def __repr__(self) -> str:
        chains, draws, D, d = self.loadings.shape
        if self.kind == "bootstrap":
            return f"Bootstrap({self.method}: {draws} refits, D = {D}, d = {d})"
        return f"ContrastPosterior({self.kind}, {self.method}: {chains} x {draws} draws, D = {D}, d = {d})"

    def _repr_html_(self) -> str:
        return shown_as_html(repr(self), self.summary())


def _check_probability(probability: float) -> None:
    if not 0 < probability < 1:
        raise ValueError(f"probability={probability} must be between 0 and 1.")


def _quantile_interval(draws: Array, probability: float) -> Interval:
    """The equal-tailed interval of draws (n, ...), shape (...) each end."""
    lower, upper = np.quantile(draws, [(1 - probability) / 2, (1 + probability) / 2], axis=0)
    return lower, upper


def normal_interval(estimate: Array, draws: Array, probability: float) -> Interval:
    """estimate -+ z sd of the refits (n, ...): for loadings.

    Each refit is turned towards the estimate, which shortens it as if the estimate were the truth. How far the refits
    scatter tells how far off the estimate is, but their centre does not.
    """
    reach = ndtri((1 + probability) / 2) * draws.std(axis=0, ddof=1)
    return estimate - reach, estimate + reach


def corrected_log_interval(estimate: float, draws: Array, probability: float) -> tuple[float, float]:
    """exp(log estimate - bias -+ z sd), with bias and sd of the logarithms of the refits (n,): for variances."""
    logarithms = np.log(draws)
    centre = 2 * np.log(estimate) - logarithms.mean()
    reach = ndtri((1 + probability) / 2) * logarithms.std(ddof=1)
    return float(np.exp(centre - reach)), float(np.exp(centre + reach))


def _rank_normalised(x: Array) -> Array:
    """Normal scores of the ranks over all chains and draws, shape of x (chains, draws, ...)."""
    shape = x.shape
    flat = x.reshape(shape[0] * shape[1], -1)
    ranks = scipy.stats.rankdata(flat, axis=0, method="average")
    return scipy.special.ndtri((ranks - 0.375) / (flat.shape[0] + 0.25)).reshape(shape)


def split_chains(x: Array) -> Array:
    """Each chain as two of half its length, shape (2 chains, draws // 2, ...)."""
    half = x.shape[1] // 2
    return np.concatenate([x[:, :half], x[:, -half:]])


def r_hat(x: Array) -> Array:
    """Split R-hat, the larger of that of the ranks and that of the folded ranks, for draws (chains, draws, ...)."""
    found = []
    for values in (x, np.abs(x - np.median(x, axis=(0, 1)))):
        z = split_chains(_rank_normalised(values))
        n = z.shape[1]
        within = z.var(axis=1, ddof=1).mean(axis=0)
        between = n * z.mean(axis=1).var(axis=0, ddof=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            found.append(np.where(within > 0, np.sqrt((between / within + n - 1) / n), 1.0))
    return np.maximum(*found)


def ess_bulk(x: Array) -> Array:
    """Effective number of draws for the bulk of the distribution."""
    return effective_size(split_chains(_rank_normalised(x)))


def effective_size(x: Array) -> Array:
    """Effective number of independent draws, by Geyer's initial monotone sequence, for draws (chains, draws, ...)."""
    chains, draws = x.shape[:2]
    flat = x.reshape(chains, draws, -1)
    centred = flat - flat.mean(axis=1, keepdims=True)
    length = scipy.fft.next_fast_len(2 * draws)
    spectrum = np.abs(scipy.fft.rfft(centred, length, axis=1)) ** 2
    covariance = scipy.fft.irfft(spectrum, length, axis=1)[:, :draws].mean(axis=0) / draws  # (draws, k)
    within = covariance[0] * draws / (draws - 1)
    total = within * (draws - 1) / draws
    if chains > 1:
        total = total + flat.mean(axis=1).var(axis=0, ddof=1)
    safe = np.where(total > 0, total, 1.0)
    rho = 1 - (within - covariance) / safe
    rho[0] = 1.0
    pairs = rho[: draws - draws % 2].reshape(-1, 2, rho.shape[1]).sum(axis=1)
    # Sums of neighbouring autocorrelations are positive and fall; from the first that is not on, nothing counts.
    alive = np.cumprod(pairs > 0, axis=0).astype(bool)
    monotone = np.minimum.accumulate(np.where(alive, pairs, 0.0), axis=0)
    tau = np.maximum(-1 + 2 * monotone.sum(axis=0), 1 / np.log10(chains * draws))
    return np.where(total > 0, chains * draws / tau, float(chains * draws)).reshape(x.shape[2:])
