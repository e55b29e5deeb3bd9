"""Thread pools, and the thread limits of BLAS and OpenMP."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController

# Below this many stored values, starting threads costs more than it saves.
PARALLEL_MIN_VALUES = 1_000_000
MOST_WORKERS = 8  # each may hold a scatter matrix of its own
# Likewise for the BLAS: multiplications of one product.
SMALL_PRODUCT = 1e7


def worker_count(n_values: int) -> int:
    """Threads to use for a table of `n_values`, at most what the BLAS was given: a user's limit on it binds us too."""
    if n_values < PARALLEL_MIN_VALUES:
        return 1
    blas = [pool["num_threads"] for pool in _controller(len(sys.modules)).info() if pool["user_api"] == "blas"]
    cores: int = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(max(1, min([cores, MOST_WORKERS, *blas])))


@lru_cache(maxsize=1)
def _controller(n_modules: int) -> ThreadpoolController:
    """The thread pools of all loaded libraries; finding them takes 8 ms, so they are looked for after imports only."""
    return ThreadpoolController()


@lru_cache(maxsize=1)
def _blas_pools(n_modules: int) -> list[Any]:
    return list(_controller(n_modules).select(user_api="blas").lib_controllers)


class _CountedLimit(contextlib.AbstractContextManager[None]):
    """The BLAS held to one thread for as long as anyone, in any thread, asks for it.

    Its setting belongs to the process: were every user to save and restore it, two fits that overlap in time would
    restore what the other had set, and leave one thread for good. So users are counted: the first notes the setting,
    the last restores it, where it is still what the first made of it.
    """

    def __init__(self) -> None:
        self._lock, self._users = threading.Lock(), 0
        self._held: list[tuple[Any, int]] = []  # libraries, and their threads before

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                pools = _blas_pools(len(sys.modules))
                self._held = [(pool, pool.num_threads) for pool in pools if pool.num_threads > 1]
                for pool, _ in self._held:
                    _set(pool, 1)
                # None of ours where another thread does not let us: see `_set`.
                self._held = [(pool, before) for pool, before in self._held if pool.num_threads == 1]
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                for pool, before in self._held:
                    if pool.num_threads == 1:
                        _set(pool, before)


def _set(pool: Any, count: int) -> None:
    """Set the threads of a BLAS, and let any other thread do the same: ours need not leave in the order they came.

    With threadpoolctl 3.8 and later the first thread to set it is the only one that can, until it gives that up.
    """
    pool.set_num_threads(count)
    getattr(pool, "clear_controlling_thread", lambda: None)()


one_blas_thread = _CountedLimit()  # a context, like `single_thread` but for OpenMP


@contextlib.contextmanager
def single_thread() -> Iterator[None]:
    """Hold BLAS and OpenMP to one thread.

    An OpenBLAS pool of several threads spins after each call and takes the cores away from our own threads, and from
    those of the other library where NumPy and SciPy each bring one. OpenMP's setting belongs to the calling thread.
    """
    with one_blas_thread, _controller(len(sys.modules)).select(user_api="openmp").limit(limits=1):
        yield


def calm_threads(multiplications: float) -> contextlib.AbstractContextManager[None]:
    """Hold BLAS and OpenMP to one thread if products need only so few multiplications each.

    Threads that are woken for a small product cost more than they save: on 2 cores a fit to 405 x 77 values took 2.6 s
    with the threads of both NumPy and SciPy and 0.55 s with one, and on a busy machine many small clusterings 68 s with
    OpenMP's threads and 5 s without.
    """
    return single_thread() if multiplications < SMALL_PRODUCT else contextlib.nullcontext()
