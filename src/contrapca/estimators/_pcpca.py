"""Probabilistic contrastive PCA."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sklearn.utils.validation import check_is_fitted

from .._checks import check_count, check_option
from .._util.arrays import Array
from .._util.text import listed
from ..exceptions import GroupError, RankError, warn
from ..fitting import Fit, Latents, background_model, shared_components
from ..gaussian import LatentGaussian
from ..groups import Tables
from ..methods import PCPCA_METHOD
from ..moments import Complete, Incomplete
from ._contrastive import Contrastive
from ._likelihood import Likelihood


class PCPCA(Likelihood, Contrastive):
    """Probabilistic contrastive principal component analysis (Li, Jones and Engelhardt).

    Maximises the relative likelihood p(X | W, sigma2) / p(Y | W, sigma2)^gamma_raw of foreground X and background Y,
    in closed form, or by gradients where values are missing (NaN): the fitted model describes what varies in the
    foreground and not in the background.

    Parameters
    ----------
    n_components : int, default 2
        Number of components that are shown: columns of `transform`, 1 <= n_components < D.
    gamma : float or "auto", default "auto"
        Strength of the contrast, in [0, `gamma_max_`) and so below 1: the paper's gamma' = gamma_raw m / n. 0 is PPCA
        of the foreground. "auto" takes 0.97 of the exact limit, a robust choice for finding directions; for densities,
        scores, sampling and imputation use at most half the limit. With missing values only an upper bound of the limit
        is known: "auto" takes 0.97 of it, and less until the fit converges (`gamma_search_`).
    background_label : optional
        Rows with `y == background_label` are the background, for stacked data in pipelines and searches.
    scale : False, "group" or "pooled", default False
        "group" divides each group by its own standard deviations (new rows by the foreground's), "pooled" all rows by
        the within-group ones.
    solver : {"auto", "eigh", "dual", "lanczos", "lbfgs", "adam"}, default "auto"
        For complete rows how the eigenvectors are found; `contrapca.which_solver` tells what "auto" picks. With missing
        values "auto" is "lbfgs". "adam" is the paper's own procedure (step size 0.01, decays 0.9 and 0.999), for
        comparison.
    n_latent : int, "auto" or None, default None
        Latent dimensions of the model, n_components or more; None: n_components. "auto" finds how many the groups have
        above their noise, so that the model has room for what they share.
    axes : {"variance", "contrast"}, default "variance"
        Which directions of the model are shown: the first principal ones, as in the paper, or those in which the
        foreground varies most for what the background varies. "contrast" makes gamma="auto" half the limit.
    mean : {"observed", "gls"}, default "observed"
        With missing values: each group's mean of what is observed, right where values are missing completely at random,
        or its generalised-least-squares mean given the model, right also where observed values decide what is missing.
    n_init : int, default 1
        With missing values: starts of the solver, the first from moments of what is observed, the others random. The
        best is kept.
    max_iter : int, default 1000
        Iterations of each start; a ConvergenceWarning where they do not suffice.
    tol : float, default 1e-6
        Bound of the relative gradient, of the relative change of the objective, and of the relative error of an
        identity that holds at the maximum; all three must hold, or at least to 1e-4 where rounding ends all progress.
    random_state : None, int, Generator or RandomState
        For the random starts.
    verbose : int, default 0
        1 shows the progress of gradient solvers on standard error.

    Attributes
    ----------
    components_ : ndarray of shape (d, D)
        Unit vectors, the entry of largest magnitude positive.
    loadings_ : ndarray of shape (D, d)
        W, in scaled units.
    noise_variance_ : float
        sigma2, in scaled units.
    eigenvalues_ : ndarray of shape (d,)
        Largest eigenvalues of cov_X - gamma cov_Y: `explained_variance_ - gamma_ * background_variance_`.
    explained_variance_, background_variance_ : ndarray of shape (d,)
        Variance (ddof 0) of each group along each component.
    explained_variance_ratio_, background_variance_ratio_ : ndarray of shape (d,)
        The same as shares of each group's total variance.
    mean_, background_mean_, scale_, background_scale_ : ndarray of shape (D,)
    feature_variance_, background_feature_variance_ : ndarray of shape (D,)
    n_latent_ : int
        Latent dimensions of the model.
    axis_ratios_ : ndarray of shape (d,)
        With axes="contrast": how many times more the foreground varies along each axis than the background, noise taken
        into account. On the rows of the fit, so optimistic: `contrapca.held_out_contrast` is not.
    gamma_, gamma_raw_ : float
        What was used, and the same in the paper's raw units, gamma n / m.
    gamma_max_ : float
        With gamma="auto": the exact limit, from which on the relative likelihood has no maximum.
        `contrapca.gamma_limits` computes it for any table.
    gamma_max_is_bound_ : bool
        Whether that is only an upper bound of the limit, as values are missing.
    n_effective_ : float
        N = n (1 - gamma).
    solver_ : SolverChoice
        Which solver ran and why.
    n_iter_ : int
    objective_history_ : ndarray of shape (1 + iterations,)
        The objective after each iteration of a gradient solver; of a closed form its value alone.
    init_objectives_ : ndarray of shape (n_init,)
        What each start reached: their spread tells whether there are several local maxima.
    gamma_search_ : list of dict
        With missing values and gamma="auto": every gamma that was tried, and the outcome. Else empty.
    model_ : LatentGaussian
        The fitted foreground distribution, in scaled units.
    background_model_ : LatentGaussian
        PPCA of the background, in its scaled units; what `contrast_score` compares with. Absent without a background,
        or where that varies in n_components directions or fewer.

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

    _method = PCPCA_METHOD

    def __init__(
        self,
        n_components: int = 2,
        *,
        gamma: float | str = "auto",
        background_label: Any = None,
        scale: bool | str = False,
        solver: str = "auto",
        n_latent: int | str | None = None,
        axes: str = "variance",
        mean: str = "observed",
        n_init: int = 1,
        max_iter: int = 1000,
        tol: float = 1e-6,
        random_state: Any = None,
        verbose: int = 0,
    ):
        super().__init__(n_components, gamma=gamma, background_label=background_label, scale=scale, solver=solver)
        self.n_latent = n_latent
        self.axes = axes
        self.mean = mean
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def _latents(self) -> Latents:
        check_option(self.axes, "axes", ("variance", "contrast"))
        k, n_latent = self.n_components, self.n_latent
        if isinstance(n_latent, str):
            check_option(n_latent, "n_latent", ("auto",))
            return Latents(k, None, self.axes == "contrast")
        if n_latent is not None:
            check_count(n_latent, "n_latent", least=k)
        return Latents(k, k if n_latent is None else n_latent, self.axes == "contrast")

    def _collected(self, tables: Tables) -> Complete | Incomplete:
        r, D = self._latents().n_latent, tables.n_features
        if self.n_latent is not None and r is not None and r >= D:  # n_components alone is checked below
            raise ValueError(f"n_latent={r} is not possible with n_features={D}: it must be less.")
        return super()._collected(tables)

    def _solve(self, data: Complete | Incomplete, gamma: float | None) -> Fit:
        fit = super()._solve(data, gamma)
        if data.groups.background is None:
            return fit
        if gamma is None and not self._latents().contrast_axes and (shared := shared_components(fit)):
            warn(
                f"PCPCA still shows what both groups share: {listed(shared)} of its components (counted from 0) vary "
                "hardly more in the foreground than in the background, although gamma='auto' is near its limit. "
                "ContraPCA has room for what is shared and looks past it; CPCA allows larger gammas."
            )
        return replace(fit, background_model=background_model(data, fit, self._settings()))

    @property
    def n_latent_(self) -> int:
        """Latent dimensions of the model."""
        check_is_fitted(self)
        return self._state.n_latent

    @property
    def axis_ratios_(self) -> Array:
        """Ratios of the foreground's to the background's variance along contrast axes."""
        check_is_fitted(self)
        if self._state.axis_ratios is None:
            raise AttributeError("This model has no axis_ratios_: they belong to axes='contrast', with a background.")
        return self._state.axis_ratios

    @property
    def gamma_search_(self) -> list[dict[str, float | str]]:
        """Every gamma that "auto" tried, where values are missing, and the outcome."""
        check_is_fitted(self)
        return self._state.gamma_search

    @property
    def background_model_(self) -> LatentGaussian:
        """PPCA of the background with the same number of components."""
        check_is_fitted(self)
        if self._state.background_model is None:
            raise AttributeError("This model has no background_model_: see contrast_score.")
        return self._state.background_model

    def contrast_score(self, X: Any) -> Array:
        """How much better the foreground model explains each row than the background does.

        The log-likelihood of the row under the fitted foreground model less that under a PPCA of the
        background with the same number of components: the larger, the more like the foreground. A strong contrast gives
        up likelihood of all rows alike, so that only the order of scores means something then; with gamma at most half
        its limit, 0 is a sensible threshold too.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)

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
        check_is_fitted(self)
        units = self._state.units
        if units.background is None:
            raise GroupError("This model was fitted without a background: there is nothing to compare with.")
        if self._state.background_model is None:
            raise RankError(self.components_.shape[0], "background")
        rows, missing = self._rows(X)
        foreground = self._log_density(self.model_, rows, missing, units.foreground)
        return foreground - self._log_density(self._state.background_model, rows, missing, units.background)
