"""The base of CPCA and PCPCA: a background, and gamma with its limit."""

from __future__ import annotations

from typing import Any, ClassVar, Self, TypeVar

from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .._checks import check_gamma
from .._util.text import format_gamma
from ..fitting import Fit
from ..methods import Method
from ..moments import raw_gamma
from ._base import Decomposition

Estimator = TypeVar("Estimator", bound=Decomposition)


def fit(
    self: Estimator,
    X: Any,
    y: Any = None,
    *,
    background: Any = None,
    sample_weight: Any = None,
    background_weight: Any = None,
    covariates: Any = None,
    background_covariates: Any = None,
    memory_limit: Any = None,
) -> Estimator:
    """Fit to a foreground and a background.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix of shape (n, D), or Moments
        The foreground (cases); rows are samples. With `background_label`, both groups stacked. PCPCA takes missing
        values (NaN) in both groups.
    y : array-like of shape (n,), optional
        The group of each row. Rows with `y == background_label` are the background. Ignored without
        `background_label`.
    background : array-like, data frame or sparse matrix of shape (m, D), or Moments, or a dict of them, optional
        The background (controls) as a separate table, or several by name, {"batch1": Y1, "batch2": Y2}: each is
        centred by its own mean. In a Pipeline it would bypass the earlier steps: use `background_label` there. Not
        needed for gamma=0.
    sample_weight : array-like of shape (n,), optional
        How often each row of `X` counts, 0 or more: weights are the same as repeated rows.
    background_weight : array-like of shape (m,), or a dict of them, optional
        The same for the rows of `background`.
    covariates, background_covariates : array-like or data frame of shape (n, q), (m, q), optional
        What is known of each row, such as age and sex: its linear effect, the same in both groups, is taken out of
        all rows, which must be dense and in memory. Text is categorical. `transform` and the like then need the
        covariates of new rows. `background_covariates` is a dict if there are several backgrounds; for stacked rows
        `covariates` has one row per row of `X`.
    memory_limit : int or str, optional
        How much memory may be used for blocks of rows from files, memory maps, zarr and HDF5, and for their
        moments: bytes, or text such as "500 MB".

    Returns
    -------
    self
    """
    beside = (sample_weight, background_weight, memory_limit, covariates, background_covariates)
    return self._fit(X, y, background, self._strength(), *beside)


def path_estimator(self: Estimator) -> Estimator:
    """The estimator of the path through this fit, which settles once what all gammas share."""
    return clone(self)  # type: ignore[no-any-return]


class Contrastive(Decomposition):
    """Base of CPCA and PCPCA; not public."""

    _method: ClassVar[Method]

    def __init__(
        self,
        n_components: int = 2,
        *,
        gamma: float | str | dict[str, float] = "auto",
        background_label: Any = None,
        scale: str | None = None,
        solver: str = "auto",
    ):
        self.n_components = n_components
        self.gamma = gamma
        self.background_label = background_label
        self.scale = scale
        self.solver = solver

    fit, _path_estimator = fit, path_estimator

    def _strength(self) -> float | None:
        return check_gamma(self.gamma)

    def _with_strength(self, gamma: float | dict[str, float]) -> Self:
        """Set gamma."""
        return self.set_params(gamma=gamma)  # type: ignore[no-any-return]

    @staticmethod
    def _strength_in_words(gamma: float, limit: str) -> str:
        """The strength of a fit, as the methods of a paper give it; `limit` is its limit, in words."""
        return f" and contrast strength gamma = {format_gamma(gamma)}{limit}"

    def _with_fit(self, fit: Fit) -> Self:
        super()._with_fit(fit)
        self.n_effective_ = fit.n_effective
        self.gamma_ = fit.gamma
        self.gamma_raw_ = raw_gamma(fit.units, fit.gamma)
        return self

    @property
    def gammas_(self) -> dict[str, float]:
        """The gamma of each background by name; they add up to `gamma_`."""
        check_is_fitted(self)
        return self._state.gammas

    @property
    def reconstruction_error_(self) -> float:
        """CPCA's geometric objective at the fit (the paper's Theorem 1), in scaled units.

        Mean squared distance of foreground rows from the components' subspace, minus gamma times that of background
        rows.
        """
        check_is_fitted(self)
        return self._state.reconstruction_loss

    @property
    def gamma_max_(self) -> float:
        """The limit of gamma for these data and n_components, if fit computed it."""
        return self._limit()[0]

    @property
    def gamma_max_is_bound_(self) -> bool:
        """Whether `gamma_max_` is only an upper bound on the limit, because values are missing."""
        return self._limit()[1]

    def _limit(self) -> tuple[float, bool]:
        check_is_fitted(self)
        if self._state.limit is None:
            raise AttributeError(
                f"This {type(self).__name__} has no gamma_max_: fit computes the limit only if gamma='auto' needs it. "
                "contrapca.gamma_limits(X, background=Y, n_components=...) computes it for any table."
            )
        return self._state.limit, self._state.limit_is_bound
