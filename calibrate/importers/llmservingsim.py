"""LLMServingSim's operator profiles condensed to whole steps, and its attention kernels, in µs.

Cho et al., "LLMServingSim" (IISWC 2024). A step is layers × (GEMMs + norms, rope and activation) + output
head + embedding, without attention and all-reduce; kernels alone, so without gaps between them.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from calibrate.importer import Defaults, trace_importers
from calibrate.importers.by_columns import CsvImporter
from calibrate.importers.model_names import models_in, stated_model
from calibrate.importers.tabular import SourceTable
from calibrate.importers.vidur import ATTENTION_EXCLUDES
from calibrate.measurements import Trace

_STEP_COLUMNS = (
    "gpu",
    "model",
    "tp",
    "num_tokens",
    "layer_gemm_us",
    "layer_other_us",
    "lm_head_us",
    "embed_norm_us",
    "layers",
)
_ATTENTION_COLUMNS = ("prefill_chunk", "kv_prefill", "n_decode", "kv_decode", "time_us")
_EXCLUDES = "attention+communication+launch"


@trace_importers.register
class LlmServingSimSteps(CsvImporter):
    """Reads whole steps; one whose output head was not timed is read without it, and says so."""

    kind: Literal["llmservingsim_steps"] = "llmservingsim_steps"
    """Kind of importer."""
    columns = _STEP_COLUMNS

    def trace_of(self, table: SourceTable, defaults: Defaults) -> Trace:
        """Return whole steps; rows of a model of unknown shape are left out and counted."""
        names = table.text("model")
        models = models_in(table, "model")
        layers = table.number("layers")
        published = np.array([models[name].num_layers if name in models else 0 for name in names])
        table.leave_out(layers != published, "layers: is not the number of the published model")
        head_us = table.optional_number("lm_head_us")
        table.leave_out(head_us < 0, "lm_head_us: is negative")
        has_head = np.isfinite(head_us)
        if not has_head.all():
            count = int((~has_head).sum())
            table.warn(f"{count} rows have no time of the output head; read without it", "lm_head_us")
        layer_us = table.time("layer_gemm_us") + table.time("layer_other_us")
        return table.trace(
            {
                "device": table.text("gpu"),
                "model": names,
                "tp": table.number("tp"),
                "positions": table.number("num_tokens"),
                "ctx": 0,
                "phase": "verify",
                "dtype": defaults.dtype or "bfloat16",
                "t_gpu_us": layers * layer_us
                + np.where(has_head, head_us, 0.0)
                + table.time("embed_norm_us"),
                "excludes": np.where(has_head, _EXCLUDES, f"{_EXCLUDES}+head"),
            },
            header={"source": "LLMServingSim, operators of a step"},
            models=models,
        )


@trace_importers.register
class LlmServingSimAttention(CsvImporter):
    """Reads one layer's attention kernels; rows that mix prefill and decoding are left out and counted."""

    kind: Literal["llmservingsim_attention"] = "llmservingsim_attention"
    """Kind of importer."""
    columns = _ATTENTION_COLUMNS

    def trace_of(self, table: SourceTable, defaults: Defaults) -> Trace:
        """Return times of all layers; device and model must be stated."""
        name, model = stated_model(table.path, defaults)
        chunk, sequences = table.number("prefill_chunk"), table.number("n_decode")
        table.leave_out((chunk > 0) & (sequences > 0), "n_decode: prefill and decoding in one step")
        is_decode = sequences > 0
        context = np.where(is_decode, table.number("kv_decode"), table.number("kv_prefill"))
        return table.trace(
            {
                "device": defaults.device,
                "model": name,
                "tp": defaults.tensor_parallel_size or 1,
                "positions": np.where(is_decode, sequences, chunk),
                "batch": np.where(is_decode, sequences, 1),
                "ctx": context,
                "phase": np.where(is_decode, "decode", "prefill"),
                "dtype": defaults.dtype or "bfloat16",
                "t_gpu_us": model.num_layers * table.number("time_us"),
                "excludes": ATTENTION_EXCLUDES,
            },
            header={"source": "LLMServingSim, attention kernels of one layer"},
            models={name: model},
        )
