"""Configurations of other engines, as flags or files, into scenarios."""

from __future__ import annotations

from specsim.importers.llama_cpp import import_llama_cpp
from specsim.importers.options import Imported, Options, read_options
from specsim.importers.sglang import import_sglang
from specsim.importers.tensorrt_llm import import_tensorrt_llm
from specsim.importers.transformers import import_transformers

IMPORTERS = {
    "sglang": import_sglang,
    "tensorrt-llm": import_tensorrt_llm,
    "transformers": import_transformers,
    "llama.cpp": import_llama_cpp,
}
"""What reads the options of each engine, by the engine's name."""

__all__ = ["IMPORTERS", "Imported", "Options", "read_options"]
