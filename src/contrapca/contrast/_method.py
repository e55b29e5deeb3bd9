"""The interface of a method: a few operations on contrasts."""

from __future__ import annotations

from typing import Protocol

from .._util.arrays import Array
from ..data import Groups
from ..exceptions import InfeasibleGammaError
from ..moments import Contrast, Moments
from ._eigen import Spectrum
from ._path import TOLERANCE as PATH_TOLERANCE
from ._path import PathSpectrum
from ._solution import Solution


class Method(Protocol):
    """One way to contrast groups.

    Attributes
    ----------
    name : str
    has_likelihood : bool
        Whether there is a probability model, which missing values, densities and samples need.
    logarithmic : bool
        Whether the default grid of gammas is evenly spaced on a logarithmic scale.
    """

    @property
    def name(self) -> str: ...

    @property
    def has_likelihood(self) -> bool: ...

    @property
    def logarithmic(self) -> bool: ...

    def limit(self, groups: Groups[Moments], d: int, near: float = 1.0) -> tuple[float, Array | None]:
        """The exact limit of gamma' (0 if the foreground's rank is at most d), and vectors near the solution there.

        `near` is a guess of the limit, if one is known.
        """

    def solve(self, contrast: Contrast, d: int, start: Array | None = None) -> Solution:
        """The solution with d components; `start` holds vectors near it."""

    def along(self, groups: Groups[Moments], gammas: Array, d: int, tolerance: float = PATH_TOLERANCE) -> PathSpectrum:
        """Directions at increasing gammas, with relative residuals of at most `tolerance`."""

    def complete(self, contrast: Contrast, spectrum: Spectrum) -> Solution:
        """The solution from directions that `along` found."""

    def value(self, contrast: Contrast, solution: Solution) -> float:
        """The objective at a solution."""

    def grid(self, limit: float, points: int) -> Array:
        """`points` gammas below the limit, starting at 0, shape (points,)."""

    def refusal(
        self, gamma: float, limit: float, size: int, parameter: str = "n_components", hint: str = ""
    ) -> InfeasibleGammaError:
        """The error for a gamma at or above the limit for so many dimensions, the value of `parameter`; `hint` is a
        sentence to add."""
