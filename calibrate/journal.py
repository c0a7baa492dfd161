"""The journal of a capture: a line a measured step, so that a capture that was killed goes on.

The first line is the header. A journal of another header belongs to another capture and is refused. A
last line that was cut off by the kill is left out; its cell is measured again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from specsim.config.nodes import shortened
from specsim.errors import ConfigError, Fault

Record = Mapping[str, str | int | float]


class Journal:
    """Rows of a capture as they are measured.

    Parameters
    ----------
    path
        The file; made where there is none.
    header
        What identifies the capture.

    Raises
    ------
    ConfigError
        Where the file is the journal of another capture.
    """

    def __init__(self, path: Path, header: Mapping[str, str]) -> None:
        self.path = path
        self.records: list[Record] = []
        if path.exists():
            self._resume(dict(header))
        else:
            self._append({"header": dict(header)})

    def append(self, record: Record) -> None:
        """Write a row, and have it on disk before returning."""
        self._append(record)
        self.records.append(record)

    def remove(self) -> None:
        """Remove the file, once its rows stand elsewhere."""
        self.path.unlink()

    def _append(self, record: Mapping[str, object]) -> None:
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record) + "\n")

    def _resume(self, header: dict[str, str]) -> None:
        text = self.path.read_text(encoding="utf-8")
        whole, _, _cut = text.rpartition("\n")
        lines = whole.splitlines()
        try:
            first, *records = [json.loads(line) for line in lines]
        except ValueError:
            first, records = {}, []
        if first != {"header": header}:
            message = f"is the journal of another capture{_difference(first, header)}"
            message += f"; remove {self.path.name} to start again"
            raise ConfigError([Fault(str(self.path), None, None, "", message)])
        self.records = records
        # Without the line that was cut off, so that the next one begins a line.
        self.path.write_text(whole + "\n", encoding="utf-8")


def _difference(first: Mapping[str, object], header: Mapping[str, str]) -> str:
    """Say in which figure two captures differ first; empty where there is no header to compare."""
    kept = first.get("header")
    if not isinstance(kept, dict):
        return ""
    changed = next((key for key in header if kept.get(key) != header[key]), None)
    return "" if changed is None else f" ({changed} was {shortened(str(kept.get(changed)))})"
