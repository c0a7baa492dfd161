"""Hugging Face transformers: arguments of ``generate`` and ``generation_config.json``.

Traps: 20 tokens are drafted where nothing is said, and the draft stops after a token that it gave less
than 0.4 (``assistant_confidence_threshold``) unless that is set to 0. The schedule is constant.
"""

from __future__ import annotations

from specsim.importers.options import Imported, Options

_NUM_ASSISTANT_TOKENS = 20
_CONFIDENCE_THRESHOLD = 0.4
_SCHEDULES: dict[str, str | None] = {
    "constant": "constant",
    "heuristic": "heuristic",
    "heuristic_transient": "heuristic",
}


def import_transformers(options: Options) -> Imported:
    """Return the scenario of transformers' generation arguments.

    Parameters
    ----------
    options
        Such as ``num_assistant_tokens``.
    """
    imported = Imported({"target": {}}, target=options.word("model", "_name_or_path"))
    imported.scenario["workload"] = {
        "max_concurrency": 1,
        "output_tokens": options.whole("max_new_tokens", least=1),
    }
    is_sampled = options.get("do_sample") in (True, "true", "True")
    assistant = options.word("assistant_model")
    lookup = options.whole("prompt_lookup_num_tokens", least=1)
    if assistant is not None and lookup is not None:
        options.fault("prompt_lookup_num_tokens", "excludes assistant_model")
    elif lookup is not None:
        imported.scenario["speculative_config"] = {
            "method": "ngram",
            "num_speculative_tokens": lookup,
            "prompt_lookup_max": options.whole("max_matching_ngram_size", least=1) or 2,
        }
    elif assistant is not None or options.get("num_assistant_tokens") is not None:
        _assisted(options, imported, assistant, is_sampled=is_sampled)
    options.check(marks=("assistant", "lookup", "ngram"))
    return imported


def _assisted(options: Options, imported: Imported, assistant: str | None, *, is_sampled: bool) -> None:
    lookahead = options.whole("num_assistant_tokens", least=1)
    if lookahead is None:
        lookahead = _NUM_ASSISTANT_TOKENS
        imported.notes.append(f"num_assistant_tokens is not given: transformers drafts {lookahead}")
    threshold = options.fraction("assistant_confidence_threshold")
    if threshold is None:
        threshold = _CONFIDENCE_THRESHOLD
        imported.notes.append(f"assistant_confidence_threshold is not given: transformers uses {threshold}")
    schedule = options.choice("num_assistant_tokens_schedule", _SCHEDULES) or "constant"
    imported.draft = assistant
    imported.scenario["speculative_config"] = {
        "method": "draft_model",
        "num_speculative_tokens": lookahead,
        "draft_sample_method": "probabilistic" if is_sampled else "greedy",
    }
    if schedule == "heuristic":
        imported.scenario["lookahead"] = {"kind": "heuristic"}
        imported.notes.append(
            "the heuristic schedule begins anew with each request, as heuristic_transient does"
        )
        if threshold > 0:
            options.fault(
                "assistant_confidence_threshold",
                f"{threshold} stops drafts beside the heuristic schedule; a scenario has one policy: set 0",
            )
    elif threshold > 0:
        imported.scenario["lookahead"] = {"kind": "confidence", "threshold": threshold}
        imported.notes.append(
            "the confidence policy looks at the draft's largest probability: it needs a trace"
        )
