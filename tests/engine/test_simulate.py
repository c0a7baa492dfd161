"""Whole runs against closed forms, and the laws that every run keeps."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specsim.config import parse
from specsim.engine.simulate import simulate
from specsim.errors import CapacityError
from specsim.results import SimulationResult
from specsim.scenario import Scenario, load_scenario, scenario_of
from specsim.speculation.theory import expected_tokens, wall_time_improvement

UNIT = "hardware: {target: {kind: unit, name: unit, target_step_s: 1.0, draft_cost_ratio: 0.1}}\n"
PAIR = """\
target: {model: llama-3.1-8b}
speculative_config: {model: llama-3.2-1b, num_speculative_tokens: 3, draft_sample_method: probabilistic}
hardware: {target: h100-sxm}
"""
RATES = "distributions: {kind: rates, acceptance_rate: 0.7}\n"
EXPLICIT = (
    "distributions: {kind: explicit, target: [0.5, 0.3, 0.2], draft: [0.2, 0.3, 0.5], eos_token_id: 2}\n"
)
LOAD = (
    "workload: {num_prompts: 7, max_concurrency: 3, prompt_tokens: 40, output_tokens: 30,"
    " output_tokens_stdev: 8}\n"
)


def scenario(text: str, *overrides: str) -> Scenario:
    """Scenario from YAML text."""
    return scenario_of(parse(text), overrides=overrides)


def tables(result: SimulationResult) -> list[bytes]:
    """Return the three tables as bytes, to be compared exactly."""
    return [frame.to_csv(index=False).encode() for frame in (result.requests, result.steps, result.rounds)]


@pytest.mark.parametrize(
    ("acceptance_rate", "gamma", "cost"), [(0.75, 7, 0.02), (0.53, 5, 0.02), (0.8, 4, 0.1)]
)
def test_one_long_request_meets_the_closed_form(acceptance_rate: float, gamma: int, cost: float) -> None:
    num_tokens = 200_000
    result = simulate(
        scenario(
            UNIT + RATES + "workload: {num_prompts: 1, max_concurrency: 1, prompt_tokens: 1}\n"
            f"speculative_config: {{num_speculative_tokens: {gamma}}}\n",
            f"distributions.acceptance_rate={acceptance_rate}",
            f"hardware.target.draft_cost_ratio={cost}",
            f"workload.output_tokens={num_tokens + 1}",
        )
    )
    summary = result.summary()
    assert summary["speedup"] is not None
    measured = summary["speedup"]["tpot"]["mean"]
    assert measured is not None
    expected = wall_time_improvement(acceptance_rate, gamma, cost)
    assert measured == pytest.approx(expected, rel=0.01)
    # A round emits 1 + min(geometric, gamma) tokens: its variance sets the error of the mean.
    accepted = np.arange(gamma + 1)
    law = np.append((1 - acceptance_rate) * acceptance_rate ** accepted[:-1], acceptance_rate**gamma)
    mean = expected_tokens(acceptance_rate, gamma)
    variance = law @ (accepted + 1 - mean) ** 2
    rounds = num_tokens / mean
    z = (measured / expected - 1) * mean / math.sqrt(variance / rounds)
    assert abs(z) < 4


def test_ten_tokens_after_the_first_pay_for_drafts_that_cannot_be_used() -> None:
    text = UNIT + "distributions: {kind: rates, acceptance_rate: 0.8}\n"
    text += "speculative_config: {num_speculative_tokens: 4}\n"
    text += "workload: {num_prompts: 1000, max_concurrency: 1, prompt_tokens: 1, output_tokens: 11}\n"

    def speedup(shorten: bool) -> float:
        summary = simulate(scenario(text, f"shorten_last_draft={str(shorten).lower()}")).summary()
        assert summary["speedup"] is not None
        return float(summary["speedup"]["tpot"]["mean"] or 0)

    assert speedup(True) == pytest.approx(2.232, abs=0.05)
    assert speedup(False) == pytest.approx(2.107, abs=0.05)


def test_a_population_of_two_rates_is_not_its_mean_rate() -> None:
    text = UNIT + "speculative_config: {num_speculative_tokens: 5}\n"
    text += "workload:\n  num_prompts: 200\n  max_concurrency: 1\n  prompt_tokens: 1\n  output_tokens: 1001\n"
    text += "  classes:\n"
    text += "    - {name: hard, share: 0.5, distributions: {kind: rates, acceptance_rate: 0.5}}\n"
    text += "    - {name: easy, share: 0.5, distributions: {kind: rates, acceptance_rate: 0.9}}\n"
    result = simulate(scenario(text))
    rounds = result.rounds.query("arm == 'speculation'")
    assert rounds["num_emitted"].mean() == pytest.approx(2.773, rel=0.01)


def test_explicit_two_tokens_accept_their_overlap() -> None:
    summary = simulate("two_token_example").summary()
    rates = summary["speculation"]["spec_decode_per_position_acceptance_rates"]
    np.testing.assert_allclose(rates, 0.6 ** np.arange(1, 5), atol=0.02)


def test_equal_distributions_accept_every_draft() -> None:
    text = UNIT + "distributions: {kind: explicit, target: [0.5, 0.5], draft: [0.5, 0.5]}\n"
    text += "speculative_config: {num_speculative_tokens: 4, draft_sample_method: probabilistic}\n"
    text += "workload: {num_prompts: 5, max_concurrency: 2, prompt_tokens: 1, output_tokens: 41}\n"
    summary = simulate(scenario(text)).summary()
    assert summary["speculation"]["spec_decode_acceptance_rate"] == 100.0
    assert summary["speculation"]["spec_decode_acceptance_length"] == 5.0
    assert "NaN" not in json.dumps(summary)


def test_disjoint_supports_give_one_token_a_round() -> None:
    text = UNIT + "distributions: {kind: explicit, target: [1, 0], draft: [0, 1]}\n"
    text += "speculative_config: {num_speculative_tokens: 4, draft_sample_method: probabilistic}\n"
    text += "workload: {num_prompts: 5, max_concurrency: 2, prompt_tokens: 1, output_tokens: 41}\n"
    result = simulate(scenario(text))
    assert (result.rounds["num_emitted"] == 1).all()


@pytest.mark.parametrize("distributions", [RATES, EXPLICIT])
def test_no_speculative_tokens_is_event_for_event_the_baseline(distributions: str) -> None:
    result = simulate(scenario(PAIR + distributions + LOAD, "speculative_config.num_speculative_tokens=0"))
    for frame in (result.requests, result.steps, result.rounds):
        arms = [
            frame[frame["arm"] == arm].drop(columns="arm").to_csv(index=False)
            for arm in ("baseline", "speculation")
        ]
        assert arms[0] == arms[1]


@settings(max_examples=12, deadline=None)
@given(
    distributions=st.sampled_from([RATES, EXPLICIT]),
    policy=st.sampled_from(["fixed", "heuristic"]),
    concurrency=st.integers(1, 4),
    gamma=st.integers(0, 5),
    seed=st.integers(0, 99),
    shorten=st.booleans(),
)
def test_horizon_changes_nothing(
    distributions: str, policy: str, concurrency: int, gamma: int, seed: int, shorten: bool
) -> None:
    spec = scenario(
        PAIR + distributions + LOAD,
        f"lookahead={{kind: {policy}}}",
        f"workload.max_concurrency={concurrency}",
        f"speculative_config.num_speculative_tokens={gamma}",
        f"shorten_last_draft={str(shorten).lower()}",
        f"seed={seed}",
    )
    assert tables(simulate(spec, horizon=1)) == tables(simulate(spec, horizon=64))


def test_two_runs_of_one_seed_are_equal_to_the_byte_and_another_seed_is_not() -> None:
    spec = scenario(PAIR + RATES + LOAD)
    assert tables(simulate(spec)) == tables(simulate(spec))
    assert json.dumps(simulate(spec).summary()) == json.dumps(simulate(spec).summary())
    assert tables(simulate(spec)) != tables(simulate(spec, seed=1))


def test_both_arms_emit_the_same_tokens_along_a_path() -> None:
    requests = simulate(scenario(PAIR + RATES + LOAD)).requests
    lengths = [
        requests[requests["arm"] == arm]["num_output_tokens"].tolist() for arm in ("baseline", "speculation")
    ]
    assert lengths[0] == lengths[1]


def test_prefill_of_target_and_draft_is_in_the_time_to_first_token() -> None:
    spec = scenario(PAIR + RATES + LOAD, "workload.max_concurrency=1")
    requests = simulate(spec).requests
    ttft = (
        requests.assign(ttft=requests["first_token_s"] - requests["arrival_s"]).groupby("arm")["ttft"].mean()
    )
    assert ttft["speculation"] > ttft["baseline"] > 0


def test_what_does_not_fit_is_refused_with_the_bytes_lacking() -> None:
    with pytest.raises(CapacityError, match="lacks") as caught:
        simulate(scenario(PAIR + RATES + LOAD, "target.model=llama-3.1-70b"))
    # 70,553,706,496 + 1,235,814,400 parameters of two bytes, less 80 GiB.
    assert caught.value.lacking_bytes > 57e9


def test_open_and_closed_loops_serve_the_same_texts() -> None:
    closed = simulate(scenario(PAIR + RATES + LOAD)).requests
    text = PAIR + RATES + LOAD.replace("max_concurrency: 3", "request_rate: 2.0")
    opened = simulate(scenario(text)).requests
    assert closed["num_output_tokens"].tolist() == opened["num_output_tokens"].tolist()


def test_a_shipped_scenario_can_be_changed_key_by_key() -> None:
    spec = load_scenario("chat_8b", overrides=["hardware.target.memory.bandwidth_bytes_per_s=6.7e12"])
    assert spec.hardware.target.memory is not None
    assert spec.hardware.target.memory.bandwidth_bytes_per_s == 6.7e12


def test_a_text_whose_first_token_ends_it_has_one_token() -> None:
    text = UNIT + "distributions: {kind: explicit, target: [0.5, 0.5], draft: [0.5, 0.5], eos_token_id: 1}\n"
    text += "speculative_config: {num_speculative_tokens: 2, draft_sample_method: probabilistic}\n"
    text += "workload: {num_prompts: 4000, max_concurrency: 64, prompt_tokens: 1, output_tokens: 60}\n"
    requests = simulate(scenario(text)).requests
    # Each token ends the text with probability 1/2: lengths are geometric, in both arms.
    for _, arm in requests.groupby("arm", observed=True):
        share = (arm["num_output_tokens"] == 1).mean()
        assert abs(share - 0.5) < 4 * math.sqrt(0.25 / 4000)
        assert set(arm["ended_by"]) == {"eos"}
