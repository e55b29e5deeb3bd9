"""How an estimator is fitted where rows are held out.

These functions are methods of all estimators; those that find their axes otherwise have their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._util.arrays import Array
from ..contrast import Halves, Training, contrast_gamma
from ..data import Groups
from ..moments import Complete
from ._solve import fold_directions, resolved


def trained(self: Any, training: Training) -> Complete:
    """The data of a fit to what a fold leaves."""
    data = training if isinstance(training, Complete) else self._collected(training)
    assert isinstance(data, Complete)
    return data


def gamma_in_halves(self: Any, halves: Halves, data: Complete) -> float | None:
    """The gamma of all halves, of which `data` are all rows; None if each finds its own."""
    return self._strength()  # type: ignore[no-any-return]


def chosen_gamma(self: Any, halves: Halves, data: Complete) -> tuple[float, float | None]:
    """The gamma that is chosen by halves of the rows, and its limit."""
    return contrast_gamma(halves, self._trained, data, self._method, resolved(data, self._latents()))


def tune(self: Any, halves: Halves, data: Complete) -> None:
    """Choose what is to be chosen before methods are compared."""
    if self._strength() is None:
        self._with_strength(self._contrast_gamma(halves, data)[0])


def directions(self: Any, data: Complete, gamma: float | None) -> Callable[[Training], Groups[Array]]:
    """From training rows to axes (D, k) in each group's units; the rank is that of all rows, `data`."""
    return fold_directions(data, self._method, self._latents(), gamma, self._settings(), self._trained)
