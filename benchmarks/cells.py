"""AnnData: what the functions of `tl` add to plain sparse fits, in time and memory, and what dask chunks add.

`python -m benchmarks.cells pcpca` (or contrapca) prints the peak extra memory alone, as a fresh process must; with a
number of cells and of genes that on simulated cells.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anndata
import dask.array
import numpy as np
import scanpy as sc
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from contrapca import PCPCA, ContraPCA, tl

from .timing import HEADER, Bound, Case, peak_extra_memory, run

D, GAMMA, MAX_RATIO, MAX_MEGABYTES = 10, 0.3, 1.2, 500
SAME_RANK, DEAR_ROUNDS = 1.3, 3  # ContraPCA / PCPCA with as many latent dimensions, at most; rounds of these
SIMULATED, MAX_SCANPY = ((10_000, 2_000), (20_000, 5_000)), 5
ROWS, GENES, DENSITY, CHUNK, MAX_DASK = 200_000, 3_000, 0.05, 20_000, 1.6


def full_counts() -> Any:
    """5918 cells of bone marrow x 32,738 genes, log(1 + count), sparse; None without the data."""
    folder = Path(os.environ.get("CONTRAPCA_DATA", "")) / "zheng_bmmc"
    files = [folder / f"{name}_counts.npz" for name in ("healthy1", "aml027_pre")]
    if not all(file.exists() for file in files):
        return None
    parts = [sp.csr_matrix(sp.load_npz(file), dtype=np.float32).log1p() for file in files]
    groups = np.repeat(["ctrl", "case"], [part.shape[0] for part in parts])
    return anndata.AnnData(sp.vstack(parts, format="csr"), obs={"condition": groups})


def made_cells() -> Any:
    """200,000 cells x 3,000 genes, half of them controls, of ten types; the cases have two more directions."""
    rng = np.random.default_rng(0)
    stored = int(GENES * DENSITY)
    columns = np.argsort(rng.random((50, GENES)), axis=1)[:, :stored]  # 50 patterns of genes
    indices = np.sort(columns[rng.integers(0, 50, ROWS)], axis=1).astype(np.int32)
    level = rng.normal(1, 0.5, (10, GENES)).astype(np.float32)
    values = np.empty((ROWS, stored), dtype=np.float32)
    case = np.arange(ROWS) % 2 == 1
    for start in range(0, ROWS, CHUNK):
        part = slice(start, start + CHUNK)
        types = rng.integers(0, 10, CHUNK)
        own = rng.normal(size=(CHUNK, 1)) * case[part, None] * (indices[part] % 7 == 0)
        values[part] = level[types[:, None], indices[part]] + own + rng.normal(0, 0.3, (CHUNK, stored))
    matrix = sp.csr_matrix((values.ravel(), indices.ravel(), np.arange(0, ROWS * stored + 1, stored)), (ROWS, GENES))
    return anndata.AnnData(matrix, obs={"condition": np.where(case, "case", "ctrl")})


def simulated_cells(rows: int, genes: int) -> Any:
    """Log-normalised counts, 7 % filled, float32: eight types in both groups, two programs of the cases alone."""
    rng = np.random.default_rng(0)
    level = rng.normal(-3.75, 1.6, genes)
    types = level + rng.normal(0, 0.8, (8, genes)) * (rng.random((8, genes)) < 0.2)
    programs = rng.normal(0, 0.9, (3, genes)) * (rng.random((3, genes)) < 0.08)
    case, parts = rng.random(rows) < 0.5, []
    for own in np.array_split(case, max(rows // 1000, 1)):
        effects = rng.normal(size=(own.size, 3)) * np.column_stack([np.ones(own.size), own, own]) @ programs
        rates = np.exp(types[rng.integers(0, 8, own.size)] + effects + rng.normal(0, 0.4, (own.size, 1)))
        parts.append(sp.csr_matrix(rng.poisson(rates * rng.gamma(2, 0.5, rates.shape)).astype(np.float32)))
    adata = anndata.AnnData(sp.vstack(parts, format="csr"), obs={"condition": np.where(case, "case", "ctrl")})
    sc.pp.normalize_total(adata)
    sc.pp.log1p(adata)
    return adata


def against_scanpy(rows: int, genes: int, rounds: int) -> Iterator[str]:
    """The default against scanpy's PCA, on one thread, in CPU seconds; and its memory."""
    cells = simulated_cells(rows, genes)
    filled = cells.X.nnz / rows / genes
    calls = {
        "tl.contrapca": lambda: fit_defaults(cells),
        "sc.pp.pca, arpack": lambda: sc.pp.pca(cells, n_comps=D, svd_solver="arpack"),
    }
    bounds = [Bound("tl.contrapca", "sc.pp.pca, arpack", MAX_SCANPY)]
    name = f"{rows:,} x {genes:,} simulated cells, {filled:.0%} filled, d = {D}, CPU seconds of one thread"
    with threadpool_limits(1):
        yield from run(Case(name, calls, ["sc.pp.pca, arpack"], bounds, time.process_time), rounds)
    stored = (cells.X.data.nbytes + cells.X.indices.nbytes + cells.X.indptr.nbytes) / 2**20
    allowed = stored / 2 + 6 * 8 * genes**2 / 2**20
    command = [sys.executable, "-m", "benchmarks.cells", "contrapca", str(rows), str(genes)]
    peak = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    verdict = "ok" if peak < allowed else "MISSED"
    yield f"| bound: peak extra memory below {allowed:.0f} MB, X has {stored:.0f} | | | {peak:.0f} MB, {verdict} |"


def fit(adata: Any) -> None:
    """PCPCA at a given gamma."""
    tl.pcpca(adata, groupby="condition", background="ctrl", n_comps=D, gamma=GAMMA)


def fit_defaults(adata: Any) -> None:
    """ContraPCA, which also finds the number of latent dimensions and gamma."""
    tl.contrapca(adata, groupby="condition", background="ctrl", n_comps=D)


FITS = {"pcpca": fit, "contrapca": fit_defaults}


def plain(adata: Any, model: Any) -> Any:
    """A fit of tables that are already split."""
    is_case = (adata.obs["condition"] == "case").to_numpy()
    cases, controls = adata.X[np.flatnonzero(is_case)], adata.X[np.flatnonzero(~is_case)]
    return lambda: model.fit(cases, background=controls)


def lines(rounds: int) -> Iterator[str]:
    """The table."""
    yield from HEADER
    for rows, genes in SIMULATED:
        yield from against_scanpy(rows, genes, rounds)
    counts = full_counts()
    if counts is None:
        yield "| the full counts need CONTRAPCA_DATA | | | |"
    else:
        name = f"{counts.n_obs:,} x {counts.n_vars:,} counts, log(1 + x), sparse, d = {D}"
        calls = {"tl.pcpca": lambda: fit(counts), "PCPCA on split CSR": plain(counts, PCPCA(D, gamma=GAMMA))}
        bounds = [Bound("tl.pcpca", "PCPCA on split CSR", MAX_RATIO)]
        yield from run(Case(name, calls, ["PCPCA on split CSR"], bounds), rounds)
        rank = plain(counts, ContraPCA(D))().n_latent_
        same = f"PCPCA({rank}) on split CSR"
        calls = {
            "tl.contrapca": lambda: fit_defaults(counts),
            "ContraPCA on split CSR": plain(counts, ContraPCA(D)),
            same: plain(counts, PCPCA(rank)),
        }
        bounds = [
            Bound("tl.contrapca", "ContraPCA on split CSR", MAX_RATIO),
            Bound("ContraPCA on split CSR", same, SAME_RANK),
        ]
        yield from run(Case(f"{name}, all by default", calls, [same], bounds), min(rounds, DEAR_ROUNDS))
        for function in FITS:
            command = [sys.executable, "-m", "benchmarks.cells", function]
            peak = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            verdict = "ok" if peak < MAX_MEGABYTES else "MISSED"
            yield f"| bound: tl.{function}, peak extra memory below {MAX_MEGABYTES} MB | | | {peak:.0f} MB, {verdict} |"
    cells = made_cells()
    lazy = cells.copy()
    parts = [dask.array.from_array(cells.X[k : k + CHUNK], chunks=-1, asarray=False) for k in range(0, ROWS, CHUNK)]
    lazy.X = dask.array.concatenate(parts)
    calls = {"dask": lambda: fit(lazy), "in memory": lambda: fit(cells)}
    name = f"{ROWS:,} x {GENES:,} CSR, dask chunks of {CHUNK:,}, d = {D}"
    yield from run(Case(name, calls, ["in memory"], [Bound("dask", "in memory", MAX_DASK)]), rounds)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    given = simulated_cells(*map(int, sys.argv[2:])) if sys.argv[2:] else full_counts()
    print(peak_extra_memory(lambda: FITS[sys.argv[1]](given)))
