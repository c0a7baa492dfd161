"""``llama-bench -o json``: prompt passes give the curve over positions, generation the step of one.

A test of n_prompt tokens is one pass of n_prompt positions over n_depth cached tokens, as long as it fits
one micro-batch; a test of n_gen tokens is n_gen steps of one position. Times are the host's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import numpy as np

from calibrate.importer import Defaults, trace_importers
from calibrate.importers.file_start import has_keys
from calibrate.importers.json_file import read_json
from calibrate.importers.tabular import SourceTable, refuse
from calibrate.measurements import Trace
from specsim.config import names
from specsim.config.base import Spec
from specsim.hardware import ModelSpec, load_model

_US_PER_NS = 1e-3
_FEWEST_MATCH = 0.005
"""Two sizes of model closer than this are taken for one; presets differ by more."""
_DTYPES = {
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "Q8_0": "int8",
    "Q4_0": "int4",
    "Q4_1": "int4",
    "MXFP4": "fp4",
}
_NEAR_DTYPES = {"Q4": "int4", "IQ4": "int4", "Q5": "int4", "Q6": "int8"}


@trace_importers.register
class LlamaBench(Spec):
    """Reads ``llama-bench -o json``, a row for every sample."""

    kind: Literal["llama_bench"] = "llama_bench"
    """Kind of importer."""

    def recognises(self, path: Path) -> bool:
        """Tell by the keys of its records."""
        return has_keys(path, "avg_ns", "n_prompt", "n_gen")

    def read(self, path: Path, *, defaults: Defaults) -> Trace:
        """Read a file.

        Raises
        ------
        ConfigError
            Where a record lacks a key, or the model can neither be told by its parameters nor was stated.
        """
        import pandas as pd

        records = read_json(path)
        if not isinstance(records, list) or not records:
            raise refuse(path, "is not a list of llama-bench records")
        rows = [row for number, record in enumerate(records, start=1) for row in _rows(path, number, record)]
        table = SourceTable(
            path, pd.DataFrame(rows), np.array([row["record"] for row in rows], dtype=np.int64)
        )
        table.require(["ns"])
        models: dict[str, ModelSpec] = {}
        size_of = dict(zip(table.text("model_type"), table.number("num_params").tolist(), strict=True))
        for name, num_params in size_of.items():
            models[name] = _model(path, name, num_params, defaults, table)
        prompt, generated = table.number("n_prompt"), table.number("n_gen")
        is_prompt = prompt > 0
        table.leave_out(is_prompt & (generated > 0), "n_gen: prompt and generation in one test")
        table.leave_out(prompt > table.number("n_ubatch"), "n_prompt: more than one micro-batch")
        table.leave_out(~is_prompt & (generated <= 0), "n_gen: neither prompt nor generation")
        steps = np.where(is_prompt, 1.0, np.maximum(generated, 1.0))
        context = table.number("n_depth") + np.where(is_prompt, 0.0, np.rint((generated - 1) / 2))
        return table.trace(
            {
                "device": defaults.device or table.text("device"),
                "model": table.text("model_type"),
                "dtype": defaults.dtype or [_dtype(name, table) for name in table.text("model_type")],
                "tp": defaults.tensor_parallel_size or 1,
                "phase": np.where(is_prompt & (prompt > 1), "prefill", "decode"),
                "positions": np.where(is_prompt, prompt, 1),
                "ctx": context,
                "t_wall_us": _US_PER_NS * table.number("ns") / steps,
            },
            header={"source": "llama-bench"},
            models=models,
        )


def _rows(path: Path, number: int, record: object) -> Iterator[dict[str, object]]:
    if not isinstance(record, Mapping):
        raise refuse(path, f"record {number} is not an object")
    needed = ("model_type", "model_n_params", "n_prompt", "n_gen", "n_ubatch", "avg_ns")
    missing = [key for key in needed if key not in record]
    if missing:
        raise refuse(path, f"record {number} has no such key", row=number, column=missing[0])
    samples = record.get("samples_ns") or [record["avg_ns"]]
    if not isinstance(samples, list):
        raise refuse(path, f"record {number} holds no list of times", row=number, column="samples_ns")
    for sample in samples:
        yield {
            "record": number,
            "model_type": record["model_type"],
            "num_params": record["model_n_params"],
            "device": record.get("gpu_info") or record.get("cpu_info") or "",
            "n_prompt": record["n_prompt"],
            "n_gen": record["n_gen"],
            "n_depth": record.get("n_depth", 0),
            "n_ubatch": record["n_ubatch"],
            "ns": sample,
        }


def _model(path: Path, name: str, num_params: float, defaults: Defaults, table: SourceTable) -> ModelSpec:
    """Model of a record: the one that the user states, else the preset of as many parameters."""
    if defaults.model is not None:
        stated = load_model(defaults.model)
        if abs(num_params / stated.params_total - 1.0) > 0.05:
            raise refuse(
                path,
                f"'{name}' has {num_params:.4g} parameters, {defaults.model} {stated.params_total:.4g}",
                column="model_n_params",
            )
        return stated
    presets = [load_model(preset) for preset in names("models")]
    # Some files count a tied output head twice, others once.
    near = [
        preset
        for preset in presets
        if abs(num_params / preset.params_total - 1.0) < _FEWEST_MATCH
        or abs(num_params / (preset.params_total + preset.head_elements * preset.is_tied) - 1.0)
        < _FEWEST_MATCH
    ]
    if len(near) != 1:
        raise refuse(
            path,
            f"'{name}' of {num_params:.4g} parameters is no preset; state it (--model)",
            column="model_type",
        )
    table.warn(f"'{name}' is taken for {near[0].name}, by its number of parameters", "model_type")
    return near[0]


def _dtype(model_type: str, table: SourceTable) -> str:
    """Format of the weights, from the last word but qualifiers of ``llama 8B Q4_K - Medium``."""
    word = next((part for part in reversed(model_type.split()) if re.match(r"(I?Q\d|B?F\d|MXFP)", part)), "")
    if word in _DTYPES:
        return _DTYPES[word]
    near = _NEAR_DTYPES.get(word.split("_")[0], "")
    message = f"'{word}' is read as {near}; its weights take other bytes"
    if near and not any(warning.message == message for warning in table.warnings):
        table.warn(message, "model_type")
    return near or word
