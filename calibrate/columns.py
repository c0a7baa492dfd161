"""Columns of the project's own trace format, declared once: unit, meaning, and what must be there.

A row is a timed step, or a timed round where its ``k`` is filled. A column that holds one value for the
whole file may stand in the header instead, as ``# key: value``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True, slots=True)
class TraceColumn:
    """One column of a trace."""

    name: str
    unit: str
    meaning: str
    kind: Literal["text", "whole", "number"]
    is_required: bool = False
    """A row without it is of no use."""
    may_be_zero: bool = False
    default: str | None = None
    """What a missing column means; None: not measured."""


STEP_COLUMNS: tuple[TraceColumn, ...] = (
    TraceColumn("device", "", "name of the device", "text", is_required=True),
    TraceColumn("model", "", "preset, path of a config.json, or its JSON", "text", is_required=True),
    TraceColumn("dtype", "", "format of the weights", "text", default="bfloat16"),
    TraceColumn("tp", "", "devices that share each layer", "whole", default="1"),
    TraceColumn("phase", "", "prefill, decode, verify, idle or idle_context", "text", default="decode"),
    TraceColumn("positions", "positions", "positions of the step, whole batch", "whole", is_required=True),
    TraceColumn("batch", "", "sequences of the batch", "whole", default="1"),
    TraceColumn(
        "ctx", "tokens", "cached tokens of each sequence", "whole", is_required=True, may_be_zero=True
    ),
    TraceColumn("t_gpu_us", "µs", "time of the step by the device's timers", "number"),
    TraceColumn("t_wall_us", "µs", "time of the step by the host's clock", "number"),
    TraceColumn("energy_mj", "mJ", "energy of all devices over the window", "number"),
    TraceColumn("window_s", "s", "length of that window, which may hold many equal steps", "number"),
    TraceColumn("sm_mhz", "MHz", "mean clock of the arithmetic", "number"),
    TraceColumn("sm_lock_mhz", "MHz", "highest clock allowed; empty: free", "number"),
    TraceColumn("mem_mhz", "MHz", "clock of the memory", "number"),
    TraceColumn("power_cap_w", "W", "power limit of one device", "number"),
    TraceColumn(
        "excludes",
        "",
        "parts left out: attention, communication, head, launch, linear; joined by +",
        "text",
        default="",
    ),
)

ROUND_COLUMNS: tuple[TraceColumn, ...] = (
    TraceColumn("device", "", "name of the device", "text", is_required=True),
    TraceColumn("model", "", "the target; empty: not needed", "text", default=""),
    TraceColumn("group", "", "left out as one in validation, such as a benchmark", "text", default=""),
    TraceColumn(
        "k",
        "tokens",
        "tokens drafted a round (their mean where it varies), 0 for the baseline",
        "number",
        is_required=True,
        may_be_zero=True,
    ),
    TraceColumn("batch", "", "sequences decoding at once", "whole", default="1"),
    TraceColumn(
        "acceptance_length", "tokens", "tokens emitted a round, bonus included", "number", is_required=True
    ),
    TraceColumn("tokens_per_s", "tokens/s", "output of all sequences", "number", is_required=True),
    TraceColumn("mean_power_w", "W", "mean power", "number"),
    TraceColumn("power_cap_w", "W", "power limit", "number"),
    TraceColumn("sm_mhz", "MHz", "mean clock of the arithmetic", "number"),
    TraceColumn("sm_lock_mhz", "MHz", "highest clock allowed; empty: free", "number"),
    TraceColumn("mem_mhz", "MHz", "clock of the memory", "number"),
)

_MEASURED_ROUND = ("acceptance_length", "tokens_per_s")

ROUND_CELL_COLUMNS: tuple[TraceColumn, ...] = tuple(
    replace(one, is_required=False) if one.name in _MEASURED_ROUND else one for one in ROUND_COLUMNS
)
"""The same of rounds to be predicted, which need not have been measured."""

UNUSED_COLUMNS: tuple[str, ...] = ("cell_id", "rep", "n_iters", "t_host_us", "temp_c")
"""Written by a capture for whoever reads the file; no fit uses them."""

KNOWN_COLUMNS: tuple[str, ...] = tuple(
    dict.fromkeys([*(one.name for one in (*STEP_COLUMNS, *ROUND_COLUMNS)), *UNUSED_COLUMNS])
)
