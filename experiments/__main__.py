"""The paper's experiments: python -m experiments NAME ... | all [--quick | --full] [--stage run | figure].

Without --stage both stages run, and the table is written. Full results lie in experiments/results/NAME, and their table
is experiments/RESULTS.md; quick ones lie in experiments/results/quick, with a table of their own. Data sets are found
through CONTRAPCA_DATA, or downloaded.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path

from contrapca._files import atomic_write
from contrapca.exceptions import ContrastWarning

from ._stages import EXPERIMENTS, STUDIES, Row, experiment, figure_stage, read_record, run_stage

HERE = Path(__file__).parent
WIDTH = 110  # of the progress display
SECONDS_BETWEEN = 30  # lines in a log
HEADER = """# The paper and this library, figure by figure

Written by `python -m experiments all`; do not edit. Every figure and number of the paper's experiments has a row.
Figures have the numbers of their order in the paper (Figure 1 is its diagram of models). gamma is gamma' = gamma_raw
m / n throughout. "no" under *same?* is not hidden: the note says why; "n/a" stands where there is nothing to compare
with. Our figures lie on the machine that ran the experiments, in `experiments/results/NAME/figure.png`, and are not
part of the repository; those whose data may be shown are in [docs/paper.md](../docs/paper.md).
"""


class Display:
    """Which experiment, what it does, since when: one line, rewritten, on a terminal; a line now and then in a log."""

    def __init__(self, names: Sequence[str]):
        self.names, self.name = names, ""
        self.start = self.printed = time.monotonic()

    def begin(self, name: str) -> None:
        """Another experiment starts."""
        self.name, self.start = name, time.monotonic()
        self.tick("starts")

    def tick(self, text: str) -> None:
        """Show what it does now."""
        if sys.stderr.isatty():
            print(f"\r{self._line(text)[:WIDTH]:<{WIDTH}}", end="", file=sys.stderr, flush=True)
        elif time.monotonic() - self.printed > SECONDS_BETWEEN:
            self.printed = time.monotonic()
            print(self._line(text), file=sys.stderr, flush=True)

    def end(self, text: str) -> None:
        """It is over."""
        first = "\r" if sys.stderr.isatty() else ""
        print(f"{first}{self._line(text):<{WIDTH}}".rstrip(), file=sys.stderr, flush=True)

    def _line(self, text: str) -> str:
        place = f"{self.names.index(self.name) + 1}/{len(self.names)}"
        return f"[{place}] {self.name}: {text} ({time.monotonic() - self.start:.0f} s)"


def main(arguments: Sequence[str] | None = None, *, home: Path = HERE) -> int:
    """Run what is asked for and return 0, or 1 if an experiment failed. Everything is written under `home`."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "names", nargs="+", choices=[*EXPERIMENTS, *STUDIES, "all"], metavar="NAME", help="of experiments, or all"
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--quick", action="store_true", help="minutes in all: fewer repeats and rows")
    mode.add_argument("--full", dest="quick", action="store_false", help="the paper's sizes (default)")
    parser.add_argument("--stage", choices=["run", "figure"], help="only compute, or only draw from results.json")
    options = parser.parse_args(arguments)
    names = EXPERIMENTS if "all" in options.names else tuple(dict.fromkeys(options.names))
    folder = home / "results" / ("quick" if options.quick else "")
    display, failed = Display(names), []
    warnings.simplefilter("ignore", ContrastWarning)  # what they say is in the notes of the table
    for name in names:
        display.begin(name)
        try:
            if options.stage != "figure":
                run_stage(name, folder / name, quick=options.quick, tick=display.tick)
            if options.stage != "run":
                figure_stage(name, folder / name)
        except FileNotFoundError as error:
            failed.append(name)
            display.end(f"failed: {error}")
        except Exception:  # the others are still worth their time
            failed.append(name)
            display.end("failed")
            traceback.print_exc()
        else:
            display.end("done")
            if name in STUDIES:
                print(*map(line, experiment(name).rows(read_record(folder / name)["results"])), sep="\n")
    done = f"{len(names) - len(failed)} of {len(names)} done"
    if set(names) & set(EXPERIMENTS):
        table = folder / "RESULTS.md" if options.quick else home / "RESULTS.md"
        write_table(folder, table)
        done += f"; the table is {table}"
    print(done, file=sys.stderr)
    return 1 if failed else 0


def write_table(folder: Path, path: Path) -> None:
    """One table for each experiment, from the results that lie under `folder`."""
    parts, seconds = [HEADER], 0.0
    for name in EXPERIMENTS:
        if not (folder / name / "results.json").exists():
            parts.append(f"## `{name}`\n\nNot run.\n")
            continue
        record = read_record(folder / name)
        seconds += record["seconds"]
        module = experiment(name)
        mode = "quick" if record["quick"] else "full"
        about = f"`{name}`, {mode} mode, {record['seconds']:.0f} s, contrapca {record['version']}."
        lines = [f"## {module.TITLE}", "", about, "", "| item | paper | ours | same? | note |", "|---|---|---|---|---|"]
        parts.append("\n".join([*lines, *map(line, module.rows(record["results"]))]) + "\n")
    parts.append(f"All runs together took {seconds / 60:.1f} minutes.\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write("\n".join(parts).encode())


def line(row: Row) -> str:
    """A row as Markdown."""
    answer = {True: "yes", False: "**no**", None: "n/a"}[row.same]
    cells = (row.item, row.paper, row.ours, answer, row.note)
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


if __name__ == "__main__":
    sys.exit(main())
