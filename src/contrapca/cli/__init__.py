"""The command line `contrapca`. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, as `_main.main` does; Ctrl-C has its exit code even while that is imported."""
    try:
        from ._main import main as run

        return run(arguments)
    except KeyboardInterrupt:
        print("contrapca: stopped; nothing was written.", file=sys.stderr)
        return 130
