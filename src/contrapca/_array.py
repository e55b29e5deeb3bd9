"""Plain helpers on arrays: types, numerical noise, blocks of rows, threads, memory."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

Array = npt.NDArray[np.floating[Any]]
Rows = Any  # a 2-D ndarray (memmap included) or a scipy CSR matrix; rows are samples

T = TypeVar("T")
R = TypeVar("R")
Map = Callable[[Callable[[T], R], Iterable[T]], Iterable[R]]

EPS = float(np.finfo(np.float64).eps)

# Below this many stored values, starting threads costs more than it saves.
PARALLEL_MIN_VALUES = 1_000_000
# Likewise for the BLAS: multiplications of one product.
SMALL_PRODUCT = 1e7


def is_sparse(rows: Rows) -> bool:
    """Whether `rows` is a scipy sparse container."""
    return bool(sp.issparse(rows))


def stored_values(rows: Rows) -> int:
    """How many values `rows` holds in memory."""
    return int(rows.nnz if is_sparse(rows) else rows.size)


def row_slices(n_rows: int, block: int) -> Iterator[slice]:
    """Consecutive slices of at most `block` rows that cover `n_rows` rows."""
    for start in range(0, n_rows, block):
        yield slice(start, min(start + block, n_rows))


def worker_count() -> int:
    """Threads we may use: what the BLAS was given, so that a user's limit on it binds us too."""
    blas = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    cores: int = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(max(1, min([cores, 8, *blas])))


@contextlib.contextmanager
def thread_map(workers: int) -> Iterator[Map[Any, Any]]:
    """A `map` over `workers` threads, the BLAS being held to one thread meanwhile.

    An OpenBLAS pool of several threads spins after each call and takes the cores away from ours:
    the sparse products below ran twice as fast with it silenced.
    """
    if workers == 1:
        yield map
        return
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(workers) as pool:
        yield pool.map


@contextlib.contextmanager
def calm_threads(multiplications: float) -> Iterator[None]:
    """BLAS and OpenMP held to one thread if products need only so few multiplications each.

    Threads that are woken for a small product cost more than they save, and those of NumPy's and SciPy's own libraries
    spin against each other: on 2 cores a fit to 405 x 77 values took 2.6 s with both and 0.55 s with one thread, and on
    a busy machine many small clusterings 68 s with OpenMP's threads and 5 s without.
    """
    with threadpool_limits(1) if multiplications < SMALL_PRODUCT else contextlib.nullcontext():
        yield


@contextlib.contextmanager
def lapack_first() -> Iterator[None]:
    """NumPy's BLAS held to one thread where SciPy has a library of its own, which keeps its threads.

    For work that is mostly SciPy's LAPACK with small products in between: NumPy's threads spin after each of these, and
    made eigh half as fast again on 2 cores.
    """
    controller = ThreadpoolController()
    blas = [library.filepath for library in controller.lib_controllers if library.user_api == "blas"]
    numpy_only = [path for path in blas if re.search(r"numpy[.]libs", path)]
    if not numpy_only or len(blas) == len(numpy_only):
        yield
        return
    with controller.select(filepath=numpy_only).limit(limits=1):
        yield


def available_memory() -> int:
    """Bytes of memory that can be had without swapping; a cautious 2 GiB where the system (not Linux) does not say."""
    meminfo = Path("/proc/meminfo")
    found = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo.read_text(), re.M) if meminfo.exists() else None
    return int(found[1]) * 1024 if found else 2 * 2**30
