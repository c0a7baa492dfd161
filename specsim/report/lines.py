"""Lines of text as wide as the terminal."""

from __future__ import annotations

import shutil
import textwrap
from typing import TextIO

_PIPE_WIDTH = 80


def page_width(stream: TextIO) -> int:
    """Return the columns of the terminal; 80 where there is none."""
    return shutil.get_terminal_size().columns if stream.isatty() else _PIPE_WIDTH


def wrapped(line: str, width: int) -> str:
    """Return a line folded to a width; what follows stands below its first letter.

    Examples
    --------
    >>> print(wrapped("  - one two three", 12))
      - one two
        three
    """
    hang = " " * (len(line) - len(line.lstrip(" -")))
    return textwrap.fill(line, width, subsequent_indent=hang, break_on_hyphens=False)
