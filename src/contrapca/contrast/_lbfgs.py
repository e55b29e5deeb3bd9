"""SciPy's L-BFGS, with its own stopping rules disabled by default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize

from .._util.arrays import Array

# Stored pairs of steps: more for many variables, where an evaluation costs more than what is done with the pairs, and
# few again where they would fill the memory.
FEWEST_PAIRS, MOST_PAIRS, VARIABLES_PER_PAIR, STORED_NUMBERS = 20, 80, 100, 8_000_000

GRADIENT_BOUND = 1e-5  # SciPy's own
POLISHING_STEPS, CLEARLY = 20, 0.9  # last steps, and how much each must shorten the gradient


def minimise(
    loss: Callable[[Array], tuple[float, Array]],
    start: Array,
    *,
    max_iter: int,
    stop: Callable[[Array], bool] | None = None,
    last_range: tuple[float, float] | None = None,
    tol: float = 0.0,
    polish: float | None = None,
) -> Array:
    """The point where the search ends, shape of `start`.

    Parameters
    ----------
    loss : callable
        Value and gradient at a point.
    stop : callable, optional
        Called with every iterate; True ends the search.
    last_range : two float, optional
        Bounds of the last variable.
    tol : float, default 0
        Relative change of the loss that ends the search; unless it is 0, SciPy's gradient tolerance ends it too.
    polish : float, optional
        Length of the gradient down to which a few last steps are taken, unless `max_iter` ended the search. Near the
        minimum the loss is flat to rounding, which then decides where a search ends; these steps are judged by the
        gradient alone.
    """

    def callback(intermediate_result: scipy.optimize.OptimizeResult) -> None:
        if stop is not None and stop(intermediate_result.x):
            raise StopIteration

    bounds: Any = None if last_range is None else [(None, None)] * (start.size - 1) + [last_range]
    n_pairs = min(start.size // VARIABLES_PER_PAIR, STORED_NUMBERS // start.size)
    n_pairs = min(max(n_pairs, FEWEST_PAIRS), MOST_PAIRS)
    options: Any = {"maxcor": n_pairs, "maxiter": max_iter, "maxfun": 20 * max_iter, "ftol": tol}
    options["gtol"] = GRADIENT_BOUND if tol else 0.0
    found = scipy.optimize.minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=bounds, callback=callback, options=options
    )
    out_of_budget = found.status == 1
    return np.asarray(found.x) if polish is None or out_of_budget else _polished(loss, found, polish, last_range)


def _polished(
    loss: Callable[[Array], tuple[float, Array]], found: Any, target: float, last_range: tuple[float, float] | None
) -> Array:
    """Quasi-Newton steps from where SciPy ended, with its curvature, as long as they shorten the gradient clearly."""
    least, most = (-np.inf, np.inf) if last_range is None else last_range
    theta, gradient = np.asarray(found.x), loss(found.x)[1]
    steps, changes = list(found.hess_inv.sk), list(found.hess_inv.yk)
    kept = max(len(steps), FEWEST_PAIRS)
    for _ in range(POLISHING_STEPS):
        if not steps or np.linalg.norm(gradient) <= target:
            break
        inverse = scipy.optimize.LbfgsInvHessProduct(np.array(steps[-kept:]), np.array(changes[-kept:]))
        step = -inverse.matvec(gradient)
        if not least <= theta[-1] + step[-1] <= most:
            break
        after = loss(theta + step)[1]
        if not np.linalg.norm(after) < CLEARLY * np.linalg.norm(gradient):
            break
        if step @ (after - gradient) > 0:
            steps, changes = [*steps, step], [*changes, after - gradient]
        theta, gradient = theta + step, after
    return theta
