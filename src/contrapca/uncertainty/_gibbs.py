"""Gibbs posteriors of a fitted model: NUTS for the likelihood methods, Bingham draws for CPCA."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks import check_count, check_positive, generator
from .._util.arrays import Array
from .._util.progress import Progress
from ..fitting import Fit
from ..methods import Method
from ..moments import MAX_DENSE, Complete, Incomplete, contrast
from ..subspaces import align
from ._bingham import sample_frames, sample_vectors
from ._diagnostics import MIN_DRAWS
from ._draws import ContrastPosterior
from ._nuts import sample_nuts
from ._target import GibbsTarget


def sample_posterior(
    data: Complete | Incomplete,
    fit: Fit,
    method: Method,
    *,
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    power: float = 1.0,
    sigma2_min: float = 0.0,
    random_state: Any = None,
    progress: bool = True,
) -> ContrastPosterior:
    """Draws from exp(power * objective) under a flat prior, aligned to the fit and checked.

    Parameters
    ----------
    data : Complete or Incomplete
        Those of the fit; incomplete ones are refused.
    fit : Fit
    method : Method
    draws, tune, chains : int
    power, sigma2_min : float
    random_state : None, int, Generator or RandomState
    progress : bool, default True
    """
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
        unit = fit.model.sigma2  # the sampler works in units of the noise, whatever the data's
        target = GibbsTarget(N, values / unit, d, power, sigma2_min / unit, fit.units.foreground.weight)
        target.check()
        found = sample_nuts(target, draws, tune, chains, int(random.integers(2**31)), progress=progress)
        frames, sigma2, divergences = np.sqrt(unit) * found.V, unit * found.sigma2, found.divergences
    else:
        frames = _frames(power * values, d, draws, tune, chains, random, progress)
    posterior = ContrastPosterior(
        W=align(Q @ frames, fit.W),
        noise_variance=sigma2,
        W_estimate=fit.W,
        n_shown=fit.n_shown,
        units=fit.units.foreground,
        kind="gibbs",
        method=method.name,
        power=power,
        divergences=divergences,
        noise_variance_estimate=None if fit.model is None else fit.model.sigma2,
    )
    posterior.check()
    return posterior


def eigenbasis(data: Complete | Incomplete, gamma: float) -> tuple[float, Array, Array]:
    """(N, eigenvalues of C descending, eigenvectors) of a contrast, in model units."""
    if isinstance(data, Incomplete):
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
