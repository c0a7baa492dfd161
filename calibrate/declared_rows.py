"""Columns of a table under their declared kinds, and the rows that break them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from calibrate.columns import TraceColumn
from calibrate.measurements import Texts
from specsim.arrays import Bools, Floats, Ints
from specsim.config.validate import nearest
from specsim.errors import ConfigError, Fault

if TYPE_CHECKING:
    import pandas as pd

_LARGEST_WHOLE = 2.0**53
"""Beyond it floats are too far apart to count with."""


class DeclaredRows:
    """Reads the columns of a table as what they are declared to be; rows that break that are dropped.

    Parameters
    ----------
    table
        As it was read.
    columns
        Those that it may have.
    header
        Values of columns that are equal in all rows, as text; the table's own go before.
    file
        Where it was read, for messages.
    numbers
        Number of each row in the file, [rows].

    Raises
    ------
    ConfigError
        All required columns that are neither in the table nor in the header.
    """

    def __init__(
        self,
        table: pd.DataFrame,
        columns: Sequence[TraceColumn],
        header: Mapping[str, str],
        file: str,
        numbers: Ints,
    ) -> None:
        self._table, self._header = table, header
        self.file, self.numbers = file, numbers
        self._reasons: dict[int, str] = {}
        missing = [
            one.name
            for one in columns
            if one.is_required and one.name not in table and one.name not in header
        ]
        # An idle device has no positions, so only a file with steps needs them.
        phases = set(table["phase"]) if "phase" in table else {header.get("phase", "")}
        if phases and all(str(phase).startswith("idle") for phase in phases):
            missing = [name for name in missing if name == "device"]
        if missing:
            given = [str(name) for name in table.columns]
            raise ConfigError([Fault(file, None, None, name, _missing(name, given)) for name in missing])
        self._columns = {one.name: one for one in columns}

    def text(self, name: str, *, where: Bools | None = None) -> Texts:
        """Return a text column, [rows]; rows without one that is required are dropped where ``where``."""
        values = self._text(name)
        if self._columns[name].is_required:
            held = np.ones(len(values), dtype=bool) if where is None else where
            self.drop(held & (values == ""), name, "is missing")
        return values

    def _text(self, name: str) -> Texts:
        column = self._columns[name]
        if name not in self._table:
            return np.full(len(self._table), self._header.get(name, column.default or ""))
        values = self._table[name]
        fallback = self._header.get(name, column.default or "")
        return np.array(
            [
                str(value).strip() if given else fallback
                for value, given in zip(values.tolist(), is_given(values).tolist(), strict=True)
            ],
            dtype=np.str_,
        )

    def number(self, name: str, *, where: Bools | None = None) -> Floats:
        """Return a column of numbers, [rows]; NaN where empty. Bad ones are dropped where ``where`` holds."""
        column = self._columns[name]
        count = len(self._table)
        held = np.ones(count, dtype=bool) if where is None else where
        default = self._header.get(name, column.default)
        fallback = np.nan if default is None else _as_number(default, name, self.file)
        if name in self._table:
            raw = self._table[name]
            given = is_given(raw)
            values = as_numbers(raw)
            self.drop(held & given & ~np.isfinite(values), name, "is not a finite number")
            values = np.where(given, values, fallback)
        else:
            values = np.full(count, fallback)
        if column.is_required:
            self.drop(held & np.isnan(values), name, "is missing")
        is_low = values < 0 if column.may_be_zero else values <= 0
        self.drop(held & is_low, name, "is negative" if column.may_be_zero else "is zero or negative")
        return values

    def whole(self, name: str, *, where: Bools | None = None) -> Ints:
        """Return a column of whole numbers, [rows]; 0 in rows that are dropped or not in ``where``."""
        values = self.number(name, where=where)
        held = np.ones(len(values), dtype=bool) if where is None else where
        is_whole = np.isfinite(values) & (values == np.rint(values))
        self.drop(held & np.isfinite(values) & ~is_whole, name, "is not a whole number")
        is_small = np.abs(values) <= _LARGEST_WHOLE
        self.drop(held & is_whole & ~is_small, name, "is too large a number")
        return np.where(is_whole & is_small, values, 0.0).astype(np.int64)

    def drop(self, rows: Bools, name: str, why: str) -> None:
        """Mark rows as unusable; the first reason counts."""
        for index in np.flatnonzero(rows):
            self._reasons.setdefault(int(index), f"{name}: {why}")

    @property
    def kept(self) -> Ints:
        """Rows still usable, by index."""
        mask = np.ones(len(self._table), dtype=bool)
        mask[list(self._reasons)] = False
        return np.flatnonzero(mask)

    @property
    def dropped(self) -> list[tuple[int, str]]:
        """What was dropped: (row of the file, reason)."""
        return [(int(self.numbers[index]), reason) for index, reason in self._reasons.items()]


def _missing(name: str, given: Sequence[str]) -> str:
    return f"missing: no such column, and no '# {name}: …' in the header{nearest_hint(name, given)}"


def nearest_hint(name: str, known: Sequence[str]) -> str:
    """Return a guess at what a mistyped name means, in words; empty where none is near."""
    near = nearest(name, known)
    return f" (did you mean '{near}'?)" if near else ""


def as_numbers(values: pd.Series) -> Floats:
    """Return cells as numbers, [rows]; NaN where they hold none, as true and false do not."""
    import pandas as pd

    try:
        numbers: Floats = pd.to_numeric(values, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    except OverflowError:
        return np.array([_as_float(value) for value in values.tolist()])
    if values.dtype == bool:
        return np.full(len(values), np.nan)
    if values.dtype != object:
        return numbers
    return np.where([isinstance(value, bool) for value in values.tolist()], np.nan, numbers)


def _as_float(value: object) -> float:
    try:
        return np.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return np.nan


def is_given(values: pd.Series) -> Bools:
    """Tell which cells of a column hold anything, [rows]."""
    text = values.astype("string").str.strip().fillna("")
    return (text != "").to_numpy(dtype=bool)


def _as_number(text: str, name: str, file: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(
            [Fault(file, None, None, name, f"'{text}' in the header is not a number")]
        ) from None
