"""`Fit`: everything an estimator reports, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._files import ROUNDING, check_values
from .._util.arrays import Array
from .._util.checks import check_count, check_option
from ..data import Groups, Regression, Scaling
from ..exceptions import GroupError
from ..moments import Filling, Indices, Plateau, SolverChoice, factors, mixed
from ._gaussian import LatentGaussian

# Fraction of the exact limit that gamma="auto" takes: with the paper's axes (F15), and with contrast axes (F16).
AUTO_FRACTION, CONTRAST_FRACTION = 0.97, 0.5

SHARED_RATIO = 1.5  # a component that varies less than this many times more in the foreground may be shared
UNIT_LENGTH = 1e-5  # how far a component's length in a file may be from 1
AXES = ("variance", "contrast", "ratio")  # kinds of axes that can be shown

Step = dict[str, float | str]  # one step of a search for gamma: a value and its outcome


@dataclass(frozen=True)
class Settings:
    """Settings of a gradient solver."""

    mean: str = "observed"  # or "gls"
    n_init: int | None = 1  # None: as many as the observed values ask for
    max_iter: int = 1000
    tol: float = 1e-6
    random_state: Any = None
    progress: bool = False


@dataclass(frozen=True)
class Latents:
    """How many latent dimensions a model has, and which axes are shown.

    These are the first principal ones ("variance"), or those with the largest ratio of foreground to background
    variance, in the model's subspace (F16: "contrast") or in the whole space (F41: "ratio"); "auto" is settled with the
    data.
    """

    n_shown: int  # k
    n_latent: int | None  # r >= k; None: to be found from the spectra of the groups (F16)
    axes: str = "variance"

    @classmethod
    def asked(cls, k: int, n_latent: int | str | None, axes: str, n_features: int | None) -> Latents:
        """The latents that an estimator's parameters ask for, checked; also against `n_features`, if it is known."""
        if n_latent is None:
            return cls(k, k, axes)
        if isinstance(n_latent, str):
            check_option(n_latent, "n_latent", ("auto",))
            return cls(k, None, axes)
        check_count(n_latent, "n_latent", least=k)
        if n_features is not None and n_latent >= n_features:
            raise ValueError(f"n_latent={n_latent} is not possible with n_features={n_features}: it must be smaller.")
        return cls(k, n_latent, axes)

    @property
    def contrast_axes(self) -> bool:
        """Whether axes are chosen by ratios of variances."""
        return self.axes != "variance"

    @property
    def rank(self) -> int:
        """r, which must be known."""
        assert self.n_latent is not None
        return self.n_latent

    def within(self, weight: float, n_features: int) -> Latents:
        """With at most as many latent dimensions as some rows of a fit leave room for (F3)."""
        room = int(min(weight - 2, n_features - 1))
        return replace(self, n_latent=max(min(self.rank, room), self.n_shown))

    @property
    def parameter(self) -> str:
        """The parameter of which r is the value: what errors name."""
        return "n_components" if self.rank == self.n_shown else "n_latent"

    @property
    def auto_fraction(self) -> float:
        """Fraction of the limit that gamma="auto" takes."""
        return CONTRAST_FRACTION if self.contrast_axes else AUTO_FRACTION


def settled(plateau: Plateau | None, latents: Latents) -> Latents:
    """`latents` with the kind of axes that the data ask for, if that was left to them."""
    if latents.axes != "auto":
        return latents
    return replace(latents, axes="contrast" if plateau is None else plateau.axes)


@dataclass(frozen=True)
class Fit:
    """A solved contrast; arrays in model (scaled) units and float64.

    Attributes
    ----------
    scaling : Groups of Scaling
    components : ndarray of shape (D, k)
        Unit directions that rows are projected onto.
    variances : Groups of ndarray of shape (k,)
        Variance along each component, ddof 0.
    totals : Groups of float
        Sum of the variances of all features.
    gamma : float
        Of all backgrounds together, shared by their rows (F20).
    objective : float
    n_iter : int
    solver : SolverChoice
    model : LatentGaussian or None
        N(mean, W W' + sigma2 I) with r latent dimensions, the shown ones first; None without a probability model.
    inside : Groups of float
        Variance of each group inside the model's subspace.
    axis_ratios : ndarray of shape (k,) or None
        theta of contrast axes: ratios of foreground to background variance.
    eigenvalues : ndarray of shape (k,) or None
        Eigenvalues of C / n.
    background_model : LatentGaussian or None
        PPCA of the background.
    limit : float or None
        Limit of gamma, if it was computed.
    limit_is_bound : bool
        Whether that is only an upper bound: values are missing, or only few directions were searched (F49).
    at_limit : bool
        Whether gamma was chosen as a fraction of the limit.
    history : ndarray of shape (n_iter + 1,)
        The objective after each iteration; a single value for the closed form.
    gamma_search : list of dict
        How "auto" found gamma.
    covariates : Regression or None
        What was regressed out of the rows first.
    axes : {"variance", "contrast", "ratio"}
        Which axes are shown.
    plateau : Plateau or None
        What decided on units and axes, if that was left to the data (F41).
    shortened : Groups of ndarray of int, or None
        Which rows of the tables count less because they are long (F42); None if nobody has looked.
    filling : Filling or None
        What missing values of rows are replaced by, if the fit had some and no probability model (F45).
    design : str or None
        What the groups are weighted rows of, if they are no populations: "a dose (concentration)".
    """

    scaling: Groups[Scaling]
    components: Array
    variances: Groups[Array]
    totals: Groups[float]
    gamma: float
    objective: float
    n_iter: int
    solver: SolverChoice
    model: LatentGaussian | None
    inside: Groups[float]
    axis_ratios: Array | None = None
    eigenvalues: Array | None = None
    background_model: LatentGaussian | None = None
    limit: float | None = None
    limit_is_bound: bool = False
    at_limit: bool = False
    history: Array = field(default_factory=lambda: np.empty(0))
    gamma_search: list[Step] = field(default_factory=list)
    covariates: Regression | None = None
    axes: str = "variance"
    plateau: Plateau | None = None
    shortened: Groups[Indices] | None = None
    filling: Filling | None = None
    design: str | None = None

    def _check_values(self) -> None:
        """Raise if no contrast has these."""
        shapes = {"components": "Dk", "variances": "k", "axis_ratios": "k", "eigenvalues": "k"}
        shapes["history"] = "*"
        not_negative = ("gamma", "n_iter", "axis_ratios", "variances", "totals")
        sizes = check_values(self, shapes, finite=("objective", "inside"), not_negative=not_negative)
        D, k = sizes["D"], sizes["k"]
        same_groups(self.scaling, self.variances, self.totals, self.inside, self.shortened)
        models = [model for model in (self.model, self.background_model) if model is not None]
        widths = {own.mean.size for own in (*self.scaling, *models)}
        widths |= set() if self.covariates is None else {self.covariates.coefficients.shape[1]}
        widths |= set() if self.filling is None else {self.filling.noise.size}
        if widths != {D} or not k < D or (self.model is not None and not k <= self.model.W.shape[1] < D):
            raise ValueError("its sizes are impossible")
        if not np.allclose(np.linalg.norm(self.components, axis=0), 1, rtol=0, atol=UNIT_LENGTH):
            raise ValueError("its components are not of unit length")
        reach = ROUNDING * max(self.totals)
        if not all(-reach <= part <= total + reach for part, total in zip(self.inside, self.totals, strict=True)):
            raise ValueError("the variance inside its subspace is impossible")
        if self.axes not in AXES or (self.axes == "variance") != (self.axis_ratios is None):
            raise ValueError(f"its axes {self.axes!r} do not fit what it holds")
        if self.limit is not None and not self.limit >= 0:
            raise ValueError(f"its limit {self.limit} is impossible")
        if not all(float(step["gamma"]) >= 0 and isinstance(step["outcome"], str) for step in self.gamma_search):
            raise ValueError("its search for gamma is impossible")
        if any(own.dtype.kind != "i" or own.ndim != 1 or np.any(own < 0) for own in self.shortened or ()):
            raise ValueError("its shortened rows are impossible")

    @property
    def n_shown(self) -> int:
        """The number of axes that are shown, k."""
        return self.components.shape[1]

    @property
    def n_latent(self) -> int:
        """The number of latent dimensions, r."""
        return self.W.shape[1]

    @property
    def latents(self) -> Latents:
        """How many latent dimensions there are, and which are shown."""
        return Latents(self.n_shown, self.n_latent, self.axes)

    @property
    def W(self) -> Array:
        """W of all latent dimensions, shape (D, r); the components if there is no model."""
        return self.components if self.model is None else self.model.W

    @property
    def loadings(self) -> Array:
        """W along the axes shown, shape (D, k)."""
        return self.W[:, : self.n_shown]

    @property
    def maps_missing(self) -> bool:
        """Whether rows with missing values have latents: by the probability model, or filled in (F45)."""
        return self.model is not None or self.filling is not None

    @property
    def decoder(self) -> Array:
        """From latents back to rows, shape (D, k): W, or V (V'V)^-1 if there is no model, which is V if orthonormal.

        Ratio axes may vary so little that W would shrink them to nothing: rows then get exactly the latents given.
        """
        if self.model is None:
            return np.linalg.pinv(self.components).T
        if self.axes != "ratio":
            return self.loadings
        return np.linalg.solve((self.projection.T @ self.loadings).T, self.loadings.T).T

    @property
    def projection(self) -> Array:
        """P of shape (D, k): the latent coordinates of a complete row x are (x - mean) P."""
        return self.components if self.model is None else self.model.projection()[:, : self.n_shown]

    @property
    def factors(self) -> Array:
        """The factor of each group's covariance in C / n: 1, and -gamma for all backgrounds together."""
        return factors(self.scaling, self.gamma)

    @property
    def contrasted(self) -> Array:
        """u'C u / n along each component: the foreground's variance minus gamma times the background's, shape (k,)."""
        return np.tensordot(self.factors, list(self.variances), 1)

    @property
    def n_effective(self) -> float:
        """N = n (1 - gamma)."""
        return self.scaling.foreground.weight * (1 - self.gamma)

    @property
    def reconstruction_loss(self) -> float:
        """CPCA's loss: variance outside the model's subspace, minus gamma times that of the background."""
        outside = [total - inside for total, inside in zip(self.totals, self.inside, strict=True)]
        return float(np.dot(self.factors, outside))

    @property
    def shares(self) -> Groups[Array]:
        """Fraction of each group's total variance along each component, shape (k,)."""
        return self.variances.map(share_of, self.totals)


def refuse_design(fit: Fit, what: str) -> None:
    """Raise if the groups of a fit are no populations, which `what` is about."""
    if fit.design is not None:
        raise GroupError(
            f"{what} needs a population, but this model was fitted to {fit.design}, whose groups are weighted rows of "
            "several cells: fit two groups for it."
        )


def same_groups(scaling: Groups[Scaling], *others: Groups[Any] | None) -> None:
    """Raise unless all are of the same groups, and features."""
    if any(other is not None and other.names != scaling.names for other in others):
        raise ValueError("its groups do not fit each other")
    if any(own.names != scaling.foreground.names for own in scaling):
        raise ValueError("its groups have other features")


def share_of(along: Array, total: Array | float) -> Array:
    """Variance along components as a fraction of the total; 0 if there is no variance."""
    total = np.asarray(total)
    return np.divide(along, total, out=np.zeros_like(along), where=total > 0)


def shared_components(fit: Fit) -> list[int]:
    """Components along which the foreground varies less than 1.5 times as much as the background, on the fit's rows.

    Ratios on the rows of the fit are too large, especially with few rows: a strong direction that both groups share has
    a ratio near 1, pure noise a ratio of 2 to 20. So a ratio below 1.5 means that the component is shared, whatever the
    number of rows.
    """
    if not fit.variances.backgrounds:
        return []
    background = mixed(fit.scaling, fit.variances)
    return np.flatnonzero(fit.variances.foreground < SHARED_RATIO * background).tolist()
