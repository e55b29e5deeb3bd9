"""NUTS draws from a Gibbs posterior, by nutpie."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._util.arrays import Array
from .._util.optional import require
from .._util.progress import Progress
from .._util.threads import calm_threads
from ._target import GibbsTarget

POLL_SECONDS = 0.02
# How far from the mode chains start, in units of the posterior's rough standard deviation.
OVERDISPERSION = 2.0


@dataclass(frozen=True)
class NutsDraws:
    """Draws in the eigenbasis.

    Attributes
    ----------
    V : ndarray of shape (chains, draws, D, d)
    sigma2 : ndarray of shape (chains, draws)
    divergences : int
    """

    V: Array
    sigma2: Array
    divergences: int


def sample_nuts(
    target: GibbsTarget, draws: int, tune: int, chains: int, seed: int, *, progress: bool = False, cores: int = 1
) -> NutsDraws:
    """Run NUTS on (V, log(sigma2 - sigma2_min)); the same draws for a seed, whatever the number of cores.

    One core is the default: calls into Python hold the interpreter's lock, so that two were slower here.
    """
    nutpie = require("nutpie", extra="bayes")
    pyfunc = require("nutpie.compiled_pyfunc", extra="bayes")
    from ._kernel import log_density

    D, d = target.values.size, target.d
    n_dim = D * d + 1
    values = np.ascontiguousarray(target.values, dtype=np.float64)
    arguments = (values, float(target.N), float(target.power), float(target.sigma2_min), d)
    counter = _Counter()

    def make_log_density() -> Callable[[Array], tuple[float, Array]]:
        def evaluate(x: Array) -> tuple[float, Array]:
            value, gradient = log_density(x, *arguments)
            if not np.isfinite(value):
                raise _Diverged
            return value, gradient

        return evaluate

    def make_expand(*_: Any) -> Callable[[Array], dict[str, Array]]:
        def expand(x: Array) -> dict[str, Array]:
            counter.count += 1
            return {"x": x}

        return expand

    model = pyfunc.from_pyfunc(
        n_dim,
        make_log_density,
        make_expand,
        [np.dtype(np.float64)],
        [(n_dim,)],
        ["x"],
        make_initial_point_fn=lambda chain_seed: _start(target, chain_seed),
    )
    total = chains * (draws + tune)
    with calm_threads(0), Progress("sampling", total, progress) as bar:
        sampler = nutpie.sample(
            model,
            draws=draws,
            tune=tune,
            chains=chains,
            cores=cores,
            seed=seed,
            save_warmup=False,
            progress_bar=False,
            blocking=False,
        )
        try:
            while not _is_finished(sampler):
                time.sleep(POLL_SECONDS)  # an interrupt arrives here; nutpie's own waiting would swallow it
                bar.update(min(counter.count, total), "draws")
        except BaseException:
            sampler.cancel()
            raise
        bar.update(total, "draws")
        trace = sampler.wait()
    x = np.asarray(trace.posterior["x"])
    if x.shape[:2] != (chains, draws) or np.isnan(x).any():
        raise KeyboardInterrupt  # nutpie returns a short trace, padded with NaN, after an interrupt of its own
    divergences = int(np.asarray(trace.sample_stats["diverging"]).sum())
    sigma2 = target.sigma2_min + np.exp(x[..., -1])
    return NutsDraws(x[..., :-1].reshape(chains, draws, D, d), sigma2, divergences)


class _Diverged(ValueError):
    """A trajectory left the region where the density can be computed; nutpie goes on after errors with this mark."""

    is_recoverable = True


def _is_finished(sampler: Any) -> bool:
    try:
        return bool(sampler.is_finished)
    except TimeoutError:  # how nutpie 0.16 says no
        return False


@dataclass
class _Counter:
    count: int = 0


def _start(target: GibbsTarget, seed: int) -> Array:
    """A point around the mode, rotated at random (the density does not see rotations), from the seed of a chain."""
    random = np.random.default_rng(seed)
    V, sigma2 = target.mode()
    rotation = np.linalg.qr(random.standard_normal((target.d, target.d)))[0]
    spread = OVERDISPERSION * np.sqrt(sigma2 / (target.power * target.N))
    V = V @ rotation + spread * random.standard_normal(V.shape)
    excess = max(sigma2 - target.sigma2_min, 1e-3 * sigma2)
    return np.append(V.ravel(), np.log(excess) + 0.1 * random.standard_normal())
