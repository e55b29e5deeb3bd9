"""NUTS draws from a Gibbs posterior, by nutpie."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from .._util.arrays import TINY, Array
from .._util.optional import require
from .._util.progress import Progress
from .._util.threads import calm_threads
from ..contrast import closed_form
from ..exceptions import ImproperPosteriorError, warn

POLL_SECONDS = 0.02  # between two looks at the draws so far

# How far from the mode chains start, in units of the posterior's rough standard deviation.
OVERDISPERSION = 2.0


@dataclass(frozen=True)
class GibbsTarget:
    """log pi(W, sigma2) = w l(W, sigma2), the prior being flat in (W, sigma2), sigma2 >= sigma2_min.

    l depends on the rows through N and C only (F5), and on C, for V = Q'W, only through its eigenvalues.
    """

    N: float  # effective number of rows, n (1 - gamma)
    values: Array  # eigenvalues of C, descending
    d: int
    power: float = 1.0  # w
    sigma2_min: float = 0.0
    n_rows: float | None = None  # n, to say which gamma would do

    @property
    def noise_sum(self) -> float:
        """S = sum of all but the d largest eigenvalues: N (D - d) times the estimate of sigma2."""
        return float(self.values[self.d :].sum())

    @property
    def surplus(self) -> float:
        """w N - (D + d - 1): positive for a proper posterior, above 2 p for E[A^p] to exist."""
        return self.power * self.N - (self.values.size + self.d - 1)

    def check(self) -> None:
        """Refuse an improper posterior; warn where its moments do not exist (F12).

        Proper if w N > D + d - 1 and (S > 0 or sigma2_min > 0); E[A^p] exists iff w N > D + d - 1 + 2 p.
        """
        D, w = self.values.size, self.power
        if self.surplus <= 0:
            raise ImproperPosteriorError(
                f"The posterior is improper: power * N = {w * self.N:.6g}, with N = n (1 - gamma) = "
                f"{self.N:.6g}, must exceed D + d - 1 = {D + self.d - 1} for {D} features and {self.d} latent "
                f"dimensions, or its total mass is infinite. {self._way_out()}a power above "
                f"{(D + self.d - 1) / self.N:.4g}, fewer features, or bootstrap()."
            )
        if self.noise_sum <= 0 and self.sigma2_min <= 0:
            raise ImproperPosteriorError(
                "The posterior is improper: the noise variance would concentrate at 0, since the smallest eigenvalues "
                f"of C add up to {self.noise_sum:.4g}. Use a smaller gamma or n_components, or sigma2_min above 0."
            )
        missing = [power for power in (1, 2) if self.surplus <= 2 * power]
        if missing:
            what = "means and variances" if 1 in missing else "variances"
            warn(
                f"The posterior is proper, but its {what} of A do not exist: power * N = {w * self.N:.6g} does "
                f"not exceed D + d - 1 + {2 * missing[0]} = {D + self.d - 1 + 2 * missing[0]}. Quantiles still mean "
                "something; a smaller gamma or fewer components help."
            )

    def _way_out(self) -> str:
        """Which gamma, or how many latent dimensions, would make the posterior proper."""
        D, w = self.values.size, self.power
        gamma = -1.0 if self.n_rows is None else 1 - (D + self.d - 1) / (w * self.n_rows)
        most = int(np.ceil(w * self.N - D + 1)) - 1
        text = f"Use gamma below {gamma:.4g}, " if gamma > 0 else "Use "
        return text + (f"n_latent={most} or less, " if most >= 1 else "")

    def mode(self) -> tuple[Array, float]:
        """The maximum of l in the eigenbasis, (V, sigma2), shape (D, d) (F2), sigma2 kept above its minimum."""
        D, d = self.values.size, self.d
        floor = max(1.01 * self.sigma2_min, TINY)
        lengths, sigma2 = closed_form(self.values[:d], self.noise_sum, self.N, D, least_sigma2=floor)
        V = np.zeros((D, d))
        V[np.arange(d), np.arange(d)] = np.maximum(lengths, 1e-3 * np.sqrt(sigma2))
        return V, sigma2


def log_density(x: Array, values: Array, N: float, w: float, sigma2_min: float, d: int) -> Any:
    """w l + log(sigma2 - sigma2_min) at x = (V, log(sigma2 - sigma2_min)), and its gradient; O(D d^2) (F12).

    With G = V'V, H = V'Lambda V, M = s I + G and K = M^-1 H M^-1 (s = sigma2): log|A| = (D - d) log s + log|M|,
    q = tr(A^-1 C) = (tr Lambda - tr H M^-1) / s, dl/dv_i = v_i [(lambda_i M^-1 - K) / s - N M^-1],
    dl/ds = 1/2 [(q - tr K) / s - N ((D - d) / s + tr M^-1)]. The density's last summand is the logarithm's Jacobian.
    """
    D = values.size
    V = x[: D * d].reshape(D, d)
    excess = np.exp(x[D * d])
    s = sigma2_min + excess
    G, H = np.zeros((d, d)), np.zeros((d, d))
    for i in range(D):
        for j in range(d):
            for k in range(j + 1):
                product = V[i, j] * V[i, k]
                G[j, k] += product
                H[j, k] += values[i] * product
    for j in range(d):
        for k in range(j):
            G[k, j], H[k, j] = G[j, k], H[j, k]
        G[j, j] += s  # G is M from here on
    if not (np.isfinite(G.sum()) and s > 0 and np.isfinite(1 / s**2)):  # far off: a step that diverged
        return -np.inf, np.zeros(x.size)
    inverse = np.linalg.inv(G)
    K = inverse @ H @ inverse
    q = (values.sum() - np.sum(H * inverse)) / s
    log_determinant = (D - d) * np.log(s) + np.log(np.linalg.det(G / s)) + d * np.log(s)
    value = -0.5 * N * (D * np.log(2 * np.pi) + log_determinant) - 0.5 * q
    gradient = np.empty(x.size)
    for i in range(D):
        for j in range(d):
            total = 0.0
            for k in range(d):
                total += V[i, k] * ((values[i] * inverse[k, j] - K[k, j]) / s - N * inverse[k, j])
            gradient[i * d + j] = w * total
    in_s = 0.5 * ((q - np.trace(K)) / s - N * ((D - d) / s + np.trace(inverse)))
    gradient[D * d] = w * in_s * excess + 1.0
    return w * value + x[D * d], gradient


@cache
def compiled_log_density() -> Callable[..., tuple[float, Array]]:
    """`log_density` in machine code, which is kept beside this file."""
    numba = require("numba", extra="bayes")
    found: Callable[..., tuple[float, Array]] = numba.njit(cache=True, error_model="numpy")(log_density)
    return found


@dataclass(frozen=True)
class NutsDraws:
    """Draws in the eigenbasis."""

    V: Array  # (chains, draws, D, d)
    sigma2: Array  # (chains, draws)
    divergences: int


def sample_nuts(
    target: GibbsTarget, draws: int, tune: int, chains: int, seed: int, *, progress: bool = False, cores: int = 1
) -> NutsDraws:
    """Run NUTS on (V, log(sigma2 - sigma2_min)); the same draws for a seed, on any number of cores.

    One core is the default: calls into Python hold the interpreter's lock, so that two were slower here.
    """
    nutpie = require("nutpie", extra="bayes")
    pyfunc = require("nutpie.compiled_pyfunc", extra="bayes")
    density = compiled_log_density()
    D, d = target.values.size, target.d
    n_dim = D * d + 1
    values = np.ascontiguousarray(target.values, dtype=np.float64)
    arguments = (values, float(target.N), float(target.power), float(target.sigma2_min), d)
    expanded: list[None] = []  # one for each draw so far, of all chains

    def make_log_density() -> Callable[[Array], tuple[float, Array]]:
        def evaluate(x: Array) -> tuple[float, Array]:
            value, gradient = density(x, *arguments)
            if not np.isfinite(value):
                raise _Diverged
            return value, gradient

        return evaluate

    def make_expand(*_: Any) -> Callable[[Array], dict[str, Array]]:
        def expand(x: Array) -> dict[str, Array]:
            expanded.append(None)
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

        def finished() -> bool:
            try:
                return bool(sampler.is_finished)
            except TimeoutError:  # how nutpie 0.16 says no
                return False

        try:
            while not finished():
                time.sleep(POLL_SECONDS)  # an interrupt arrives here; nutpie's own waiting would swallow it
                bar.update(min(len(expanded), total), "draws")
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


def _start(target: GibbsTarget, seed: int) -> Array:
    """A point around the mode, rotated at random (the density does not see rotations), from the seed of a chain."""
    random = np.random.default_rng(seed)
    V, sigma2 = target.mode()
    rotation = np.linalg.qr(random.standard_normal((target.d, target.d)))[0]
    spread = OVERDISPERSION * np.sqrt(sigma2 / (target.power * target.N))
    V = V @ rotation + spread * random.standard_normal(V.shape)
    excess = max(sigma2 - target.sigma2_min, 1e-3 * sigma2)
    return np.append(V.ravel(), np.log(excess) + 0.1 * random.standard_normal())
