"""SGLang's server arguments.

Trap: ``num_draft_tokens`` is the width of verification, K + 1 for a chain. With ``eagle_topk`` 1 SGLang
sets it to ``num_steps`` + 1 whatever is given (server_args.py, 2025), so K is ``num_steps``.
"""

from __future__ import annotations

from specsim.config.nodes import Plain
from specsim.importers.options import Imported, Options

_METHODS: dict[str, str | None] = {
    "standalone": "draft_model",
    "eagle": "eagle",
    "eagle3": "eagle3",
    "nextn": "mtp",
    "ngram": "ngram",
}
_CACHES: dict[str, str | None] = {
    "auto": "auto",
    "bfloat16": "bfloat16",
    "bf16": "bfloat16",
    "fp8_e5m2": "fp8",
    "fp8_e4m3": "fp8",
}
_DTYPES: dict[str, str | None] = {
    "auto": "bfloat16",
    "bfloat16": "bfloat16",
    "half": "float16",
    "float16": "float16",
    "float": "float32",
    "float32": "float32",
}
_QUANTIZATIONS: dict[str, str | None] = {
    "fp8": "float8",
    "w8a8_fp8": "float8",
    "w8a8_int8": "int8",
    "awq": "int4",
    "gptq": "int4",
    "awq_marlin": "int4",
    "gptq_marlin": "int4",
    "modelopt_fp4": "fp4",
}


def import_sglang(options: Options) -> Imported:
    """Return the scenario of SGLang's server arguments.

    Parameters
    ----------
    options
        Such as ``speculative_num_steps``.
    """
    dtype = options.choice("dtype", _DTYPES)
    quantization = options.choice("quantization", _QUANTIZATIONS)
    devices = options.whole("tp_size", "tp", "tensor_parallel_size", least=1)
    target: dict[str, Plain] = {
        "dtype": quantization or dtype,
        "kv_cache_dtype": options.choice("kv_cache_dtype", _CACHES),
        "tensor_parallel_size": devices,
    }
    imported = Imported({"target": target}, target=options.word("model_path", "model"))
    imported.scenario["scheduler"] = {
        "max_num_seqs": options.whole("max_running_requests", least=1),
        "max_num_batched_tokens": options.whole("chunked_prefill_size", least=1),
        "block_size": options.whole("page_size", least=1),
    }
    method = options.choice("speculative_algorithm", _METHODS)
    if method is not None:
        _speculation(options, imported, method, devices)
    options.check(marks=("spec", "draft"))
    return imported


def _speculation(options: Options, imported: Imported, method: str, devices: int | None) -> None:
    steps = options.whole("speculative_num_steps", least=1)
    width = options.whole("speculative_num_draft_tokens", least=1)
    topk = options.whole("speculative_eagle_topk", least=1)
    if topk is not None and topk > 1:
        options.fault(
            "speculative_eagle_topk", f"{topk} drafts a tree; a scenario of this kind drafts a chain, 1"
        )
    for name in ("speculative_accept_threshold_single", "speculative_accept_threshold_acc"):
        if options.fraction(name) not in (None, 1.0):
            options.fault(
                name, "below 1 accepts tokens that the target would not; no rule here does the same"
            )
    lookahead = _lookahead(options, imported, method, steps, width)
    draft = options.word("speculative_draft_model_path", "speculative_draft_model")
    if method == "draft_model" and draft is None:
        options.fault("speculative_draft_model_path", "missing, required by STANDALONE")
    imported.draft = draft or (f"{method} head of {imported.target}" if method != "ngram" else None)
    imported.scenario["speculative_config"] = {
        "method": method,
        "num_speculative_tokens": lookahead,
        "draft_tensor_parallel_size": None if method == "ngram" else devices,
        "draft_sample_method": "greedy",
    }
    imported.notes.append("SGLang drafts the most likely tokens: draft_sample_method is greedy")


def _lookahead(
    options: Options, imported: Imported, method: str, steps: int | None, width: int | None
) -> int | None:
    """Return K: the steps of a chain; for lookups the width of verification less one."""
    if method == "ngram":
        if width is None or width < 2:
            options.fault("speculative_num_draft_tokens", "needed by NGRAM, at least 2: the width, K + 1")
            return None
        imported.notes.append(
            f"num_draft_tokens {width} is the verify width: K = {width - 1}, drafted as a chain"
        )
        return width - 1
    if steps is None:
        options.fault(
            "speculative_num_steps", "missing: SGLang chooses by model (for Llama a tree); give it to be sure"
        )
        return None
    if width is not None and width != steps + 1:
        imported.notes.append(
            f"num_draft_tokens {width} is the verify width; SGLang sets it to num_steps + 1 = {steps + 1}"
        )
    elif width is not None:
        imported.notes.append(f"num_draft_tokens {width} is the verify width: K = {steps}")
    return steps
