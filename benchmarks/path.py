"""A hundred gammas against one fit, and against a hundred fits of the reference."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from contrapca import PCPCA, contrast_path, gamma_limits

from .closed_form import cells
from .timing import spread

POINTS = 100


def zheng500() -> tuple[Any, Any]:
    """The stand-in foreground of CONTRAPCA_DATA/zheng_bmmc, log(1 + count)."""
    with np.load(Path(os.environ["CONTRAPCA_DATA"]) / "zheng_bmmc" / "zheng500.npz") as file:
        before, after, healthy = (
            np.log1p(file[key].astype(float)) for key in ("aml027_pre", "aml035_post", "healthy1")
        )
    return np.vstack([before, after]), healthy


def variable_genes() -> tuple[Any, Any]:
    """The 2000 genes that vary most in the two full count matrices."""
    X, Y = cells()
    rows = sp.vstack([X, Y]).tocsc()
    mean = np.asarray(rows.mean(axis=0)).ravel()
    variance = np.asarray(rows.multiply(rows).mean(axis=0)).ravel() - mean**2
    chosen = np.argsort(-variance)[:2000]
    return X[:, chosen].toarray(), Y[:, chosen].toarray()


def clustered(D: int) -> tuple[Any, Any]:
    """3000 + 3000 rows whose covariances have eigenvalues in twenty tight clusters."""
    rng = np.random.default_rng(0)
    levels = 1 + np.repeat(np.arange(20), D // 20)[::-1] * 0.05 + 1e-4 * rng.random(D)
    return rng.standard_normal((3000, D)) * levels, rng.standard_normal((3000, D)) * levels**0.5


def lines(rounds: int) -> Iterator[str]:
    """The table, line by line."""
    import pcpca

    head = f"| {POINTS} gammas, d = 2 | path, s | max / min | one fit, s | path / fit"
    yield f"{head} | {POINTS} fits of pcpca, s | times faster |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    sets: dict[str, Callable[[], tuple[Any, Any]]] = {
        "zheng500 stand-in": zheng500,
        "2,000 most variable genes": variable_genes,
        "clustered spectrum, 3,000 + 3,000 x 1,000": lambda: clustered(1000),
        "clustered spectrum, 3,000 + 3,000 x 2,000": lambda: clustered(2000),
    }
    for name, make in sets.items():
        X, Y = make()
        limit = gamma_limits(X, background=Y, n_components=2).pcpca
        gammas = np.linspace(0, 0.99 * limit, POINTS)
        columns = [np.ascontiguousarray((table - table.mean(axis=0)).T) for table in (X, Y)]
        raw = 0.5 * limit * len(X) / len(Y)
        model = PCPCA(2, gamma=0.5 * limit)
        calls: dict[str, Callable[[], object]] = {
            "path": lambda X=X, Y=Y, gammas=gammas: contrast_path(PCPCA(2), X, background=Y, gammas=gammas),
            "fit": lambda X=X, Y=Y, model=model: model.fit(X, background=Y),
            "pcpca": lambda columns=columns, raw=raw: pcpca.PCPCA(n_components=2, gamma=raw).fit(*columns),
        }
        seconds: dict[str, list[float]] = {key: [] for key in calls}
        for _ in range(rounds):
            for key, call in calls.items():
                start = time.perf_counter()
                call()
                seconds[key].append(time.perf_counter() - start)
        best = {key: min(times) for key, times in seconds.items()}
        ratio, faster = best["path"] / best["fit"], POINTS * best["pcpca"] / best["path"]
        yield (
            f"| {name} | {best['path']:.3f} | {spread(seconds['path']):.1f} | {best['fit']:.3f} | "
            f"{ratio:.1f} (bound 10, {'ok' if ratio <= 10 else 'MISSED'}) | {POINTS * best['pcpca']:.1f} | "
            f"{faster:.0f} (bound 20, {'ok' if faster >= 20 else 'MISSED'}) |"
        )
