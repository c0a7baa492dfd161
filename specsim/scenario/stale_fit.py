"""A fit is of the figures that it was made with: a setting over one of them leaves a profile uncalibrated.

How a device is run (its power cap) and what is beside the point (price, capacity) may change and the fit
stays.
"""

from __future__ import annotations

from specsim.config import Document
from specsim.config.nodes import Scalar, Table, below

_FIT = "fitted"
_FIGURES = (
    "memory",
    "peak_flops_per_s",
    "parallel_positions",
    "efficiency",
    "overhead",
    "attention",
    "links",
    "power",
)
_BESIDE = frozenset({"memory.capacity_bytes", "power.cap_w"})


def without_stale_fit(document: Document) -> Document:
    """Return a scenario's document whose profiles are called fitted only where they are as they were fitted.

    Parameters
    ----------
    document
        With the files that it names, and settings put over it.
    """
    for path in ("hardware.target", "hardware.draft"):
        profile = document.get(path)
        if isinstance(profile, Table) and _FIT in profile.entries and _is_changed(profile):
            document = document.put(f"{path}.{_FIT}", Scalar(None, profile.place))
    return document


def _is_changed(profile: Table) -> bool:
    if profile.entries[_FIT].node.place.is_flag:
        return False
    return any(
        node.place.is_flag
        for key in _FIGURES
        if key in profile.entries
        for path, node in below(profile.entries[key].node, key)
        if path not in _BESIDE
    )
