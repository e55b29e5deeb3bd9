"""Interleaved timings, peak memory, and the table they are printed in."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

Call = Callable[[], object]

LEAST_SECONDS = 10  # of a case: of calls that take milliseconds, seven are too few for a minimum that can be repeated


@dataclass(frozen=True)
class Bound:
    """A figure that must hold: time (of `ours`) / time (of `peer`) at most `ratio`."""

    ours: str
    peer: str
    ratio: float


@dataclass(frozen=True)
class Case:
    """Calls to be compared on the same data.

    Attributes
    ----------
    name : str
    calls : dict from name to call
    reference : list of str
        Ratios are to the fastest of these.
    bounds : list of Bound
    clock : callable
        Seconds of the wall, or, with `time.process_time`, of the CPU.
    """

    name: str
    calls: dict[str, Call]
    reference: list[str]
    bounds: list[Bound] = field(default_factory=list)
    clock: Callable[[], float] = time.perf_counter


def run(case: Case, rounds: int) -> Iterator[str]:
    """Time a case, every call once a round, and yield the lines of its table; quick calls have more rounds."""
    seconds: dict[str, list[float]] = {name: [] for name in case.calls}
    turn, begin = 0, time.perf_counter()
    while turn < rounds or time.perf_counter() - begin < LEAST_SECONDS:
        turn += 1
        for name, call in case.calls.items():
            print(f"\r{case.name}: round {turn}, {name:<40}", end="", file=sys.stderr, flush=True)
            start = case.clock()
            call()
            seconds[name].append(case.clock() - start)
    print("\r" + " " * 110 + "\r", end="", file=sys.stderr, flush=True)
    best = {name: min(times) for name, times in seconds.items()}
    fastest = min(best[name] for name in case.reference)
    yield f"| **{case.name}** | | | |"
    for name, times in seconds.items():
        yield f"| {name} | {best[name]:.3f} | {spread(times):.1f} | {best[name] / fastest:.2f} |"
    for bound in case.bounds:
        ratio = best[bound.ours] / (fastest if bound.peer == "fastest PCA" else best[bound.peer])
        verdict = "ok" if ratio <= bound.ratio else "MISSED"
        yield f"| bound: {bound.ours} / {bound.peer} at most {bound.ratio:.3g} | | | {ratio:.3g}, {verdict} |"


def spread(times: list[float]) -> float:
    """Slowest over fastest."""
    return max(times) / min(times)


HEADER = ["| | minimum, s | max / min | ratio to the fastest exact PCA |", "|---|---:|---:|---:|"]


def environment(rounds: int) -> str:
    """What the timings were taken with."""
    pools = {f"{pool['internal_api']} {pool['version']}: {pool['num_threads']} threads" for pool in threadpool_info()}
    versions = f"Python {sys.version.split()[0]}, numpy {np.__version__}"
    return f"at least {rounds} interleaved rounds; {'; '.join(sorted(pools))}; {versions}"


def resident_memory() -> int:
    """Bytes of this process in memory (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def anonymous_memory() -> int:
    """The same without pages of files."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:")) * 1000


def peak_extra_memory(call: Call, used: Callable[[], int] = resident_memory, every: float = 0.002) -> float:
    """MB by which the memory `used` exceeds that before the call, at its highest, looked at `every` so many seconds."""
    before, highest, done = used(), 0, threading.Event()

    def watch() -> None:
        nonlocal highest
        while not done.wait(every):
            highest = max(highest, used())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        call()
    finally:
        done.set()
        watcher.join()
    return (max(highest, used()) - before) / 1e6


def import_seconds(module: str) -> float:
    """How long a fresh interpreter takes to import `module`."""
    code = f"import time; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)
