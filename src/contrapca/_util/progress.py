"""Progress of long computations, on a line of standard error."""

from __future__ import annotations

import contextlib
import sys
import time

QUIET_SECONDS, SECONDS_BETWEEN = 2.0, 0.1  # before a bar appears, and between two updates


def watched() -> bool:
    """Whether anybody sees standard error: on a terminal or in a notebook, not in a log."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class Progress(contextlib.AbstractContextManager["Progress"]):
    """A line of text that appears after two seconds, on terminals and in notebooks only, and is taken away at the end.

    Parameters
    ----------
    label : str
    total : int
        Steps at most.
    visible : bool
        False: never.
    """

    def __init__(self, label: str, total: int, visible: bool):
        self.label, self.total, self.visible = label, total, visible and watched()
        self._start = time.monotonic()
        self._next, self._width = self._start + QUIET_SECONDS, 0

    def update(self, step: int, detail: str = "") -> None:
        """Show `step` of `total` and a detail."""
        if self.visible and (now := time.monotonic()) >= self._next:
            self._next = now + SECONDS_BETWEEN
            self._write(f"{self.label}: {step}/{self.total} {detail} {now - self._start:.0f} s")

    def _write(self, line: str) -> None:
        print(f"\r{line:<{self._width}}", end="\r" * (not line), file=sys.stderr, flush=True)
        self._width = len(line)

    def __exit__(self, *_: object) -> None:
        if self._width:
            self._write("")
