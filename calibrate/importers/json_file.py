"""JSON files whole, with one clear line where they are cut off or are something else."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from calibrate.importers.tabular import refuse
from specsim.arrays import Floats

_GZIP_MAGIC = b"\x1f\x8b"


def read_json(path: Path) -> object:
    """Read a JSON file, unpacked if gzip.

    Raises
    ------
    ConfigError
        Where it is not JSON, or cut off.
    """
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if raw.startswith(_GZIP_MAGIC) else raw).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise refuse(path, "is not UTF-8 text") from None
    except (OSError, EOFError) as error:
        raise refuse(path, f"cannot be read: {error}") from None
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        cut = "; the file is cut off" if error.pos >= len(text.rstrip()) - 1 or _is_open(text) else ""
        raise refuse(
            path, f"is not JSON: {error.msg} (column {error.colno}){cut}", row=error.lineno
        ) from None


def read_json_object(path: Path) -> Mapping[str, object]:
    """Read a JSON file that holds one object.

    Raises
    ------
    ConfigError
        Where it is not JSON, or not an object.
    """
    found = read_json(path)
    if not isinstance(found, dict):
        raise refuse(path, "is not a JSON object")
    return found


def number_at(path: Path, record: Mapping[str, object], key: str) -> float:
    """Return a positive number of a JSON object.

    Raises
    ------
    ConfigError
        Where it is missing, not a number, NaN, zero or negative.
    """
    value = record.get(key)
    if value is None:
        raise refuse(path, "missing", column=key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise refuse(path, f"{value!r} is not a finite number", column=key)
    if value <= 0:
        raise refuse(path, f"{value} is zero or negative", column=key)
    return float(value)


def numbers_at(path: Path, record: Mapping[str, object], key: str) -> Floats:
    """Return a list of numbers of a JSON object, [n]; NaN may be among them.

    Raises
    ------
    ConfigError
        Where it is missing, empty or holds something else.
    """
    values = record.get(key)
    if not isinstance(values, list) or not values:
        raise refuse(path, "missing or empty", column=key)
    try:
        return np.array([float(value) for value in values])
    except (TypeError, ValueError):
        raise refuse(path, "is not a list of numbers", column=key) from None


def _is_open(text: str) -> bool:
    """Tell whether more brackets are opened than closed: strings that hold brackets are rare enough."""
    return text.count("{") > text.count("}") or text.count("[") > text.count("]")
