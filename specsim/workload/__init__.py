"""Requests: how many, how long, and when they arrive."""

from specsim.workload.arrivals import arrival_times
from specsim.workload.lengths import LengthLaw, draw_lengths
from specsim.workload.requests import (
    MAX_PROMPTS,
    ArrivalSpec,
    LengthsSpec,
    RequestClassSpec,
    Requests,
    build_requests,
)

__all__ = [
    "MAX_PROMPTS",
    "ArrivalSpec",
    "LengthLaw",
    "LengthsSpec",
    "RequestClassSpec",
    "Requests",
    "arrival_times",
    "build_requests",
    "draw_lengths",
]
