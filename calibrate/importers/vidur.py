"""Vidur's profiles in the condensed form: one decoder layer's operators, and its attention, in µs.

Agrawal et al., "Vidur: A Large-Scale Simulation Framework For LLM Inference" (MLSys 2024). Times are those
of kernels alone, on one device that holds its shard of the layer; whole-model times are layers × layer.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from calibrate.importer import Defaults, trace_importers
from calibrate.importers.by_columns import CsvImporter
from calibrate.importers.model_names import models_in
from calibrate.importers.tabular import SourceTable
from calibrate.measurements import Trace
from specsim.hardware import ModelSpec, load_model

LAYER_EXCLUDES = "attention+communication+head+launch"
"""What the times of a decoder layer's dense operators leave out."""
ATTENTION_EXCLUDES = "communication+head+launch+linear"
"""What the times of attention kernels alone leave out."""

_LAYER_COLUMNS = ("gpu", "model", "tp", "num_tokens", "layer_us")
_ATTENTION_COLUMNS = ("gpu", "phase", "batch_size", "chunk", "kv_cache", "time_us")
_SHAPE = {"n_embd": "hidden_size", "n_ff": "intermediate_size", "n_head": "num_attention_heads"}
_ATTENTION_MODEL, _ATTENTION_TP = "llama-2-70b", "2"


@trace_importers.register
class VidurLayers(CsvImporter):
    """Reads one layer's dense operators: ``gpu, model, tp, num_tokens, layer_us`` and the shape."""

    kind: Literal["vidur_layers"] = "vidur_layers"
    """Kind of importer."""
    columns = _LAYER_COLUMNS

    def trace_of(self, table: SourceTable, defaults: Defaults) -> Trace:
        """Return times of all layers; rows of an unknown or another shape are left out and counted."""
        names = table.text("model")
        models = models_in(table, "model")
        for column, field in _SHAPE.items():
            if column in table:
                expected = [getattr(models[name], field) if name in models else np.nan for name in names]
                differs = table.optional_number(column) != np.array(expected, dtype=np.float64)
                table.leave_out(differs, f"{column}: differs from the published shape")
        layers = np.array([models[name].num_layers if name in models else 1 for name in names])
        return table.trace(
            {
                "device": table.text("gpu"),
                "model": names,
                "tp": table.number("tp"),
                "positions": table.number("num_tokens"),
                "ctx": 0,
                "phase": "decode",
                "dtype": "float16",
                "t_gpu_us": layers * table.number("layer_us"),
                "excludes": LAYER_EXCLUDES,
            },
            header={"source": "Vidur, dense operators of one layer"},
            models=models,
        )


@trace_importers.register
class VidurAttention(CsvImporter):
    """Reads one layer's attention kernels: ``gpu, phase, batch_size, chunk, kv_cache, time_us``.

    The file names no model: that of the public one, Llama-2-70B on two devices, unless the user says
    otherwise.
    """

    kind: Literal["vidur_attention"] = "vidur_attention"
    """Kind of importer."""
    columns = _ATTENTION_COLUMNS

    def trace_of(self, table: SourceTable, defaults: Defaults) -> Trace:
        """Return times of all layers."""
        name = defaults.model or _ATTENTION_MODEL
        if defaults.model is None:
            table.warn(f"names no model; taken for {name} on {_ATTENTION_TP} devices", "model")
        model: ModelSpec = load_model(name)
        phase = np.array(table.text("phase"))
        table.leave_out(~np.isin(phase, ["decode", "prefill_chunk"]), "phase: is not decode or prefill_chunk")
        is_decode = phase == "decode"
        batch, chunk = table.number("batch_size"), table.number("chunk")
        return table.trace(
            {
                "device": table.text("gpu"),
                "model": name,
                "tp": defaults.tensor_parallel_size or _ATTENTION_TP,
                "positions": np.where(is_decode, batch, chunk),
                "batch": np.where(is_decode, batch, 1),
                "ctx": table.number("kv_cache"),
                "phase": np.where(is_decode, "decode", "prefill"),
                "dtype": "float16",
                "t_gpu_us": model.num_layers * table.number("time_us"),
                "excludes": ATTENTION_EXCLUDES,
            },
            header={"source": "Vidur, attention kernels of one layer"},
            models={name: model},
        )
