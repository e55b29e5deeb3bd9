"""How much is missing in tables, and whether groups differ in it (F45)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._util.arrays import Array
from ..groups import Groups

DRAWS = 7  # of thinned masks: where both groups lack 30 %, the power is .44, and .34 with three
LEAST_APART = 0.02  # mean difference of rates that is mentioned


@dataclass(frozen=True)
class Missing:
    """How much is missing in the foreground and the background, as shares of all values.

    Attributes
    ----------
    foreground, background : float
    differ : bool
        Whether some features are missing more often in one of the groups than chance makes likely.
    """

    foreground: float
    background: float
    differ: bool

    def __str__(self) -> str:
        words = f"{self.foreground:.1%} of the cases' and {self.background:.1%} of the controls' values are missing."
        if not self.differ:
            return words
        return (
            f"{words} The groups differ in what is missing, so the result holds only if whether a value is missing "
            "does not depend on the value itself, as it does below a limit of detection."
        )


def missing_of(rows: Groups[Array]) -> Missing:
    """How much is missing in two groups, and whether they differ in it.

    They differ if the features' rates do by .02 on average, and by one and a half times as much as by chance.
    """
    n, m = rows.map(len)
    x, y = rows.map(lambda X: np.isnan(X).mean(axis=0))
    rate = (n * x + m * y) / (n + m)
    by_chance = np.mean(np.sqrt(2 / np.pi * rate * (1 - rate) * (1 / n + 1 / m)))
    apart = float(np.abs(x - y).mean())
    return Missing(float(x.mean()), float(y.mean()), bool(apart >= max(LEAST_APART, 1.5 * by_chance)))
