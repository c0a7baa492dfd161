"""One order out of several."""

from __future__ import annotations

from collections.abc import Iterable


def merged(lists: Iterable[tuple[str, ...]]) -> list[str]:
    """Merge lists of names: the first keeps its order; a new name follows the one before it in its own list.

    Examples
    --------
    >>> merged([("a", "c"), ("a", "b", "c")])
    ['a', 'b', 'c']
    """
    found: list[str] = []
    for names in lists:
        place = 0
        for name in names:
            if name in found:
                place = found.index(name) + 1
            else:
                found.insert(place, name)
                place += 1
    return found
