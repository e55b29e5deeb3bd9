"""What the defaults cost: ContraPCA beside PCPCA of its rank, held-out contrast beside a fit, tests, the bootstrap."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from contrapca import PCPCA, ContraPCA, bootstrap, compare, contrast_test, held_out_contrast

from . import timing
from .timing import Bound, Case

HELD_OUT, SAME_RANK = 4.0, 1.3  # held-out contrast / fit, and ContraPCA / PCPCA with as many latent dimensions, at most
RESAMPLES = 200
DEAR_ROUNDS = 2  # of what takes longer than a minute; the bound is on the time itself


def tables(n: int, m: int, D: int, own: int = 2, shared: int = 2) -> tuple[Any, Any]:
    """Dense rows with directions of the foreground's own, and of both groups, over unit noise."""
    rng = np.random.default_rng(0)
    directions = np.linalg.qr(rng.standard_normal((D, own + shared)))[0].T
    strength = max(4.0, 0.3 * np.sqrt(D))
    X = rng.standard_normal((n, D)) + strength * rng.standard_normal((n, own + shared)) @ directions
    Y = rng.standard_normal((m, D)) + strength * rng.standard_normal((m, shared)) @ directions[own:]
    return X, Y


def sparse_tables(n: int, m: int, D: int) -> tuple[Any, Any]:
    """CSR rows, 5 % filled; four groups of features vary together, two of them in the foreground only."""
    rng = np.random.default_rng(0)
    members = rng.random((4, D)) < 0.1

    def rows(count: int, programmes: int) -> Any:
        found = sp.random(count, D, density=0.05, format="csr", random_state=rng)
        row = np.repeat(np.arange(count), np.diff(found.indptr))
        for k in range(programmes):
            found.data *= 1 + np.exp(0.8 * rng.standard_normal(count))[row] * members[k][found.indices]
        return found

    return rows(n, 4), rows(m, 2)


SIZES: dict[str, Callable[[], tuple[Any, Any]]] = {
    "small 400 + 400 x 30": lambda: tables(400, 400, 30),
    "tall 5,000 + 5,000 x 300": lambda: tables(5000, 5000, 300),
    "wide 60 + 60 x 2,000": lambda: tables(60, 60, 2000),
    "sparse 4,000 + 4,000 x 1,000": lambda: sparse_tables(4000, 4000, 1000),
}


def case(name: str) -> Case:
    """Fits, and held-out contrast, of one pair of tables."""
    X, Y = SIZES[name]()
    rank = int(ContraPCA(2).fit(X, background=Y).model_.W.shape[1])
    models = {"PCPCA": PCPCA(2), "ContraPCA": ContraPCA(2), f"PCPCA({rank})": PCPCA(rank)}
    calls: dict[str, timing.Call] = {
        f"fit, {kind}": lambda model=model: model.fit(X, background=Y) for kind, model in models.items()
    }
    calls |= {
        f"held-out contrast, {kind}": lambda model=models[kind]: held_out_contrast(model, X, background=Y)
        for kind in ("PCPCA", "ContraPCA")
    }
    bounds = [Bound(f"held-out contrast, {kind}", f"fit, {kind}", HELD_OUT) for kind in ("PCPCA", "ContraPCA")]
    bounds.append(Bound("fit, ContraPCA", f"fit, PCPCA({rank})", SAME_RANK))
    return Case(name, calls, ["fit, PCPCA"], bounds)


def lines(rounds: int) -> Iterator[str]:
    """Ratios first, then times with bounds of their own."""
    yield "| what the defaults cost | minimum, s | max / min | ratio to a fit of PCPCA |"
    yield "|---|---:|---:|---:|"
    for name in SIZES:
        yield from timing.run(case(name), rounds)
    yield ""
    yield "| | minimum, s | max / min | bound, s |"
    yield "|---|---:|---:|---:|"
    X, Y = tables(400, 400, 30)
    yield _timed("contrast test, 400 + 400 x 30", lambda: contrast_test(X, background=Y), rounds, 0.3)
    X, Y = tables(3000, 3000, 500, own=10)
    test = lambda: contrast_test(X, background=Y, max_components=10)  # noqa: E731
    yield _timed("contrast test, ten dimensions, 3,000 + 3,000 x 500", test, DEAR_ROUNDS, 15)
    yield _timed("compare, 3,000 + 3,000 x 500", lambda: compare(X, background=Y), DEAR_ROUNDS, 30)
    X, Y = sparse_tables(50_000, 50_000, 2000)
    name = "50,000 + 50,000 x 2,000, sparse"
    yield _timed(f"contrast test, {name}", lambda: contrast_test(X, background=Y), 1, 90)
    for kind, model in {"PCPCA": PCPCA(2), "ContraPCA": ContraPCA(2)}.items():
        model.fit(X, background=Y)
        options = {"n_resamples": RESAMPLES, "random_state": 0, "progress": False}
        refits = lambda model=model, options=options: bootstrap(model, X, background=Y, **options)  # noqa: E731
        yield _timed(f"bootstrap, {RESAMPLES} refits of {kind}, {name}", refits, 1, 300)


def _timed(name: str, call: timing.Call, rounds: int, bound: float) -> str:
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    verdict = "ok" if min(seconds) <= bound else "MISSED"
    count = "1 round" if rounds == 1 else f"{rounds} rounds"
    return f"| {name} ({count}) | {min(seconds):.2f} | {timing.spread(seconds):.1f} | {bound:g}, {verdict} |"
