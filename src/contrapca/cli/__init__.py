"""The command line `contrapca`. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._inputs import Inputs

__all__ = ["main", "tables_of"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, as `_main.main` does; Ctrl-C has its exit code even while that is imported."""
    try:
        from ._main import main as run

        return run(arguments)
    except KeyboardInterrupt:
        print("contrapca: stopped; nothing was written.", file=sys.stderr)
        return 130


def tables_of(command: str) -> Inputs:
    """The tables that a command reads, with their labels, blocks and row names.

    Parameters
    ----------
    command : str
        As it is written on the command line: "contrapca report cases.csv --background controls.csv -o report.html".
    """
    from ._report import inputs_of

    return inputs_of(command)
