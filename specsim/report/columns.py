"""Plain columns in print: no lines, nothing cut off, the same on a terminal and in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TextIO


def print_columns(
    titles: Sequence[str], rows: Iterable[Sequence[str]], stream: TextIO, *, num_left: int = 1
) -> None:
    """Print rows under titles, each column as wide as its widest cell.

    Parameters
    ----------
    titles
        One a column; all empty: none are printed.
    rows
        Cells of each row, as many as titles.
    stream
        Where to print.
    num_left
        Columns, the first ones, that are flush left; the others are flush right.

    Examples
    --------
    >>> import sys
    >>> print_columns(["device", "ms"], [["a", "4.56"], ["bcd", "12"]], sys.stdout)
    device    ms
    a       4.56
    bcd       12
    """
    table = [list(titles), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for cells in table if any(titles) else table[1:]:
        padded = [
            cell.ljust(width) if number < num_left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        stream.write("  ".join(padded).rstrip() + "\n")
