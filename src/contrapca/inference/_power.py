"""The power of a Gibbs posterior, so that its intervals cover."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .._util.arrays import TINY
from .._util.checks import check_count, generator
from ..exceptions import ContrastWarning, warn
from ._bootstrap import bootstrap
from ._posterior import posterior


def calibrate_power(
    model: Any,
    X: Any,
    *,
    background: Any = None,
    n_resamples: int = 200,
    draws: int = 500,
    rounds: int = 2,
    random_state: Any = 0,
    progress: bool = True,
) -> float:
    """The power at which the Gibbs posterior is as wide as the sampling distribution.

    Spread is measured by the mean squared sine of the principal angles between a subspace and the fitted one, which is
    proportional to 1 / power for concentrated posteriors: that of the draws is made equal to that of
    `bootstrap`, so that credible regions of the subspace cover as often as they should.

    Parameters
    ----------
    model : fitted PPCA, PCPCA or CPCA
    X : Study, or array-like, data frame or sparse matrix of shape (n, D)
        The `Study` of the fit, or its foreground. Blocks are resampled as a whole, and the posterior becomes as wide.
    background : array-like, data frame or sparse matrix of shape (m, D), or a dict of them, optional
        If `X` is not a Study.
    n_resamples : int, default 200
        Bootstrap refits.
    draws : int, default 500
        Draws in each of 4 chains and each round.
    rounds : int, default 2
        Posteriors that are drawn; each corrects the power once.
    random_state : None, int, Generator or RandomState, default 0
    progress : bool, default True

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import CPCA, bootstrap, calibrate_power, posterior
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(200, 5)) * [3, 1, 1, 1, 1], rng.normal(size=(150, 5))
    >>> model = CPCA(1, gamma=0.5).fit(X, background=Y)
    >>> w = calibrate_power(model, X, background=Y, draws=100)
    >>> draws = posterior(model, X, background=Y, power=w)
    >>> refits = bootstrap(model, X, background=Y)
    >>> bool(0.7 < draws.angles().mean() / refits.angles().mean() < 1.4)  # equally wide
    True
    """
    check_count(rounds, "rounds")
    random = generator(random_state)
    drawing: dict[str, Any] = {"background": background, "random_state": random, "progress": progress}
    refits = bootstrap(model, X, n_resamples=n_resamples, **drawing)
    wanted = float(np.mean(np.sin(refits.angles()) ** 2))
    if hasattr(model, "noise_variance_"):
        D, r = model.fit_.W.shape  # all latent dimensions, also those that are not shown
        least = float((D + r + 4) / model.n_effective_)  # below it the posterior or its variances do not exist
        rate = max(1.0, least)
    else:  # CPCA: start from the inverse of its noise, half the mean of the variance that is left
        left, (d, D) = float(model.feature_variance_.sum() - model.explained_variance_.sum()), model.components_.shape
        least, rate = 0.0, 0.5 * (D - d) / max(left, TINY)
    wide = rate
    for _ in range(rounds):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ContrastWarning)  # few draws are enough for a mean
            drawn = posterior(model, X, draws=draws, tune=draws, power=rate, **drawing)
        wide = rate * float(np.mean(np.sin(drawn.angles()) ** 2)) / wanted
        rate = max(wide, least)
    if rate > wide:
        warn(
            f"Intervals would cover at power={wide:.3g}, but the posterior and its variances exist from "
            f"{rate:.3g} on only, which is returned: its intervals are too narrow. Use a smaller gamma or fewer "
            "components, or take intervals from bootstrap()."
        )
    return rate
