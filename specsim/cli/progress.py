"""A progress line on stderr: at a terminal only, and only once a run takes more than a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_QUIET_S = 1.0
_REDRAW_S = 0.2
_WIDTH = 30


class ProgressLine:
    """One line that is redrawn in place and wiped at the end.

    Parameters
    ----------
    noun
        What is counted.
    """

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._due_s = time.monotonic() + _QUIET_S
        self._is_drawn = False

    def update(self, done: int, total: int, *, note: str = "") -> None:
        """Redraw the line if it is due, with a note after the count."""
        now_s = time.monotonic()
        if now_s < self._due_s or total <= 0:
            return
        self._due_s = now_s + _REDRAW_S
        self._is_drawn = True
        filled = _WIDTH * min(done, total) // total
        bar = "#" * filled + "." * (_WIDTH - filled)
        text = f"\r[{bar}] {done:,} of {total:,} {self._noun}{note}\x1b[K"
        print(text, end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Wipe the line."""
        if self._is_drawn:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


@contextmanager
def token_progress() -> Iterator[Callable[[int, int, int], None] | None]:
    """Progress of a simulation over its output tokens; None where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    line = ProgressLine("tokens")
    try:
        yield lambda before, total, emitted: line.update(before + emitted, total)
    finally:
        line.close()
