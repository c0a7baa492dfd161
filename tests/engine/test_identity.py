"""Where a run's figures come from: what is assumed is said to be so."""

from __future__ import annotations

import pytest

import specsim
from specsim.scenario import load_scenario

RATES = """\
hardware: {target: {kind: unit, name: unit, target_step_s: 1.0, draft_cost_ratio: 0.1}}
distributions: {kind: rates, acceptance_rate: 0.7}
speculative_config: {num_speculative_tokens: 2}
workload: {num_prompts: 2, max_concurrency: 1, prompt_tokens: 4, output_tokens: 8}
"""
SYNTHETIC = (
    "distributions=null",
    "speculative_config={num_speculative_tokens: 2, rejection_sample_method: synthetic,"
    " synthetic_acceptance_length: 2}",
)


@pytest.mark.parametrize(
    ("settings", "is_assumed"),
    [
        ((), True),
        (SYNTHETIC, True),
        (("speculative_config.num_speculative_tokens=0",), False),
        (("speculative_config=null",), False),
        (("distributions={kind: explicit, target: [.7, .3], draft: [.3, .7]}",), False),
    ],
)
def test_rates_that_a_scenario_states_are_an_assumption(settings: tuple[str, ...], is_assumed: bool) -> None:
    result = specsim.simulate(load_scenario(RATES, overrides=settings))
    assert result.provenance.acceptance_is_assumed is is_assumed


@pytest.mark.parametrize(
    ("settings", "is_noted"),
    [
        ((), True),
        (("workload.output_tokens_stdev=2",), False),
        (("workload.max_concurrency=1",), False),
        (("workload={num_prompts: 4, request_rate: 5, prompt_tokens: 4, output_tokens: 8}",), False),
        (("distributions={kind: explicit, target: [.7, .3], draft: [.3, .7]}",), False),
    ],
)
def test_users_whose_requests_have_one_length_move_in_step_and_it_is_said(
    settings: tuple[str, ...], is_noted: bool
) -> None:
    on_a_device = (
        "hardware={target: h100-sxm}",
        "target={model: llama-3.2-1b}",
        "speculative_config={model: llama-3.2-1b, num_speculative_tokens: 2}",
        "workload={num_prompts: 4, max_concurrency: 2, prompt_tokens: 4, output_tokens: 8}",
    )
    result = specsim.simulate(load_scenario(RATES, overrides=[*on_a_device, *settings]))
    assert any("one length" in note for note in result.summary()["known_limitations"]) is is_noted


@pytest.mark.parametrize(("num_users", "is_noted"), [(1, False), (2, False), (3, True)])
def test_fewer_requests_than_users_are_said_to_be_the_load(num_users: int, is_noted: bool) -> None:
    result = specsim.simulate(load_scenario(RATES, overrides=[f"workload.max_concurrency={num_users}"]))
    notes = result.summary()["known_limitations"]
    assert ("There are fewer requests than users: the load is that of 2." in notes) is is_noted
