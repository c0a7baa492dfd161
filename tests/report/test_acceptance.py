"""Acceptance under the tables: a line where it is not the rate that was given."""

from __future__ import annotations

import pytest

from specsim.engine.simulate import simulate
from specsim.report.acceptance import acceptance_lines
from specsim.scenario import load_scenario

UNIT = "{kind: unit, name: unit, target_step_s: 1.0, draft_cost_ratio: 0.1}"
TEXT = f"""
speculative_config: {{num_speculative_tokens: 4}}
distributions: {{kind: rates, acceptance_rate: 0.7}}
hardware: {{target: {UNIT}}}
workload: {{num_prompts: 100, max_concurrency: 1, prompt_tokens: 8, output_tokens: 400}}
"""


def _lines(*settings: str) -> list[str]:
    return list(acceptance_lines(simulate(load_scenario(TEXT, overrides=settings)).summary()))


def test_a_rate_for_each_token_is_told_from_that_of_all_drafted_ones() -> None:
    rates, told = _lines()
    assert rates.startswith("Acceptance by position: 0.70 0.49 0.3")
    assert told.startswith("The rate of 0.7 is that of each token if those before it were kept")


def test_the_end_of_short_texts_is_told() -> None:
    _, told = _lines("workload.output_tokens=5")
    assert told == (
        "Drafts past the end of a text count as rejected; without ends it were 0.70 0.49 0.34 0.24."
    )


@pytest.mark.parametrize(
    "settings",
    [
        ("K=1",),
        ("distributions={kind: rates, acceptance_rate: 1.0}",),
        ("distributions={kind: rates, synthetic_acceptance_rates: [0.7, 0.5, 0.3, 0.1]}",),
        (
            "distributions=null",
            "workload.classes=[{name: a, share: 1.0, distributions: {kind: rates, acceptance_rate: 0.7}}]",
        ),
    ],
)
def test_nothing_is_explained_where_nothing_differs_or_no_one_rate_is_given(
    settings: tuple[str, ...],
) -> None:
    (rates,) = _lines(*settings)
    assert rates.startswith("Acceptance by position: ")


def test_luck_is_not_taken_for_the_end_of_texts() -> None:
    told = [_lines("workload.num_prompts=1", f"seed={seed}")[1] for seed in range(5)]
    assert not [line for line in told if line.startswith("Drafts past the end")]


def test_without_drafts_there_is_no_line() -> None:
    assert _lines("speculative_config=null", "distributions=null") == []
