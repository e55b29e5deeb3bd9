"""ContraPCA: PCPCA whose units, rank and axes suit the data.

From `fit` to the eigensolver: `fit`, in `_base`, makes checked tables of what was passed, without the effect of
covariates, and takes the steps that are written here, from `_prepared` to `_fit_to`. The fifth is `_solve`, in
`_base`, too: it makes the contrast C of the moments, solves it by `top_eigenpairs` and PCPCA's closed form, and chooses
the axes to show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

from .._util.checks import SCALES, check_flag, one_of
from ..contrast import (
    AXES,
    MANY,
    NEARLY_ALL,
    Fit,
    Halves,
    Latents,
    complete_background_model,
    count_above_noise,
    few_directions,
    most_above_noise,
    unwarned,
)
from ..data import Groups, Indices, Tables
from ..missing import Incomplete, collect_incomplete, count_above_wider_noise
from ..moments import Complete, Plateau, pooled, shortened
from ._base import unfitted
from ._pcpca import PCPCA


class ContraPCA(PCPCA):
    """PCPCA with axes, units and rank that suit the data: what varies in the foreground but not in the background.

    The axes shown are those with the largest ratio of foreground to background variance. Simulated noise has a plateau:
    most dimensions vary alike, and those above can be counted. Real noise seldom has one. So the default looks first
    (`plateau_` says what it found): with a plateau in the units given, or after dividing each feature by its
    within-group standard deviation, the axes are those of a model with as many latent dimensions as stand out, which
    leaves room for what both groups share; without one, they are those of all scaled features, with the controls' mean
    variance as floor. It differs from `PCPCA` in four defaults: `scale="auto"`, `axes="auto"`, `n_latent="auto"`, and
    gamma at half its limit, which works for densities, sampling and imputation. All else is PCPCA's.

    Parameters
    ----------
    n_components : int, default 2
        Number of components to show: columns of `transform`, 1 <= n_components < D.
    gamma : float or "auto", default "auto"
        Strength of the contrast, in [0, `gamma_max_`) and so below 1; 0 is PPCA of the foreground. "auto" is half the
        exact limit, which is good for directions and for densities, sampling and imputation alike; with missing values
        it is at most half an upper bound on the limit (`gamma_search_`). Several backgrounds share it by their rows.
    background_label : optional
        Rows with `y == background_label` are the background: for stacked tables, as in pipelines and grid searches.
        Each label of a list is a background of its own.
    scale : {"auto", None, "group", "pooled"}, default "auto"
        What each feature is divided by: nothing (None), the standard deviation of its own group ("group"; new rows by
        the foreground's), or the within-group standard deviation of all rows ("pooled"). "auto" is None or "pooled", as
        the noise asks for; `plateau_` says which.
    axes : {"auto", "variance", "contrast", "ratio"}, default "auto"
        Which directions are shown: those of the model with the largest ratio of foreground to background variance
        ("contrast"); those of the whole space with the largest ratio, with the mean variance of the background as floor
        ("ratio"); or the first principal ones of the model ("variance"; gamma="auto" is then 0.97 of the limit). "auto"
        is "contrast" where the noise has a plateau, and "ratio" where it has none. Units and axes are left to the data
        only as long as `scale`, `axes`, `n_latent` and `gamma` all are "auto": else "auto" means scale=None and
        axes="contrast".
    n_latent : int, "auto" or None, default "auto"
        Number of latent dimensions of the model, n_components or more; None means n_components. "auto" counts the
        dimensions that stand out from the noise in either group, which leaves room for what they share.
    shorten : bool, default True
        Whether rows that are much longer than most, measured from the medians of their group, count as if they were as
        long as is usual: a few far away would otherwise decide the axes. `n_shortened_` counts them. Moments and
        batches have no rows to measure.
    solver : {"auto", "eigh", "dual", "lanczos", "lbfgs"}, default "auto"
        How the eigenvectors of complete rows are computed; `solver_` says what "auto" chose and why. With missing
        values "auto" is "lbfgs". "auto" also fits large sparse tables, and others with 1500 features or more, inside
        the few directions that matter: components are then right to some three digits, `gamma_max_` is an upper bound,
        and the model is a little less likely than the best. The others are exact.
    mean, n_init, max_iter, tol, random_state
        As for `PCPCA`: only with missing values, for the gradient solver.
    progress : bool, default True
        Show a progress bar on a terminal or in a notebook if gradient solvers take longer than two seconds.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, D)
        Unit vectors that rows are projected onto; not orthogonal.
    loadings_ : ndarray of shape (D, n_components)
        How much one unit of each latent adds to a row, in scaled units.
    axis_ratios_ : ndarray of shape (n_components,)
        Ratio of foreground to background variance along each axis; near 1 there is no contrast. Computed on the rows of
        the fit, so it is optimistic; `contrapca.held_out_contrast` is not.
    n_latent_ : int
        Number of latent dimensions of the model.
    gamma_, gamma_max_ : float
        The gamma that was used, and with gamma="auto" its limit.
    plateau_ : Plateau or None
        Whether the noise has a plateau: how many dimensions stand out from it, in which units, and, printed, a sentence
        that says what follows. None if units and axes were given.
    n_shortened_ : int
        Number of rows, of all groups, that were shortened.
    shortened_ : dict of ndarray of int
        Which rows of each table these are, counted from 0: of the "foreground", and of each background by its name.
    mean_, scale_, explained_variance_, background_variance_, noise_variance_, model_, fit_ and others
        As for `PCPCA`.

    Examples
    --------
    >>> from contrapca import ContraPCA
    >>> from contrapca.datasets import make_hidden_clusters
    >>> data = make_hidden_clusters(random_state=0)
    >>> model = ContraPCA(n_components=2).fit(data.foreground, background=data.background)
    >>> model.transform(data.foreground).shape, model.n_latent_
    ((400, 2), 8)
    """

    _known_as = "ContraPCA, a form of probabilistic contrastive principal component analysis"
    _decisive = "n_latent"
    _parameter_checks: ClassVar = PCPCA._parameter_checks | {
        "scale": one_of("auto", *SCALES),
        "axes": one_of("auto", *AXES),
        "shorten": check_flag,
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        gamma: float | str = "auto",
        background_label: Any = None,
        scale: str | None = "auto",
        solver: str = "auto",
        n_latent: int | str | None = "auto",
        axes: str = "auto",
        shorten: bool = True,
        mean: str = "observed",
        n_init: int | str = "auto",
        max_iter: int = 1000,
        tol: float = 1e-6,
        random_state: Any = None,
        progress: bool = True,
    ):
        self.n_components = n_components
        self.gamma = gamma
        self.background_label = background_label
        self.scale = scale
        self.solver = solver
        self.n_latent = n_latent
        self.axes = axes
        self.shorten = shorten
        self.mean = mean
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.progress = progress

    # ------------------------------------------------------------------ the fit, step by step

    def _prepared(self, tables: Tables) -> Tables:
        """1. Rows far from most count less (F42)."""
        return shortened(tables) if self.shorten else tables

    def _collected(self, tables: Tables) -> Complete | Incomplete:
        """2. Moments, in units as given or divided by within-group standard deviations, as the noise asks for (F41)."""
        tables = self._prepared(tables)  # paths and comparisons begin here; what is prepared already stays as it is
        data = super()._collected(tables)
        return in_best_units(data, tables, self.n_components, self.solver) if self._left_to_data else data

    def _fit_to(self, data: Complete | Incomplete, halves: Callable[[], Halves]) -> Fit:
        """3. Rank. 4. gamma, half its limit. 5. The maximum, and the axes that are shown. 6. PPCA of the background."""
        if isinstance(data, Incomplete):
            return self._by_gradients(data)
        if self.solver == "auto":
            data = few_directions(data, self._latents(), self._strength())  # of large tables (F49)
        latents = self._ranked(data, self._strength())  # F24
        chosen = self._gamma_by_limit(data, latents)  # F3
        fit = self._solve(data, latents, chosen)  # F1 and F2, and F16 or F41 for the axes
        return replace(fit, background_model=complete_background_model(data, fit.n_latent))  # for `contrast_score`

    # ------------------------------------------------------------------ what is left to the data

    @property
    def _left_to_data(self) -> bool:
        """Whether the data decide on units and axes; what a user sets works as it is."""
        return all(isinstance(own, str) and own == "auto" for own in (self.scale, self.axes, self.n_latent, self.gamma))

    @property
    def _scaling(self) -> str | None:
        return None if self.scale == "auto" else self.scale

    def _latents(self, n_features: int | None = None) -> Latents:
        axes = "contrast" if self.axes == "auto" and not self._left_to_data else self.axes
        return Latents.asked(self.n_components, self.n_latent, axes, n_features)

    # ------------------------------------------------------------------ subsets of the rows, and paths

    def _settled(self, data: Complete | Incomplete, halves: Halves | None = None) -> Self:
        scale = self._scaling if data.plateau is None else data.plateau.scale
        return unfitted(super()._settled(data, halves), scale=scale)

    def _tuned(self, data: Complete | Incomplete, halves: Halves) -> Self:
        return self._settled(data)

    def _path_estimator(self) -> Self:
        fit = self.fit_
        scale = self._scaling if fit.plateau is None else fit.plateau.scale
        return unfitted(super()._path_estimator(), scale=scale, axes=fit.axes)

    # ------------------------------------------------------------------ results

    @property
    def plateau_(self) -> Plateau | None:
        """Whether the noise has a plateau, and what followed for units and axes."""
        return self.fit_.plateau

    @property
    def n_shortened_(self) -> int:
        """Number of rows, of all groups, that were shortened."""
        return sum(own.size for own in self.shortened_.values())

    @property
    def shortened_(self) -> dict[str, Indices]:
        """Which rows of each group's table were shortened, counted from 0, by the group's name."""
        known: Groups[Indices] | None = self.fit_.shortened
        return {} if known is None else dict(zip(known.names, known, strict=True))


def in_best_units(data: Complete | Incomplete, tables: Tables, d: int, solver: str) -> Complete | Incomplete:
    """Data in the units given, in those in which their noise has a plateau, and with the reason (F41)."""
    rows = min(group.weight for group in data.groups)
    most = most_above_noise(data.groups.foreground.mean.size, rows, rows)
    many, bound = MANY * most, NEARLY_ALL * most
    if isinstance(data, Complete):
        q, found = count_above_noise(data.groups, many)
        counts: tuple[int, ...] = (q,)
        if q >= many:
            with unwarned():
                data = pooled(data, tables, d, solver)
            q, found = count_above_noise(data.groups, bound)
            counts += (q,)
        data = replace(data, strongest=found)
    else:
        counts = (count_above_wider_noise(data.groups),)
        if counts[0] >= many:
            with unwarned():
                data = collect_incomplete(tables, "pooled")
            counts += (count_above_wider_noise(data.groups),)
    return replace(data, plateau=Plateau(counts, bound))
