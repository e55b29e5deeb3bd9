"""Gibbs posteriors of PCPCA and CPCA (F12, F13), and the power at which their intervals cover."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .._util.arrays import TINY, Array
from .._util.checks import check_count, check_positive, generator
from .._util.progress import Progress
from ..contrast import align
from ..estimators import CPCA, LatentModel
from ..exceptions import ContrastWarning, warn
from ..missing import Incomplete
from ..moments import MAX_DENSE, Complete, contrast
from ._bingham import sample_frames, sample_vectors
from ._bootstrap import bootstrap, repeatable_seed, study_of_fit
from ._draws import MIN_DRAWS, ContrastPosterior
from ._nuts import GibbsTarget, sample_nuts


def posterior(
    model: Any,
    X: Any,
    *,
    background: Any = None,
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    power: float = 1.0,
    sigma2_min: float = 0.0,
    random_state: Any = 0,
    progress: bool = True,
) -> ContrastPosterior:
    """Draw from the Gibbs posterior, whose density is exp(power * objective) under a flat prior; no missing values.

    PPCA and PCPCA: of (W, sigma2), with NUTS; a true posterior for gamma = 0. It depends on the rows only through N and
    C, so its cost does not grow with their number. It exists if power times N = n (1 - gamma) exceeds D + d - 1;
    otherwise an error says what to do. If N is not much larger than D, the flat prior inflates W: trust directions
    (`angles`, `projector`) more than lengths.

    CPCA: of V, a matrix Bingham distribution with density exp(power tr V'C V) on orthonormal frames, which is always
    proper. For one component, draws are exact and independent (`tune` is not used); for more, they come from
    column-wise Gibbs sampling.

    Parameters
    ----------
    model : fitted PPCA, PCPCA, ContraPCA or CPCA
    X : Study, or array-like, data frame or sparse matrix of shape (n, D), or Moments
        The `Study` of the fit, or its foreground. Blocks have no part in a posterior: `calibrate_power` takes them.
    background : array-like, data frame or sparse matrix of shape (m, D), or Moments, or a dict of them, optional
        If `X` is not a Study.
    draws, tune, chains : int
        Draws kept and discarded in each chain, and chains.
    power : float, default 1.0
        Weight of the data: intervals shrink with its square root. With gamma > 0 no likelihood determines it, and for
        CPCA its unit is 1 / variance of the features, so that 1 is not a natural choice. `contrapca.calibrate_power`
        finds the value at which intervals have the right coverage.
    sigma2_min : float, default 0.0
        Lower bound of the noise variance, in scaled units. CPCA has no noise, and no such argument.
    random_state : None, int, Generator or RandomState, default 0
        A seed gives the same draws on any number of cores.
    progress : bool, default True
        Show a progress bar on a terminal or in a notebook if it takes longer than two seconds.

    Returns
    -------
    ContrastPosterior

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import CPCA, posterior
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(200, 5)) * [3, 1, 1, 1, 1], rng.normal(size=(150, 5))
    >>> model = CPCA(1, gamma=0.5).fit(X, background=Y)
    >>> draws = posterior(model, X, background=Y)
    >>> draws
    ContrastPosterior(gibbs, CPCA: 4 x 1000 draws, D = 5, d = 1)
    >>> draws.angles().shape
    (4, 1000, 1)
    """
    if not isinstance(model, LatentModel | CPCA):
        raise TypeError(f"posterior needs a PPCA, PCPCA, ContraPCA or CPCA, not a {type(model).__name__}.")
    data = model._data_again(model._tables_again(study_of_fit(model, X, background, "posterior")))
    fit = model.fit_
    check_count(draws, "draws")
    check_count(chains, "chains")
    check_count(tune, "tune")
    if draws < MIN_DRAWS:
        raise ValueError(f"draws={draws} must be {MIN_DRAWS} or more, for chains to be compared.")
    check_positive(power, "power")
    if not 0 <= sigma2_min < np.inf:
        raise ValueError(f"sigma2_min={sigma2_min} must be 0 or more.")
    if sigma2_min and fit.model is None:
        raise TypeError(f"sigma2_min={sigma2_min} bounds a noise variance, and this model has none: leave it out.")
    N, values, Q = eigenbasis(data, fit.gamma)
    random, sigma2, divergences = generator(random_state), None, 0
    d = fit.n_latent
    if fit.model is not None:
        unit = fit.model.sigma2  # the sampler works in units of the noise
        target = GibbsTarget(N, values / unit, d, power, sigma2_min / unit, fit.scaling.foreground.weight)
        target.check()
        sampled = sample_nuts(target, draws, tune, chains, int(random.integers(2**31)), progress=progress)
        frames, sigma2, divergences = np.sqrt(unit) * sampled.V, unit * sampled.sigma2, sampled.divergences
    else:
        frames = _frames(power * values, d, draws, tune, chains, random, progress)
    found = ContrastPosterior(
        W=align(Q @ frames, fit.W),
        noise_variance=sigma2,
        W_estimate=fit.W,
        n_shown=fit.n_shown,
        scaling=fit.scaling.foreground,
        kind="gibbs",
        method=type(model).__name__,
        power=power,
        divergences=divergences,
        noise_variance_estimate=None if fit.model is None else fit.model.sigma2,
        seed=repeatable_seed(random_state),
    )
    found.check()
    return found


def eigenbasis(data: Complete | Incomplete, gamma: float) -> tuple[float, Array, Array]:
    """(N, eigenvalues of C descending, eigenvectors) of a contrast, in model units."""
    if isinstance(data, Incomplete) or data.filling is not None:
        raise ValueError(
            "posterior() needs complete rows, and values are missing here. bootstrap(X, background=Y) of ContraPCA, "
            "PCPCA and PPCA takes them."
        )
    D = data.groups.foreground.mean.size
    if D > MAX_DENSE:
        raise ValueError(f"With {D} features C is too large (at most {MAX_DENSE}). Use bootstrap(), or fewer features.")
    C = contrast(data.groups, gamma)
    values, Q = np.linalg.eigh(data.feature_matrix(C))
    return C.N, values[::-1].copy(), Q[:, ::-1]


def _frames(
    values: Array, d: int, draws: int, tune: int, chains: int, random: np.random.Generator, progress: bool
) -> Array:
    """Orthonormal frames in the eigenbasis, shape (chains, draws, D, d)."""
    if d == 1:
        return sample_vectors(values, chains * draws, random).reshape(chains, draws, -1, 1)
    sweeps = draws + tune
    found = []
    with Progress("sampling", chains * sweeps, progress) as bar:
        for k, own in enumerate(random.spawn(chains)):
            done = k * sweeps
            found.append(
                sample_frames(values, d, draws, tune, own, lambda sweep, done=done: bar.update(done + sweep, "sweeps"))  # type: ignore[misc]
            )
    return np.stack(found)


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
