"""JSON files, whole or line by line, with one clear line where they are cut off or are something else."""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from calibrate.importers.file_start import GZIP_MAGIC
from calibrate.importers.tabular import refuse
from specsim.arrays import Floats
from specsim.config.nodes import shortened

_LARGEST = sys.float_info.max


def read_json(path: Path) -> object:
    """Read a JSON file, unpacked if gzip.

    Raises
    ------
    ConfigError
        Where it is not JSON, or cut off.
    """
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if raw.startswith(GZIP_MAGIC) else raw).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise refuse(path, "is not UTF-8 text") from None
    except (OSError, EOFError, zlib.error) as error:
        raise refuse(path, f"cannot be read: {error}") from None
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        cut = "; the file is cut off" if error.pos >= len(text.rstrip()) - 1 or _is_open(text) else ""
        raise refuse(
            path, f"is not JSON: {error.msg} (column {error.colno}){cut}", row=error.lineno
        ) from None
    except (ValueError, RecursionError) as error:
        raise refuse(path, _beyond(error)) from None


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield the objects of a file of JSON lines with the number of their line; blank lines are passed over.

    Raises
    ------
    ConfigError
        Where a line is not JSON, cut off, not an object, or has a key twice.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").rstrip().split("\n")
    except UnicodeDecodeError:
        raise refuse(path, "is not UTF-8 text") from None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line, object_pairs_hook=_unrepeated)
        except json.JSONDecodeError as error:
            cut = "; the file is cut off" if number == len(lines) else ""
            raise refuse(path, f"is not JSON: {error.msg}{cut}", row=number) from None
        except (ValueError, RecursionError) as error:
            raise refuse(path, _beyond(error), row=number) from None
        if not isinstance(record, dict):
            raise refuse(path, "is not a JSON object", row=number)
        yield number, record


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
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not abs(value) <= _LARGEST:  # type: ignore[arg-type]
        raise refuse(path, f"{shortened(repr(value))} is not a finite number", column=key)
    number = float(value)  # type: ignore[arg-type]
    if number <= 0:
        raise refuse(path, f"{number:g} is zero or negative", column=key)
    return number


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
    except (TypeError, ValueError, OverflowError):
        raise refuse(path, "is not a list of numbers", column=key) from None


def _unrepeated(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"'{twice}' stands twice in an object")
    return found


def _beyond(error: ValueError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "cannot be read as JSON: nested too deeply"
    return f"cannot be read as JSON: {str(error).partition(';')[0]}"


def _is_open(text: str) -> bool:
    """Tell whether more brackets are opened than closed: strings that hold brackets are rare enough."""
    return text.count("{") > text.count("}") or text.count("[") > text.count("]")
