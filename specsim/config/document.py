"""Documents: files and settings in, specs out. The way from a file to a validated spec, in the order of use.

``read``, ``parse`` or ``from_data`` makes a `Document`, ``expand`` (in `specsim.config.catalog`) splices in
the files that it names, ``override`` puts settings over it, and ``validate`` turns it into a spec or into
faults.
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from specsim.config.nodes import Document, Place, Table, shortened
from specsim.config.validate import validate
from specsim.config.yaml import MAX_BYTES, MAX_DEPTH, parse, parse_value
from specsim.errors import ConfigError, Fault
from specsim.units import format_bytes

__all__ = ["Document", "from_data", "override", "parse", "read", "validate"]


def read(path: str | Path) -> Document:
    """Read a YAML or JSON file.

    Raises
    ------
    ConfigError
        Where the file cannot be read, is not text, is too large, or is not one mapping with string keys.
    """
    file = str(path)
    try:
        status = Path(path).stat()
        if stat.S_ISDIR(status.st_mode):
            raise _error(file, "is a directory, not a file")
        # Opening a pipe would wait for its writer, and a device may never end.
        if not stat.S_ISREG(status.st_mode):
            raise _error(file, "is not a regular file")
        if status.st_size > MAX_BYTES:
            raise _error(
                file, f"has {format_bytes(status.st_size)}; at most {format_bytes(MAX_BYTES)} are read"
            )
        with Path(path).open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise _error(file, "no such file") from None
    except OSError as error:
        raise _error(file, f"cannot be read: {error.strerror or error}") from None
    except ConfigError:
        raise
    except ValueError as error:
        raise _error(repr(file), f"is not a file name: {error}") from None
    if b"\0" in content:
        raise _error(file, "is a binary file, not YAML or JSON")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError([Fault(file, line, None, "", "is not UTF-8 text")]) from None
    return parse(text, file=file)


def from_data(data: Mapping[str, object], *, name: str) -> Document:
    """Return a document of data in memory: what a file could hold, and paths; its faults have no line.

    Parameters
    ----------
    data
        Keys and values.
    name
        What the data is called in messages.

    Raises
    ------
    ConfigError
        Where a value is nothing that a file can hold.

    Examples
    --------
    >>> from_data({"workload": {"num_prompts": 8}}, name="scenario").data
    {'workload': {'num_prompts': 8}}
    """
    try:
        text = json.dumps(_in_words(data), default=os.fspath, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise _error(name, f"holds what no file can: {error}") from None
    root = parse_value(text, place=Place(name))
    assert isinstance(root, Table)
    return Document(root, name)


def override(document: Document, settings: Sequence[str]) -> Document:
    """Return a document with settings such as ``workload.num_prompts=8`` put over it, in order.

    A value is read as YAML; an item of a list is named by its number, as in ``classes.0.share=.3``.

    Raises
    ------
    ConfigError
        Where a setting has no ``=``, its value is not YAML, or its path leads nowhere.

    Examples
    --------
    >>> override(parse("seed: 0"), ["slo.p99_ttft_ms=200"]).data
    {'seed': 0, 'slo': {'p99_ttft_ms': 200}}
    """
    for setting in settings:
        path, equals, value = setting.partition("=")
        path = path.strip()
        if not equals or not all(path.split(".")):
            raise _error(f"--set {shortened(setting)}", "is not of the form path.to.key=value")
        if path.count(".") >= MAX_DEPTH:
            raise _error(f"--set {shortened(path)}", f"nested more than {MAX_DEPTH} levels deep")
        place = Place(f"--set {shortened(path, limit=200)}")
        document = document.put(path, parse_value(value, place=place), key_place=place)
    return document


def _in_words(value: object) -> object:
    """Return data with infinity as the word that stands for it in a file."""
    if isinstance(value, Mapping):
        return {key: _in_words(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_in_words(item) for item in value]
    return "inf" if isinstance(value, float) and value == math.inf else value


def _error(file: str, message: str) -> ConfigError:
    return ConfigError([Fault(shortened(file, limit=200), None, None, "", message)])
