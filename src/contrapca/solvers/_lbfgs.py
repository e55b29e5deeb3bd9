"""SciPy's L-BFGS, with its own stopping rules disabled by default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize

from .._util.arrays import Array

MEMORY = 20  # number of stored pairs of steps
GRADIENT_BOUND = 1e-5  # SciPy's own


def minimise(
    loss: Callable[[Array], tuple[float, Array]],
    start: Array,
    *,
    max_iter: int,
    stop: Callable[[Array], bool] | None = None,
    last_range: tuple[float, float] | None = None,
    tol: float = 0.0,
) -> Array:
    """The point where the search ends, shape of `start`.

    Parameters
    ----------
    loss : callable
        Value and gradient at a point.
    start : ndarray
    max_iter : int
    stop : callable, optional
        Called with every iterate; True ends the search.
    last_range : two float, optional
        Bounds of the last variable.
    tol : float, default 0
        Relative change of the loss that ends the search; unless it is 0, SciPy's gradient tolerance ends it too.
    """

    def callback(intermediate_result: scipy.optimize.OptimizeResult) -> None:
        if stop is not None and stop(intermediate_result.x):
            raise StopIteration

    bounds: Any = None if last_range is None else [(None, None)] * (start.size - 1) + [last_range]
    options: Any = {"maxcor": MEMORY, "maxiter": max_iter, "maxfun": 20 * max_iter, "ftol": tol}
    options["gtol"] = GRADIENT_BOUND if tol else 0.0
    found = scipy.optimize.minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=bounds, callback=callback, options=options
    )
    return np.asarray(found.x)
