"""CSV files as text tables with the line of each row, and rows that an importer leaves out, counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from calibrate.csv_text import read_csv
from calibrate.declared_rows import as_numbers, nearest_hint
from calibrate.doubts import describe_rows
from calibrate.measurements import Trace
from calibrate.rows import trace_of
from specsim.arrays import Bools, Floats, Ints
from specsim.errors import ConfigError, Fault
from specsim.hardware import ModelSpec

if TYPE_CHECKING:
    import pandas as pd


def refuse(path: Path, message: str, *, row: int | None = None, column: str = "") -> ConfigError:
    """Return the error of a file that cannot be used, one line."""
    return ConfigError([Fault(str(path), row, None, column, message)])


class SourceTable:
    """A table of another tool: its columns as text, and which of its rows cannot be used.

    Parameters
    ----------
    path
        The file, for messages.
    table
        The rows, all of them text or numbers.
    row
        Number of each row in the file, [rows].
    """

    def __init__(self, path: Path, table: pd.DataFrame, row: Ints) -> None:
        self.path = path
        self._table = table
        self._row = row
        self._is_kept = np.ones(len(table), dtype=bool)
        self.warnings: list[Fault] = []

    @classmethod
    def from_csv(cls, path: Path, required: Sequence[str]) -> SourceTable:
        """Read a CSV file.

        Raises
        ------
        ConfigError
            Where it is no table of text, holds no rows or lacks a column.
        """
        found = cls(path, *read_csv(path))
        found.require(required)
        return found

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._table)

    def __contains__(self, name: str) -> bool:
        """Tell whether there is such a column."""
        return name in self._table

    def require(self, names: Sequence[str]) -> None:
        """Refuse a table without rows or without some columns, all of them named at once."""
        if not len(self):
            raise refuse(self.path, "holds no rows")
        given = [str(name) for name in self._table.columns]
        missing = {name: nearest_hint(name, given) for name in names if name not in given}
        if missing:
            path = str(self.path)
            raise ConfigError(
                [Fault(path, None, None, name, f"no such column{hint}") for name, hint in missing.items()]
            )

    def text(self, name: str) -> list[str]:
        """Return a column as text, [rows]."""
        return [str(value).strip() for value in self._table[name].tolist()]

    def number(self, name: str) -> Floats:
        """Return a column as numbers, [rows]; rows that hold none are left out, NaN is a warning too."""
        values = as_numbers(self._table[name])
        self.leave_out(~np.isfinite(values), f"{name}: is not a finite number")
        return values

    def time(self, name: str) -> Floats:
        """Return a column of times, [rows]; rows that hold none, or a negative one, are left out.

        The times of the parts of a step are added, so that one below 0 would hide among the others.
        """
        values = self.number(name)
        self.leave_out(values < 0.0, f"{name}: is negative")
        return values

    def flag(self, name: str) -> Bools:
        """Return a column of true or false, [rows]; rows that hold neither are left out."""
        values = np.char.lower(np.array(self.text(name), dtype=np.str_))
        self.leave_out(~np.isin(values, ["true", "false"]), f"{name}: is neither true nor false")
        is_true: Bools = values == "true"
        return is_true

    def optional_number(self, name: str) -> Floats:
        """Return a column as numbers, [rows]; NaN where empty or where there is no such column."""
        return as_numbers(self._table[name]) if name in self._table else np.full(len(self), np.nan)

    def leave_out(self, rows: Bools, reason: str) -> None:
        """Leave rows out, with a warning that counts those still there and names them.

        Parameters
        ----------
        rows
            The rows, [rows].
        reason
            ``column: what is wrong``, or the reason alone.
        """
        fresh = rows & self._is_kept
        if not fresh.any():
            return
        self._is_kept &= ~rows
        column, colon, message = reason.partition(": ")
        path, text = (column, message) if colon else ("", reason)
        numbers = self._row[fresh].tolist()
        self.warnings.append(
            Fault(str(self.path), numbers[0], None, path, f"{text}; left out {describe_rows(numbers)}")
        )

    def warn(self, message: str, column: str = "") -> None:
        """Add a warning that concerns the whole file."""
        self.warnings.append(Fault(str(self.path), None, None, column, message))

    def trace(
        self,
        columns: Mapping[str, object],
        *,
        header: Mapping[str, str],
        models: Mapping[str, ModelSpec] | None = None,
    ) -> Trace:
        """Return the trace of columns in the project's own names, with what was left out counted.

        Parameters
        ----------
        columns
            Columns of `calibrate.columns`, each [rows] or one value for all.
        header
            What holds for the whole file.
        models
            Models by the text of the ``model`` column.

        Raises
        ------
        ConfigError
            Where no row is left, or what is left cannot be used.
        """
        import pandas as pd

        kept = np.flatnonzero(self._is_kept)
        if not kept.size:
            last = self.warnings[-1] if self.warnings else None
            reason = f": {last.path or 'file'}: {last.message}" if last else ""
            raise refuse(self.path, f"none of its {len(self)} rows can be used{reason}")
        table = pd.DataFrame(columns, index=range(len(self))).iloc[kept]
        made = trace_of(
            table,
            file=str(self.path),
            header=header,
            row=self._row[kept],
            models=models,
            warnings=self.warnings,
        )
        num_left_out = len(self) - kept.size
        return replace(made, num_rows=len(self), num_dropped=made.num_dropped + num_left_out)
