"""Print the benchmark table: python -m benchmarks [--rounds 7] [--only NAME ...]."""

from __future__ import annotations

import argparse
import subprocess
import sys
import warnings

from contrapca import PCPCA

from . import cells, closed_form, field, finding, missing, path, posterior, report, scale, timing

CASES = closed_form.CASES | field.CASES
PARTS = [*CASES, "import", "path", "missing", "posterior", "finding", "report", "cells", "scale", "memory"]
MEMORY = closed_form.MEMORY | {"2,000 + 2,000 x 2,000, 30% missing, d = 5": (missing.large, 5, 0.3, 1500)}


def main() -> None:
    """Run the chosen parts and print one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Ours against peers, as ratios.")
    parser.add_argument("--rounds", type=int, default=7, help="interleaved rounds (default and minimum for claims: 7)")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="parts to run (default: all)")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)  # how the memory part calls itself in a fresh process
    options = parser.parse_args()
    if options.memory_of:
        make, d, gamma, _ = MEMORY[options.memory_of]
        X, Y = make()
        print(timing.peak_extra_memory(lambda: PCPCA(d, gamma=gamma).fit(X, background=Y)))
        return
    warnings.simplefilter("ignore")  # the peers'
    print(timing.environment(options.rounds), "", *timing.HEADER, sep="\n", flush=True)
    for name, make_case in CASES.items():
        if name in options.only:
            print(*timing.run(make_case(), options.rounds), sep="\n", flush=True)
    if "import" in options.only:
        print(*_imports(options.rounds), sep="\n", flush=True)
    tables = {
        "path": lambda: path.lines(options.rounds),
        "missing": lambda: missing.lines(options.rounds),
        "posterior": posterior.lines,
        "finding": lambda: finding.lines(options.rounds),
        "report": lambda: report.lines(options.rounds),
        "cells": lambda: cells.lines(options.rounds),
        "scale": lambda: scale.lines(options.rounds),
    }
    for name, lines in tables.items():
        if name in options.only:
            print("")
            for line in lines():
                print(line, flush=True)
    if "memory" in options.only:
        print("", "| peak extra memory | MB |", "|---|---:|", *_memory(), sep="\n", flush=True)


def _imports(rounds: int) -> list[str]:
    modules = ["contrapca.estimators", "sklearn.decomposition"]  # `import contrapca` alone loads neither
    seconds = [[timing.import_seconds(module) for module in modules] for _ in range(rounds)]
    best = [min(times) for times in zip(*seconds, strict=True)]
    ratio = best[0] / best[1]
    spread = [timing.spread(list(times)) for times in zip(*seconds, strict=True)]
    return [
        "| **import, in fresh interpreters** | | | |",
        f"| import contrapca.estimators | {best[0]:.3f} | {spread[0]:.1f} | {ratio:.2f} |",
        f"| import sklearn.decomposition | {best[1]:.3f} | {spread[1]:.1f} | 1.00 |",
        f"| bound: at most 1.2 | | | {ratio:.3g}, {'ok' if ratio <= 1.2 else 'MISSED'} |",
    ]


def _memory() -> list[str]:
    lines = []
    for name, (_, _, _, bound) in MEMORY.items():
        command = [sys.executable, "-m", "benchmarks", "--memory-of", name]
        peak = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        lines.append(f"| {name} (bound {bound:.0f}) | {peak:.0f}, {'ok' if peak < bound else 'MISSED'} |")
    return lines


if __name__ == "__main__":
    main()
