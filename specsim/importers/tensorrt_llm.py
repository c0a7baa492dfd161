"""TensorRT-LLM's LLM-API arguments, as its YAML file holds them.

Trap: ``draft_len_schedule`` maps the largest batch to a draft length, {4: 5, 32: 3}: 5 up to 4
sequences, 3 up to 32, none beyond (pull request 6232 and the releases after it). An early form of it
named the smallest batch, {1: 4, 4: 2, 8: 0}.
"""

from __future__ import annotations

from specsim.config.nodes import Plain
from specsim.importers.options import Imported, Options

_METHODS: dict[str, str | None] = {
    "draft_target": "draft_model",
    "drafttarget": "draft_model",
    "eagle": "eagle",
    "eagle3": "eagle3",
    "medusa": "medusa",
    "mtp": "mtp",
    "ngram": "ngram",
    "lookahead": None,
    "auto": None,
}
_DTYPES: dict[str, str | None] = {
    "auto": "bfloat16",
    "bfloat16": "bfloat16",
    "float16": "float16",
    "float32": "float32",
    "fp8": "float8",
}
_CACHES: dict[str, str | None] = {"auto": "auto", "fp8": "fp8", "int8": "int8", "float16": "float16"}
_LARGEST_BATCH = 2**20


def import_tensorrt_llm(options: Options) -> Imported:
    """Return the scenario of TensorRT-LLM's arguments.

    Parameters
    ----------
    options
        Such as ``speculative_config.max_draft_len``.
    """
    devices = options.whole("tensor_parallel_size", "tp_size", least=1)
    target: dict[str, Plain] = {
        "dtype": options.choice("dtype", _DTYPES),
        "kv_cache_dtype": options.choice("kv_cache_config.dtype", _CACHES),
        "tensor_parallel_size": devices,
    }
    imported = Imported({"target": target}, target=options.word("model", "model_path"))
    imported.scenario["scheduler"] = {
        "max_num_seqs": options.whole("max_batch_size", least=1),
        "max_num_batched_tokens": options.whole("max_num_tokens", least=1),
        "block_size": options.whole("kv_cache_config.tokens_per_block", least=1),
    }
    method = options.choice("speculative_config.decoding_type", _METHODS, aliases=("decoding_type",))
    if method is not None:
        _speculation(options, imported, method, devices)
    options.check(marks=("specul", "draft", "ngram", "eagle"))
    return imported


def _speculation(options: Options, imported: Imported, method: str, devices: int | None) -> None:
    def own(name: str) -> tuple[str, str]:
        return f"speculative_config.{name}", name

    length = options.whole(*own("max_draft_len"), *own("num_nextn_predict_layers"), least=1)
    if length is None:
        options.fault("speculative_config.max_draft_len", "missing: the tokens that a round drafts")
    draft = options.word(*own("speculative_model"), *own("speculative_model_dir"))
    imported.draft = draft or (f"{method} head of {imported.target}" if method != "ngram" else None)
    config: dict[str, Plain] = {
        "method": method,
        "num_speculative_tokens": length,
        "prompt_lookup_max": options.whole(*own("max_matching_ngram_size"), least=1),
        "draft_tensor_parallel_size": None if method == "ngram" else devices,
        "draft_sample_method": "greedy",
        "num_speculative_tokens_per_batch_size": _schedule(options, imported, *own("draft_len_schedule")),
    }
    imported.scenario["speculative_config"] = config
    imported.notes.append("TensorRT-LLM drafts the most likely tokens: draft_sample_method is greedy")


def _schedule(options: Options, imported: Imported, *names: str) -> Plain:
    """Return [lowest, highest, K] of each step of a schedule by the largest batch of each length."""
    given = options.get(*names)
    if given is None:
        return None
    if not isinstance(given, dict) or not given:
        options.fault(names[0], f"{given!r} is not a mapping of batch sizes to draft lengths")
        return None
    try:
        steps = sorted((int(batch), int(str(length))) for batch, length in given.items())
    except ValueError:
        options.fault(names[0], "batch sizes and draft lengths must be whole numbers")
        return None
    if any(length == 0 for _, length in steps):
        options.fault(
            names[0],
            "holds a length of 0, the early form by smallest batch; give the largest batch of each length",
        )
        return None
    ranges: list[Plain] = []
    lowest = 1
    for highest, length in steps:
        ranges.append([lowest, highest, length])
        lowest = highest + 1
    ranges.append([lowest, _LARGEST_BATCH, 0])
    imported.notes.append(
        "draft_len_schedule: batch sizes are the largest of each length; none is drafted beyond"
    )
    return ranges
