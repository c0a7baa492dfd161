"""Acceptance of a recorded trace by output position and by the draft's entropy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from specsim.arrays import Floats
from specsim.errors import ConfigError
from specsim.recording.summary import first_acceptance
from specsim.speculation.trace import Trace

Axis: TypeAlias = Literal["position", "entropy"]
"""What acceptance is told by."""
_EDGES: dict[Axis, tuple[float, ...]] = {
    "position": (0, 1, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096),
    "entropy": (0, 0.1, 0.5, 1, 1.5, 2, 3, 4, 6, 8, 16),
}


@dataclass(frozen=True, slots=True)
class Bin:
    """Positions between two values of an axis."""

    low: float
    high: float
    """Not included."""
    num_tokens: int
    acceptance_rate: float
    """Mean probability that the first draft token of a round begun there is kept."""


def acceptance_by(trace: Trace, axis: Axis) -> list[Bin]:
    """Return the acceptance in each bin of an axis that holds any position.

    Parameters
    ----------
    trace
        The trace; a log of accepted lengths records no single positions.
    axis
        ``position``: output position, 0 is the token that prefill emits. ``entropy``: of the draft, nats.

    Raises
    ------
    ConfigError
        The trace does not record what the axis asks for.
    """
    values, acceptance = _values(trace, axis), first_acceptance(trace)
    edges = _EDGES[axis]
    bins = []
    for low, high in zip(edges, (*edges[1:], np.inf), strict=True):
        rows = (values >= low) & (values < high)
        if rows.any():
            bins.append(Bin(low, high, int(rows.sum()), float(acceptance[rows].mean())))
    return bins


def _values(trace: Trace, axis: Axis) -> Floats:
    if axis == "position":
        return np.arange(trace.num_tokens) - np.repeat(trace.offsets[:-1], np.diff(trace.offsets)).astype(
            float
        )
    if trace.draft_entropy_nats is None:
        raise ConfigError("the draft of this trace has no entropy: it is a lookup, or a log")
    return trace.draft_entropy_nats.astype(np.float64)
