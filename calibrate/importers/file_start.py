"""The first bytes of a file, by which an importer recognises its own."""

from __future__ import annotations

import codecs
import csv
import gzip
import zlib
from collections.abc import Collection
from pathlib import Path

_SNIFFED_BYTES = 1 << 16
GZIP_MAGIC = b"\x1f\x8b"
"""First bytes of a gzip file."""


def start_of(path: Path) -> bytes:
    """First 64 KiB of a file, unpacked if gzip, without a byte order mark; empty where it cannot be read."""
    try:
        with path.open("rb") as stream:
            start = stream.read(_SNIFFED_BYTES)
        if not start.startswith(GZIP_MAGIC):
            return start.removeprefix(codecs.BOM_UTF8)
        with gzip.open(path) as unpacked:
            return unpacked.read(_SNIFFED_BYTES)
    except (OSError, EOFError, zlib.error):
        return b""


def has_keys(path: Path, *keys: str) -> bool:
    """Tell whether a JSON file names all of some keys near its beginning."""
    start = start_of(path)
    return start.lstrip()[:1] in (b"{", b"[") and all(f'"{key}"'.encode() in start for key in keys)


def has_columns(path: Path, columns: Collection[str]) -> bool:
    """Tell whether the first line of a file names all of some columns."""
    lines = start_of(path).decode(errors="replace").splitlines()
    names = {name.strip() for name in next(csv.reader(lines[:1]), [])}
    return set(columns) <= names
