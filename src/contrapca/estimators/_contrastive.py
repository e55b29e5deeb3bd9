"""The base of CPCA and PCPCA: a background, and gamma with its limit."""

from __future__ import annotations

from typing import Self

from .._checks import check_gamma
from ._base import Decomposition


class Contrastive(Decomposition):
    """Base of CPCA and PCPCA; not public."""

    _has_gamma = True
    gamma: float | str | dict[str, float]

    def _strength(self) -> float | None:
        return check_gamma(self.gamma)

    def _with_strength(self, gamma: float | dict[str, float]) -> Self:
        """Set gamma."""
        return self.set_params(gamma=gamma)  # type: ignore[no-any-return]

    @property
    def gammas_(self) -> dict[str, float]:
        """The gamma of each background by name; they add up to `gamma_`."""
        return self._state.gammas

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
        return self._limit()[0]

    @property
    def gamma_max_is_bound_(self) -> bool:
        """Whether `gamma_max_` is only an upper bound on the limit, because values are missing."""
        return self._limit()[1]

    def _limit(self) -> tuple[float, bool]:
        if self._state.limit is None:
            raise AttributeError(
                f"This {type(self).__name__} has no gamma_max_: fit computes the limit only if gamma='auto' needs it. "
                "contrapca.gamma_limits(X, background=Y, n_components=...) computes it for any table."
            )
        return self._state.limit, self._state.limit_is_bound
