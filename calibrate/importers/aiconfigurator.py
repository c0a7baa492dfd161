"""aiconfigurator's GEMM tables: one linear layer y[m, n] = x[m, k] W[n, k]ᵀ, in µs.

A linear layer is read as a step of a model that is nothing else: one layer whose weights are n·k elements
(to 1.5 parts in n), without output head and attention. Weights below twice the L2 cache stay partly
in it, since only six copies are timed in turn; such rows are left out and counted.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from calibrate.importer import Defaults, trace_importers
from calibrate.importers.by_columns import CsvImporter
from calibrate.importers.tabular import SourceTable
from calibrate.importers.vidur import LAYER_EXCLUDES
from calibrate.measurements import Trace
from specsim.arrays import Ints
from specsim.hardware import ModelSpec
from specsim.hardware.formats import BYTES_PER_VALUE

_COLUMNS = ("gpu", "m", "n", "k", "latency_us")
_DTYPES = {"bf16": "bfloat16", "fp8": "float8", "nvfp4": "fp4", "fp16": "float16"}
_L2_BYTES = {"A100": 40e6, "H100": 50e6, "H200": 50e6, "L40S": 96e6, "B200": 126e6, "RTXPRO6000": 128e6}
"""L2 caches, vendors' data sheets."""
_MAX_COPIES_SHARE = 2.0
_LEAST_SIDE, _LARGEST_SIDE = 64, 1 << 24


@trace_importers.register
class AiconfiguratorGemm(CsvImporter):
    """Reads ``gpu, m, n, k, latency_us``, with ``dtype`` where it is not bf16.

    Mean power is not read: it is an average over a second of runs that lasted less.
    """

    kind: Literal["aiconfigurator_gemm"] = "aiconfigurator_gemm"
    """Kind of importer."""
    columns = _COLUMNS

    def trace_of(self, table: SourceTable, defaults: Defaults) -> Trace:
        """Return each linear layer as a step of a model that is nothing else."""
        if "power_w" in table:
            table.warn("is a mean over a second of shorter runs; not read", "power_w")
        given = table.text("dtype") if "dtype" in table else ["bf16"] * len(table)
        dtype = np.array([_DTYPES.get(name, name) for name in given])
        device = table.text("gpu")
        n, k = _sides(table, "n"), _sides(table, "k")
        size = np.array([BYTES_PER_VALUE.get(str(name), np.nan) for name in dtype])
        cache = np.array([_cache_bytes(name) for name in device])
        table.leave_out(n * k * size < _MAX_COPIES_SHARE * cache, "n: weights stay partly in the L2 cache")
        for unknown in sorted({name for name in device if not np.isfinite(_cache_bytes(name))}):
            table.warn(f"the L2 cache of '{unknown}' is not known; small weights may be served by it", "gpu")
        names = [f"gemm-{height}x{width}" for height, width in zip(n.tolist(), k.tolist(), strict=True)]
        return table.trace(
            {
                "device": device,
                "model": names,
                "positions": table.number("m"),
                "ctx": 0,
                "dtype": dtype,
                "t_gpu_us": table.number("latency_us"),
                "excludes": LAYER_EXCLUDES,
            },
            header={"source": "aiconfigurator, linear layers"},
            models={
                name: linear_layer(height, width)
                for name, height, width in dict.fromkeys(zip(names, n.tolist(), k.tolist(), strict=True))
                if min(height, width) > 0
            },
        )


def linear_layer(height: int, width: int) -> ModelSpec:
    """Model of one layer with height · width weights, to 1.5 parts in height.

    A gated feed-forward layer has 3 · width · intermediate weights; one head of one element and the norms
    add 7 · width, which the intermediate size makes up for.

    Examples
    --------
    >>> linear_layer(4096, 8192).common_elements / (4096 * 8192)
    1.0
    """
    return ModelSpec.model_validate(
        {
            "name": f"gemm-{height}x{width}",
            "model_type": "llama",
            "hidden_size": width,
            "intermediate_size": max(round((height - 7) / 3), 1),
            "num_hidden_layers": 1,
            "num_attention_heads": 1,
            "head_dim": 1,
            "vocab_size": 1,
        }
    )


def _sides(table: SourceTable, column: str) -> Ints:
    """Read one side of each layer; 0 in rows that are left out, since no language model has such a layer."""
    values = table.number(column)
    is_side = (values >= _LEAST_SIDE) & (values <= _LARGEST_SIDE)
    table.leave_out(~is_side, f"{column}: is no layer of a language model")
    return np.where(is_side, values, 0.0).astype(np.int64)


def _cache_bytes(device: str) -> float:
    plain = device.replace(" ", "").upper()
    return next((size for name, size in _L2_BYTES.items() if plain.startswith(name)), np.nan)
