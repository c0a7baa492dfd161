"""Files that are whole or absent at any moment, and the faults of writing as one line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from specsim.errors import ConfigError


@contextmanager
def write_faults(path: Path) -> Iterator[None]:
    """Turn what the system says against writing a file or folder into a ConfigError.

    Raises
    ------
    ConfigError
        With the path and the system's reason.
    """
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror or error}") from error


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file under a hidden name beside it, then rename it: no reader meets half of it.

    Parameters
    ----------
    path
        Its folder must exist. What a link points to is written; a device or a pipe is written into.
    content
        Text is written as UTF-8.

    Raises
    ------
    OSError
        If it cannot be written; see `write_faults`.
    """
    data = content.encode() if isinstance(content, str) else content
    if path.exists() and not path.is_file():
        # Renaming would put a file in the place of a device; a folder says itself that it cannot be written.
        path.write_bytes(data)
        return
    path = Path(os.path.realpath(path))
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fresh.write_bytes(data)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def is_alive(process: int) -> bool:
    """Tell whether a process of this number runs; one of another user counts, a dead one not."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    try:
        state = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return True
    return state[:1] != [b"Z"]
