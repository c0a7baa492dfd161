"""Drafts looked up in the text so far: host work, nothing on the device."""

from __future__ import annotations

import numpy as np

from specsim.arrays import Ints, to_picoseconds
from specsim.hardware.step import StepCosts, StepShape


class HostLookup:
    """Cost of proposing drafts by prompt lookup: one launch for the whole batch; the device waits.

    Parameters
    ----------
    lookup_s
        Time of one lookup, s: the launch floor of a draft step.
    """

    def __init__(self, *, lookup_s: float) -> None:
        self._lookup_s = lookup_s
        self._duration_ps = int(to_picoseconds(np.array(lookup_s)))

    def steps(self, shape: StepShape) -> StepCosts:
        """Cost of R lookups, whatever the shape."""
        nothing = np.zeros(shape.num_sequences.shape)
        none: Ints = np.zeros(nothing.shape, dtype=np.int64)
        return StepCosts(
            duration_ps=none + self._duration_ps,
            energy_nj=none,
            memory_s=nothing,
            compute_s=nothing,
            attention_s=nothing,
            communication_s=nothing,
            overhead_s=nothing + self._lookup_s,
            flops=nothing,
            bytes=nothing,
            clock_fraction=nothing + 1.0,
            limit_s=nothing,
            limit_j=nothing,
            device_limit_j=nothing,
            guessed_j=nothing,
        )
