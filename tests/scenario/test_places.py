"""Every refusal across the fields of a scenario names file, line and column of one of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from specsim.cli.app import main

TRACES = Path(__file__).parents[2] / "scenarios" / "traces"
EXIT24 = f"{{kind: trace, path: {TRACES / 'smollm2_exit24_t0.7.npz'}}}"
LOOKUP = f"{{kind: trace, path: {TRACES / 'smollm2_lookup_t0.7.npz'}}}"
EXPLICIT = "{kind: explicit, target: [.5, .3, .2], draft: [.2, .3, .5]}"
RATES = "{kind: rates, acceptance_rate: .7}"
KEYS = {
    "target": "{model: llama-3.1-8b}",
    "hardware": "{target: h100-sxm}",
    "speculative_config": "{model: llama-3.2-1b, num_speculative_tokens: 4}",
    "distributions": RATES,
    "workload": "{num_prompts: 4, max_concurrency: 2, prompt_tokens: 8, output_tokens: 8}",
}
TWO_CLASSES = (
    "{{num_prompts: 4, max_concurrency: 2, prompt_tokens: 8, output_tokens: 8, classes: ["
    "{{name: a, share: .5, distributions: {first}}}, {{name: b, share: .5, distributions: {second}}}]}}"
)
SYNTHETIC = "{model: llama-3.2-1b, num_speculative_tokens: 4, rejection_sample_method: synthetic"
CASES = {
    "rates under block": ({"verifier": "{kind: block}"}, "verifier"),
    "rates under vLLM's block": (
        {
            "speculative_config": "{model: llama-3.2-1b, num_speculative_tokens: 4,"
            " rejection_sample_method: block}"
        },
        "speculative_config.rejection_sample_method",
    ),
    "a lossy rule on a trace": ({"distributions": EXIT24, "verifier": "{kind: typical}"}, "verifier"),
    "greedy on a sampled trace": ({"distributions": EXIT24, "verifier": "{kind: greedy}"}, "verifier"),
    "greedy on a sampled target": (
        {"distributions": EXPLICIT, "verifier": "{kind: greedy}"},
        "distributions",
    ),
    "more tuples of siblings than are planned": (
        {
            "distributions": f"{{kind: explicit, target: {[1 / 8] * 8}, draft: {[1 / 8] * 8}}}",
            "verifier": "{kind: optimal}",
            "draft_source": "{kind: tree, branching: [4], siblings: independent}",
        },
        "distributions",
    ),
    "live texts shorter than the requests": (
        {"distributions": "{kind: live, target: none, draft: none, max_tokens: 4}"},
        "distributions.max_tokens",
    ),
    "two rules": (
        {
            "verifier": "{kind: token}",
            "speculative_config": "{model: llama-3.2-1b, num_speculative_tokens: 4,"
            " rejection_sample_method: standard}",
        },
        "verifier",
    ),
    "a tree of rates": (
        {"verifier": "{kind: candidates}", "draft_source": "{kind: tree, branching: [4]}"},
        "draft_source",
    ),
    "a tree under a rule for chains": (
        {
            "distributions": EXPLICIT,
            "verifier": "{kind: block}",
            "draft_source": "{kind: tree, branching: [4]}",
        },
        "verifier",
    ),
    "a tree under no named rule": (
        {"distributions": EXPLICIT, "draft_source": "{kind: tree, branching: [4]}"},
        "draft_source",
    ),
    "a tree of other nodes": (
        {
            "distributions": EXPLICIT,
            "verifier": "{kind: recursive}",
            "draft_source": "{kind: tree, branching: [3]}",
        },
        "draft_source",
    ),
    "chains of no whole length": (
        {
            "distributions": EXPLICIT,
            "verifier": "{kind: kseq}",
            "draft_source": "{kind: independent_chains, num_chains: 3}",
        },
        "draft_source.num_chains",
    ),
    "confidence on a tree": (
        {
            "distributions": EXPLICIT,
            "verifier": "{kind: recursive}",
            "draft_source": "{kind: tree, branching: [4]}",
            "lookahead": "{kind: confidence}",
        },
        "lookahead",
    ),
    "a lookup on a trace": ({"distributions": EXIT24, "draft_source": "{kind: lookup}"}, "draft_source"),
    "a tree on a trace without unions": (
        {
            "distributions": EXIT24,
            "verifier": "{kind: candidates}",
            "draft_source": "{kind: tree, branching: [4]}",
        },
        "draft_source",
    ),
    "deeper than recorded": (
        {
            "distributions": LOOKUP,
            "speculative_config": "{method: ngram, num_speculative_tokens: 200}",
        },
        "speculative_config.num_speculative_tokens",
    ),
    "another temperature than recorded": (
        {"distributions": EXIT24.replace("}", ", temperature: 1.0}")},
        "distributions.temperature",
    ),
    "a draft temperature without unions": (
        {"distributions": EXIT24.replace("}", ", draft_temperature: 1.0}")},
        "distributions.draft_temperature",
    ),
    "a domain that was not recorded": (
        {"distributions": EXIT24.replace("}", ", domain: law}")},
        "distributions.domain",
    ),
    "a language that was not recorded": (
        {"distributions": EXIT24.replace("}", ", language: la}")},
        "distributions.language",
    ),
    "an imputation of no log": (
        {"distributions": EXIT24.replace("}", ", imputation: momentum}")},
        "distributions.imputation",
    ),
    "a trace that is not there": ({"distributions": "{kind: trace, path: no.npz}"}, "distributions.path"),
    "counts that are not there": ({"distributions": "{kind: ngram, path: no.npz}"}, "distributions.path"),
    "a trace of a class that is not there": (
        {"workload": TWO_CLASSES.format(first=RATES, second="{kind: trace, path: no.npz}")},
        "workload.classes.1.distributions.path",
    ),
    "a mixture with explicit p and q": (
        {"workload": TWO_CLASSES.format(first=RATES, second=EXPLICIT)},
        "workload.classes",
    ),
    "too few rates": (
        {"distributions": "{kind: rates, synthetic_acceptance_rates: [.5]}"},
        "distributions.synthetic_acceptance_rates",
    ),
    "synthetic beside distributions": (
        {"speculative_config": f"{SYNTHETIC}, synthetic_acceptance_length: 2}}"},
        "distributions",
    ),
    "synthetic without rates": (
        {"speculative_config": f"{SYNTHETIC}}}", "distributions": "null"},
        "speculative_config.rejection_sample_method",
    ),
    "a lookup with a model": (
        {"speculative_config": "{model: llama-3.2-1b, method: ngram, num_speculative_tokens: 4}"},
        "speculative_config.model",
    ),
    "a draft on more devices": (
        {
            "speculative_config": "{model: llama-3.2-1b, num_speculative_tokens: 4,"
            " draft_tensor_parallel_size: 2}"
        },
        "speculative_config.draft_tensor_parallel_size",
    ),
    "a unit device beside a real one": (
        {
            "hardware": "{target: h100-sxm, draft: {kind: unit, name: u, target_step_s: 1,"
            " draft_cost_ratio: .1}}"
        },
        "hardware.draft",
    ),
    "experts of a dense model": (
        {"target": "{model: llama-3.1-8b, tensor_parallel_size: 2, enable_expert_parallel: true}"},
        "target.enable_expert_parallel",
    ),
    "more tokens than a run may have": (
        {"workload": "{num_prompts: 100000, max_concurrency: 2, prompt_tokens: 8, output_tokens: 100000}"},
        "workload.output_tokens",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_check_names_the_place_of_a_field_that_does_not_fit(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes, path = CASES[case]
    keys = KEYS | changes
    file = tmp_path / "my.yaml"
    file.write_text("".join(f"{key}: {value}\n" for key, value in keys.items()))
    with pytest.raises(SystemExit) as left:
        main(["check", str(file)])
    faults = capsys.readouterr().err.strip().splitlines()
    assert left.value.code == 2
    line = list(keys).index(path.partition(".")[0]) + 1
    expected = rf"(specsim: )?{re.escape(str(file))}:{line}:\d+: {re.escape(path)}: .+"
    assert faults
    assert [fault for fault in faults if not re.fullmatch(expected, fault)] == []


def test_run_names_the_place_as_check_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "my.yaml"
    file.write_text("".join(f"{key}: {value}\n" for key, value in KEYS.items()) + "verifier: {kind: block}\n")
    for words in (["check", str(file)], ["run", str(file)]):
        with pytest.raises(SystemExit):
            main(words)
        assert f"{file}:6:11: verifier: needs p and q along the path" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["run", str(file), "--set", "verifier.kind=typical"])
    assert "verifier: is lossy, so it has no exact replay" in capsys.readouterr().err
