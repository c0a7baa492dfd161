"""Ranges that a profiler's user put around steps, and the shape that their names state.

``positions=8 batch=1 ctx=512`` (with ``phase=verify`` if wanted), put around a step by
``torch.profiler.record_function`` or an NVTX range; or vLLM's own
``execute_context_1(512)_generation_4(4)``: sequences and tokens of prefill and of decoding.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from calibrate.importer import Defaults
from calibrate.importers.tabular import SourceTable, refuse
from calibrate.measurements import Trace

if TYPE_CHECKING:
    from collections.abc import Mapping

_KEY = re.compile(r"\b(positions|batch|ctx|phase)=(\w+)")
_VLLM = re.compile(r"execute_context_(\d+)\((\d+)\)_generation_(\d+)\((\d+)\)")
_US_PER_NS = 1e-3


@dataclass(frozen=True, slots=True)
class StepRange:
    """One step as a profiler saw it."""

    name: str
    """Text of the range, which states the shape."""
    first_kernel_ns: float
    """Begin of the first kernel launched in the range; NaN without kernels."""
    last_kernel_ns: float
    """End of the last one; NaN without kernels."""
    host_ns: float
    """Length of the range on the host; NaN where not known."""


def shape_of(name: str) -> dict[str, str] | None:
    """Columns that the name of a range states, or None.

    Examples
    --------
    >>> shape_of("positions=8 batch=2 ctx=128 phase=verify")
    {'positions': '8', 'batch': '2', 'ctx': '128', 'phase': 'verify'}
    >>> shape_of("execute_context_0(0)_generation_4(4)")
    {'positions': '4', 'batch': '4', 'phase': 'decode'}
    >>> shape_of("aten::mm") is None
    True
    """
    stated = dict(_KEY.findall(name))
    if "positions" in stated:
        return stated
    match = _VLLM.search(name)
    if match is None:
        return None
    prefills, prefill_tokens, sequences, tokens = (int(group) for group in match.groups())
    if prefills and sequences:
        return {"positions": "mixed"}
    if prefills:
        return {"positions": str(prefill_tokens), "batch": str(prefills), "phase": "prefill"}
    phase = "verify" if tokens > sequences else "decode"
    return {"positions": str(tokens), "batch": str(sequences), "phase": phase}


def trace_of_ranges(
    path: Path,
    ranges: Sequence[StepRange],
    *,
    defaults: Defaults,
    device: str,
    source: str,
) -> Trace:
    """Trace of a profile's ranges: device time from the first kernel's begin to the last one's end.

    Raises
    ------
    ConfigError
        Where no range states a shape, or nobody said which model ran.
    """
    import pandas as pd

    if defaults.model is None:
        raise refuse(path, "names no model; state it (--model)")
    shapes = [(step, shape) for step in ranges if (shape := shape_of(step.name)) is not None]
    if not shapes:
        raise refuse(path, "no range states its shape; name ranges 'positions=8 batch=1 ctx=512'")
    rows: list[Mapping[str, object]] = [
        {
            "ctx": "",
            "batch": "1",
            "phase": "decode",
            **shape,
            "gpu_us": _US_PER_NS * (step.last_kernel_ns - step.first_kernel_ns),
            "host_us": _US_PER_NS * step.host_ns,
        }
        for step, shape in shapes
    ]
    table = SourceTable(path, pd.DataFrame(rows), np.arange(1, len(rows) + 1, dtype=np.int64))
    positions = np.array(table.text("positions"))
    table.leave_out(positions == "mixed", "positions: prefill and decoding in one step")
    context = np.array(table.text("ctx"))
    if (context == "").any():
        table.warn("ranges that state no context are read as without cached tokens", "ctx")
    gpu_us = table.optional_number("gpu_us")
    table.leave_out(~np.isfinite(gpu_us), "t_gpu_us: no kernel ran in the range")
    return table.trace(
        {
            "device": defaults.device or device,
            "model": defaults.model,
            "dtype": defaults.dtype or "bfloat16",
            "tp": defaults.tensor_parallel_size or 1,
            "positions": positions,
            "batch": table.text("batch"),
            "ctx": np.where(context == "", "0", context),
            "phase": table.text("phase"),
            "t_gpu_us": gpu_us,
            "t_wall_us": table.optional_number("host_us"),
        },
        header={"source": source},
    )
