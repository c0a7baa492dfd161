"""llama.cpp's server arguments.

Traps: a draft ends after the first token that got less than ``draft_p_min``, which is kept, and the
default of that has been 0.9, 0.8, 0.75 and 0 in different releases, so it must be given. Tokens are
drafted greedily. Drafts shorter than ``draft_min`` are thrown away.
"""

from __future__ import annotations

import re

from specsim.config.nodes import Plain
from specsim.importers.options import Imported, Options

_DRAFT_MAX = 16
_CACHES: dict[str, str | None] = {"f16": "float16", "bf16": "bfloat16", "q8_0": "int8"}
_WEIGHTS = (("q4", "int4"), ("iq4", "int4"), ("q8_0", "int8"), ("bf16", "bfloat16"), ("f16", "float16"))
"""Formats by what a file's name holds."""


def import_llama_cpp(options: Options) -> Imported:
    """Return the scenario of llama.cpp's server arguments.

    Parameters
    ----------
    options
        Such as ``draft_max``.
    """
    target = options.word("model", "m", "hf_repo", "hf")
    draft = options.word("model_draft", "md", "spec_draft_model", "hf_repo_draft", "hfd")
    parallel = options.whole("parallel", "np", least=1)
    imported = Imported(
        {
            "target": {
                "dtype": _weights(imported_file=target),
                "kv_cache_dtype": options.choice("cache_type_k", _CACHES, aliases=("ctk",)),
            },
            "workload": {"max_concurrency": parallel or 1, "output_tokens": _num_predict(options)},
            "scheduler": {"max_num_batched_tokens": options.whole("batch_size", "b", least=1)},
        },
        target=target,
        draft=draft,
    )
    if draft is not None:
        _speculation(options, imported, draft)
    options.check(marks=("draft", "spec"))
    return imported


def _speculation(options: Options, imported: Imported, draft: str) -> None:
    lookahead = options.whole("draft_max", "draft", "draft_n", "spec_draft_n_max", least=1)
    if lookahead is None:
        lookahead = _DRAFT_MAX
        imported.notes.append(f"draft-max is not given: {lookahead} is taken")
    if options.whole("draft_min", "draft_n_min", "spec_draft_n_min"):
        options.fault("draft_min", "above 0 throws short drafts away; no policy here does: set it to 0")
    threshold = options.fraction("draft_p_min", "spec_draft_p_min")
    if threshold is None:
        options.fault(
            "draft_p_min", "missing: its default differs between releases (0.9, 0.8, 0.75, 0); give it"
        )
    config: dict[str, Plain] = {
        "method": "draft_model",
        "num_speculative_tokens": lookahead,
        "quantization": _weights(imported_file=draft),
        "draft_sample_method": "greedy",
    }
    imported.scenario["speculative_config"] = config
    if threshold:
        imported.scenario["lookahead"] = {"kind": "confidence", "threshold": threshold}
        imported.notes.append("draft-p-min looks at the draft's largest probability: it needs a trace")
    imported.notes.append("llama.cpp drafts the most likely tokens: draft_sample_method is greedy")
    # Where the draft's layers and cache live changes nothing that is simulated.
    options.get("gpu_layers_draft", "ngld", "n_gpu_layers_draft", "spec_draft_ngl")
    options.get("ctx_size_draft", "cd")


def _weights(*, imported_file: str | None) -> str | None:
    """Return the format that a file's name tells, such as int4 of ``…-Q4_K_M.gguf``."""
    words = re.split(r"[^a-z0-9_]+", (imported_file or "").lower())
    found = (dtype for word in words for mark, dtype in _WEIGHTS if word.startswith(mark))
    return next(found, None)


def _num_predict(options: Options) -> int | None:
    """Return the tokens to generate; -1 is without limit."""
    value = options.get("predict", "n_predict", "n")
    return None if value in (None, "-1", -1) else options.whole("predict", "n_predict", "n", least=1)
