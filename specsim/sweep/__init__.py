"""Sweeps: many scenarios around one, on all cores or a cluster, and what they say together."""

from __future__ import annotations

from specsim.sweep.repeats import Repeats
from specsim.sweep.sweep import Progress, SweepJob
from specsim.sweep.table import SweepTable
from specsim.sweep.workers import Workers, cluster_workers, in_process, local_workers

__all__ = [
    "Progress",
    "Repeats",
    "SweepJob",
    "SweepTable",
    "Workers",
    "cluster_workers",
    "in_process",
    "local_workers",
]
