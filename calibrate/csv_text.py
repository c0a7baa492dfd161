"""CSV files as they stand: every cell as text, with the line of each row."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from specsim.arrays import Ints
from specsim.errors import ConfigError, Fault

if TYPE_CHECKING:
    import pandas as pd

_TOO_MANY = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")
_OTHER_SEPARATORS = ";\t|"


def read_csv(path: Path, *, num_skipped: int = 0) -> tuple[pd.DataFrame, Ints]:
    """Read a CSV file: its rows but blank ones as text, and the line of each in the file.

    Parameters
    ----------
    path
        The file.
    num_skipped
        Lines above the names of the columns.

    Raises
    ------
    ConfigError
        Where it is not a table of UTF-8 text separated by commas, or a column stands in it twice.
    """
    import pandas as pd

    try:
        _check_names(path, num_skipped)
        table = pd.read_csv(
            path,
            skiprows=num_skipped,
            dtype=str,
            keep_default_na=False,
            skip_blank_lines=False,
            encoding="utf-8-sig",
        )
    except UnicodeDecodeError:
        raise _refused(path, None, "", "is not UTF-8 text") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise _not_a_table(path, str(error)) from None
    table.columns = table.columns.str.strip()
    line = np.arange(len(table), dtype=np.int64) + num_skipped + 2
    is_blank = (table == "").all(axis=1).to_numpy()
    return table[~is_blank].reset_index(drop=True), line[~is_blank]


def _check_names(path: Path, num_skipped: int) -> None:
    """Refuse names that stand twice, which would be renamed, and a line that another character separates."""
    with path.open(encoding="utf-8-sig") as stream:
        for _ in range(num_skipped):
            next(stream, "")
        names = [name.strip() for name in next(csv.reader([next(stream, "")]), [])]
    line = num_skipped + 1
    twice = [name for name, count in Counter(names).items() if count > 1 and name]
    if twice:
        raise _refused(path, line, twice[0], "stands twice among the columns")
    found = [one for one in _OTHER_SEPARATORS if len(names) == 1 and one in names[0]]
    if found:
        raise _refused(path, line, "", f"columns are separated by {found[0]!r}, not by commas")


def _not_a_table(path: Path, message: str) -> ConfigError:
    match = _TOO_MANY.search(message)
    if match is None:
        return _refused(path, None, "", f"is not a table: {' '.join(message.split())}")
    expected, line, found = match.groups()
    return _refused(path, int(line), "", f"has {found} values; the columns are {expected}")


def _refused(path: Path, line: int | None, column: str, message: str) -> ConfigError:
    return ConfigError([Fault(str(path), line, None, column, message)])
