"""ML.ENERGY's benchmark of serving: inter-token latency and mean power at a steady batch.

Chung et al., "The ML.ENERGY Benchmark" (2025), version 3: CSV of the records, or the leaderboard's JSON.
A record becomes one decode step of the mean batch: its time the median inter-token latency (host's clock),
its power the mean over the steady state, prefill included. Lengths of prompts are not in the records.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from calibrate.importer import Defaults, trace_importers
from calibrate.importers.file_start import has_columns, has_keys
from calibrate.importers.json_file import read_json_object
from calibrate.importers.model_names import models_in
from calibrate.importers.tabular import SourceTable, refuse
from calibrate.measurements import Trace
from specsim.config.base import Spec

_COLUMNS = (
    "model_id",
    "weight_precision",
    "gpu_model",
    "num_gpus",
    "tensor_parallel",
    "avg_batch_size",
    "avg_output_len",
    "median_itl_ms",
    "avg_power_watts",
)
_DTYPES = {"bfloat16": "bfloat16", "fp8": "float8", "float16": "float16", "mxfp4": "fp4"}
_US_PER_MS, _MJ_PER_J = 1e3, 1e3
_WINDOW_S = 1.0
"""The records state mean power; energy over any window says the same."""


@trace_importers.register
class MlEnergy(Spec):
    """Reads ML.ENERGY v3 records, CSV or the leaderboard's ``configurations``."""

    kind: Literal["ml_energy"] = "ml_energy"
    """Kind of importer."""

    def recognises(self, path: Path) -> bool:
        """Tell a table by its columns, JSON by its keys."""
        if path.suffix == ".json":
            return has_keys(path, "configurations", "median_itl_ms", "avg_power_watts")
        return has_columns(path, _COLUMNS)

    def read(self, path: Path, *, defaults: Defaults) -> Trace:
        """Read a file.

        Raises
        ------
        ConfigError
            Where the file is of another form. Models of unknown shape, experts or replicas spread over
            devices, and hybrids are left out and counted.
        """
        table = _table(path)
        names = table.text("model_id")
        models = models_in(table, "model_id")
        for column in ("expert_parallel", "data_parallel"):
            table.leave_out(
                table.optional_number(column) > 1, f"{column}: more than 1 cannot be told as one step"
            )
        num_devices, parallel = table.number("num_gpus"), table.number("tensor_parallel")
        table.leave_out(num_devices != parallel, "num_gpus: is not tensor_parallel")
        batch = np.nan_to_num(np.rint(table.number("avg_batch_size")), nan=0.0)
        output = table.number("avg_output_len")
        table.leave_out(output <= 0, "avg_output_len: is zero or negative")
        table.warn(
            "lengths of prompts are not in the file; contexts are half the mean output, a lower bound",
            "avg_output_len",
        )
        return table.trace(
            {
                "device": table.text("gpu_model"),
                "model": names,
                "tp": parallel,
                "dtype": [_DTYPES.get(name, name) for name in table.text("weight_precision")],
                "positions": batch,
                "batch": batch,
                "ctx": np.nan_to_num(np.rint(output / 2), nan=0.0),
                "phase": "decode",
                "t_wall_us": _US_PER_MS * table.number("median_itl_ms"),
                "energy_mj": _MJ_PER_J * _WINDOW_S * table.number("avg_power_watts"),
                "window_s": _WINDOW_S,
            },
            header={"source": "ML.ENERGY Benchmark v3"},
            models=models,
        )


def _table(path: Path) -> SourceTable:
    if path.suffix != ".json":
        return SourceTable.from_csv(path, _COLUMNS)
    import pandas as pd

    records = read_json_object(path).get("configurations")
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise refuse(path, "is not a list of records", column="configurations")
    table = SourceTable(path, pd.DataFrame(records), np.arange(1, len(records) + 1))
    table.require(_COLUMNS)
    return table
