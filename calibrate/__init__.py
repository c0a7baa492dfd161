"""Measurements to accelerator profiles: fits with standard errors, and what they do not explain."""

from __future__ import annotations

from calibrate import importers
from calibrate.importer import Defaults, TraceImporter, read_trace, trace_importers
from calibrate.measurements import Measurements, RoundMeasurements, Trace
from calibrate.own_format import OwnFormat, read_cells, write_trace
from calibrate.rows import trace_of

__all__ = [
    "Defaults",
    "Measurements",
    "OwnFormat",
    "RoundMeasurements",
    "Trace",
    "TraceImporter",
    "importers",
    "read_cells",
    "read_trace",
    "trace_importers",
    "trace_of",
    "write_trace",
]
