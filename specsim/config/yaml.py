"""YAML 1.2 (and with it JSON) into a Document: strict, bounded in size and depth, every fault with its line.

Nodes are built from the parser's events rather than by a loader, for three reasons: the core schema of
YAML 1.2 decides what is a number (`3.35e12` is, `off` and `12:30` are strings), positions are kept, and
limits on depth and expansion hold before anything is built.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from specsim.config.nodes import Document, Entry, Items, Node, Place, Scalar, Table, shortened, shown_key
from specsim.errors import ConfigError, Fault

MAX_BYTES = 1_000_000
"""Largest file that is read; a scenario has a few thousand bytes, a measured grid some ten thousand."""
MAX_DEPTH = 64
"""Deepest nesting of mappings and lists."""
MAX_NODES = 50_000
"""Most values in a document, each use of an alias counted with all that it stands for."""
MAX_INTEGER = 2**63 - 1

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEAN = {word: word.lower() == "true" for word in ("true", "True", "TRUE", "false", "False", "FALSE")}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"\+?\.(inf|Inf|INF)")
_NOT_FINITE = re.compile(r"-\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


def parse(text: str, *, file: str = "<text>") -> Document:
    """Parse YAML or JSON text; ``file`` is what messages call it.

    Raises
    ------
    ConfigError
        Where the text is too long or is not one mapping with string keys.

    Examples
    --------
    >>> parse("memory: {bandwidth_bytes_per_s: 3.35e12}").data
    {'memory': {'bandwidth_bytes_per_s': 3350000000000.0}}
    """
    if len(text) > MAX_BYTES:
        raise _error(file, f"has {len(text)} characters; at most {MAX_BYTES} are read")
    root = _Builder(file).build(text)
    if root is None:
        raise _error(file, "is empty; a mapping is expected")
    if not isinstance(root, Table):
        raise ConfigError([root.place.fault("", "the top level is not a mapping of keys to values")])
    return Document(root, file)


def parse_value(text: str, *, place: Place) -> Node:
    """Parse the value of a flag; every part of it gets the flag as its place."""
    return _Builder(place.file, flag=place).build(text) or Scalar(None, place)


@dataclass(slots=True)
class _Open:
    """A mapping or list whose end has not been read yet."""

    place: Place
    anchor: str | None
    is_mapping: bool
    items: list[Node] = field(default_factory=list)
    entries: dict[str, Entry] = field(default_factory=dict)
    key: tuple[str, Place] | None = None
    size: int = 1
    height: int = 1


@dataclass(frozen=True, slots=True)
class _Anchored:
    node: Node
    size: int
    height: int


class _Builder:
    """Builds the node of one document from the parser's events."""

    def __init__(self, file: str, *, flag: Place | None = None) -> None:
        self._file = file
        self._flag = flag
        self._open: list[_Open] = []
        self._anchors: dict[str, _Anchored | None] = {}
        self._faults: list[Fault] = []
        self._num_nodes = 0
        self._root: Node | None = None

    def build(self, text: str) -> Node | None:
        """Return the root, or None where the text holds no document; raise all faults found on the way."""
        num_documents = 0
        for event in self._events(text):
            name = type(event).__name__
            if name == "DocumentStartEvent":
                num_documents += 1
                self._start_document(event, num_documents)
            elif name == "AliasEvent":
                self._alias(event)
            elif name == "ScalarEvent":
                place = self._place(event)
                self._refuse_tag(event, place)
                self._add(Scalar(self._value(event, place), place), event.anchor, size=1, height=0)
            elif name in ("MappingStartEvent", "SequenceStartEvent"):
                self._start(event, is_mapping=name == "MappingStartEvent")
            elif name in ("MappingEndEvent", "SequenceEndEvent"):
                self._end()
        if self._faults:
            raise ConfigError(self._faults)
        return self._root

    def _events(self, text: str) -> Iterator[Any]:
        # JSON may be indented by tabs, which YAML refuses; in JSON a tab is never part of a string.
        if self._file.endswith(".json"):
            text = text.replace("\t", " ")
        try:
            yield from YAML(typ="safe", pure=True).parse(io.StringIO(text))
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = self._flag or Place(self._file, *((mark.line + 1, mark.column + 1) if mark else ()))
            what = " ".join(str(part) for part in (error.problem, error.context) if part)
            raise ConfigError([*self._faults, place.fault("", f"is not valid YAML: {what}")]) from None
        except (ConfigError, MemoryError):
            raise
        except YAMLError as error:
            reason = getattr(error, "reason", None) or str(error).partition("\n")[0]
            raise self._stop(self._flag or Place(self._file), f"is not valid YAML: {reason}") from None
        except Exception as error:
            # The parser lets a few malformed escapes and directives through as bare Python errors.
            raise self._stop(self._flag or Place(self._file), f"is not valid YAML: {error}") from None

    def _start_document(self, event: Any, number: int) -> None:
        place = self._place(event)
        if number > 1:
            raise self._stop(place, "a second document begins here; only one is allowed")
        if event.version not in (None, (1, 2)):
            raise self._stop(place, "is read as YAML 1.2; another %YAML version is not allowed")

    def _start(self, event: Any, *, is_mapping: bool) -> None:
        place = self._place(event)
        self._refuse_tag(event, place)
        if len(self._open) >= MAX_DEPTH:
            raise self._stop(place, f"nested more than {MAX_DEPTH} levels deep")
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._open.append(_Open(place, event.anchor, is_mapping))

    def _end(self) -> None:
        done = self._open.pop()
        node: Node
        node = Table(done.entries, done.place) if done.is_mapping else Items(tuple(done.items), done.place)
        self._add(node, done.anchor, size=done.size, height=done.height)

    def _alias(self, event: Any) -> None:
        place = self._place(event)
        if event.anchor not in self._anchors:
            raise self._stop(place, f"no anchor '&{event.anchor}' before this alias")
        anchored = self._anchors[event.anchor]
        if anchored is None:
            raise self._stop(place, f"the alias '*{event.anchor}' stands inside what it stands for")
        if len(self._open) + anchored.height > MAX_DEPTH:
            raise self._stop(place, f"nested more than {MAX_DEPTH} levels deep")
        self._num_nodes += anchored.size
        self._add(anchored.node, None, size=anchored.size, height=anchored.height, counted=True)

    def _add(self, node: Node, anchor: str | None, *, size: int, height: int, counted: bool = False) -> None:
        """Give a finished node to the mapping or list that it stands in."""
        self._num_nodes += not counted
        if self._num_nodes > MAX_NODES:
            raise self._stop(node.place, f"more than {MAX_NODES} values, aliases expanded")
        if anchor is not None:
            self._anchors[anchor] = _Anchored(node, size, height)
        if not self._open:
            self._root = node
            return
        parent = self._open[-1]
        parent.size += size
        parent.height = max(parent.height, height + 1)
        if not parent.is_mapping:
            parent.items.append(node)
        elif parent.key is None:
            parent.key = self._key(node), node.place
        else:
            (key, key_place), parent.key = parent.key, None
            self._enter(parent, key, Entry(key_place, node))

    def _enter(self, parent: _Open, key: str, entry: Entry) -> None:
        first = parent.entries.get(key)
        if first is not None:
            where = first.key_place
            known = f"; first given at {where.line}:{where.column}" if where.line is not None else ""
            message = f"duplicate key{known}"
            self._faults.append(entry.key_place.fault(self._path(key), message))
            return
        parent.entries[key] = entry

    def _key(self, node: Node) -> str:
        if isinstance(node, Scalar) and isinstance(node.value, str):
            return node.value
        shown = repr(node.value) if isinstance(node, Scalar) else "a mapping or list"
        self._faults.append(node.place.fault(self._path(), f"the key {shown} is not a string; quote it"))
        return f"\0{self._num_nodes}"

    def _value(self, event: Any, place: Place) -> bool | int | float | str | None:
        text: str = event.value
        if event.style is not None:
            return self._text(text, place)
        if text in _NULL:
            return None
        if text in _BOOLEAN:
            return _BOOLEAN[text]
        for pattern, base in ((_INTEGER, 10), (_OCTAL, 8), (_HEXADECIMAL, 16)):
            if pattern.fullmatch(text):
                return self._integer(text, base, place)
        if _INFINITE.fullmatch(text):
            # JSON knows no infinity; a key that allows it takes the word, and every other refuses that.
            return "inf"
        if _NOT_FINITE.fullmatch(text) or (_FLOAT.fullmatch(text) and not math.isfinite(float(text))):
            self._faults.append(place.fault(self._path_here(), f"{shortened(text)} is not a finite number"))
            return 0.0
        return float(text) if _FLOAT.fullmatch(text) else self._text(text, place)

    def _integer(self, text: str, base: int, place: Place) -> int:
        # Python refuses to read more than 4300 digits, and counts are 64-bit integers from here on.
        number = int(text, base if base == 10 else 0) if len(text) <= 40 else MAX_INTEGER + 1
        if abs(number) <= MAX_INTEGER:
            return number
        message = (
            f"the integer {shortened(text)} is out of range; at most {MAX_INTEGER}, or write it as in 1e22"
        )
        self._faults.append(place.fault(self._path_here(), message))
        return 0

    def _text(self, text: str, place: Place) -> str:
        if text.isascii():
            return text
        try:
            # JSON writes characters beyond the first plane as two escapes, which are one character.
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            self._faults.append(place.fault(self._path_here(), "holds half of a surrogate pair"))
            return ""

    def _refuse_tag(self, event: Any, place: Place) -> None:
        if event.tag is not None:
            tag = str(event.tag).replace("tag:yaml.org,2002:", "!!")
            message = f"the tag '{shortened(tag)}' is not allowed; write the plain value"
            self._faults.append(place.fault(self._path_here(), message))

    def _place(self, event: Any) -> Place:
        mark = event.start_mark
        return self._flag or Place(self._file, mark.line + 1, mark.column + 1)

    def _path_here(self) -> str:
        """Return the path of the value that is being read."""
        if not self._open:
            return ""
        parent = self._open[-1]
        if not parent.is_mapping:
            return self._path(str(len(parent.items)))
        return self._path(parent.key[0]) if parent.key is not None else self._path()

    def _path(self, *last: str) -> str:
        steps = []
        for level in self._open[:-1]:
            steps.append(level.key[0] if level.key is not None else str(len(level.items)))
        return ".".join(shown_key(step) for step in (*steps, *last))

    def _stop(self, place: Place, message: str) -> ConfigError:
        return ConfigError([*self._faults, place.fault("", message)])


def _error(file: str, message: str) -> ConfigError:
    return ConfigError([Fault(file, None, None, "", message)])
