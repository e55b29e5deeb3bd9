"""Contrastive PCA: directions only, no probability model; and the base of all estimators with gamma."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from .._util.checks import check_gamma
from .._util.text import format_gamma
from ..contrast import CPCA_METHOD, SEED, SPLITS, Fit, Halves, Method, halves_of, unwarned
from ..data import Tables
from ..missing import Incomplete, filled_draws, usable
from ..moments import Complete, Moments, row_units
from ._base import Decomposition


class Contrastive(Decomposition):
    """Base of CPCA and PCPCA; not public."""

    _method: ClassVar[Method]
    _has_gamma = True
    gamma: float | str

    def _path_estimator(self) -> Self:
        """The estimator of the path through this fit, which settles once what all gammas share."""
        return clone(self)  # type: ignore[no-any-return]

    def _strength(self) -> float | None:
        return check_gamma(self.gamma)

    def _with_strength(self, gamma: float) -> Self:
        """Set gamma."""
        return self.set_params(gamma=gamma)  # type: ignore[no-any-return]

    @staticmethod
    def _strength_in_words(gamma: float, limit: str) -> str:
        """The strength of a fit, as the methods of a paper give it; `limit` is its limit, in words."""
        return f" and contrast strength gamma = {format_gamma(gamma)}{limit}"

    @property
    def reconstruction_error_(self) -> float:
        """CPCA's geometric objective at the fit (the paper's Theorem 1), in scaled units.

        Mean squared distance of foreground rows from the components' subspace, minus gamma times that of background
        rows.
        """
        return self._state.reconstruction_loss

    @property
    def gamma_max_(self) -> float:
        """The limit of gamma for these data and n_components, if fit computed it."""
        if self._state.limit is None:
            raise AttributeError(
                f"This {type(self).__name__} has no gamma_max_: fit computes the limit only if gamma='auto' needs it. "
                "contrapca.gamma_limits(X, background=Y, n_components=...) computes it for any table."
            )
        return self._state.limit

    @property
    def gamma_max_is_bound_(self) -> bool:
        """Whether `gamma_max_` is only an upper bound on the limit: values are missing, or a large table was searched
        for few directions."""
        _ = self.gamma_max_  # raises if there is none
        return self._state.limit_is_bound


class ContrastOfVariances(Contrastive):
    """Base of CPCA and SparseCPCA: gamma is chosen on held-out rows; not public."""

    _method = CPCA_METHOD
    _known_as, _source = "contrastive principal component analysis (CPCA)", "Abid 2018"
    _holds_out = True

    def _solve(self, data: Complete | Incomplete, gamma: float | None, tables: Tables | None = None) -> Fit:
        limit = None
        if gamma is None and self._holds_out and tables is not None:
            assert isinstance(data, Complete)
            gamma, limit = gamma_by_halves(tables, self._contrast_gamma, data, type(self).__name__)
        fit = super()._solve(data, gamma)
        return fit if limit is None else replace(fit, limit=limit)

    def _gamma_in_halves(self, halves: Halves, data: Complete) -> float | None:
        gamma = self._strength()
        return self._contrast_gamma(halves, data)[0] if gamma is None and self._holds_out else gamma


class CPCA(ContrastOfVariances):
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


def gamma_by_halves(
    tables: Tables, choose: Callable[[Halves, Complete], tuple[float, float | None]], data: Complete, name: str
) -> tuple[float, float | None]:
    """What `choose` makes of halves that are the same on every run: gamma and its limit; `name` is for messages."""
    if isinstance(tables.rows.foreground, Moments):
        raise ValueError(
            f"{name}'s gamma='auto' holds rows out, and moments have none: pass gamma=, for example "
            "2.0, or find one with GammaSearch where the rows are."
        )
    rng = np.random.default_rng(SEED)
    with unwarned():  # the fit has warned of rows that are left out
        [tables] = filled_draws(usable(tables, name), 1, rng)
    return choose(halves_of(tables, row_units(tables), SPLITS, rng), data)
