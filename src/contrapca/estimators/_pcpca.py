"""Probabilistic contrastive PCA, with the defaults of the paper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

from .._util.arrays import Array, put
from .._util.checks import one_of
from .._util.text import Said, listed
from ..contrast import AXES, Fit, Halves, LatentGaussian, Latents, refuse_design, shared_components
from ..exceptions import GroupError, RankError, warn
from ..missing import Incomplete
from ..moments import Complete
from ._base import Contrastive, unfitted
from ._likelihood import LatentModel, log_density
from ._new_rows import new_rows


class PCPCA(LatentModel, Contrastive):
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

    n_latent: int | str | None
    axes: str

    _parameter_checks: ClassVar = LatentModel._parameter_checks | {"axes": one_of(*AXES)}
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

    # ------------------------------------------------------------------ the fit

    def _latents(self, n_features: int | None = None) -> Latents:
        return Latents.asked(self.n_components, self.n_latent, self.axes, n_features)

    def _fit_to(self, data: Complete | Incomplete, halves: Callable[[], Halves]) -> Fit:
        fit = super()._fit_to(data, halves)
        if self._strength() is None and fit.axes == "variance" and (shared := shared_components(fit)):
            numbers = f"component{'s' * (len(shared) > 1)} {listed([k + 1 for k in shared])}"
            groups = Said(
                "the foreground varies barely more than the background", "cases hardly vary more than controls"
            )
            warn(
                (
                    f"PCPCA still shows what both groups share: along {numbers} ",
                    groups,
                    ", although the automatic gamma is near its limit. ContraPCA models shared variation without "
                    "showing it; CPCA allows larger gammas.",
                )
            )
        return fit

    # ------------------------------------------------------------------ subsets of the rows, and paths

    def _settled(self, data: Complete | Incomplete, halves: Halves | None = None) -> Self:
        # An automatic gamma stays so: it is a part of each subset's own limit.
        latents = self._ranked(data, None if halves is None else self._strength())
        alike = unfitted(self, axes=latents.axes)
        return unfitted(alike, n_latent=latents.n_latent) if isinstance(self.n_latent, str) else alike

    def _path_estimator(self) -> Self:
        return unfitted(self) if self.n_latent is None else unfitted(self, n_latent=self.n_latent_)

    # ------------------------------------------------------------------ results

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
        refuse_design(self.fit_, "contrast_score")
        fit = self.fit_
        others = fit.scaling.backgrounds
        if not others:
            raise GroupError("This model was fitted without a background: there is nothing to compare with.")
        if len(others) > 1:
            raise GroupError(
                f"contrast_score compares with one background, but this model has {len(others)}: fit one against each "
                "of them."
            )
        if fit.background_model is None:
            raise RankError(fit.n_latent, "background", fit.latents.parameter)
        rows, missing = new_rows(self, X, covariates)
        own = log_density(self.model_, fit.scaling.foreground, rows, missing)
        return own - log_density(fit.background_model, others[0], rows, missing)
