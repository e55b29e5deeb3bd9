"""The closed-form family on tall, wide and sparse tables."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA

from contrapca import PCPCA

from .timing import Bound, Case

GAMMA = 0.3


def tables(n: int, m: int, D: int) -> tuple[Any, Any]:
    """Foreground with two directions of its own over a nuisance direction both groups have."""
    rng = np.random.default_rng(0)
    directions = np.linalg.qr(rng.standard_normal((D, 3)))[0]
    X, Y = rng.standard_normal((n, D)), rng.standard_normal((m, D))
    X += rng.standard_normal((n, 3)) * [6, 4, 3] @ directions.T
    Y += 6 * np.outer(rng.standard_normal(m), directions[:, 0])
    return X, Y


def ours(X: Any, Y: Any, d: int, gammas: dict[str, float | str]) -> dict[str, Callable[[], object]]:
    """Our fits by name."""
    return {
        f"contrapca PCPCA, {name}": lambda gamma=gamma: PCPCA(d, gamma=gamma).fit(X, background=Y)
        for name, gamma in gammas.items()
    }


def scikit_learn(X: Any, Y: Any, d: int, solvers: list[str]) -> dict[str, Callable[[], object]]:
    """scikit-learn's exact PCA of the stacked rows by name."""
    stacked = sp.vstack([X, Y]).tocsr() if sp.issparse(X) else np.vstack([X, Y])
    return {
        f"scikit-learn PCA, {solver}": lambda solver=solver: PCA(d, svd_solver=solver, random_state=0).fit(stacked)
        for solver in solvers
    }


def peers(X: Any, Y: Any) -> dict[str, Callable[[], object]]:
    """The contrastive peers, each given data in the form it wants (made outside the timing)."""
    import contrastive
    import pcpca
    from generalized_contrastive_PCA import gcPCA

    columns = [np.ascontiguousarray((table - table.mean(axis=0)).T) for table in (X, Y)]
    raw = GAMMA * len(X) / len(Y)
    centred = [table - table.mean(axis=0) for table in (X, Y)]
    return {
        "pcpca 0.4": lambda: pcpca.PCPCA(n_components=2, gamma=raw).fit(*columns),
        "contrastive 1.2": lambda: contrastive.CPCA(n_components=2, standardize=False).fit_transform(
            X, Y, alpha_selection="manual", alpha_value=GAMMA
        ),
        "generalized-contrastive-pca (v1)": lambda: gcPCA(method="v1", alpha=GAMMA, normalize_flag=False).fit(*centred),
    }


GAMMAS: dict[str, float | str] = {"gamma 0.3": GAMMA, "gamma auto": "auto"}
TALL_BOUNDS = [
    Bound("contrapca PCPCA, gamma 0.3", "fastest PCA", 1.1),
    Bound("contrapca PCPCA, gamma 0.3", "pcpca 0.4", 1.0),
]


def tall(n: int, D: int) -> Case:
    """More rows than features."""
    X, Y = tables(n, n, D)
    pca = scikit_learn(X, Y, 2, ["covariance_eigh", "full", "arpack"])
    calls = ours(X, Y, 2, GAMMAS) | pca | peers(X, Y)
    return Case(f"tall {n:,} + {n:,} x {D:,}", calls, list(pca), TALL_BOUNDS)


def wide() -> Case:
    """More features than rows."""
    X, Y = tables(500, 500, 5000)
    pca = scikit_learn(X, Y, 2, ["full", "arpack"])
    calls = ours(X, Y, 2, GAMMAS) | pca | peers(X, Y)
    bounds = [
        Bound("contrapca PCPCA, gamma 0.3", "pcpca 0.4", 1 / 50),
        Bound("contrapca PCPCA, gamma 0.3", "scikit-learn PCA, full", 1.0),
    ]
    return Case("wide 500 + 500 x 5,000", calls, list(pca), bounds)


def very_wide() -> Case:
    """A D x D matrix would need 20 GB."""
    X, Y = tables(60, 60, 50_000)
    pca = scikit_learn(X, Y, 2, ["full"])
    return Case("wide 60 + 60 x 50,000", ours(X, Y, 2, GAMMAS) | pca, list(pca))


def cells() -> tuple[Any, Any]:
    """The two full count matrices of CONTRAPCA_DATA/zheng_bmmc, log(1 + count)."""
    folder = Path(os.environ["CONTRAPCA_DATA"]) / "zheng_bmmc"

    def load(name: str) -> Any:
        rows = sp.load_npz(folder / f"{name}_counts.npz").astype(np.float64).tocsr()
        rows.data = np.log1p(rows.data)
        return rows

    return load("aml027_pre"), load("healthy1")


def sparse() -> Case:
    """Counts of 32,738 genes; the contrastive peers take no sparse tables."""
    X, Y = cells()
    pca = scikit_learn(X, Y, 10, ["arpack"])
    calls = ours(X, Y, 10, {"gamma 0": 0.0, **GAMMAS}) | pca
    bounds = [
        Bound("contrapca PCPCA, gamma 0", "fastest PCA", 1.5),
        Bound("contrapca PCPCA, gamma 0.3", "fastest PCA", 2.5),
    ]
    return Case("sparse 3,933 + 1,985 x 32,738, d = 10", calls, list(pca), bounds)


CASES: dict[str, Callable[[], Case]] = {
    "tall-1000": lambda: tall(20_000, 1000),
    "tall-200": lambda: tall(100_000, 200),
    "wide": wide,
    "very-wide": very_wide,
    "sparse": sparse,
}

# name: (data, components, gamma, bound in MB)
MEMORY: dict[str, tuple[Callable[[], tuple[Any, Any]], int, float | str, float]] = {
    "wide 60 + 60 x 50,000, gamma auto": (lambda: tables(60, 60, 50_000), 2, "auto", 1000),
    "sparse 3,933 + 1,985 x 32,738, gamma 0.3": (cells, 10, GAMMA, 500),
    "sparse 3,933 + 1,985 x 32,738, gamma auto": (cells, 10, "auto", 500),
}
