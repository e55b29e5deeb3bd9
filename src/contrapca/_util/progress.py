"""How far a long computation is, where somebody watches."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Any

QUIET_SECONDS, SECONDS_BETWEEN = 2.0, 0.1


def watched() -> bool:
    """Whether anybody sees standard error: on a terminal or in a notebook, not in a log."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class Progress(contextlib.AbstractContextManager["Progress"]):
    """A bar on standard error: tqdm's where it is installed, else a line of text.

    It appears after two seconds, on terminals and in notebooks only. It only observes: nothing depends on it.

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
        self._next = self._start + QUIET_SECONDS
        self._bar: Any = None

    def update(self, step: int, detail: str = "") -> None:
        """Show `step` of `total` and a detail."""
        if not self.visible or (now := time.monotonic()) < self._next:
            return
        self._next = now + SECONDS_BETWEEN
        if self._bar is None:
            self._bar = _bar(self.label, self.total, now - self._start)
        self._bar.n = step
        self._bar.set_postfix_str(detail)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


def _bar(label: str, total: int, elapsed: float) -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _Line(label, total, elapsed)
    bar = tqdm(total=total, desc=label, leave=False, file=sys.stderr)
    bar.start_t -= elapsed
    return bar


class _Line:
    """What `Progress` uses of tqdm, as a line of text that is rewritten."""

    def __init__(self, label: str, total: int, elapsed: float):
        self.label, self.total, self.n = label, total, 0
        self._start, self._width = time.monotonic() - elapsed, 0

    def set_postfix_str(self, detail: str) -> None:
        """Write the line."""
        line = f"{self.label}: {self.n}/{self.total} {detail} {time.monotonic() - self._start:.0f} s"
        print(f"\r{line:<{self._width}}", end="", file=sys.stderr, flush=True)
        self._width = len(line)

    def close(self) -> None:
        """Take the line away."""
        print(f"\r{'':<{self._width}}\r", end="", file=sys.stderr, flush=True)
