"""A table of results: numpy columns checked against their declaration, made a DataFrame only when asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from specsim.arrays import Bools, Floats, Ints
from specsim.results.schema import Column

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Labels:
    """A column of words as codes into few distinct names: a row costs one byte, not a string."""

    codes: NDArray[np.integer]
    """Code of each row, [rows]."""
    names: tuple[str, ...]
    """The names that the codes index."""

    @classmethod
    def of(cls, words: NDArray[np.str_] | NDArray[np.object_]) -> Labels:
        """Labels of an array of words.

        Examples
        --------
        >>> Labels.of(np.array(["decode", "prefill", "decode"])).names
        ('decode', 'prefill')
        """
        names, codes = np.unique(words.astype(str), return_inverse=True)
        return cls(codes.astype(np.min_scalar_type(max(len(names) - 1, 0))), tuple(names.tolist()))

    @classmethod
    def constant(cls, name: str, num_rows: int) -> Labels:
        """Return the same word in every row."""
        return cls(np.zeros(num_rows, np.uint8), (name,))

    @classmethod
    def stacked(cls, parts: Sequence[Labels]) -> Labels:
        """Rows of several columns of words, one below the other.

        Examples
        --------
        >>> Labels.stacked([Labels.constant("a", 1), Labels.constant("b", 2)]).codes.tolist()
        [0, 1, 1]
        """
        names = tuple(dict.fromkeys(name for part in parts for name in part.names))
        codes = [
            np.array([names.index(name) for name in part.names], np.uint32)[part.codes] for part in parts
        ]
        return cls(np.concatenate(codes).astype(np.min_scalar_type(max(len(names) - 1, 0))), names)

    def rows(self, name: str) -> Ints:
        """Rows that hold this word, ascending."""
        if name not in self.names:
            return np.empty(0, np.int64)
        return np.flatnonzero(self.codes == self.names.index(name))


Values: TypeAlias = NDArray[np.integer] | Floats | Bools | Labels
ColumnData: TypeAlias = Mapping[str, NDArray[np.generic] | Labels]


class Table:
    """One table of a result: columns [rows] by name, complete and of the declared dtype.

    Parameters
    ----------
    columns
        Their declaration, from `specsim.results.schema`.
    data
        The arrays by name; a column of words may be an array of strings or `Labels`.

    Raises
    ------
    ValueError
        If a column is missing, undeclared, or not as long as the others.
    """

    def __init__(self, columns: tuple[Column, ...], data: ColumnData) -> None:
        names = {column.name for column in columns}
        if names != set(data):
            raise ValueError(
                f"missing columns {sorted(names - set(data))}, undeclared columns {sorted(set(data) - names)}"
            )
        self.columns = columns
        self._data: dict[str, Values] = {
            column.name: _typed(data[column.name], column.dtype) for column in columns
        }
        lengths = {name: len(_array(values)) for name, values in self._data.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns of unequal length: {lengths}")
        self._num_rows = next(iter(lengths.values()), 0)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._num_rows

    def ints(self, name: str) -> Ints:
        """Return a column of whole numbers, [rows]."""
        return np.asarray(self._numbers(name), np.int64)

    def floats(self, name: str) -> Floats:
        """Return a column as floating-point numbers, [rows]."""
        return np.asarray(self._numbers(name), np.float64)

    def bools(self, name: str) -> Bools:
        """Return a column of claims, [rows]."""
        return np.asarray(self._numbers(name), np.bool_)

    def values(self, name: str) -> Values:
        """Return a column as it is kept, [rows]."""
        return self._data[name]

    def labels(self, name: str) -> Labels:
        """Return a column of words, [rows]."""
        values = self._data[name]
        if not isinstance(values, Labels):
            raise TypeError(f"column {name} holds numbers")
        return values

    def where(self, name: str, word: str) -> Table:
        """Rows whose column of words holds this one: views where the rows are contiguous."""
        rows = self.labels(name).rows(word)
        if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
            return self._take(slice(int(rows[0]), int(rows[-1]) + 1))
        return self._take(rows)

    def filled(self, value: float, *names: str) -> Table:
        """Return the same table with one value in every row of these columns of numbers, at no memory."""
        column = np.broadcast_to(np.float64(value), (len(self),))
        return Table(self.columns, {**self._data, **dict.fromkeys(names, column)})

    def frame(self) -> pd.DataFrame:
        """Return the table as a DataFrame; words are categorical columns."""
        import pandas as pd

        return pd.DataFrame(
            {
                name: pd.Categorical.from_codes(values.codes, categories=pd.Index(values.names))
                if isinstance(values, Labels)
                else values
                for name, values in self._data.items()
            }
        )

    def _numbers(self, name: str) -> NDArray[np.integer] | Floats | Bools:
        values = self._data[name]
        if isinstance(values, Labels):
            raise TypeError(f"column {name} holds words")
        return values

    def _take(self, rows: slice | Ints) -> Table:
        return Table(
            self.columns,
            {
                name: Labels(values.codes[rows], values.names) if isinstance(values, Labels) else values[rows]
                for name, values in self._data.items()
            },
        )


def _typed(values: NDArray[np.generic] | Labels, dtype: str) -> Values:
    if dtype != "str":
        if isinstance(values, Labels):
            raise ValueError("words where numbers are declared")
        return np.asarray(values).astype(np.dtype(dtype), copy=False)
    return values if isinstance(values, Labels) else Labels.of(np.asarray(values))


def _array(values: Values) -> NDArray[np.generic]:
    return values.codes if isinstance(values, Labels) else values
