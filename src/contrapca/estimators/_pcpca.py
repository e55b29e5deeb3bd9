"""Probabilistic contrastive PCA, with the paper's defaults (PCPCA) and with those that find directions (ContraPCA)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

from .._util.arrays import Array, put
from .._util.checks import SCALES, auto_or, check_n_components, check_positive, count, one_of
from .._util.text import listed
from ..contrast import (
    AXES,
    MANY,
    NEARLY_ALL,
    TOLERANCE,
    Fit,
    Halves,
    LatentGaussian,
    Latents,
    PathSpectrum,
    Settings,
    Solution,
    Spectrum,
    Training,
    automatic_rank,
    complete_background_model,
    count_above_noise,
    feasible_rank,
    few_directions,
    in_original_units,
    most_above_noise,
    pcpca_grid,
    pcpca_limit,
    pcpca_refusal,
    ratio_axes,
    relative_log_likelihood,
    settled,
    shared_components,
    solve_path,
    solve_pcpca,
    top_eigenpairs,
    unwarned,
)
from ..data import Groups, Indices, Tables
from ..exceptions import InfeasibleGammaError, RankError, warn
from ..missing import (
    Incomplete,
    collect,
    collect_incomplete,
    count_above_wider_noise,
    fit_incomplete,
    incomplete_background_model,
    masked_rank,
)
from ..moments import (
    SPECTRAL,
    Complete,
    Contrast,
    Moments,
    Plateau,
    Subspace,
    check_solver_for,
    contrast,
    pooled,
    shortened,
)
from ._base import Decomposition
from ._cpca import Contrastive
from ._likelihood import Likelihood
from ._rows import log_ratio
from ._solve import ContrastSolver, lifted


class RelativeLikelihood(Likelihood, ContrastSolver):
    """Base of PPCA, PCPCA and ContraPCA, which maximise the relative likelihood; not public.

    In closed form for complete rows (F2), by gradients if values are missing.
    """

    n_components: int
    mean: str
    n_init: int | str
    max_iter: int
    tol: float
    random_state: Any
    progress: bool

    _parameter_checks: ClassVar = Decomposition._parameter_checks | {
        "solver": one_of("auto", *SPECTRAL, "lbfgs"),
        "mean": one_of("observed", "gls"),
        "n_init": auto_or(count()),
        "max_iter": count(),
        "tol": check_positive,
    }

    # ------------------------------------------------------------------ the mathematics

    def _maximum(self, C: Contrast, r: int, start: Array | None = None) -> Solution:
        return solve_pcpca(C, top_eigenpairs(C, r, start=start))

    def _limit(self, groups: Groups[Moments], r: int, near: float = 1.0) -> tuple[float, Array | None]:
        return pcpca_limit(groups, r, near)

    def _path(self, groups: Groups[Moments], gammas: Array, r: int, tolerance: float = TOLERANCE) -> PathSpectrum:
        return solve_path(groups, gammas, r, tolerance)

    def _solution(self, C: Contrast, spectrum: Spectrum) -> Solution:
        return solve_pcpca(C, spectrum)

    def _objective(self, C: Contrast, solution: Solution) -> float:
        W = solution.spectrum.vectors * solution.lengths
        return relative_log_likelihood(C, W, W * solution.spectrum.values, solution.sigma2)

    def _grid(self, limit: float, points: int) -> Array:
        return pcpca_grid(limit, points)

    def _refusal(
        self, gamma: float, limit: float, r: int, parameter: str = "n_components", hint: str = ""
    ) -> ValueError:
        return pcpca_refusal(gamma, limit, r, parameter, hint)

    # ------------------------------------------------------------------ the fit

    def _settings(self) -> Settings:
        """Those of gradient solvers."""
        n_init = None if isinstance(self.n_init, str) else int(self.n_init)
        return Settings(self.mean, n_init, self.max_iter, self.tol, self.random_state, bool(self.progress))

    def _collected(self, tables: Tables) -> Complete | Incomplete:
        self._latents(tables.n_features)
        check_solver_for(tables, self.solver)
        d, scale = check_n_components(self.n_components, tables.n_features), self._scaling
        return collect_incomplete(tables, scale) if self.solver == "lbfgs" else collect(tables, d, scale, self.solver)

    def _solve(self, data: Complete | Incomplete, gamma: float | None, tables: Tables | None = None) -> Fit:
        latents = settled(data.plateau, self._latents())
        if isinstance(data, Incomplete):
            return fit_incomplete(data, latents, gamma, self._settings())
        return self._in_closed_form(data, latents, gamma)

    def _in_closed_form(self, data: Complete, latents: Latents, gamma: float | None) -> Fit:
        """The fit to complete rows; gamma is a part of its limit if it is None."""
        groups, start, limit = data.groups, None, None
        if latents.n_latent is None:
            latents = replace(latents, n_latent=counted_rank(data, latents.n_shown, gamma))
        if gamma is None:
            limit, start = self._limit(groups, latents.rank)  # F3
            if limit == 0:
                raise RankError(latents.rank, parameter=latents.parameter)
            gamma = latents.auto_fraction * limit
        fit = self._fit_at(data, latents, gamma, start)  # F1, F2, and F16 for the axes
        if limit is None:
            return fit
        return replace(fit, limit=limit, at_limit=True, limit_is_bound=isinstance(data.basis, Subspace))

    # ------------------------------------------------------------------ subsets of the rows

    def _axes_of(self, training: Training) -> Groups[Array]:
        data, gamma, latents = self._trained(training), self._strength(), self._latents()
        if gamma is not None and not latents.contrast_axes:
            return super()._axes_of(data)
        if gamma is None or latents.axes == "ratio":  # ratio axes do not depend on gamma
            axes = self._automatic_axes(data, latents)
            if axes is not None:
                return axes
        groups = data.groups
        try:
            known = latents.within(groups.foreground.weight, groups.foreground.mean.size)
            fit = self._in_closed_form(data, known, gamma)
        except InfeasibleGammaError:  # the rank gives way
            fit = self._in_closed_form(data, replace(latents, n_latent=None), gamma)
        return in_original_units(fit.components, data)

    def _automatic_axes(self, data: Complete, latents: Latents) -> Groups[Array] | None:
        """The axes that are shown at the gamma of "auto", in each group's original units; None where rounding hides the
        foreground."""
        groups = data.groups
        if latents.axes == "ratio" and (known := ratio_axes(groups, latents.n_shown)) is not None:
            return in_original_units(data.vectors(known[1]), data)
        latents = latents.within(groups.foreground.weight, groups.foreground.mean.size)
        limit, start = self._limit(groups, latents.rank)
        while limit == 0 and latents.rank > latents.n_shown:  # few rows that count more than once: the rank gives way
            latents = replace(latents, n_latent=latents.rank - 1)
            limit, start = self._limit(groups, latents.rank)
        if limit == 0:
            raise RankError(latents.rank, parameter=latents.parameter)
        found = self._shown(groups, latents, latents.auto_fraction * limit, start)
        if found is None:
            return None
        C, solution, _, shown = found
        return in_original_units(lifted(data, C, solution) @ shown.directions, data)


class PCPCA(RelativeLikelihood, Contrastive):
    """Probabilistic contrastive principal component analysis (Li, Jones and Engelhardt).

    Maximises the relative likelihood p(X | W, sigma2) / p(Y | W, sigma2)^gamma_raw of foreground X and background Y, in
    closed form, or by gradients if values are missing (NaN). The fitted model describes what varies in the foreground
    but not in the background.

    Parameters
    ----------
    n_components : int, default 2
        Number of components to show: columns of `transform`, 1 <= n_components < D.
    gamma : float or "auto", default "auto"
        Strength of the contrast, in [0, `gamma_max_`) and so below 1: the paper's gamma' = gamma_raw m / n. 0 is PPCA
        of the foreground. "auto" takes 0.97 of the exact limit, a robust choice for finding directions; for densities,
        scores, sampling and imputation use at most half the limit. With missing values only an upper bound on the limit
        is known: "auto" starts at 0.97 of it and goes down until the fit converges (`gamma_search_`).
        Several backgrounds share it by their rows.
    background_label : optional
        Rows with `y == background_label` are the background: for stacked tables, as in pipelines and grid searches.
        Each label of a list is a background of its own.
    scale : {None, "group", "pooled"}, default None
        "group" divides each group by its own standard deviations (new rows by the foreground's); "pooled" divides all
        rows by the within-group standard deviations.
    solver : {"auto", "eigh", "dual", "lanczos", "lbfgs"}, default "auto"
        How the eigenvectors of complete rows are computed; `solver_` says what "auto" chose and why. With missing
        values "auto" is "lbfgs".
    n_latent : int, "auto" or None, default None
        Number of latent dimensions of the model, n_components or more; None means n_components. "auto" counts the
        dimensions that stand out from the noise in either group, which leaves room for what they share.
    axes : {"variance", "contrast", "ratio"}, default "variance"
        Which directions are shown: the first principal ones of the model, as in the paper ("variance"); those of the
        model with the largest ratio of foreground to background variance ("contrast"); or those of the whole space with
        the largest ratio, with the mean variance of the background as floor ("ratio"). With the last two, gamma="auto"
        is half the limit.
    mean : {"observed", "gls"}, default "observed"
        Only with missing values. "observed" is each group's mean of the observed values, which is correct if values are
        missing completely at random. "gls" is the generalised-least-squares mean given the model, which is also correct
        if observed values decide which values are missing.
    n_init : int or "auto", default "auto"
        Only with missing values: number of starts of the solver. The first uses moments of the observed values, the
        others are random; the best is kept. "auto" is 1, but if, on average, two features are both observed in fewer
        than 20 foreground rows for each latent dimension, several maxima are common: it then ends when the best
        was found three times, after at most 8 starts.
    max_iter : int, default 1000
        Maximum number of iterations of each start; a ConvergenceWarning says if they were not enough.
    tol : float, default 1e-6
        Tolerance for the relative gradient, the relative change of the objective and the relative error of an identity
        that holds at the maximum. All three must be met, or be below 1e-4 if rounding prevents further progress.
    random_state : None, int, Generator or RandomState
        Random seed for the random starts; None with n_init="auto" is the seed 0.
    progress : bool, default True
        Show a progress bar on a terminal or in a notebook if gradient solvers take longer than two seconds.

    Attributes
    ----------
    components_ : ndarray of shape (d, D)
        Unit vectors whose entry of largest magnitude is positive.
    loadings_ : ndarray of shape (D, d)
        W, in scaled units.
    noise_variance_ : float
        sigma2, in scaled units.
    eigenvalues_ : ndarray of shape (d,)
        Largest eigenvalues of cov_X - gamma cov_Y: `explained_variance_ - gamma_ * background_variance_`.
    explained_variance_, background_variance_ : ndarray of shape (d,)
        Variance (ddof 0) of each group along each component. With several backgrounds this and all other attributes of
        the background are dicts, by name.
    explained_variance_ratio_, background_variance_ratio_ : ndarray of shape (d,)
        The same as fractions of each group's total variance.
    mean_, background_mean_, scale_, background_scale_ : ndarray of shape (D,)
    feature_variance_ : ndarray of shape (D,)
        Variance (ddof 0) of each feature in the foreground; `feature_table` has those of all groups.
    n_latent_ : int
        Number of latent dimensions of the model.
    axis_ratios_ : ndarray of shape (d,)
        With axes="contrast" or "ratio": ratio of foreground to background variance along each axis, noise taken into
        account.
        Computed on the rows of the fit, so it is optimistic; `contrapca.held_out_contrast` is not.
    gamma_ : float
        The gamma that was used; in the paper's raw units it is `gamma_` n / m.
    gamma_max_ : float
        With gamma="auto": the exact limit, at or above which the relative likelihood has no maximum.
        `contrapca.gamma_limits` computes it for any table.
    gamma_max_is_bound_ : bool
        Whether that is only an upper bound on the limit, because values are missing, or, with `ContraPCA`, because a
        large table was only searched for few directions.
    covariate_names_ : ndarray of shape (q,)
        With covariates: the columns of numbers that stand for them, such as "age" and "sex=M".
    covariate_coefficients_ : ndarray of shape (q, D)
        What one unit of each adds to each feature; taken out of all rows.
    n_effective_ : float
        N = n (1 - gamma).
    solver_ : SolverChoice
        Which solver ran and why.
    n_iter_ : int
    objective_history_ : ndarray of shape (1 + iterations,)
        The objective after each iteration of a gradient solver; a single value for the closed form.
    gamma_search_ : list of dict
        With missing values and gamma="auto": every gamma that was tried, and the outcome. Otherwise empty.
    model_ : LatentGaussian
        The fitted foreground distribution, in scaled units.
    background_model_ : LatentGaussian
        PPCA of the background in its scaled units, which `contrast_score` compares with. Absent if there is no
        background, or if it varies in at most n_components directions.
    fit_ : Fit
        All of this as plain values, for programs.

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import PCPCA
    >>> rng = np.random.default_rng(0)
    >>> controls = rng.normal(size=(200, 4)) * [5, 1, 1, 1]
    >>> cases = rng.normal(size=(200, 4)) * [5, 3, 1, 1]
    >>> model = PCPCA(n_components=1).fit(cases, background=controls)
    >>> model.components_.argmax()
    np.int64(1)
    >>> 0 < model.gamma_ < model.gamma_max_ <= 1
    True
    """

    _holds_out = False
    _parameter_checks: ClassVar = RelativeLikelihood._parameter_checks | {"axes": one_of(*AXES)}
    _known_as, _source = "probabilistic contrastive principal component analysis (PCPCA)", "Li 2020"

    def __init__(
        self,
        n_components: int = 2,
        *,
        gamma: float | str = "auto",
        background_label: Any = None,
        scale: str | None = None,
        solver: str = "auto",
        n_latent: int | str | None = None,
        axes: str = "variance",
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
        self.mean = mean
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.progress = progress

    def _latents(self, n_features: int | None = None) -> Latents:
        return Latents.asked(self.n_components, self.n_latent, self.axes, n_features)

    def _solve(self, data: Complete | Incomplete, gamma: float | None, tables: Tables | None = None) -> Fit:
        fit = super()._solve(data, gamma, tables)
        if not data.groups.backgrounds:
            return fit
        if gamma is None and not self._latents().contrast_axes and (shared := shared_components(fit)):
            warn(
                f"PCPCA still shows what both groups share: along component{'s' * (len(shared) > 1)} "
                f"{listed([k + 1 for k in shared])} the foreground varies barely more than the background, although "
                "the automatic gamma is near its limit. "
                "ContraPCA models shared variation without showing it; CPCA allows larger gammas."
            )
        if isinstance(data, Complete):
            return replace(fit, background_model=complete_background_model(data, fit.n_latent))
        return replace(fit, background_model=incomplete_background_model(data, fit, self._settings()))

    def _settled(self, data: Complete | Incomplete, halves: Halves | None = None) -> Self:
        latents = settled(data.plateau, self._latents())
        if latents.n_latent is not None:
            return self._with(axes=latents.axes)
        k, gamma = latents.n_shown, None if halves is None else self._strength()
        rank = counted_rank(data, k, gamma) if isinstance(data, Complete) else masked_rank(data.groups, k)
        return self._with(axes=latents.axes, n_latent=rank)

    def _tuned(self, data: Complete, halves: Halves) -> Self:
        alike = self._settled(data)
        if self._strength() is not None:
            return alike
        return alike._with_strength(alike._gamma_by_halves(data, halves)[0])

    def _path_estimator(self) -> Self:
        return self._with() if self.n_latent is None else self._with(n_latent=self.n_latent_)

    @property
    def n_latent_(self) -> int:
        """Number of latent dimensions of the model."""
        return self.fit_.n_latent

    @property
    def axis_ratios_(self) -> Array:
        """Ratios of foreground to background variance along contrast axes."""
        if self.fit_.axis_ratios is None:
            raise AttributeError(
                "This model has no axis_ratios_: they need axes='contrast' or 'ratio', and a background."
            )
        return put(self.fit_.axis_ratios, self._place)

    @property
    def gamma_search_(self) -> list[dict[str, float | str]]:
        """Every gamma that "auto" tried with missing values, and the outcome."""
        return self.fit_.gamma_search

    @property
    def background_model_(self) -> LatentGaussian:
        """PPCA of the background with the same number of components."""
        if self.fit_.background_model is None:
            raise AttributeError("This model has no background_model_: see contrast_score.")
        return self.fit_.background_model

    def contrast_score(self, X: Any, *, covariates: Any = None) -> Array:
        """How much better the foreground model explains each row than the background model.

        The log-likelihood of the row under the foreground model, minus that under a PPCA of the background with the
        same number of components: the larger, the more the row looks like foreground. A strong contrast lowers the
        likelihood of all rows, so then only the order of the scores is meaningful. With gamma at most half its limit, 0
        is also a sensible threshold.

        Parameters
        ----------
        X, covariates
            As for `transform`.

        Returns
        -------
        log_ratio : ndarray of shape (n,)

        Examples
        --------
        >>> import numpy as np
        >>> from contrapca import PCPCA
        >>> rng = np.random.default_rng(0)
        >>> X, Y = rng.normal(size=(200, 5)) * [3, 1, 1, 1, 1], rng.normal(size=(200, 5))
        >>> model = PCPCA(1, gamma=0.3).fit(X, background=Y)
        >>> model.contrast_score([[6, 0, 0, 0, 0], [0, 0, 0, 0, 0]]) > 0
        array([ True, False])
        """
        return log_ratio(self.fit_, *self._rows(*self._known_rows(X, covariates)))


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
        Number of components to show.
    scale : {"auto", None, "group", "pooled"}, default "auto"
        "auto" is None or "pooled", as the noise asks for; `plateau_` says which. The others are as for `PCPCA`.
    axes : {"auto", "variance", "contrast", "ratio"}, default "auto"
        "auto" is "contrast" where the noise has a plateau, and "ratio" where it has none. The others are as for
        `PCPCA`. Units and axes are left to the data only as long as `scale`, `axes`, `n_latent` and `gamma` all are
        "auto": else "auto" means scale=None and axes="contrast".
    shorten : bool, default True
        Whether rows that are much longer than most, measured from the medians of their group, count as if they were as
        long as is usual: a few far away would otherwise decide the axes. `n_shortened_` counts them. Moments and
        batches have no rows to measure.
    solver : {"auto", "eigh", "dual", "lanczos", "lbfgs"}, default "auto"
        As for `PCPCA`. Besides, "auto" fits large sparse tables, and others with 1500 features or more, inside the few
        directions that matter: components are then right to some three digits, `gamma_max_` is an upper bound, and the
        model is a little less likely than the best. The others are exact.
    gamma, background_label, n_latent, mean, n_init, max_iter, tol, random_state, progress
        As for `PCPCA`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, D)
        Unit vectors that rows are projected onto; not orthogonal.
    loadings_ : ndarray of shape (D, n_components)
        How much one unit of each latent adds to a row, in scaled units.
    axis_ratios_, n_latent_
        As for `PCPCA`; near a ratio of 1 there is no contrast.
    plateau_ : Plateau or None
        Whether the noise has a plateau: how many dimensions stand out from it, in which units, and, printed, a sentence
        that says what follows. None if units and axes were given.
    n_shortened_ : int
        Number of rows, of all groups, that were shortened.
    shortened_ : dict of ndarray of int
        Which rows of each table these are, counted from 0: of the "foreground", and of each background by its name.

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

    @property
    def _left_to_data(self) -> bool:
        """Whether the data decide on units and axes; what a user sets works as it is."""
        return all(isinstance(own, str) and own == "auto" for own in (self.scale, self.axes, self.n_latent, self.gamma))

    @property
    def _scaling(self) -> str | None:
        return None if self.scale == "auto" else super()._scaling

    def _latents(self, n_features: int | None = None) -> Latents:
        axes = "contrast" if self.axes == "auto" and not self._left_to_data else self.axes
        return Latents.asked(self.n_components, self.n_latent, axes, n_features)

    def _prepared(self, tables: Tables) -> Tables:
        return shortened(tables) if self.shorten else tables

    def _collected(self, tables: Tables) -> Complete | Incomplete:
        tables = self._prepared(tables)
        data = super()._collected(tables)
        return in_best_units(data, tables, self.n_components, self.solver) if self._left_to_data else data

    def _solve(self, data: Complete | Incomplete, gamma: float | None, tables: Tables | None = None) -> Fit:
        if self.solver == "auto" and isinstance(data, Complete):
            data = few_directions(data, self._latents(), gamma)
        return super()._solve(data, gamma, tables)

    def _settled(self, data: Complete | Incomplete, halves: Halves | None = None) -> Self:
        alike = super()._settled(data, halves)
        alike.scale = self._scaling if data.plateau is None else data.plateau.scale
        return alike

    def _tuned(self, data: Complete, halves: Halves) -> Self:
        return self._settled(data)

    def _path_estimator(self) -> Self:
        alike, fit = super()._path_estimator(), self.fit_
        alike.scale = self._scaling if fit.plateau is None else fit.plateau.scale
        alike.axes = fit.axes
        return alike

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


def counted_rank(data: Complete, k: int, gamma: float | None) -> int:
    """The number of latent dimensions that the groups suggest, or fewer, with a warning, if gamma allows no more."""
    wanted = automatic_rank(data, k)
    if gamma is None or (r := feasible_rank(contrast(data.groups, gamma), wanted)) == wanted:
        return wanted
    if r >= k:
        warn(
            f"gamma={gamma:.6g} is above the limit for the {wanted} latent dimensions that these tables suggest, so "
            f"the model has only {r}. For all {wanted}, use gamma='auto' or a smaller gamma."
        )
    return max(r, k)


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
