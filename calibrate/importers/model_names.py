"""Models as other tools name them: presets under their published names, and shapes that no preset covers."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np

from calibrate.importer import Defaults
from calibrate.importers.tabular import SourceTable, refuse
from specsim.config import names
from specsim.hardware import ModelSpec, load_model

_SUFFIX = re.compile(
    r"[-_](instruct|chat|it|hf|base|thinking|awq|gptq|fp8|bf16|\d{4}|v\d+(\.\d+)?|preview)$", re.IGNORECASE
)
_SAME_SHAPE = {
    "llama-3-8b": "llama-3.1-8b",
    "llama-3-70b": "llama-3.1-70b",
    "llama-3.3-70b": "llama-3.1-70b",
    "qwen3-coder-30b-a3b": "qwen3-30b-a3b",
}

_SHAPES: dict[str, dict[str, object]] = {
    # config.json of Qwen/Qwen3-14B
    "qwen3-14b": {
        "model_type": "qwen3",
        "hidden_size": 5120,
        "intermediate_size": 17408,
        "num_hidden_layers": 40,
        "num_attention_heads": 40,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 151936,
        "tie_word_embeddings": False,
    },
    # text_config of google/gemma-3-12b-it
    "gemma-3-12b": {
        "model_type": "gemma3_text",
        "hidden_size": 3840,
        "intermediate_size": 15360,
        "num_hidden_layers": 48,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 256,
        "vocab_size": 262208,
        "sliding_window": 1024,
    },
    # text_config of google/gemma-3-27b-it
    "gemma-3-27b": {
        "model_type": "gemma3_text",
        "hidden_size": 5376,
        "intermediate_size": 21504,
        "num_hidden_layers": 62,
        "num_attention_heads": 32,
        "num_key_value_heads": 16,
        "head_dim": 128,
        "vocab_size": 262208,
        "sliding_window": 1024,
    },
    # The three below as Vidur's data folder states them; vocabularies of their config.json.
    "qwen-72b": {
        "model_type": "llama",
        "hidden_size": 8192,
        "intermediate_size": 24576,
        "num_hidden_layers": 80,
        "num_attention_heads": 64,
        "vocab_size": 152064,
    },
    "internlm-20b": {
        "model_type": "llama",
        "hidden_size": 5120,
        "intermediate_size": 13824,
        "num_hidden_layers": 60,
        "num_attention_heads": 40,
        "vocab_size": 103168,
    },
    "codellama-34b": {
        "model_type": "llama",
        "hidden_size": 8192,
        "intermediate_size": 22016,
        "num_hidden_layers": 48,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "vocab_size": 32000,
    },
}


@cache
def known_model(name: str) -> ModelSpec | None:
    """Model that a published name means, or None.

    The organisation and endings that do not change the shape (``-Instruct``, ``-hf``, ``-FP8``, a date)
    are left off.

    Examples
    --------
    >>> known_model("meta-llama/Llama-3.1-8B-Instruct").num_layers
    32
    >>> known_model("nobody/knows-9b") is None
    True
    """
    plain = name.rsplit("/", 1)[-1].lower().removeprefix("meta-")
    candidates = [plain]
    while (shorter := _SUFFIX.sub("", candidates[-1])) != candidates[-1]:
        candidates.append(shorter)
    presets = names("models")
    for candidate in candidates:
        candidate = _SAME_SHAPE.get(candidate, candidate)
        if candidate in presets:
            return load_model(candidate)
        if candidate in _SHAPES:
            return ModelSpec.model_validate({"name": candidate, **_SHAPES[candidate]})
    return None


def known_models(names_given: list[str]) -> dict[str, ModelSpec]:
    """Models of the names that are known, by name."""
    found = {name: known_model(name) for name in dict.fromkeys(names_given)}
    return {name: model for name, model in found.items() if model is not None}


def models_in(table: SourceTable, column: str) -> dict[str, ModelSpec]:
    """Models that a column names, by name; rows of a model of unknown shape are left out and counted."""
    names_given = table.text(column)
    models = known_models(names_given)
    unknown = np.array([name not in models for name in names_given])
    table.leave_out(unknown, f"{column}: has no known shape")
    return models


def stated_model(path: Path, defaults: Defaults) -> tuple[str, ModelSpec]:
    """Return name and shape of the model that was stated beside a file which names none.

    Raises
    ------
    ConfigError
        Where device or model were not stated.
    """
    if defaults.device is None or defaults.model is None:
        raise refuse(path, "names neither device nor model; state both (--device, --model)")
    return defaults.model, load_model(defaults.model)
