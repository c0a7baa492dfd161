"""What differs between two configurations, key by key."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from pydantic import JsonValue

IGNORED = frozenset({"name", "description"})
"""Keys at the top of a scenario that no result depends on."""
_SOURCES = "provenance"


@dataclass(frozen=True, slots=True)
class Change:
    """One key that differs; a value that is absent is None."""

    key: str
    before: str | None
    after: str | None


def changes(before: Mapping[str, JsonValue], after: Mapping[str, JsonValue]) -> list[Change]:
    """Return every key that differs, in order; what goes by a name is told by its name alone.

    Examples
    --------
    >>> changes({"seed": 0, "slo": {}}, {"seed": 1, "slo": {"p99_tpot_ms": 50}})
    [Change(key='seed', before='0', after='1'), Change(key='slo.p99_tpot_ms', before=None, after='50')]
    """
    keys = [key for key in dict.fromkeys((*before, *after)) if key not in IGNORED]
    found = [change for key in keys for change in _changed(key, before.get(key), after.get(key))]
    moved = {change.key for change in found}
    return [change for change in found if not _follows(change.key, moved)]


def _follows(key: str, moved: Set[str]) -> bool:
    """Tell whether a key is the source of a figure that differs itself."""
    device, _, figure = key.partition(f".{_SOURCES}.")
    return bool(figure) and any(f"{device}.{path}" in moved for path in (figure, figure.rpartition(".")[0]))


def _changed(key: str, before: JsonValue, after: JsonValue) -> Iterator[Change]:
    if before == after:
        return
    if key.endswith(f".{_SOURCES}"):
        # A profile without sources lacks each of them.
        before, after = before or {}, after or {}
    if isinstance(before, dict) and isinstance(after, dict):
        names = before.get("name"), after.get("name")
        if names[0] != names[1]:
            # Another device or model altogether: its hundred figures follow from its name.
            yield Change(key, _shown(names[0]), _shown(names[1]))
            return
        for step in dict.fromkeys((*before, *after)):
            yield from _changed(f"{key}.{step}", before.get(step), after.get(step))
        return
    yield Change(key, _named(before), _named(after))


def _named(value: JsonValue) -> str | None:
    return _shown(value.get("name", value)) if isinstance(value, dict) else _shown(value)


def _shown(value: JsonValue) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)
