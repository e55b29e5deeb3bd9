"""The report: how long it takes to write, how large it is, how fast its slider moves; and `contrapca --help`."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from contrapca import PCPCA, report

from .timing import spread

ROWS, FEATURES, GAMMAS, STEPS = 5000, 500, 40, 20
MAX_SECONDS, MAX_MEGABYTES, MAX_STEP_MS, MAX_HELP_SECONDS = 30, 12, 100, 1
FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
# The time of a call that handles one step of the slider: points, bars and texts.
TIME_STEPS = """async (steps) => {
  const slider = document.getElementById('gamma'), times = [];
  for (let i = 0; i < steps; i++) {
    slider.value = i;
    const start = performance.now();
    slider.dispatchEvent(new Event('input'));
    times.push(performance.now() - start);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return times;
}"""


def tables() -> tuple[np.ndarray, np.ndarray]:
    """Cases with two directions of their own, both groups with four in common."""
    rng = np.random.default_rng(0)
    directions = np.linalg.qr(rng.standard_normal((FEATURES, 6)))[0].T

    def rows(own: float) -> np.ndarray:
        weights = rng.standard_normal((ROWS, 6)) * [5, 5, 5, 5, own, own]
        return weights @ directions + rng.standard_normal((ROWS, FEATURES))

    return rows(3.0), rows(0.0)


def lines(rounds: int) -> Iterator[str]:
    """The table."""
    X, Y = tables()
    model = PCPCA(2).fit(X, background=Y)
    yield f"| report, {ROWS:,} + {ROWS:,} x {FEATURES}, d = 2, {GAMMAS} gammas | minimum | max / min |"
    yield "|---|---:|---:|"
    with tempfile.TemporaryDirectory() as folder:
        file, seconds = Path(folder) / "report.html", []
        for _ in range(rounds):
            start = time.perf_counter()
            report(model, X, background=Y, labels=np.arange(ROWS) % 4, output=file, gammas=GAMMAS)
            seconds.append(time.perf_counter() - start)
        yield f"| write it | {min(seconds):.1f} s{_verdict(min(seconds), MAX_SECONDS)} | {spread(seconds):.1f} |"
        size = file.stat().st_size / 1e6
        yield f"| size | {size:.1f} MB{_verdict(size, MAX_MEGABYTES)} | |"
        for points, step_times in ((2 * ROWS, _steps(file)), (ROWS, _steps(_half(folder, X, Y)))):
            median = float(np.median(step_times))
            name = f"slider step, {points:,} points, median of {STEPS}"
            yield f"| {name} | {median:.0f} ms{_verdict(median, MAX_STEP_MS)} | {spread(step_times):.1f} |"
    seconds = [_help() for _ in range(rounds)]
    verdict = _verdict(min(seconds), MAX_HELP_SECONDS)
    yield f"| contrapca --help | {min(seconds):.2f} s{verdict} | {spread(seconds):.1f} |"


def _verdict(value: float, bound: float) -> str:
    return f" (bound {bound:g}, {'ok' if value < bound else 'MISSED'})"


def _half(folder: str, X: np.ndarray, Y: np.ndarray) -> Path:
    """A report that draws 5,000 points: half of each group."""
    file = Path(folder) / "half.html"
    half = PCPCA(2).fit(X[: ROWS // 2], background=Y[: ROWS // 2])
    report(half, X[: ROWS // 2], background=Y[: ROWS // 2], output=file, gammas=GAMMAS)
    return file


def _steps(file: Path) -> list[float]:
    """Milliseconds of each step in headless Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-ready=true]")
        page.evaluate(TIME_STEPS, 3)  # warm
        times = page.evaluate(TIME_STEPS, STEPS)
        browser.close()
    return times


def _help() -> float:
    start = time.perf_counter()
    subprocess.run([Path(sys.executable).with_name("contrapca"), "--help"], check=True, capture_output=True)
    return time.perf_counter() - start
