"""Plain data that remembers where each key and value was written, through splicing and overrides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from specsim.errors import ConfigError, Fault

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"
"""What a YAML or JSON file can hold."""
Step: TypeAlias = str | int
"""One step into a document: a key, or the index of an item."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was written: a file with line and column from 1; a flag or data without them."""

    file: str
    line: int | None = None
    column: int | None = None

    @property
    def is_flag(self) -> bool:
        """Whether a flag gave it, as a setting over what a file says."""
        return self.file.startswith("--")

    def fault(self, path: str, message: str) -> Fault:
        """Return a fault at this place."""
        return Fault(self.file, self.line, self.column, path, message)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A null, boolean, number or string."""

    value: bool | int | float | str | None
    place: Place


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple[Node, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Entry:
    """A value of a mapping, with the place of its key."""

    key_place: Place
    node: Node


@dataclass(frozen=True, slots=True)
class Table:
    """A mapping with string keys, in the order of the file."""

    entries: Mapping[str, Entry]
    place: Place


Node: TypeAlias = Scalar | Items | Table


@dataclass(frozen=True, slots=True)
class Document:
    """One input, possibly put together from several files.

    Attributes
    ----------
    root
        The top-level mapping.
    file
        What the input is called in messages.
    references
        Dotted path of each name that was replaced by a file, and that file.
    """

    root: Table
    file: str
    references: Mapping[str, Path] = field(default_factory=dict)

    @property
    def data(self) -> dict[str, Plain]:
        """The document as plain data, made anew at each call."""
        return {key: plain(entry.node) for key, entry in self.root.entries.items()}

    def get(self, path: str) -> Node | None:
        """Return the node at a dotted path, or None where there is none."""
        node: Node | None = self.root
        for step in path.split("."):
            node = child(node, step) if node is not None else None
        return node

    def fault(self, path: str, message: str) -> Fault:
        """Return a fault at a dotted path, placed at the deepest part of it that exists."""
        node: Node = self.root
        for step in path.split("."):
            below = child(node, step)
            if below is None:
                break
            node = below
        return node.place.fault(path, message)

    def placed(self, error: ConfigError) -> ConfigError:
        """Return an error with its faults placed in this document, as far as they name a key and no file."""
        return ConfigError(
            [
                self.fault(fault.path, fault.message) if fault.path and not fault.file else fault
                for fault in error.faults
            ]
        )

    def put(self, path: str, node: Node, *, key_place: Place | None = None) -> Document:
        """Return a document with the node at a dotted path; missing mappings on the way are made.

        Raises
        ------
        ConfigError
            Where the path leads through a number or a string, or to an item that a list does not have.
        """
        steps = path.split(".")
        root = _put(self.root, steps, node, key_place or node.place, walked=())
        assert isinstance(root, Table)
        return replace(self, root=root)


def plain(node: Node) -> Plain:
    """Return a node as plain data."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Items):
        return [plain(item) for item in node.items]
    return {key: plain(entry.node) for key, entry in node.entries.items()}


def child(node: Node, step: Step) -> Node | None:
    """Return the value under a key or the item at an index (a number or its digits), else None."""
    if isinstance(node, Table):
        entry = node.entries.get(str(step))
        return entry.node if entry is not None else None
    index = _index(node, step)
    return node.items[index] if isinstance(node, Items) and index is not None else None


def below(node: Node, path: str) -> Iterator[tuple[str, Node]]:
    """Yield a node and all nodes below it, items of lists left out, each with its dotted path.

    Parameters
    ----------
    node
        Where to begin.
    path
        Its own path.
    """
    yield path, node
    if isinstance(node, Table):
        for key, entry in node.entries.items():
            yield from below(entry.node, f"{path}.{key}")


def dotted(steps: Sequence[Step]) -> str:
    """Return steps as a dotted path; a key that would break a line or hide in one is quoted."""
    return ".".join(shown_key(step) for step in steps)


def shown_key(step: Step) -> str:
    """Return a key as it is printed in a message."""
    text = shortened(str(step), limit=80)
    return text if text.isprintable() and text and " " not in text else repr(text)


def shortened(text: str, *, limit: int = 60) -> str:
    """Return text cut to what a message has room for.

    Examples
    --------
    >>> shortened("9" * 100, limit=5)
    '99999… (100 characters)'
    """
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def _index(node: Node, step: Step) -> int | None:
    text = str(step)
    if isinstance(node, Items) and text.isascii() and text.isdigit() and len(text) < 10:
        return int(text) if int(text) < len(node.items) else None
    return None


def _put(node: Node, steps: Sequence[str], value: Node, key_place: Place, *, walked: tuple[str, ...]) -> Node:
    if not steps:
        return value
    step, rest = steps[0], steps[1:]
    inside = (*walked, step)
    if isinstance(node, Items):
        index = _index(node, step)
        if index is None:
            message = f"no item {shown_key(step)}; '{dotted(walked)}' has {len(node.items)}, numbered from 0"
            raise ConfigError([key_place.fault(dotted(inside), message)])
        items = list(node.items)
        items[index] = _put(items[index], rest, value, key_place, walked=inside)
        return replace(node, items=tuple(items))
    # A null stands for a mapping that is not there yet, as in `speculative_config: null`.
    if isinstance(node, Scalar) and node.value is not None:
        message = f"cannot be set: '{dotted(walked)}' is {node.value!r}, not a mapping"
        raise ConfigError([key_place.fault(dotted(inside), message)])
    table = node if isinstance(node, Table) else Table({}, key_place)
    old = table.entries.get(step)
    below = old.node if old is not None else Scalar(None, key_place)
    # Only what is replaced moves to the flag; the keys on the way stay where they were written.
    place = old.key_place if old is not None and rest else key_place
    entry = Entry(place, _put(below, rest, value, key_place, walked=inside))
    return replace(table, entries={**table.entries, step: entry})
