"""Vidur's ``mlp.csv`` and ``attention.csv`` as its profiler writes them: milliseconds, one model a file."""

from __future__ import annotations

from typing import Literal

import numpy as np

from calibrate.importer import Defaults, trace_importers
from calibrate.importers.by_columns import CsvImporter
from calibrate.importers.model_names import stated_model
from calibrate.importers.tabular import SourceTable
from calibrate.importers.vidur import ATTENTION_EXCLUDES, LAYER_EXCLUDES
from calibrate.measurements import Trace

_US_PER_MS = 1e3
_LAYER_OPERATORS = {
    "input_layernorm": 1,
    "attn_pre_proj": 1,
    "attn_rope": 1,
    "attn_post_proj": 1,
    "post_attention_layernorm": 1,
    "mlp_up_proj": 1,
    "mlp_act": 1,
    "mlp_down_proj": 1,
    "add": 2,  # timed once, run after attention and after the feed-forward layer
}
_LAYER_COLUMNS = (
    *(f"time_stats.{name}.median" for name in _LAYER_OPERATORS),
    "n_embd",
    "n_expanded_embd",
    "num_tokens",
    "num_tensor_parallel_workers",
)
_ATTENTION_TIMES = ("time_stats.attn_prefill.median", "time_stats.attn_decode.median")
_ATTENTION_COLUMNS = (
    *_ATTENTION_TIMES,
    "batch_size",
    "prefill_chunk_size",
    "kv_cache_size",
    "is_prefill",
    "num_tensor_parallel_workers",
    "n_embd",
)


@trace_importers.register
class VidurProfiledLayers(CsvImporter):
    """Reads ``mlp.csv``; the medians of one layer's operators are summed, and multiplied by the layers."""

    kind: Literal["vidur_mlp"] = "vidur_mlp"
    """Kind of importer."""
    columns = _LAYER_COLUMNS
    signature = ("time_stats.mlp_up_proj.median", "num_tokens")

    def trace_of(self, table: SourceTable, defaults: Defaults) -> Trace:
        """Return times of all layers; device and model must be stated."""
        name, model = stated_model(table.path, defaults)
        table.leave_out(
            (table.number("n_embd") != model.hidden_size)
            | (table.number("n_expanded_embd") != model.intermediate_size),
            f"n_embd: is not the shape of {name}",
        )
        layer_ms = sum(
            times * table.time(f"time_stats.{operator}.median")
            for operator, times in _LAYER_OPERATORS.items()
        )
        return table.trace(
            {
                "device": defaults.device,
                "model": name,
                "tp": table.number("num_tensor_parallel_workers"),
                "positions": table.number("num_tokens"),
                "ctx": 0,
                "dtype": defaults.dtype or "float16",
                "t_gpu_us": model.num_layers * _US_PER_MS * layer_ms,
                "excludes": LAYER_EXCLUDES,
            },
            header={"source": "Vidur, dense operators of one layer"},
            models={name: model},
        )


@trace_importers.register
class VidurProfiledAttention(CsvImporter):
    """Reads ``attention.csv``: decoding batches and prefill chunks of one sequence over cached tokens."""

    kind: Literal["vidur_attention_profile"] = "vidur_attention_profile"
    """Kind of importer."""
    columns = _ATTENTION_COLUMNS
    signature = _ATTENTION_TIMES

    def trace_of(self, table: SourceTable, defaults: Defaults) -> Trace:
        """Return times of all layers; device and model must be stated."""
        name, model = stated_model(table.path, defaults)
        table.leave_out(table.number("n_embd") != model.hidden_size, f"n_embd: is not the shape of {name}")
        is_prefill = table.flag("is_prefill")
        batch, chunk = table.number("batch_size"), table.number("prefill_chunk_size")
        table.leave_out(is_prefill & (batch != 1), "batch_size: several prefill chunks in one batch")
        prefill_ms, decode_ms = (table.optional_number(column) for column in _ATTENTION_TIMES)
        return table.trace(
            {
                "device": defaults.device,
                "model": name,
                "tp": table.number("num_tensor_parallel_workers"),
                "positions": np.where(is_prefill, chunk, batch),
                "batch": np.where(is_prefill, 1, batch),
                "ctx": table.number("kv_cache_size"),
                "phase": np.where(is_prefill, "prefill", "decode"),
                "dtype": defaults.dtype or "float16",
                "t_gpu_us": model.num_layers * _US_PER_MS * np.where(is_prefill, prefill_ms, decode_ms),
                "excludes": ATTENTION_EXCLUDES,
            },
            header={"source": "Vidur, attention kernels of one layer"},
            models={name: model},
        )
