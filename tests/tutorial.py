"""Run the commands of a page, and compare what they print with what the page shows.

As a program, in an empty folder, with nothing but the installed package: ``python tutorial.py PAGE``.
"""

from __future__ import annotations

import math
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

BLOCK = re.compile(r"```console\n(.*?)```", re.S)
TOLERANCE = 0.02  # of printed numbers, relative: the last digit shown may differ between machines


def steps(page: Path) -> list[tuple[str, str]]:
    """(command, what the page shows below it; empty if nothing) in the order of the page."""
    found = []
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, shown = re.match(r"((?:[^\n]*\\\n)*[^\n]*)(.*)", part, re.S).groups()
            found.append((command.strip(), shown.strip()))
    return found


def run(page: Path, folder: Path) -> int:
    """Run all commands of a page in a folder; returns how many outputs were compared."""
    compared = 0
    for command, shown in steps(page):
        program, *arguments = shlex.split(command)  # without a shell, so that the commands are those of every system
        found = shutil.which(program)
        assert found is not None, f"there is no program {program}"
        done = subprocess.run([found, *arguments], cwd=folder, capture_output=True, text=True, timeout=300)
        printed = done.stderr + done.stdout  # cautions come first
        assert done.returncode == 0, f"$ {command}\n{printed}"
        if shown:
            compared += 1
            assert same_text(printed, shown), f"$ {command}\nshown:\n{shown}\nprinted:\n{printed}"
    return compared


def same_text(left: str, right: str) -> bool:
    """Whether two texts have the same words, numbers being compared as such."""
    words = [re.findall(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?|\w+|[^\w\s]", text) for text in (left, right)]
    return len(words[0]) == len(words[1]) and all(map(_same_word, *words))


def _same_word(left: str, right: str) -> bool:
    try:
        return math.isclose(float(left), float(right), rel_tol=TOLERANCE, abs_tol=1e-9)
    except ValueError:
        return left == right


if __name__ == "__main__":
    print(f"{run(Path(sys.argv[1]).resolve(), Path.cwd())} outputs as shown")
