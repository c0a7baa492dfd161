"""Parallel positions and peak arithmetic are two views of one number: which holds when a setting gives one.

A profile states either, mostly the datasheet's peak. A setting over it (``--set``, ``--vary``) that gives
parallel positions asks for another device: every peak moves by the same factor, so that formats keep their
ratios, at the bandwidth and efficiencies of the final profile. A setting that gives a peak over a profile
that states parallel positions drops those. What one hand wrote must agree, as the profile checks.
"""

from __future__ import annotations

from dataclasses import replace

from specsim.config import Document, validate
from specsim.config.nodes import Entry, Node, Scalar, Table
from specsim.errors import ConfigError
from specsim.hardware import RooflineProfile

_POSITIONS = "parallel_positions"
_PEAKS = "peak_flops_per_s"


def settled(document: Document) -> Document:
    """Return a scenario's document in which each device's peaks follow what a setting says of the other view.

    Parameters
    ----------
    document
        With the files that it names, and settings put over it. What is at fault in it stays as it is, for
        the validation of the whole to report.
    """
    for path in ("hardware.target", "hardware.draft"):
        profile = document.get(path)
        if isinstance(profile, Table) and {_POSITIONS, _PEAKS} <= profile.entries.keys():
            document = document.put(path, _settled(profile), key_place=profile.place)
    return document


def _settled(profile: Table) -> Table:
    positions, peaks = (profile.entries[key].node for key in (_POSITIONS, _PEAKS))
    if not isinstance(positions, Scalar) or positions.value is None or not isinstance(peaks, Table):
        return profile
    sets_positions = positions.place.is_flag
    if sets_positions == any(node.place.is_flag for node in (peaks, *_nodes(peaks))):
        return profile
    without = _with(profile, _POSITIONS, Scalar(None, positions.place))
    if not sets_positions:
        return without
    try:
        device = validate(RooflineProfile, Document(without, positions.place.file))
    except ConfigError:
        return profile
    if isinstance(positions.value, (bool, str)) or not positions.value > 0:
        return profile
    factor = positions.value / device.ridge_positions
    scaled: dict[str, Entry] = {
        dtype: replace(peaks.entries[dtype], node=Scalar(peak * factor, peaks.entries[dtype].node.place))
        for dtype, peak in device.peak_flops_per_s.items()
    }
    return _with(profile, _PEAKS, replace(peaks, entries=scaled))


def _nodes(table: Table) -> list[Node]:
    return [entry.node for entry in table.entries.values()]


def _with(profile: Table, key: str, node: Node) -> Table:
    entry = Entry(profile.entries[key].key_place, node)
    return replace(profile, entries={**profile.entries, key: entry})
