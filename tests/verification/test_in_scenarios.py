"""Rules and drafts in a scenario: by vLLM's key, by kind, with what trees cost and lossy rules lose."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from specsim.engine.identity import run_key
from specsim.engine.shapes import draft_passes, draft_positions
from specsim.engine.simulate import simulate
from specsim.errors import ConfigError
from specsim.results import SimulationResult
from specsim.scenario import load_scenario
from specsim.speculation import Rounds
from specsim.speculation.ngram import counts_of_files, save_counts

SCENARIO = """\
hardware: {target: {name: unit, kind: unit, target_step_s: 1 s, draft_cost_ratio: 0.1}}
speculative_config: {num_speculative_tokens: 6, draft_sample_method: probabilistic}
distributions: {kind: explicit, target: [.5, .3, .2], draft: [.2, .3, .5]}
workload: {num_prompts: 12, max_concurrency: 4, prompt_tokens: 4, output_tokens: 40}
"""


def _result(*overrides: str) -> SimulationResult:
    return simulate(load_scenario(SCENARIO, overrides=overrides))


def test_vllms_key_and_the_kind_are_one_block_verification() -> None:
    by_key = _result("speculative_config.rejection_sample_method=block")
    by_kind = _result("verifier={kind: block}")
    assert by_key.rounds.equals(by_kind.rounds)
    assert not by_key.rounds.equals(_result().rounds)


@pytest.mark.parametrize(
    ("verifier", "draft_source", "passes", "positions"),
    [
        ("{kind: recursive}", "{kind: tree, branching: [2, 2]}", 2, 3),
        ("{kind: candidates}", "{kind: eagle2, depth: 3, top_k: 2}", 3, 5),
        ("{kind: kseq}", "{kind: independent_chains, num_chains: 2}", 3, 5),
        ("{kind: recursive}", "{kind: sequoia, acceptance_by_rank: [.5, .2], max_depth: 2}", 2, 3),
    ],
)
def test_a_tree_pays_for_the_positions_of_its_levels(
    verifier: str, draft_source: str, passes: int, positions: int
) -> None:
    shares_cache = "speculative_config.method=early_exit"
    result = _result(f"verifier={verifier}", f"draft_source={draft_source}", shares_cache)
    steps = result.steps.query("arm == 'speculation' and phase == 'decode'")
    assert (steps["num_draft_passes"] == passes).all()
    assert (steps["num_draft_positions"] == positions * steps["num_sequences"]).all()
    assert (steps["num_positions"] == 7 * steps["num_sequences"]).all()


def test_the_run_key_covers_the_content_of_ngram_counts(tmp_path: Path) -> None:
    keys = []
    for words in ("the cat sat on the mat and ran", "one two three one two four one two"):
        (tmp_path / "text.txt").write_text(words)
        counts, vocabulary = counts_of_files([tmp_path / "text.txt"], order=2, most_words=9)
        save_counts(counts, tmp_path / "counts.npz", vocabulary=vocabulary.words, source="text")
        given = f"distributions={{kind: ngram, path: {tmp_path / 'counts.npz'}, draft_order: 1}}"
        keys.append(run_key(load_scenario(SCENARIO, overrides=[given])))
    assert keys[0] != keys[1]


def test_a_lookup_pays_one_pass_hit_or_miss() -> None:
    steps = _result("verifier={kind: token}", "draft_source={kind: lookup}").steps
    assert set(steps.query("arm == 'speculation' and phase == 'decode'")["num_draft_passes"]) == {1}


def test_a_lossy_rule_is_named_with_its_distance_in_verdict_and_limitations() -> None:
    summary = _result("verifier={kind: lenience, lenience: .5}").summary()
    assert (
        "Lossy verification, total variation of the next token from the target 0.200."
        in summary["verdict"]["text"]
    )
    assert any("lossy" in line and "0.200" in line for line in summary["known_limitations"])
    assert summary["provenance"]["total_variation"] == pytest.approx(0.2)
    assert "Lossy" not in _result("verifier={kind: block}").summary()["verdict"]["text"]


def test_rules_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigError, match="excludes"):
        _result("verifier={kind: block}", "speculative_config.rejection_sample_method=block")
    with pytest.raises(ConfigError, match="siblings are 'distinct'"):
        _result("verifier={kind: block}", "draft_source={kind: tree, branching: [2, 2]}")
    with pytest.raises(ConfigError, match="needs p and q along the path"):
        _result("verifier={kind: block}", "distributions={kind: rates, acceptance_rate: 0.5}")


DEVICES = """\
target: {model: llama-3.1-8b}
hardware: {target: h100-sxm}
speculative_config: {model: llama-3.2-1b, num_speculative_tokens: 4, draft_sample_method: probabilistic}
distributions: {kind: explicit, target: [.5, .3, .2], draft: [.2, .3, .5]}
workload: {num_prompts: 6, max_concurrency: 3, prompt_tokens: 16, output_tokens: 20}
"""


@pytest.mark.parametrize(
    ("verifier", "draft_source"),
    [("block", "{kind: chain}"), ("recursive", "{kind: tree, branching: [2, 1]}")],
)
def test_every_round_of_a_request_is_the_same_on_more_devices_and_in_another_batch(
    verifier: str, draft_source: str
) -> None:
    rule = [f"verifier={{kind: {verifier}}}", f"draft_source={draft_source}"]
    others = (
        [],
        ["target.tensor_parallel_size=4"],
        ["hardware.draft=rtx-4090"],
        ["workload.max_concurrency=1"],
    )
    tables = [
        simulate(load_scenario(DEVICES, overrides=[*rule, *other]))
        .rounds.sort_values(["arm", "request", "step"])
        .drop(columns="step")
        .reset_index(drop=True)
        for other in others
    ]
    assert all(table.equals(tables[0]) for table in tables)


def test_the_levels_of_a_tree_attend_to_what_was_drafted_before() -> None:
    one = np.array([[1]])
    rounds = Rounds(
        num_drafted=6 * one,
        num_draft_steps=2 * one,
        num_positions=7 * one,
        num_accepted=0 * one,
        num_emitted=one,
        is_last=np.array([[False]]),
        pass_positions=np.array([[1, 2]]),
    )
    shape = draft_passes(np.array([[10]]), rounds, 0 * one).shape
    assert shape.num_positions.tolist() == [1, 2]
    assert shape.context_tokens.tolist() == [10, 11]
    assert shape.position_context.tolist() == [11, 24]
    assert draft_positions(rounds, 0 * one).tolist() == [3]
