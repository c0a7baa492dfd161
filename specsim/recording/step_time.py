"""How long one step of a network took, by each timer there is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepTime:
    """Time of one step."""

    device_s: float | None
    """By the device's own timers: CUDA events, or CPU time of the one thread that computes; else None."""
    wall_s: float
    """By the host's clock, s."""
    host_s: float
    """CPU time of the process, s."""
