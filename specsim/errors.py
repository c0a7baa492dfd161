"""Everything that specsim raises on purpose.

::

    SpecsimError                 exit code
    ├── ConfigError (ValueError)     2   faults of input files, flags and recorded traces
    ├── DomainError (ValueError)     2   an argument outside what a formula or a measured grid covers
    ├── CapacityError (RuntimeError) 3   weights and KV cache exceed the memory of the device
    └── GateError (RuntimeError)     1   a service objective, gate or proof that failed

Anything else that escapes is a bug of ours and exits 70.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One fault of one input, printed as ``file:line:column: path: message``."""

    file: str
    line: int | None
    column: int | None
    path: str
    message: str

    def __str__(self) -> str:
        """Render the fault on one line; parts that do not apply are left out."""
        where = ":".join(str(part) for part in (self.file, self.line, self.column) if part not in (None, ""))
        parts = [part for part in (where, self.path, self.message) if part]
        return ": ".join(parts).replace("\n", " ")


class SpecsimError(Exception):
    """Base of all errors that a user can cause; the command line prints one line each."""

    exit_code: ClassVar[int] = 2


class ConfigError(SpecsimError, ValueError):
    """Faults of an input, all of them at once.

    Parameters
    ----------
    faults
        The faults, or one message where there is no file to point into.
    """

    def __init__(self, faults: Sequence[Fault] | str) -> None:
        self.faults: tuple[Fault, ...] = (
            (Fault("", None, None, "", faults),) if isinstance(faults, str) else tuple(faults)
        )
        super().__init__("\n".join(str(fault) for fault in self.faults))

    @classmethod
    def at(cls, path: str, message: str) -> ConfigError:
        """Return the fault of one key of a scenario, which `Document.placed` gives its file and line.

        Parameters
        ----------
        path
            Dotted path of the key.
        message
            What is wrong there.
        """
        return cls([Fault("", None, None, path, message)])


class DomainError(SpecsimError, ValueError):
    """An argument outside what a formula or a measured grid covers; nothing is extrapolated."""


class CapacityError(SpecsimError, RuntimeError):
    """Weights and KV cache exceed the memory of the device.

    Parameters
    ----------
    message
        What does not fit where, and by how much.
    lacking_bytes
        How many bytes are missing.
    """

    exit_code = 3

    def __init__(self, message: str, *, lacking_bytes: float) -> None:
        self.lacking_bytes = lacking_bytes
        super().__init__(message)


class GateError(SpecsimError, RuntimeError):
    """A service objective, a gate or a proof that failed; the result itself is complete."""

    exit_code = 1
