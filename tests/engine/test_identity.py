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
