"""The report: how long it takes to write, how large it is, how soon it is seen and how fast its slider moves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from contrapca import ContraPCA, Study, report

from .timing import spread

ROWS, FEATURES, STEPS = 5000, 500, 20
MAX_SECONDS, MAX_MEGABYTES, MAX_PAINT_SECONDS, MAX_HELP_SECONDS = 5, 4, 1.5, 1
MAX_STEP_MS = {5_000: 50, 50_000: 150}  # by the number of points
FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
# The time from an input of the slider until the next picture has been handed to the screen.
TIME_STEPS = """async (steps) => {
  const slider = document.getElementById('gamma'), times = [];
  for (let i = 0; i < steps; i++) {
    slider.value = i;
    const start = performance.now();
    slider.dispatchEvent(new Event('input'));
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    times.push(performance.now() - start);
  }
  return times;
}"""
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000"


def tables(rows: int, features: int) -> tuple[np.ndarray, np.ndarray]:
    """Cases with two directions of their own, both groups with four in common."""
    rng = np.random.default_rng(0)
    directions = np.linalg.qr(rng.standard_normal((features, 6)))[0].T

    def group(own: float) -> np.ndarray:
        weights = rng.standard_normal((rows, 6)) * [5, 5, 5, 5, own, own]
        return weights @ directions + rng.standard_normal((rows, features))

    return group(3.0), group(0.0)


def lines(rounds: int) -> Iterator[str]:
    """The table."""
    yield "| report | minimum | max / min |"
    yield "|---|---:|---:|"
    with tempfile.TemporaryDirectory() as folder:
        X, Y = tables(ROWS, FEATURES)
        page = _page(Path(folder) / "report.html", X, Y)
        size = page.stat().st_size / 1e6
        yield f"| size, {ROWS:,} + {ROWS:,} x {FEATURES} | {size:.1f} MB{_verdict(size, MAX_MEGABYTES)} | |"
        paints = [_in_browser(page, FIRST_PAINT) for _ in range(rounds)]
        yield f"| first paint | {min(paints):.2f} s{_verdict(min(paints), MAX_PAINT_SECONDS)} | {spread(paints):.1f} |"
        for points, bound in MAX_STEP_MS.items():
            own = _page(Path(folder) / f"{points}.html", *tables(points // 2, 20))
            medians = [float(np.median(_in_browser(own, TIME_STEPS, STEPS))) for _ in range(rounds)]
            name = f"slider step, {points:,} points, median of {STEPS}"
            yield f"| {name} | {min(medians):.0f} ms{_verdict(min(medians), bound)} | {spread(medians):.1f} |"
        seconds = _command_times(Path(folder), X, Y, rounds)
        yield (
            f"| contrapca report, {ROWS:,} + {ROWS:,} x {FEATURES} from CSV | {min(seconds):.1f} s"
            f"{_verdict(min(seconds), MAX_SECONDS)} | {spread(seconds):.1f} |"
        )
    seconds = [_run("--help") for _ in range(rounds)]
    verdict = _verdict(min(seconds), MAX_HELP_SECONDS)
    yield f"| contrapca --help | {min(seconds):.2f} s{verdict} | {spread(seconds):.1f} |"


def _verdict(value: float, bound: float) -> str:
    return f" (bound {bound:g}, {'ok' if value < bound else 'MISSED'})"


def _page(file: Path, X: np.ndarray, Y: np.ndarray) -> Path:
    report(Study(X, background=Y, labels=np.arange(len(X)) % 4), ContraPCA(2), output=file, test=False)
    return file


def _in_browser(file: Path, script: str, *argument: int):
    """What a script returns in headless Chromium, on a fresh page; scripts with an argument run once to warm up."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-ready=true]")
        page.wait_for_timeout(300)
        if argument:
            page.evaluate(script, 3)
        found = page.evaluate(script, *argument)
        browser.close()
    return found


def _command_times(folder: Path, X: np.ndarray, Y: np.ndarray, rounds: int) -> list[float]:
    head = ",".join(f"x{j}" for j in range(FEATURES))
    for name, rows in (("cases", X), ("controls", Y)):
        np.savetxt(folder / f"{name}.csv", rows, delimiter=",", header=head, comments="", fmt="%.6g")
    files = [folder / "cases.csv", "--background", folder / "controls.csv", "-o", folder / "page.html", "--force"]
    return [_run("report", *map(str, files)) for _ in range(rounds)]


def _run(*arguments: str) -> float:
    # An installed package is compiled; where it is used from its source, the first round does that.
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "contrapca", *arguments], check=True, capture_output=True, env=compiled)
    return time.perf_counter() - start
