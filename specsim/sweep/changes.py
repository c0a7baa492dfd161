"""What differs between two configurations, key by key."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

IGNORED = frozenset({"name", "description"})
"""Keys at the top of a scenario that no result depends on."""


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
    return [change for key in keys for change in _changed(key, before.get(key), after.get(key))]


def _changed(key: str, before: JsonValue, after: JsonValue) -> Iterator[Change]:
    if before == after:
        return
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
