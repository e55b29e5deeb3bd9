"""Draws from Gibbs posteriors: effective draws per second against Stan, and our own bounds."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from contrapca import CPCA, PCPCA, Study, posterior
from contrapca.inference import _draws as diagnostics
from contrapca.inference._posterior import eigenbasis

# The density as one would write it down: the determinant and the inverse of A, flat priors.
STAN = """
data { int D; int d; real N; matrix[D, D] C; }
parameters { matrix[D, d] W; real<lower=0> sigma2; }
model {
  matrix[D, D] A = add_diag(W * W', sigma2);
  target += -0.5 * N * log_determinant(A) - 0.5 * trace(inverse(A) * C);
}
"""


def tables(n: int, m: int, D: int) -> tuple[Any, Any]:
    """Foreground with two directions of its own over a nuisance direction both groups have."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((n, D)), rng.standard_normal((m, D))
    X[:, :2] *= [4, 3]
    X[:, 2] *= 2
    Y[:, 2] *= 2
    return X, Y


def least_ess(W: Any, sigma2: Any) -> float:
    """The least bulk ESS over sigma2, the diagonal and one column of A."""
    diagonal, column = np.sum(W**2, axis=-1) + sigma2[..., None], np.einsum("cnjk,cnk->cnj", W, W[:, :, 0])
    watched = np.concatenate([diagonal, column, sigma2[..., None]], axis=-1)
    return float(diagnostics.ess_bulk(watched).min())


def ours(D: int, n: int, m: int) -> tuple[float, float]:
    """(seconds of sampling, least bulk ESS) of 4 x (1000 + 1000) draws, d = 2."""
    X, Y = tables(n, m, D)
    model = PCPCA(2, gamma=0.2).fit(X, background=Y)
    start = time.perf_counter()
    found = posterior(model, X, background=Y, random_state=0)
    return time.perf_counter() - start, least_ess(found.loadings, found.noise_variance)


def stan(D: int, n: int, m: int) -> tuple[float, float]:
    """The same by Stan, its compilation left out."""
    import stan as pystan

    X, Y = tables(n, m, D)
    model = PCPCA(2, gamma=0.2).fit(X, background=Y)
    N, values, Q = eigenbasis(model._data_again(model._tables_again(Study(X, background=Y))), model.gamma_)
    data = {"D": D, "d": 2, "N": N, "C": (Q * values) @ Q.T}
    built = pystan.build(STAN, data=data, random_seed=1)
    start = time.perf_counter()
    fit = built.sample(num_chains=4, num_samples=1000, num_warmup=1000)
    seconds = time.perf_counter() - start
    W = fit["W"].reshape(D, 2, 1000, 4).transpose(3, 2, 0, 1)
    return seconds, least_ess(W, fit["sigma2"].reshape(1000, 4).T)


COLD = """
import time; start = time.perf_counter()
import numpy as np
from contrapca.uncertainty import GibbsTarget, sample_nuts
sample_nuts(GibbsTarget(100.0, np.linspace(9.0, 1.0, 10) * 100, 2), 1, 1, 1, 0)
print(time.perf_counter() - start)
"""


def lines(with_stan: bool = True) -> Iterator[str]:
    """The table, line by line."""
    yield "| posterior, 4 x (1000 + 1000) draws, d = 2 | seconds | least bulk ESS | ESS / s |"
    yield "|---|---:|---:|---:|"
    X, Y = tables(60, 40, 5)
    model = PCPCA(2, gamma=0.2).fit(X, background=Y)
    posterior(model, X, background=Y, draws=10, tune=10, chains=1)  # compiles, or reads the cache
    rates = {}
    for name, call, D, n, m, bound in (
        ("contrapca, D = 77, n = 270, m = 135", ours, 77, 270, 135, 10),
        ("contrapca, D = 500, n = 1500, m = 800", ours, 500, 1500, 800, 30),
        *([("Stan, D = 77, n = 270, m = 135", stan, 77, 270, 135, None)] if with_stan else []),
    ):
        print(f"\r{name}   ", end="", file=sys.stderr, flush=True)
        seconds, ess = call(D, n, m)
        print("\r" + " " * 60 + "\r", end="", file=sys.stderr, flush=True)
        rates[name] = ess / seconds
        verdict = "" if bound is None else _verdict(seconds, bound)
        wanted = "" if D != 77 or bound is None else f" (bound 1000, {'ok' if ess >= 1000 else 'MISSED'})"
        yield f"| {name} | {seconds:.1f}{verdict} | {ess:.0f}{wanted} | {ess / seconds:.0f} |"
    if with_stan:
        first, *_, last = rates.values()
        verdict = "ok" if first >= 3 * last else "MISSED"
        yield f"| bound: ours / Stan at D = 77 at least 3 | | | {first / last:.1f}, {verdict} |"
    X, Y = tables(270, 135, 77)
    seconds = _seconds(lambda: posterior(CPCA(1, gamma=0.2).fit(X, background=Y), X, background=Y))
    yield f"| CPCA, d = 1, D = 77, 4000 independent draws | {seconds:.2f}{_verdict(seconds, 1)} | | |"
    X, Y = tables(1500, 800, 500)
    options = {"draws": 1000, "tune": 1, "chains": 1, "power": 0.1, "progress": False}
    seconds = _seconds(lambda: posterior(CPCA(2, gamma=0.2).fit(X, background=Y), X, background=Y, **options))
    yield f"| CPCA, d = 2, D = 500, 1000 sweeps | {seconds:.1f}{_verdict(seconds, 10)} | | |"
    done = subprocess.run([sys.executable, "-c", COLD], capture_output=True, text=True, check=True)
    seconds = float(done.stdout)
    yield f"| first draw in a new process, warm cache, imports included | {seconds:.1f}{_verdict(seconds, 15)} | | |"


def _verdict(seconds: float, bound: float) -> str:
    return f" (bound {bound}, {'ok' if seconds <= bound else 'MISSED'})"


def _seconds(call: Any) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
