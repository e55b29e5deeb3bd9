"""What a method is to the rest of the package: a few operations on contrasts."""

from __future__ import annotations

from typing import Protocol

from .._util.arrays import Array
from ..groups import Groups
from ..moments import Contrast, Moments
from ..solvers import Solution, Spectrum


class Method(Protocol):
    """One way to contrast groups.

    Attributes
    ----------
    name : str
    has_likelihood : bool
        Whether there is a probability model: missing values, densities and samples then make sense.
    """

    @property
    def name(self) -> str: ...

    @property
    def has_likelihood(self) -> bool: ...

    def limit(self, groups: Groups[Moments], d: int) -> tuple[float, Array | None]:
        """The exact limit of gamma', 0 if the foreground's rank is at most d, and vectors near the solution there."""

    def solve(self, contrast: Contrast, d: int, start: Array | None = None) -> Solution:
        """The solution with d components; `start` holds vectors near it."""

    def complete(self, contrast: Contrast, spectrum: Spectrum) -> Solution:
        """The solution from the top eigenpairs of the contrast, for methods that are a matter of these."""

    def value(self, contrast: Contrast, solution: Solution) -> float:
        """The objective at a solution."""

    def grid(self, limit: float, points: int) -> Array:
        """`points` gammas below the limit, shape (points,), from 0 on."""

    def refusal(self, limit: float, d: int) -> tuple[str, str]:
        """Why there is no solution from the limit on, and what to do besides choosing a smaller gamma."""
