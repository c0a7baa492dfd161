"""Kineto's Chrome trace (``torch.profiler``): kernels inside annotated steps, times in µs.

A step is a ``gpu_user_annotation`` (the device's side of ``record_function``) whose name states its shape;
see `calibrate.importers.step_ranges`. Its host time is that of the annotation of like name on the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np

from calibrate.importer import Defaults, trace_importers
from calibrate.importers.file_start import has_keys
from calibrate.importers.json_file import read_json_object
from calibrate.importers.step_ranges import StepRange, shape_of, trace_of_ranges
from calibrate.importers.tabular import refuse
from calibrate.measurements import Trace
from specsim.arrays import Floats
from specsim.config.base import Spec

_NS_PER_US = 1e3


@trace_importers.register
class Kineto(Spec):
    """Reads a Chrome trace of ``torch.profiler``, plain or gzip."""

    kind: Literal["kineto"] = "kineto"
    """Kind of importer."""

    def recognises(self, path: Path) -> bool:
        """Tell by the key of its events."""
        return has_keys(path, "traceEvents") or has_keys(path, "schemaVersion", "deviceProperties")

    def read(self, path: Path, *, defaults: Defaults) -> Trace:
        """Read a file.

        Raises
        ------
        ConfigError
            Where there are no events, no annotated steps or no kernels in them, or no model was stated.
        """
        document = read_json_object(path)
        events = document.get("traceEvents")
        if not isinstance(events, list) or not events:
            raise refuse(path, "holds no events", column="traceEvents")
        complete = [event for event in events if isinstance(event, Mapping) and event.get("ph") == "X"]
        kernels = [event for event in complete if event.get("cat") == "kernel"]
        if not kernels:
            raise refuse(path, "holds no kernels; record with ProfilerActivity.CUDA", column="traceEvents")
        try:
            begin_us = np.array([float(event["ts"]) for event in kernels])
            end_us = begin_us + np.array([float(event["dur"]) for event in kernels])
            ranges = _ranges(complete, begin_us, end_us)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise refuse(path, f"an event has no ts and dur: {error}", column="traceEvents") from None
        return trace_of_ranges(
            path, ranges, defaults=defaults, device=_device(document), source="Kineto, torch.profiler"
        )


def _ranges(events: list[Mapping[str, object]], begin_us: Floats, end_us: Floats) -> list[StepRange]:
    def annotations(category: str) -> list[Mapping[str, object]]:
        return [
            event
            for event in events
            if event.get("cat") == category and shape_of(str(event.get("name"))) is not None
        ]

    on_host: dict[str, list[float]] = {}
    for event in annotations("user_annotation"):
        on_host.setdefault(str(event["name"]), []).append(float(event["dur"]))  # type: ignore[arg-type]
    order = np.argsort(begin_us, kind="stable")
    begin_us, end_us = begin_us[order], end_us[order]
    found: list[StepRange] = []
    seen: dict[str, int] = {}
    for event in annotations("gpu_user_annotation"):
        name, start = str(event["name"]), float(event["ts"])  # type: ignore[arg-type]
        stop = start + float(event["dur"])  # type: ignore[arg-type]
        first, last = np.searchsorted(begin_us, [start, stop], side="left")
        # The annotation ends where its last kernel does, to the rounding of the file.
        inside = slice(int(first), int(last))
        number = seen.get(name, 0)
        seen[name] = number + 1
        hosts = on_host.get(name, [])
        found.append(
            StepRange(
                name=name,
                first_kernel_ns=_NS_PER_US * begin_us[inside][0] if last > first else np.nan,
                last_kernel_ns=_NS_PER_US * end_us[inside].max() if last > first else np.nan,
                host_ns=_NS_PER_US * hosts[number] if number < len(hosts) else np.nan,
            )
        )
    return found


def _device(document: Mapping[str, object]) -> str:
    properties = document.get("deviceProperties")
    if isinstance(properties, list) and properties and isinstance(properties[0], Mapping):
        return str(properties[0].get("name", ""))
    return ""
