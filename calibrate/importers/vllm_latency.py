"""``vllm bench latency --output-json``: the time of whole batches, from which the mean step follows.

The file holds times alone. Batch and lengths stand in it only if somebody added them (``batch_size``,
``input_len``, ``output_len``); else they are stated by the fields of the importer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from calibrate.importer import Defaults, trace_importers
from calibrate.importers.file_start import has_keys
from calibrate.importers.json_file import numbers_at, read_json_object
from calibrate.importers.model_names import known_models
from calibrate.importers.tabular import SourceTable, refuse
from calibrate.measurements import Trace
from specsim.config.base import Spec
from specsim.config.nodes import shortened

_US_PER_S = 1e6
_MOST = 10**9


@trace_importers.register
class VllmLatency(Spec):
    """Reads a latency benchmark: a row an iteration, its time ÷ output tokens at the mean context."""

    kind: Literal["vllm_latency"] = "vllm_latency"
    """Kind of importer."""
    batch_size: int | None = Field(default=None, ge=1)
    """Sequences of the batch; left out: ``batch_size`` in the file."""
    input_len: int | None = Field(default=None, ge=1)
    """Tokens of a prompt; left out: ``input_len`` in the file."""
    output_len: int | None = Field(default=None, ge=1)
    """Tokens generated; left out: ``output_len`` in the file."""

    def recognises(self, path: Path) -> bool:
        """Tell by its keys."""
        return has_keys(path, "avg_latency", "latencies")

    def read(self, path: Path, *, defaults: Defaults) -> Trace:
        """Read a file.

        Raises
        ------
        ConfigError
            Where batch, lengths, device or model are stated nowhere, or a latency is no time.
        """
        import pandas as pd

        record = read_json_object(path)
        shape: dict[str, int] = {}
        for name in ("batch_size", "input_len", "output_len"):
            value = getattr(self, name) or record.get(name)
            if value is None:
                raise refuse(path, "not in the file; add it as a key beside avg_latency", column=name)
            if type(value) is not int or not 1 <= value <= _MOST:
                raise refuse(
                    path, f"{shortened(repr(value))} is no number of sequences or tokens", column=name
                )
            shape[name] = value
        name = defaults.model or str(record.get("model", ""))
        if defaults.device is None or not name:
            raise refuse(path, "names neither device nor model; state both (--device, --model)")
        seconds = numbers_at(path, record, "latencies")
        table = SourceTable(
            path, pd.DataFrame({"latencies": seconds}), np.arange(1, len(seconds) + 1, dtype=np.int64)
        )
        steps = shape["output_len"]
        table.warn(
            f"the prefill counts as one of {steps} steps; measure with many output tokens", "output_len"
        )
        return table.trace(
            {
                "device": defaults.device,
                "model": name,
                "dtype": defaults.dtype or "bfloat16",
                "tp": defaults.tensor_parallel_size or 1,
                "positions": shape["batch_size"],
                "batch": shape["batch_size"],
                "ctx": shape["input_len"] + steps // 2,
                "phase": "decode",
                "t_wall_us": _US_PER_S * table.number("latencies") / steps,
            },
            header={"source": "vllm bench latency"},
            models={} if defaults.model is not None else known_models([name]),
        )
