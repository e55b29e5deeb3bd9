"""Contrasts with a gamma."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

from .._util.checks import check_gamma
from .._util.text import format_gamma
from ..contrast import Fit, Halves
from ..missing import Incomplete
from ..moments import Complete
from ._contrast_solver import Choice, ContrastSolver, check_rank


class HasGamma(ContrastSolver):
    """Base of the methods whose strength is the parameter gamma: CPCA, SparseCPCA, PCPCA and ContraPCA; not public."""

    _decisive = "gamma"
    gamma: float | str
    gamma_: float
    n_effective_: float

    def _strength(self) -> float | None:
        return check_gamma(self.gamma)

    def _with_strength(self, gamma: float) -> Self:
        self.gamma = gamma
        return self

    @staticmethod
    def _strength_in_words(gamma: float, limit: str) -> str:
        return f" and contrast strength gamma = {format_gamma(gamma)}{limit}"

    def _attributes(self, fit: Fit) -> dict[str, Any]:
        return super()._attributes(fit) | {"gamma_": fit.gamma, "n_effective_": fit.n_effective}

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


class Contrastive(HasGamma):
    """Base of CPCA and SparseCPCA: contrasts of variances, whose gamma "auto" chooses on held-out rows; not public."""

    _known_as, _source = "a contrast of variances", "Abid 2018"

    @property
    def _holds_rows_out(self) -> bool:
        return self._strength() is None

    def _fit_to(self, data: Complete | Incomplete, halves: Callable[[], Halves]) -> Fit:
        assert isinstance(data, Complete)
        gamma = self._strength()
        choice = self._gamma_by_halves(data, halves()) if gamma is None else Choice(gamma)
        check_rank(data, self.n_components)
        return replace(self._solve(data, self._latents(), choice.gamma), limit=choice.limit)

    def _for_halves(self, data: Complete, halves: Halves) -> Self:
        return self._with_reproducible_gamma(data, halves)
