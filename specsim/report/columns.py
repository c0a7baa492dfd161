"""Plain columns in print: no lines, nothing cut off.

In a pipe a row is one line. On a terminal that is too narrow, columns are folded into blocks under each
other, the first column in each, since lines that wrap cannot be read.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

_GAP = "  "


def print_columns(
    titles: Sequence[str], rows: Iterable[Sequence[str]], stream: TextIO, *, num_left: int = 1
) -> None:
    """Print rows under titles, each column as wide as its widest cell, folded to the width of a terminal.

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
    width = shutil.get_terminal_size().columns if stream.isatty() else None
    for block, columns in enumerate(_folded(widths, width)):
        stream.write("\n" if block else "")
        for cells in table if any(titles) else table[1:]:
            padded = [
                cells[number].ljust(widths[number])
                if number < num_left
                else cells[number].rjust(widths[number])
                for number in columns
            ]
            stream.write(_GAP.join(padded).rstrip() + "\n")


def _folded(widths: Sequence[int], width: int | None) -> Iterator[list[int]]:
    """Yield the columns of each block that fits a width; of two columns the second is text, left whole."""
    columns = list(range(len(widths)))
    if width is None or len(widths) <= 2:
        yield columns
        return
    block = columns[:1]
    used = widths[0]
    for number in columns[1:]:
        if len(block) > 1 and used + len(_GAP) + widths[number] > width:
            yield block
            block, used = columns[:1], widths[0]
        block.append(number)
        used += len(_GAP) + widths[number]
    yield block
