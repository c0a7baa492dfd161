"""The seam for trace files of other tools: who recognises a file, and reads it into a `Trace`.

An importer is one file: a frozen spec with ``kind: Literal["name"]`` and the methods of `TraceImporter`,
entered in ``trace_importers`` by decorator or by an entry point of the group ``specsim.trace_importers``.
It builds a table in the columns of `calibrate.columns` and hands it to `calibrate.rows.trace_of`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from calibrate.measurements import Trace
from specsim.errors import ConfigError, Fault
from specsim.registry import Registry

trace_importers = Registry("trace importer", group="specsim.trace_importers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """What the user states beside a file, for what the file leaves out."""

    device: str | None = None
    """Name of the device."""
    model: str | None = None
    """Preset, path of a config.json, or its JSON."""
    dtype: str | None = None
    """Format of the weights."""
    tensor_parallel_size: int | None = None
    """Devices that share each layer."""

    @property
    def header(self) -> dict[str, str]:
        """What is stated, under the names of the columns."""
        given = {
            "device": self.device,
            "model": self.model,
            "dtype": self.dtype,
            "tp": self.tensor_parallel_size,
        }
        return {key: str(value) for key, value in given.items() if value is not None}


class TraceImporter(Protocol):
    """Reads one format of trace file."""

    def recognises(self, path: Path) -> bool:
        """Tell from a file's ending and first bytes, without raising, whether it is of this format."""
        ...

    def read(self, path: Path, *, defaults: Defaults) -> Trace:
        """Read a file; ConfigError where it is not what it seems. No row is left out without a warning."""
        ...


def read_trace(path: Path, *, defaults: Defaults | None = None, importer: str | None = None) -> Trace:
    """Read a trace file by the importer that recognises it.

    Parameters
    ----------
    path
        The file.
    defaults
        What the file leaves out.
    importer
        Kind of importer; left out: the one that recognises the file.

    Raises
    ------
    ConfigError
        Where there is no such file, no or more than one importer recognises it, or it cannot be read.
    """
    if not path.exists():
        raise _error(path, "no such file")
    if path.is_dir():
        raise _error(path, "is a directory, not a file")
    if path.stat().st_size == 0:
        raise _error(path, "is empty")
    given = defaults or Defaults()
    if importer is not None:
        return _built(importer).read(path, defaults=given)
    kinds = [kind for kind in trace_importers.kinds() if _built(kind).recognises(path)]
    if not kinds:
        raise _error(path, f"no trace importer recognises it (known: {_names(trace_importers.kinds())})")
    if len(kinds) > 1:
        raise _error(path, f"could be of any of {_names(kinds)}; name one with --format")
    return _built(kinds[0]).read(path, defaults=given)


def _built(kind: str) -> TraceImporter:
    return cast("TraceImporter", trace_importers[kind]())


def _names(kinds: Sequence[str]) -> str:
    return ", ".join(kinds)


def _error(path: Path, message: str) -> ConfigError:
    return ConfigError([Fault(str(path), None, None, "", message)])
