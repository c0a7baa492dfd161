"""A figure of a profile that a flag gives has the flag as its source, and no longer the file's."""

from __future__ import annotations

from collections.abc import Mapping

from specsim.config import Document
from specsim.config.nodes import Entry, Place, Scalar, Table, below

_SOURCES = "provenance"
_NO_FIGURES = frozenset({_SOURCES, "fitted", "kind", "name", "description", "neglects", "valid"})
FLAG = "a flag"
"""Source of a figure that was set or varied."""


def with_flags_as_sources(document: Document) -> Document:
    """Return a scenario's document whose profiles name a flag as the source of every figure that one gave.

    Parameters
    ----------
    document
        With the files that it names, and settings put over it. A source that a flag gives stays.
    """
    for path in ("hardware.target", "hardware.draft"):
        profile = document.get(path)
        if isinstance(profile, Table) and (given := _given(profile)):
            sources = profile.entries.get(_SOURCES)
            place = profile.place if sources is None else sources.node.place
            table = Table({**_known(profile), **given}, place)
            document = document.put(f"{path}.{_SOURCES}", table)
    return document


def _known(profile: Table) -> Mapping[str, Entry]:
    sources = profile.entries.get(_SOURCES)
    return sources.node.entries if sources is not None and isinstance(sources.node, Table) else {}


def _given(profile: Table) -> dict[str, Entry]:
    """Return the sources of the figures that flags give, by dotted path."""
    known = _known(profile)
    figures = {
        path: node
        for key, entry in profile.entries.items()
        if key not in _NO_FIGURES
        for path, node in below(entry.node, key)
        if isinstance(node, Scalar) and node.value is not None
    }
    # Peaks follow what a flag says of the other view of them.
    positions = figures.get("parallel_positions")
    follows = positions.place if positions is not None and positions.place.is_flag else None
    given = {path: node.place for path, node in figures.items() if node.place.is_flag}
    if follows is not None:
        given |= {path: follows for path in figures if path.startswith("peak_flops_per_s.")}
    return {path: _source(place) for path, place in given.items() if not _is_from_flag(known.get(path))}


def _is_from_flag(entry: Entry | None) -> bool:
    return entry is not None and entry.node.place.is_flag


def _source(place: Place) -> Entry:
    words = {"source": FLAG, "tag": "given"}
    return Entry(place, Table({key: Entry(place, Scalar(word, place)) for key, word in words.items()}, place))
