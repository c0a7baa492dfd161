"""The live panel opens at the run: its batch, lookahead and acceptance, and nearly its gain."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specsim.engine.simulate import simulate
from specsim.report.numbers import figure
from specsim.report.opening import Met, fitted_acceptance, opening, opening_gain, opening_note
from specsim.report.run_files import Run, run_of
from specsim.report.run_report import what_if_of
from specsim.report.what_if import BATCHES, what_if
from specsim.scenario import Scenario, load_scenario
from specsim.speculation import theory

_MET = Met(batch=5.6, tokens_per_round=2.5, drafted_per_round=3.2, gain=1.4)
_ALONE = ("workload.num_prompts=8", "workload.max_concurrency=1")


@pytest.mark.parametrize("rate", [0.0, 0.3, 0.72, 1.0])
def test_slider_begins_at_the_rate_that_gives_the_tokens_a_round(rate: float) -> None:
    tokens = theory.expected_tokens(rate, 4)
    assert fitted_acceptance(tokens, 4) == pytest.approx(rate, abs=0.0006)


def test_panel_is_priced_at_the_batch_of_the_run_whatever_it_is(small_scenario: Scenario) -> None:
    start = opening(small_scenario, _MET)
    assert start["batch"] == 6
    assert 6 not in BATCHES
    panel = what_if(small_scenario, context_tokens=100, start=start)
    alone = what_if(small_scenario, context_tokens=100, start={**start, "batch": 8})
    row = panel["batches"].index(6)
    assert panel["devices"][0]["target_s"][row] != panel["devices"][0]["target_s"][row + 1]
    assert panel["devices"][0]["target_s"][row + 1] == alone["devices"][0]["target_s"][row]


def test_a_lookahead_beyond_the_usual_is_priced_too(small_scenario: Scenario) -> None:
    start = {**opening(small_scenario, _MET), "lookahead": 20}
    panel = what_if(small_scenario, context_tokens=100, start=start)  # type: ignore[arg-type]
    assert panel["lookaheads"][-1] == 20
    assert opening_gain(panel) is not None


@pytest.mark.parametrize("name", ["laptop", "quickstart", "two_token_example"])
def test_gain_of_one_user_at_a_time_is_that_of_the_run(name: str) -> None:
    run = run_of(simulate(load_scenario(name, overrides=_ALONE)))
    assert run.summary["speedup"] is not None
    simulated = run.summary["speedup"]["tpot"]["mean"]
    panel = what_if_of(run, run.scenario)
    assert panel["start"]["gain"] == simulated
    assert opening_gain(panel) == pytest.approx(simulated, rel=0.01)


def test_a_policy_opens_at_the_lookahead_that_it_had_on_average() -> None:
    scenario = load_scenario("laptop", overrides=("lookahead={kind: heuristic}", *_ALONE))
    assert opening(scenario, _MET)["lookahead"] == 3
    # Three drafts cannot bring 4.2 tokens a round.
    assert opening(scenario, replace(_MET, tokens_per_round=4.2))["lookahead"] == 4
    fixed = load_scenario("laptop")
    assert opening(fixed, _MET)["lookahead"] == fixed.num_speculative_tokens


def test_the_note_gives_both_gains_and_what_the_panel_leaves_out(small_run: Run) -> None:
    panel = what_if_of(small_run, small_run.scenario)
    note = opening_note(panel, "this run")
    assert f"the simulation gives {figure(panel['start']['gain'])}×" in note
    assert f"{figure(opening_gain(panel))}×" in note
    assert "leaves out prefill" in note
    without = opening_note({**panel, "start": {**panel["start"], "gain": None}}, "this run")
    assert "leaves out" not in without


def test_a_batch_that_does_not_fit_has_no_gain(small_scenario: Scenario) -> None:
    start = opening(small_scenario, replace(_MET, batch=256.0))
    panel = what_if(small_scenario, context_tokens=100_000, start=start)
    assert opening_gain(panel) is None
    assert opening_note(panel, "this run").endswith("the acceptance of this run.")
