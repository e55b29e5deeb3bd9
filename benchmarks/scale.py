"""Rows that are not in memory: a memory map, batches and a dask cluster, against the bare products in NumPy."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from contrapca import PCPCA

from .timing import anonymous_memory, peak_extra_memory, spread

BLOCK = 4096  # rows of a plain product
ROWS, FEATURES = 4_000_000, 200  # of the memory map: 3.2 GB in float32
DASK_ROWS, DASK_FEATURES, DASK_BLOCK = 1_000_000, 500, 25_000


def write_table(path: Path, rows: int, features: int) -> None:
    """A float32 table of random values, written in blocks."""
    table = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(rows, features))
    rng = np.random.default_rng(0)
    for start in range(0, rows, 100_000):
        block = table[start : start + 100_000]
        block[:] = rng.standard_normal(block.shape, dtype=np.float32)
        block[:, 0] *= 3
    table.flush()


def plain_products(blocks: list[Callable[[], Any]], features: int) -> np.ndarray:
    """X'X of blocks in float64, in two threads: what nobody can leave out."""

    def some(own: list[Callable[[], Any]]) -> np.ndarray:
        total = np.zeros((features, features))
        for read in own:
            block = np.asarray(read())
            for start in range(0, len(block), BLOCK):
                part = block[start : start + BLOCK].astype(np.float64)
                total += part.T @ part
        return total

    with threadpool_limits(1, "blas"), ThreadPoolExecutor(2) as pool:
        return sum(pool.map(some, (blocks[::2], blocks[1::2])))


def interleaved(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds of every call, once a round."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def lines(rounds: int) -> Iterator[str]:
    """The tables, line by line."""
    with tempfile.TemporaryDirectory() as folder:
        yield from _streaming(Path(folder), rounds)
        yield ""
        yield from _growth(Path(folder))
    yield ""
    yield from _dask(rounds)


def _rows(name: str, seconds: dict[str, list[float]], peer: str, bound: float) -> Iterator[str]:
    best = {key: min(times) for key, times in seconds.items()}
    yield f"| **{name}** | | | |"
    for key, times in seconds.items():
        ratio = best[key] / best[peer]
        verdict = "" if key == peer else f" (bound {bound}, {'ok' if ratio <= bound else 'MISSED'})"
        yield f"| {key} | {best[key]:.2f} | {spread(times):.1f} | {ratio:.2f}{verdict} |"


def _streaming(folder: Path, rounds: int) -> Iterator[str]:
    path = folder / "x.npy"
    write_table(path, ROWS, FEATURES)
    table = np.load(path, mmap_mode="r")
    half = ROWS // 2
    size = 100_000
    blocks = [lambda k=k: table[k : k + size] for k in range(0, ROWS, size)]

    def fit() -> object:
        return PCPCA(10, gamma=0.3).fit(table[:half], background=table[half:])

    def batches() -> Iterator[tuple[Any, Any]]:
        for k in range(0, half, size):
            yield table[k : k + size], table[half + k : half + k + size]

    calls = {
        "reading and plain products, 2 threads": lambda: plain_products(blocks, FEATURES),
        "fit, memory map": fit,
        "fit_batches, 100,000 rows each": lambda: PCPCA(10, gamma=0.3).fit_batches(batches()),
    }
    yield "| rows on disk | minimum, s | max / min | ratio |"
    yield "|---|---:|---:|---:|"
    peer = next(iter(calls))
    extras = {
        name: peak_extra_memory(call, anonymous_memory, 0.02) for name, call in list(calls.items())[1:]
    }  # before memory is used again
    yield from _rows(f"{ROWS:,} x {FEATURES} float32, in halves", interleaved(calls, rounds), peer, 1.6)
    for name, extra in extras.items():
        yield f"| anonymous memory of {name} | {extra:.0f} MB | | (bound 500, {'ok' if extra < 500 else 'MISSED'}) |"


def _growth(folder: Path) -> Iterator[str]:
    """Slopes of log time: 1 in the number of rows, at most 2 in the number of features."""

    def seconds(rows: int, features: int) -> float:
        path = folder / f"{rows}_{features}.npy"
        write_table(path, rows, features)
        table = np.load(path, mmap_mode="r")
        times = []
        for _ in range(3):
            start = time.perf_counter()
            PCPCA(5, gamma=0.3).fit(table[: rows // 2], background=table[rows // 2 :])
            times.append(time.perf_counter() - start)
        path.unlink()
        return min(times)

    n = [100_000, 200_000, 400_000, 800_000]
    D = [200, 400, 800, 1600]
    slopes = [
        np.polyfit(np.log(n), np.log([seconds(rows, 200) for rows in n]), 1)[0],
        np.polyfit(np.log(D), np.log([seconds(100_000, features) for features in D]), 1)[0],
    ]
    yield "| growth of time | slope |"
    yield "|---|---:|"
    yield f"| in rows, 100,000 to 800,000 x 200 | {slopes[0]:.2f} (expected 1) |"
    yield f"| in features, 100,000 x 200 to 1,600 | {slopes[1]:.2f} (expected at most 2) |"


def _dask(rounds: int) -> Iterator[str]:
    import dask.array as da
    from distributed import Client, LocalCluster

    def block(block_info: Any = None) -> np.ndarray:
        (first, last), _ = block_info[None]["array-location"]
        return np.random.default_rng(first).standard_normal((last - first, DASK_FEATURES))

    sizes = (DASK_BLOCK,) * (DASK_ROWS // DASK_BLOCK)
    array = da.map_blocks(block, chunks=(sizes, (DASK_FEATURES,)), dtype=np.float64, meta=np.empty((0, 0)))
    half = DASK_ROWS // 2

    def made(first: int) -> np.ndarray:
        return np.random.default_rng(first).standard_normal((DASK_BLOCK, DASK_FEATURES))

    blocks = [lambda first=first: made(first) for first in range(0, DASK_ROWS, DASK_BLOCK)]
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        calls = {
            "the same blocks and products in NumPy, 2 threads": lambda: plain_products(blocks, DASK_FEATURES),
            "fit, LocalCluster(2 workers x 1 thread)": lambda: PCPCA(10, gamma=0.3).fit(
                array[:half], background=array[half:]
            ),
        }
        yield "| dask | minimum, s | max / min | ratio |"
        yield "|---|---:|---:|---:|"
        peer = next(iter(calls))
        yield from _rows(f"{DASK_ROWS:,} x {DASK_FEATURES}, in halves", interleaved(calls, rounds), peer, 1.6)
