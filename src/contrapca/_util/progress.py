"""A line on the terminal that says how far a long computation is."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

WIDTH, SECONDS_BETWEEN = 24, 0.1


class Progress:
    """A bar on standard error, redrawn at most ten times a second; silent unless `visible`.

    It only observes: nothing depends on it.

    Parameters
    ----------
    label : str
    total : int
        Steps at most.
    visible : bool
    """

    def __init__(self, label: str, total: int, visible: bool):
        self.label, self.total, self.visible = label, total, visible
        self._start, self._drawn, self._line = time.monotonic(), -1.0, ""

    def __enter__(self) -> Self:
        return self

    def update(self, step: int, detail: str = "") -> None:
        """Show `step` of `total` and a detail."""
        now = time.monotonic()
        if not self.visible or now - self._drawn < SECONDS_BETWEEN:
            self._line = f"{step}/{self.total} {detail}"
            return
        self._drawn = now
        self._draw(f"{step}/{self.total} {detail}", min(1.0, step / self.total))

    def _draw(self, text: str, share: float) -> None:
        self._line = text
        bar = "#" * int(WIDTH * share)
        line = f"{self.label} [{bar:<{WIDTH}}] {text} {time.monotonic() - self._start:.1f} s"
        print(f"\r{line:<110}", end="", file=sys.stderr, flush=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.visible:
            self._draw(self._line + (" done," if kind is None else " stopped,"), 1.0 if kind is None else 0.0)
            print(file=sys.stderr, flush=True)
