"""The base of importers that know a CSV file by the columns of its first line."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

from calibrate.importer import Defaults
from calibrate.importers.file_start import has_columns
from calibrate.importers.tabular import SourceTable
from calibrate.measurements import Trace
from specsim.config.base import Spec


class CsvImporter(Spec):
    """Reads one kind of CSV file; what its rows mean is the subclass's."""

    columns: ClassVar[tuple[str, ...]]
    """Columns that must be there."""
    signature: ClassVar[tuple[str, ...]] = ()
    """Columns that tell the kind of file; left out: all that must be there."""

    def recognises(self, path: Path) -> bool:
        """Tell whether the first line has its columns."""
        return has_columns(path, self.signature or self.columns)

    def read(self, path: Path, *, defaults: Defaults) -> Trace:
        """Read a file.

        Raises
        ------
        ConfigError
            Where the file is no such table, or what it leaves out was not stated. Rows that cannot be used
            are left out and counted.
        """
        return self.trace_of(SourceTable.from_csv(path, self.columns), defaults)

    @abstractmethod
    def trace_of(self, table: SourceTable, defaults: Defaults) -> Trace:
        """Return the trace of a table that has the columns."""
