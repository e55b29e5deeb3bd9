"""Contrastive PCA: directions only, no probability model; and the base of all estimators with gamma."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from .._util.arrays import Array
from .._util.checks import check_gamma
from .._util.text import format_gamma
from ..contrast import (
    SEED,
    SPLITS,
    TOLERANCE,
    Fit,
    Halves,
    PathSpectrum,
    Solution,
    Spectrum,
    halves_of,
    solve_cpca,
    solve_path,
    top_eigenpairs,
    unwarned,
)
from ..data import Groups, Tables
from ..missing import Incomplete, filled_draws, usable
from ..moments import Complete, Contrast, Moments, row_units
from ._solve import ContrastSolver


class Contrastive(ContrastSolver):
    """Base of CPCA, SparseCPCA and PCPCA: contrasts with a gamma, which "auto" chooses on held-out rows; not public."""

    _holds_out = True
    _decisive = "gamma"
    _known_as, _source = "a contrast of variances", "Abid 2018"
    gamma: float | str

    def _solve(self, data: Complete | Incomplete, gamma: float | None, tables: Tables | None = None) -> Fit:
        if gamma is not None or tables is None:
            return super()._solve(data, gamma)
        assert isinstance(data, Complete)
        gamma, limit = self._gamma_by_halves(data, halves_of_fit(tables, type(self).__name__))
        return replace(super()._solve(data, gamma), limit=limit)

    def _settled(self, data: Complete | Incomplete, halves: Halves | None = None) -> Self:
        if halves is None or self._strength() is not None:
            return self._with()
        assert isinstance(data, Complete)
        return self._with(gamma=self._gamma_by_halves(data, halves)[0])

    def _attributes(self, fit: Fit) -> dict[str, Any]:
        return super()._attributes(fit) | {"gamma_": fit.gamma, "n_effective_": fit.n_effective}

    def _strength(self) -> float | None:
        return check_gamma(self.gamma)

    def _with_strength(self, gamma: float) -> Self:
        """Set gamma."""
        self.gamma = gamma
        return self

    @staticmethod
    def _strength_in_words(gamma: float, limit: str) -> str:
        return f" and contrast strength gamma = {format_gamma(gamma)}{limit}"

    @property
    def reconstruction_error_(self) -> float:
        """CPCA's geometric objective at the fit (the paper's Theorem 1), in scaled units.

        Mean squared distance of foreground rows from the components' subspace, minus gamma times that of background
        rows.
        """
        return self.fit_.reconstruction_loss

    @property
    def gamma_max_(self) -> float:
        """The limit of gamma for these data and n_components, if fit computed it."""
        if self.fit_.limit is None:
            raise AttributeError(
                f"This {type(self).__name__} has no gamma_max_: fit computes the limit only if gamma='auto' needs it. "
                "contrapca.gamma_limits(X, background=Y, n_components=...) computes it for any table."
            )
        return self.fit_.limit

    @property
    def gamma_max_is_bound_(self) -> bool:
        """Whether `gamma_max_` is only an upper bound on the limit: values are missing, or a large table was searched
        for few directions."""
        _ = self.gamma_max_  # raises if there is none
        return self.fit_.limit_is_bound


class CPCA(Contrastive):
    """Contrastive principal component analysis (Abid et al. 2018).

    Maximises tr V'(cov_X - gamma cov_Y) V over V with orthonormal columns: high variance in the foreground, low
    variance in the background. There is no likelihood, so it cannot score or sample.

    Parameters
    ----------
    n_components : int, default 2
        Number of directions d, 1 <= d < D.
    gamma : float or "auto", default "auto"
        Strength of the contrast (called alpha elsewhere), 0 or more; 0 is PCA of the foreground. "auto" takes the
        gamma whose contrast is most reproducible: axes of one half of the rows along which the cases of the other half
        vary more than its controls, and that the other half finds again. It needs rows, not Moments. If rows come in
        blocks, use `GammaSearch` with `blocks=`.
        Several backgrounds share it by their rows.
    background_label, scale
        As for `PCPCA`.
    solver : {"auto", "eigh", "dual", "lanczos"}, default "auto"
        How the eigenvectors are computed; `solver_` says what "auto" chose and why.

    Attributes
    ----------
    components_ : ndarray of shape (d, D)
        V': unit vectors whose entry of largest magnitude is positive.
    eigenvalues_ : ndarray of shape (d,)
        Largest eigenvalues of cov_X - gamma cov_Y: `explained_variance_ - gamma_ * background_variance_`.
    explained_variance_, background_variance_, explained_variance_ratio_, background_variance_ratio_, mean_, scale_
        As for `PCPCA`, as are `background_mean_`, `background_scale_`, `feature_variance_`,
        `n_effective_`, `solver_` and `n_iter_`.
    gamma_ : float
        The gamma that was used.
    gamma_max_ : float
        With gamma="auto", or from a path: the exact limit, at or above which fewer than d eigenvalues are positive. May
        be inf. `contrapca.gamma_limits` computes it for any table.

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import CPCA
    >>> rng = np.random.default_rng(0)
    >>> controls = rng.normal(size=(200, 4)) * [5, 1, 1, 1]
    >>> cases = rng.normal(size=(200, 4)) * [5, 3, 1, 1]
    >>> CPCA(n_components=1).fit(cases, background=controls).components_.argmax()
    np.int64(1)
    """

    _sampled = True
    _known_as, _source = "contrastive principal component analysis (CPCA)", "Abid 2018"

    def __init__(
        self,
        n_components: int = 2,
        *,
        gamma: float | str = "auto",
        background_label: Any = None,
        scale: str | None = None,
        solver: str = "auto",
    ):
        self.n_components = n_components
        self.gamma = gamma
        self.background_label = background_label
        self.scale = scale
        self.solver = solver

    def _maximum(self, C: Contrast, r: int, start: Array | None = None) -> Solution:
        return solve_cpca(C, top_eigenpairs(C, r, start=start))

    def _path(self, groups: Groups[Moments], gammas: Array, r: int, tolerance: float = TOLERANCE) -> PathSpectrum:
        return solve_path(groups, gammas, r, tolerance)

    def _solution(self, C: Contrast, spectrum: Spectrum) -> Solution:
        return solve_cpca(C, spectrum)


def halves_of_fit(tables: Tables, name: str) -> Halves:
    """Halves of the rows of a fit that are the same on every run; `name` is that of the estimator, for messages."""
    if isinstance(tables.rows.foreground, Moments):
        raise ValueError(
            f"{name}'s gamma='auto' holds rows out, and moments have none: pass gamma=, for example "
            "2.0, or find one with GammaSearch where the rows are."
        )
    rng = np.random.default_rng(SEED)
    with unwarned():  # the fit has warned of rows that are left out
        [tables] = filled_draws(usable(tables, name), 1, rng)
    return halves_of(tables, row_units(tables), SPLITS, rng)
